"""Packages: what goes in by which pattern, modules of their own, pickles that share storages, resources, graphs and scripts; both ways with PyTorch."""

import importlib.resources  # noqa: F401
import io
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import cresset as torch
from cresset.package import (
    EmptyMatchError, GlobGroup, ObjMismatchError, OrderedImporter, PackageExporter, PackageImporter, PackagingError, analyze, is_from_package, sys_importer
)  # fmt: skip

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))


def exported(write, **options):
    f = io.BytesIO()
    with PackageExporter(f, **options) as exporter:
        write(exporter)
    f.seek(0)
    return f


def holder():
    from parts import Holder

    return Holder(21)


def test_a_pickle_brings_its_sources():
    obj = holder()

    def write(e):
        e.intern("parts.**")
        e.save_pickle("model", "model.pkl", obj)
        assert e.interned_modules() == ["parts", "parts.inner.helpers"] and e.externed_modules() == ["math"]
        assert e.get_rdeps("math") == ["parts.inner.helpers"]
        assert '"parts" -> "parts.inner.helpers";' in e.dependency_graph_string()

    importer = PackageImporter(exported(write))
    loaded = importer.load_pickle("model", "model.pkl")
    assert loaded.doubled() == 42 and type(loaded) is not type(obj) and type(loaded).__module__ == importer.id() + ".parts"
    assert is_from_package(loaded) and not is_from_package(obj) and is_from_package(importer.import_module("parts"))
    assert importer.import_module("math") is __import__("math")
    assert "class Holder" in importer.get_source("parts") and importer.python_version() == ".".join(map(str, sys.version_info[:3]))
    tree = importer.file_structure(include="**/*.py")
    assert tree.has_file("parts/__init__.py") and not tree.has_file("parts/module.py") and str(tree).startswith("─── <binary>\n    └── parts\n        ├── inner\n")
    with pytest.raises(ModuleNotFoundError, match='No module named "missing" in self-contained archive'):
        importer.import_module("missing")


def test_modules_share_storages_and_move(tmp_path):
    from parts.module import Small

    model = Small()

    def write(e):
        e.intern("parts.**")
        e.save_pickle("model", "model.pkl", {"model": model, "row": model.linear.weight.detach()[0]})

    path = tmp_path / "small.pt"
    path.write_bytes(exported(write).getvalue())
    loaded = PackageImporter(path).load_pickle("model", "model.pkl", map_location="cpu")
    x = torch.randn(4, 3)
    assert torch.equal(loaded["model"](x), model(x)) and loaded["model"].alias is loaded["model"].linear.weight
    assert loaded["row"].untyped_storage().data_ptr() == loaded["model"].linear.weight.untyped_storage().data_ptr()
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "out")
        (top,) = os.listdir(tmp_path / "out")
    assert torch.equal(PackageImporter(tmp_path / "out" / top).load_pickle("model", "model.pkl")["model"](x), model(x))


@pytest.mark.parametrize(
    ("write", "error", "words"),
    [
        (lambda e: e.save_source_string("m", "import numpy"), PackagingError, "Module did not match against any action pattern. Extern, mock, or intern it.\n    numpy\n"),
        (lambda e: (e.deny("numpy*"), e.save_source_string("m", "import numpy")), PackagingError, "Module was denied by a pattern.\n    numpy\n"),
        (lambda e: e.save_source_string("m", "from .... import x"), PackagingError, "Context: attempted relative import beyond top-level package"),
        (lambda e: e.save_module("math"), PackagingError, "Module is a C extension module. torch.package supports Python modules only.\n    math\n"),
        (lambda e: (e.mock("parts"), e.save_pickle("m", "x", holder())), PackagingError, "Object\\(s\\) '\\['Holder'\\]' from module `parts` was mocked out"),
        (lambda e: e.extern("zz.*", allow_empty=False), EmptyMatchError, "did not match any modules to GlobGroup\\(include=zz.\\*, exclude=\\(\\)\\)"),
        (lambda e: e.save_module(torch), TypeError, "did you perhaps mean to pass `__name__`"),
        (lambda e: (e.save_text("m", "x", "1"), e.save_text("m", "x", "2")), AssertionError, "Tried to write file 'm/x'"),
    ],
)
def test_refusals(write, error, words):
    with pytest.raises(error, match=words):
        exported(write)


def test_a_failed_export_leaves_no_file(tmp_path):
    path = tmp_path / "broken.pt"
    with pytest.raises(PackagingError, match="A path to numpy: m -> numpy"), PackageExporter(path, debug=True) as e:
        e.save_source_string("m", "import numpy")
    assert os.listdir(tmp_path) == []


def test_extern_and_mock():
    called = []

    def write(e):
        e.extern("numpy")
        e.mock(["parts.**"])
        e.register_mock_hook(lambda exporter, name: called.append(name))
        e.register_extern_hook(lambda exporter, name: called.append(name)).remove()
        e.save_source_string("m", "import numpy, parts.inner\nfrom parts.inner import helpers\nvalue = parts.inner.anything")

    f = exported(write)
    importer = PackageImporter(f)
    module = importer.import_module("m")
    assert module.numpy is __import__("numpy") and called == ["parts.inner", "parts.inner.helpers"]
    with pytest.raises(NotImplementedError, match="parts.inner.anything' was mocked out during packaging but it is being used in __call__"):
        module.value()
    with pytest.raises(ImportError, match="needs the external module 'numpy' but that module has been disallowed"):
        PackageImporter(f, module_allowed=lambda name: name != "numpy")


