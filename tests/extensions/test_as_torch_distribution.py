"""The distribution cresset-as-torch: what it installs, what it answers, and where it refuses."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import setuptools

ROOT = Path(__file__).resolve().parents[2]
TREE = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}


def run(*command, code=0, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=TREE | environment, cwd="/")
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def site_of(folder):
    return next(Path(folder, "lib").glob("python*")) / "site-packages"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment that finds the tree's cresset and setuptools, and has the distribution installed."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    (site_of(folder) / "tree.pth").write_text(f"{ROOT / 'python'}\n{Path(setuptools.__file__).parents[1]}\n")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check"]
    run(*pip, ROOT / "compat/torch")
    return folder


ANSWERS = """
import importlib.metadata, os, pathlib
assert importlib.metadata.version("torch") == "2.13.0+cresset0.1.0"
import torch, cresset, torch.nn.functional as F, functorch
from importlib.metadata import requires, version
assert torch is cresset and torch.__version__ == torch.version.__version__ == version("torch") and torch.__version__ > (2, 12)
assert torch.__name__ == "torch" and repr(torch.float32) == "torch.float32" and functorch.vmap
assert version("cresset-as-torch") == "0.1.0" and requires("cresset-as-torch") == ["cresset-runtime==0.1.0"]
from torch.utils.cpp_extension import include_paths
assert any(pathlib.Path(folder, "torch/extension.h").exists() for folder in include_paths())
print(F.relu(torch.tensor([-1.0, 2.0])).tolist())
"""


def test_what_it_answers(environment):
    assert run(environment / "bin/python", "-c", ANSWERS) == "[0.0, 2.0]\n"
    assert (site_of(environment) / "torch/share/cmake/Torch/TorchConfig.cmake").exists()


def test_requirements_on_torch_are_satisfied(environment, tmp_path):
    wanted = tmp_path / "wants"
    wanted.mkdir()
    (wanted / "wants.py").write_text("")
    (wanted / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n')
    (wanted / "b.py").write_text(
        "import zipfile, pathlib\n"
        "def build_wheel(folder, *rest):\n"
        "    name = 'wants-1-py3-none-any.whl'\n"
        "    with zipfile.ZipFile(pathlib.Path(folder, name), 'w') as z:\n"
        "        z.writestr('wants.py', '')\n"
        "        z.writestr('wants-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: wants\\nVersion: 1\\nRequires-Dist: torch==2.13.0\\n')\n"
        "        z.writestr('wants-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
        "        z.writestr('wants-1.dist-info/RECORD', '')\n"
        "    return name\n"
    )
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin/python", "install", "-q", "--no-index", "--disable-pip-version-check"]
    run(*pip, wanted)
    refused = run(*pip, "torch>=99", code=1)
    assert "No matching distribution" in refused or "conflicting dependencies" in refused  # as pip's version has it


def test_it_is_not_installed_over_pytorch(tmp_path):
    venv.create(tmp_path / "env")
    info = site_of(tmp_path / "env") / "torch-2.13.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    said = run(sys.executable, "-m", "pip", "--python", tmp_path / "env/bin/python", "install", "--no-deps", "--no-index", ROOT / "compat/torch", code=1)
    assert "cresset-as-torch: PyTorch 2.13.0 is installed in" in said and "pip uninstall torch" in said
    assert not (site_of(tmp_path / "env") / "torch").exists()


def test_its_files_among_those_of_pytorch_are_refused(tmp_path):
    (tmp_path / "torch/lib").mkdir(parents=True)
    (tmp_path / "torch/__init__.py").write_text((ROOT / "compat/torch/python/torch/__init__.py").read_text())
    said = run(sys.executable, "-c", "import torch", code=1, PYTHONPATH=f"{tmp_path}:{ROOT / 'python'}")
    assert "ImportError: torch: the files of PyTorch and of cresset-as-torch lie in one folder" in said


def test_the_alias_in_a_process_has_the_metadata_too():
    code = "from cresset import as_torch; as_torch.install(); from importlib.metadata import version; print(version('torch'))"
    assert run(sys.executable, "-c", code, PYTHONPATH=str(ROOT / "python")) == "2.13.0+cresset0.1.0\n"


def test_a_foreign_project_of_this_name(tmp_path):
    """Its files among ours, and in front of ours."""
    (tmp_path / "both").mkdir()
    (tmp_path / "both/cresset").symlink_to(ROOT / "python/cresset")
    (tmp_path / "both/cresset-0.1.1.dist-info").mkdir()
    said = run(sys.executable, "-c", "import cresset", code=1, PYTHONPATH=str(tmp_path / "both"))
    assert "holds files of another project with this name (cresset-0.1.1) among those of cresset-runtime" in said and "pip uninstall cresset" in said
    (tmp_path / "front/cresset").mkdir(parents=True)
    (tmp_path / "front/cresset/__init__.py").write_text('"""SPDX"""')
    path = f"{tmp_path / 'front'}:{ROOT / 'compat/torch/python'}:{ROOT / 'python'}"
    assert "belongs to another project called cresset" in run(sys.executable, "-c", "import torch", code=1, PYTHONPATH=path)
