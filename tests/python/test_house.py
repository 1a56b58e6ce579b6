"""The house rules hold for the tree, and their checkers find what they are meant to find."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.path.insert(0, str(ROOT / "tools"))  # tools that import tools
layers = load("check_layers")
tree = load("check_tree")
imports = load("check_imports")
functions = load("check_functions")
operator_lists = load("check_operator_lists")


def test_includes_follow_the_layers():
    assert layers.check_root(ROOT) == []


def test_generated_includes_follow_the_layers():
    assert layers.check_root(ROOT, ROOT / "build/dev/gen") == []


@pytest.mark.slow
def test_sources_of_a_layer_stand_alone():
    """Builds with CRESSET_UNITY (all presets) compile several sources as one; others compile each by itself, without what the others include."""
    cmake = re.search("^CMAKE_COMMAND:INTERNAL=(.*)$", (ROOT / "build/dev/CMakeCache.txt").read_text(), re.M)[1]
    done = subprocess.run([cmake, "--build", ROOT / "build/dev", "--target", "check_alone"], capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert done.returncode == 0, "\n".join(errors[:10]) or done.stdout[-2000:]


def test_readme_links_every_page():
    files = tree.files_of(ROOT)
    assert tree.check_pages((ROOT / "README.md").read_text(), files) == []
    assert tree.check_pages("[a](docs/guide/a.md)", [Path("docs/guide/a.md"), Path("docs/recipes/b.md")]) == ["README.md has no link to docs/recipes/b.md"]


@pytest.mark.parametrize(
    ("layer", "public", "text", "message"),
    [
        ("core", False, "#include <cresset/dispatch/library.h>\n", "core includes cresset/dispatch/library.h of dispatch"),
        ("base", True, '#include "base/thread_state.h"\n', "a public header includes the private header"),
        ("ops", False, '#include "backends/cpu/isa.h"\n', "ops includes backends/cpu/isa.h of backends"),
        ("ops", False, '#include "cpu/cpu_decl_arith.h"\n', "of backends, which is above or beside it"),
        ("ir", False, "#include <cresset/autograd/node.h>\n", "ir includes cresset/autograd/node.h of autograd"),
        ("autograd", False, "#include <cresset/cresset.h>\n", "of umbrella"),
        ("python", False, "#include <torch/extension.h>\n", "only compat/ may name PyTorch's headers"),
        ("python", False, "#include <cresset/ir/tracer.h>\n", "python includes cresset/ir/tracer.h of ir"),
        ("python", False, '#include "python/graph/tracer.h"\n', "of python/graph, which is above or beside it"),
        ("core", True, "#include <fmt/format.h>\n", "need nothing but the standard library"),
        ("core", False, "#include <cresset/attic/x.h>\n", "'attic' is no layer"),
    ],
)
def test_layer_violation_is_found(layer, public, text, message):
    problems = layers.check_text("// note\n" + text, layer, public, ROOT / "src" / layer / ("graph/x.cpp" if layer == "ir" else "x.cpp"))
    assert [line for line, _ in problems] == [2]
    assert message in problems[0][1]


@pytest.mark.parametrize(
    ("layer", "public", "text"),
    [
        ("core", True, "#include <cresset/ops/tensor_methods.inc>\n#include <vector>\n#include <cresset/base/error.h>\n"),
        ("backends", False, '#include "ops/shared/shape_util.h"\n#include <cblas.h>\n#include "cpu/cpu_decl_arith.h"\n'),
        ("engine", False, '#include "ir/graph.h"\n'),
        ("python", False, "#include <cresset/autograd/node.h>\n#include <nanobind/nanobind.h>\n"),
        ("python/graph", False, '#include <cresset/cresset.h>\n#include <cresset/ir/ir.h>\n#include "python/bind.h"\n'),
    ],
)
def test_allowed_includes_pass(layer, public, text):
    assert layers.check_text(text, layer, public, ROOT / "src" / layer / ("graph/x.cpp" if layer == "ir" else "x.cpp")) == []


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("src/ir/graph/x.cpp", '#include "ir/text/text.h"\n', "ir's graph includes ir/text/text.h of text, which is above it"),
        ("src/ir/analysis/x.cpp", "#include <cresset/ir/lowering.h>\n", "ir's analysis includes cresset/ir/lowering.h of lowering, which is above it"),
        ("src/ir/native/x.cpp", '#include "ir/frontend/parser.h"\n', "ir's native includes ir/frontend/parser.h of frontend, which is above it"),
        ("src/ir/run/x.cpp", "#include <cresset/ir/attic.h>\n", "includes cresset/ir/attic.h, which stands on no floor of ir"),
        ("src/ir/x.cpp", "", "stands on no floor of ir (IR_FLOORS in tools/check_layers.py)"),
        ("include/cresset/ir/ir.h", "#include <cresset/ir/pass.h>\n", "ir's graph includes cresset/ir/pass.h of rewrite, which is above it"),
    ],
)
def test_include_up_the_floors_of_ir_is_found(file, text, message):
    assert layers.check_text(text, "ir", file.startswith("include"), ROOT / file) == [(1, message)]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("src/ops/shared/x.cpp", '#include "ops/shared/structured.h"\n#include "ops/fused.h"\n', "ops: shared includes ops/fused.h of a family, which is above or beside it"),
        ("src/ops/x.cpp", '#include "ops/norm.h"\n#include "ops/device/backend_copy.h"\n', "ops: a family includes ops/device/backend_copy.h of device, which is above or beside it"),
    ],
)  # fmt: skip
def test_include_of_another_room_of_ops_is_found(file, text, message):
    assert layers.check_text(text, "ops", False, ROOT / file) == [(2, message)]


def test_folder_of_ops_that_is_no_room_is_found():
    assert layers.check_text("", "ops", False, ROOT / "src/ops/attic/x.cpp") == [(1, "stands in no room of ops (OPS_ROOMS in tools/check_layers.py)")]


def test_sources_beside_the_table_are_of_a_family():
    assert tree.check_families(tree.files_of(ROOT)) == []
    files = [Path(f"src/ops/{name}") for name in ("norm.toml", "norm.cpp", "norm_rows.h", "normal.cpp", "symbols.txt", "shared/a.cpp")]
    assert tree.check_families(files) == ["src/ops/normal.cpp is of no family of operators (<family> or <family>_<part>); what several share is src/ops/shared"]


def test_file_left_at_the_root_is_found():
    assert tree.check_root(tree.files_of(ROOT)) == []
    assert tree.check_root([Path("LICENSE"), Path("model.pt"), Path("tests/model.pt")]) == ["model.pt is not one of the files at the root"]


def test_python_modules_import_in_one_direction():
    assert imports.check_package(ROOT / "python/cresset", imports.KNOWN_CIRCLES) == []


def test_circle_of_imports_is_found(tmp_path):
    package = tmp_path / "sample"
    package.mkdir()
    files = {
        "__init__": "from . import a, b, c\n",
        "a": "def f():\n    from .b import g\n    return g\n",
        "b": "from typing import TYPE_CHECKING\nfrom .c import h\nif TYPE_CHECKING:\n    from .d import k\n",
        "c": "import sample.a\n",
        "d": "from . import b\n",
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    circle = frozenset({"sample.a", "sample.b", "sample.c"})
    assert imports.check_package(package, {}) == ["modules import one another: sample.a, sample.b, sample.c"]
    assert imports.check_package(package, {circle | {"sample.d"}: "a reason"}) == []
    (package / "c.py").write_text("")
    assert imports.check_package(package, {circle: "a reason"}) == ["KNOWN_CIRCLES: sample.a, sample.b, sample.c is no circle any more"]


def test_map_of_folders_matches_the_tree():
    assert tree.check_map((ROOT / "ARCHITECTURE.md").read_text(), tree.files_of(ROOT)) == []


def test_map_differences_are_found():
    files = [Path("src/base/error.cpp"), Path("tools/setup")]
    assert tree.check_map("`src/`, `src/base/`, `tools/`", files) == []
    assert tree.check_map("`src/`, `src/attic/`, `tools/`", files) == [
        "ARCHITECTURE.md names `src/attic/`, which does not exist",
        "ARCHITECTURE.md does not name `src/base/`",
    ]


def test_lists_of_sources_are_complete_and_in_order():
    files = tree.files_of(ROOT)
    assert tree.check_source_lists(ROOT, files) + tree.check_order(ROOT, files) + tree.check_test_rooms(files) == []


def test_files_that_are_named_exist():
    assert tree.check_file_names(ROOT, tree.files_of(ROOT)) == []


def test_faults_of_lists_and_names_are_found(tmp_path):
    texts = {
        "src/base/CMakeLists.txt": "# error.cpp\nlayer(base\n  b.cpp\n  a.cpp)\n", "src/base/a.cpp": "// as base/b.cpp and a.cpp\n", "src/base/b.cpp": 'f("c.cpp");\n',
        "src/base/c.cpp": "", "tests/cpp/attic/a_test.cpp": "", "docs/design/page.md": "`a.cpp`, src/core/a.cpp\n```\nd.cpp\n```\nd.h\n", "CHANGELOG.md": "old.cpp\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    files = [Path(name) for name in texts]
    assert tree.check_source_lists(tmp_path, files) == ["src/base/c.cpp is not in src/base/CMakeLists.txt"]
    assert tree.check_order(tmp_path, files) == ["src/base/CMakeLists.txt:4: a.cpp stands behind b.cpp; sources are listed in alphabetical order"]
    assert tree.check_test_rooms(files) == ["tests/cpp/attic has no room src/attic"]
    assert tree.check_file_names(tmp_path, files) == [
        "src/base/CMakeLists.txt:1: names error.cpp, which does not exist",
        "docs/design/page.md:1: names src/core/a.cpp, which does not exist",
        "docs/design/page.md:5: names d.h, which does not exist",
    ]


def test_functions_are_short():
    assert functions.check(ROOT, tree.files_of(ROOT), functions.LONG_FUNCTIONS) == []


LINES = "  step();\n" * 70


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("src/a.cpp", "int f(int x) {\n" + LINES + "}\n", [("f", 1)]),
        ("src/a.cpp", "\nA::A(int x,\n     int y)\n    : x_(x), y_{y} {\n#ifdef B\n" + LINES + "}\n", [("A", 2)]),
        ("src/a.cpp", "class A {\n  int f() const {\n" + LINES.replace("  ", "    ") + "  }\n};\n", [("f", 2)]),
        ("src/a.cpp", "namespace a {\nstruct A {\n" + LINES + "};\n" + "void f() {}\n" * 80 + "}\n", []),
        ("tools/a.py", "def f():\n    '''Long.\n" + "\n" * 80 + "    '''\n    return 1\n", []),
        ("tools/a", "#!/usr/bin/env python3\nclass A:\n    def f(self):\n" + "        step()\n" * 70, [("f", 3)]),
        ("tests/a.py", "def f():\n" + "    step()\n" * 70, []),
    ],
)
def test_long_function_is_found(tmp_path, name, text, found):
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(text)
    problems = functions.check(tmp_path, [Path(name)], {})
    assert [p.split(" has ")[0] for p in problems] == [f"{name}:{line}: {function}" for function, line in found]
    known = {(name, function): "a reason" for function, _ in found}
    assert functions.check(tmp_path, [Path(name)], known) == []
    assert functions.check(tmp_path, [], {(name, "f"): "a reason"}) == [f"LONG_FUNCTIONS: f of {name} is not that long any more"]


def test_operators_stand_in_the_table_only():
    assert operator_lists.check() == []


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("src/ir/x.cpp", 'const char* names[] = {\n    "aten::add", "aten::mul", "aten::sub",\n    "aten::div", "aten::exp", "aten::log"};\n', [2]),
        ("src/ir/x.cpp", 'a("aten::add");\nb("aten::mul");\nc("aten::sub");\nd("aten::div");\ne("aten::exp");\nf("aten::log");\n', []),
        ("src/ir/x.cpp", 'names = {"add", "mul", "sub", "div", "exp"};\n', []),
        ("python/cresset/x.py", 'NAMES = ("add", "mul", "sub", "div", "exp", "log")\n', [1]),
        ("python/cresset/x.py", 'NAMES = "add mul sub div exp log".split()\n', [1]),
        ("python/cresset/x.py", '__all__ = ["add", "mul", "sub", "div", "exp", "log"]\n', []),
        ("python/cresset/x.py", 'NAMES = ("add", "a", "b", "c", "mul", "sub", "div", "exp", "log", "d", "e", "f", "g")\n', []),
    ],
)
def test_second_list_of_operators_is_found(tmp_path, name, text, lines):
    (tmp_path / "src/ops").mkdir(parents=True)
    (tmp_path / "src/ops/arith.toml").write_text("".join(f'[[op]]\nschema = "{n}(Tensor self) -> Tensor"\n' for n in "add mul sub div exp log".split()))
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert [int(p.split(":")[1]) for p in operator_lists.check(tmp_path, {})] == lines
    assert operator_lists.check(tmp_path, {name: "a reason"}) == ([] if lines else [f"tools/operator_lists.toml: {name} has no list of operators any more."])


def test_every_source_is_in_a_list():
    assert tree.check_source_lists(ROOT, tree.files_of(ROOT)) == []


def test_unlisted_source_is_found(tmp_path):
    folder = tmp_path / "src/base"
    folder.mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text("cresset_layer(base\n  SOURCES\n    error.cpp\n)\n")
    files = [Path("src/base/error.cpp"), Path("src/base/stray.cpp")]
    assert tree.check_source_lists(tmp_path, files) == ["src/base/stray.cpp is not in src/base/CMakeLists.txt"]


def test_long_file_is_reported(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n" * 801)
    (tmp_path / "b.py").write_text("x = 1\n" * 800)
    assert tree.long_files(tmp_path, [Path("a.py"), Path("b.py")]) == [(801, Path("a.py"))]


def test_summary_counts_both_runners(tmp_path):
    suite = tmp_path / "test_sample.py"
    suite.write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    command = [sys.executable, str(ROOT / "tools/run_tests"), "--python-only", "--", "-p", "no:cacheprovider",
               f"--rootdir={tmp_path}", str(suite)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "1 passed, 1 failed"


def test_summary_of_a_runner_that_finds_nothing_is_a_failure(tmp_path):
    command = [sys.executable, str(ROOT / "tools/run_tests"), "--cpp-only", "--build", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert re.fullmatch(r"0 passed, 1 failed", result.stdout.splitlines()[-1])