def test_resources():
    def write(e):
        e.save_source_string("code", "import importlib.resources, data\nimport torch_package_importer as p\ntext = importlib.resources.read_text(data, 'a.txt')\nown = p.load_binary('data', 'b')\n")
        e.save_text("data", "a.txt", "hä")
        e.save_binary("data", "b", b"\0\1")
        e.save_binary("data.deep", "c", b"")

    importer = PackageImporter(exported(write))
    assert importer.import_module("code").text == "hä" and importer.import_module("code").own == b"\0\1"
    reader = importer.get_resource_reader("data")
    assert list(reader.contents()) == ["a.txt", "b", "deep"] and reader.is_resource("b") and not reader.is_resource("deep")
    assert importer.load_text("data", "a.txt") == "hä"
    with pytest.raises(RuntimeError, match="failed locating file data/zz"):
        importer.load_text("data", "zz")


def test_packages_are_packaged_again():
    def write(e):
        e.intern("parts.**")
        e.save_pickle("m", "x", holder())

    first, second = PackageImporter(exported(write)), PackageImporter(exported(write))
    loaded = first.load_pickle("m", "x")
    again = PackageImporter(exported(lambda e: (e.intern("**"), e.save_pickle("m", "x", loaded)), importer=[first, sys_importer]))
    assert again.load_pickle("m", "x").doubled() == 42
    for importer, obj in (([first, sys_importer], holder()), ([second, sys_importer], loaded), (sys_importer, loaded)):
        with pytest.raises(pickle.PicklingError):
            exported(lambda e, obj=obj: e.save_pickle("m", "x", obj), importer=importer)
    with pytest.raises(ObjMismatchError):
        OrderedImporter(second, sys_importer).get_name(type(loaded))


def test_graphs_and_scripts():
    from parts.module import Small

    model = Small()
    traced, scripted, x = torch.fx.symbolic_trace(model), torch.jit.script(torch.nn.Linear(3, 2)), torch.randn(2, 3)
    f = exported(lambda e: e.save_pickle("m", "x", [traced, scripted, scripted]))
    loaded, one, two = PackageImporter(f).load_pickle("m", "x")
    assert torch.equal(loaded(x), model(x)) and one is two and torch.equal(one(x), scripted(x))
    assert isinstance(loaded, torch.fx.GraphModule)


def test_scripts_share_memory_with_what_is_beside_them():
    from parts.module import Scaled

    tensor = torch.arange(6.0)
    scripts = [torch.jit.script(torch.nn.Sequential(Scaled(tensor[1:]))), torch.jit.script(Scaled(tensor)), torch.jit.script(Scaled(torch.ones(1)))]
    for _ in range(2):  # the second package is written from what was read
        f = exported(lambda e: e.save_pickle("m", "x", [*scripts, tensor]))
        one, two, alone, beside = scripts = PackageImporter(f).load_pickle("m", "x")
        assert len([name for name in zipfile.ZipFile(f).namelist() if name.endswith(".storage")]) == 1  # what is not shared is in the archive alone
        beside.add_(1)
        assert one(torch.ones(5)).tolist() == beside[1:].tolist() and two(torch.ones(6)).tolist() == beside.tolist() and alone(torch.ones(1)).item() == 1
        *scripts, tensor = scripts


def test_globs():
    assert GlobGroup("a.*.c").matches("a.b.c") and not GlobGroup("a.*.c").matches("a.c")
    assert GlobGroup("a.**").matches("a") and not GlobGroup("a.**", exclude="a.b").matches("a.b")
    with pytest.raises(ValueError, match="can only appear as an entire path segment"):
        GlobGroup("a.**b")


def test_analyze():
    from parts.inner import helpers

    assert "parts.inner.helpers" in analyze.trace_dependencies(helpers.root, [(4.0,)])
    with pytest.raises(PackagingError) as raised:
        exported(lambda e: (e.intern("n"), e.save_source_string("m", "import numpy")))
    assert analyze.find_first_use_of_broken_modules(raised.value) == {"numpy": ["m", "numpy"]}


PEER = os.environ.get("CRESSET_ORACLE_PYTHON")
WRITE = """
import sys, torch
from torch.package import PackageExporter
sys.path.insert(0, sys.argv[2])
import parts
with PackageExporter(sys.argv[1]) as e:
    e.intern("parts.**")
    e.save_pickle("m", "x", {"h": parts.Holder(21), "t": torch.arange(6.0).view(2, 3).t(), "g": torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))})
    e.save_text("m", "t.txt", "words")
"""
READ = """
import sys, torch
from torch.package import PackageImporter
importer = PackageImporter(sys.argv[1])
made = importer.load_pickle("m", "x")
assert made["h"].doubled() == 42 and made["t"].tolist() == [[0, 3], [1, 4], [2, 5]] and made["t"].stride() == (1, 3)
assert made["g"](torch.tensor([-1.0, 2.0])).tolist() == [0, 2] and importer.load_text("m", "t.txt") == "words"
"""


@pytest.mark.skipif(not PEER, reason="CRESSET_ORACLE_PYTHON names a Python with PyTorch")
@pytest.mark.parametrize("writer", ["cresset", "torch"])
def test_files_cross_to_pytorch(tmp_path, writer):
    path = str(tmp_path / "crossing.pt")
    own, peer = [sys.executable, "-m", "cresset.as_torch", "-c"], [PEER, "-c"]
    for command, program in ((own if writer == "cresset" else peer, WRITE), (peer if writer == "cresset" else own, READ)):
        done = subprocess.run([*command, program, path, str(HERE)], capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
