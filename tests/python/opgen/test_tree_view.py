"""What the tree sees of the operators: a row that nothing calls yet does not change it; and how much of a build a row costs."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import tree_view

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build/dev"
POINTWISE = """
[[op]]
schema    = "zz_probe(Tensor self, Tensor other) -> Tensor"
pointwise = "self + other"
grad      = { self = "grad", other = "grad" }
jvp       = "auto_element_wise"
samples   = ["T(3), T(3)"]
doc       = "A probe."
"""
STRUCTURED = """
[[op]]
schema  = "zz_probe(Tensor self, int dim) -> Tensor"
shape   = "zz_probe_shape"
kernel  = "zz_probe"
nondiff = true
samples = ["T(3), 0"]
doc     = "A probe."
"""
COMPOSITE = """
[[op]]
schema    = "zz_probe(Tensor self, int dim) -> Tensor"
composite = "self.transpose(0, dim)"
samples   = ["T(3), 0"]
doc       = "A probe."
"""


def with_forms(row):
    return row.replace("schema", 'out = "out"\ninplace = true\nschema', 1).replace(", int dim) -> Tensor", ", int dim=0) -> Tensor")


def function_only(row):
    return row.replace("schema", 'python = "function"\nschema', 1)


@pytest.mark.parametrize(
    ("complete", "seen", "names"),
    [
        ("a f(int x);\nb g();\n", "a f(int x);\n", {"g"}),
        ("a f(int x);\n", "a f(int x);\n", set()),
        ("a f(long x);\n", "a f(int x);\n", None),
        ("b g();\n", "a f();\nb g();\n", None),
        ("std::tuple<A, B> g(int x = f());\n", "", {"g"}),
        ("#include <x.h>\n", "", None),
        ("  _(aten, probe, 7u) \\\n  _(attr, x, 8u) \\\n", "  _(attr, x, 8u) \\\n", {"aten::probe"}),
    ],
)
def test_what_was_added(complete, seen, names):
    assert tree_view.added(complete, seen) == names


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("void h() {\n  x.probe(1);\n}\n", True),
        ("void h() {\n  return probe(x);\n}\n", True),
        ("  cresset::probe(x);\n", True),
        ("  auto f = &Tensor::probe;\n", True),
        ("  p->probe();\n", True),
        ("OPERATOR(probe)\n", True),
        ("Tensor probe(const Tensor& x) {\n  return x;\n}\n", False),
        ("  ops::probe(x);\n", False),
        ("  // probe(x)\n", False),
        ('  raise("probe: no");\n', False),
        ("  probed(x);\n", False),
        ("CRESSET_API Tensor probe(const Tensor& x);\n  cresset::probe(x);\n", False),
    ],
)
def test_what_is_called(text, called):
    assert tree_view.calls(text, {"probe"}) == ({"probe"} if called else set())


def test_what_symbols_are_named():
    text = "if (n->kind() == aten::probe) return probe;\n// aten::other\n"
    assert tree_view.calls(text, {"aten::probe", "aten::other", "attr::probe"}) == {"aten::probe"}


@pytest.fixture
def tree(tmp_path, opgen):
    """A copy of the tables with the tree's views of them; rows are appended with `append`."""

    class Tree:
        tables, generated, root = tmp_path / "root/src/ops", tmp_path / "gen", tmp_path / "root"

        def generate(self):
            done = opgen("generate", "--tables", self.tables, "--out", self.generated)
            assert done.code == 0, done.err
            return tree_view.write(self.root, self.generated)

        def append(self, family, row):
            with open(self.tables / f"{family}.toml", "a") as table:
                table.write(row)
            before = self.texts()
            self.generate()
            after = self.texts()
            return {path for path, text in after.items() if before.get(path) != text}

        def texts(self):
            return {p.relative_to(self.generated).as_posix(): p.read_text() for p in self.generated.rglob("*") if p.is_file() and p.name != ".opgen-files"}

    tree = Tree()
    tree.tables.parent.mkdir(parents=True)
    shutil.copytree(ROOT / "src/ops", tree.tables, ignore=lambda folder, names: [n for n in names if not n.endswith(".toml")])
    shutil.copytree(ROOT / "src/autograd", tree.root / "src/autograd")
    tree.generate()
    return tree


def test_a_row_that_nothing_calls_leaves_what_the_tree_sees(tree):
    changed = tree.append("arith", POINTWISE)
    assert "include/cresset/ops/tensor_methods.inc" in changed and "include/cresset/ops/functions_arith.h" in changed
    assert not [path for path in changed if path.startswith("tree/")]


def test_a_call_shows_the_row(tree):
    tree.append("arith", POINTWISE)
    (tree.root / "src/user.cpp").write_text("Tensor twice(const Tensor& x) {\n  return x.zz_probe(x);\n}\n")
    assert tree_view.write(tree.root, tree.generated) == 2  # of the names that graphs mention none is used
    for name in ("tensor_methods.inc", "functions_arith.h"):
        assert (tree.generated / "tree/cresset/ops" / name).read_text() == (tree.generated / "include/cresset/ops" / name).read_text()
    assert tree_view.write(tree.root, tree.generated) == 0


def test_a_changed_declaration_shows_at_once(tree):
    table = tree.tables / "arith.toml"
    table.write_text(table.read_text().replace('"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)', '"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=2)'))
    tree.generate()
    assert "const Scalar& alpha = 2" in (tree.generated / "tree/cresset/ops/functions_arith.h").read_text()


# --- what a row costs -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dependencies():
    """Object of build/dev -> what it was compiled from. Objects that only a check compiles do not count."""
    ninja = shutil.which("ninja") or re.search("^CMAKE_MAKE_PROGRAM:[A-Z]*=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)[1]
    text = subprocess.run([ninja, "-C", BUILD, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found, current = {}, None
    for line in text.splitlines():
        if line.startswith(" "):
            current.add((BUILD / line.strip()).as_posix())
        elif ".o: #deps" in line:
            current = found[line.partition(":")[0]] = set()
        else:
            current = set()
    return {name: files for name, files in found.items() if "check_alone" not in name}


@pytest.mark.parametrize(
    ("family", "row", "most"),
    [
        ("arith", POINTWISE, 20), ("arith", function_only(POINTWISE), 12), ("reduce", STRUCTURED, 20), ("reduce", function_only(STRUCTURED), 12),
        ("view", COMPOSITE, 20), ("view", function_only(COMPOSITE), 12), ("special", COMPOSITE, 20),
        ("arith", with_forms(POINTWISE), 20), ("reduce", with_forms(STRUCTURED), 20), ("special", with_forms(COMPOSITE), 20),
    ],
)  # fmt: skip
def test_objects_that_an_appended_row_compiles_again(tree, dependencies, family, row, most):
    changed = {(BUILD / "gen" / path).as_posix() for path in tree.append(family, row)}
    objects = [name for name, files in dependencies.items() if any(path in changed for path in files)]
    rooms = Counter(str(Path(name).parts[1]) for name in objects)
    assert 0 < len(objects) <= most, (len(objects), rooms)
