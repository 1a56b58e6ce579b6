"""Names of torch in the sources of others: what is read from them, and what is looked up."""


def test_names_of_a_source(tool):
    text = (
        "import torch\nimport torch.nn as nn\nimport torch.utils.data\nfrom torch.optim import Adam as A, SGD\nfrom torch.x import *\nfrom . import torch as other\n"
        "def f(y):\n    return nn.functional.relu(torch.ones(2)) + y.torch + A.step\n"
    )
    assert set(tool("package_names").names_of(text)) == {
        "torch", "torch.nn", "torch.utils.data", "torch.optim.Adam", "torch.optim.SGD", "torch.nn.functional.relu", "torch.nn.functional", "torch.ones",
        "torch.optim.Adam.step",
    }  # fmt: skip


def test_packages_are_the_first_folders(tool, tmp_path):
    for name, text in {"a/x.py": "import torch\ntorch.ones", "a/deep/y.py": "import torch\ntorch.ones", "b/z.py": "import torch\ntorch.zeros", "b/bad.py": "import torch\n(", "torch/own.py": "import torch\ntorch.own"}.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert tool("package_names").used_names([tmp_path]) == {"torch": {"a", "b"}, "torch.ones": {"a"}, "torch.zeros": {"b"}}


def test_a_name_exists_as_an_attribute_or_a_module(tool):
    exists = tool("package_names").exists
    assert exists("json.dumps") and exists("xml.dom.minidom") and not exists("json.nothing") and not exists("xml.nothing.at_all")
