"""What comes out of the pilot rows."""

import ast
import json
import re
from pathlib import Path

import pytest

TABLES = Path(__file__).resolve().parent / "tables"


@pytest.fixture(scope="module")
def facts(pilot):
    return {f["name"].removeprefix("aten::") + ("." + f["overload"] if f["overload"] else ""): f
            for f in json.loads((pilot / "data/operators.json").read_text())}


def test_outputs_lists_exactly_what_generate_writes(opgen, pilot):
    listed = opgen("outputs", "--tables", TABLES, "--out", pilot).out.splitlines()
    paths = {line.split("\t")[1] for line in listed}
    written = {str(p) for p in pilot.rglob("*") if p.is_file() and p.name != ".opgen-files"}
    assert paths == written
    assert {line.split("\t")[0] for line in listed} == {"core-header", "ops", "autograd", "cpu", "cpu-isa", "python", "data"}


def test_second_run_touches_nothing_and_removed_rows_remove_files(family, opgen, tmp_path):
    row = '[[op]]\nschema = "f(Tensor self) -> Tensor"\ncpu = "f"\n'
    _, out = family(row)
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    family(row)
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()} == before
    (tmp_path / "tables/sample.toml").rename(tmp_path / "tables/other.toml")
    assert opgen("generate", "--tables", tmp_path / "tables", "--out", out).code == 0
    assert not list(out.rglob("*sample*")) and list(out.rglob("*other*"))


def test_derived_forms(facts):
    assert facts["add_.Tensor"]["schema"] == "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    assert facts["add.out"]["schema"] == "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
    assert facts["max.dim_max"]["schema"] == ("aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values)"
                                              " -> (Tensor(a!) values, Tensor(b!) indices)")
    assert facts["zeros.out"]["schema"] == "aten::zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)"
    assert facts["multiply_.Tensor"]["alias_of"] == "aten::mul_.Tensor"


def test_declarations_have_the_published_format(pilot):
    text = (pilot / "data/RegistrationDeclarations.h").read_text()
    assert ('Tensor & add_out(const Tensor & self, const Tensor & other, const Scalar & alpha, Tensor & out); // {"schema": "aten::add.out(Tensor self, '
            'Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)", "dispatch": "True", "default": "False"}\n') in text
    assert ('Tensor multiply(const Tensor & self, const Tensor & other); // {"schema": "aten::multiply.Tensor(Tensor self, Tensor other) -> Tensor", '
            '"dispatch": "False", "default": "False"}\n') in text
    line = re.compile(r'^[\w:<>,&\s]+ \w+\([^;]*\); // (\{.*\})$')
    for entry in text.splitlines():
        data = json.loads(line.match(entry).group(1))
        assert list(data) == ["schema", "dispatch", "default"]


def test_facts(facts):
    assert facts["add.Tensor"]["pure"] and not facts["add_.Tensor"]["pure"]
    assert facts["add_.Tensor"]["mutates"] == ["self"]
    assert facts["view"]["view"] and facts["view"]["aliasing"] == [{"output": 0, "input": "self", "write": False}]
    assert [facts[k]["differentiable"] for k in ("add.Tensor", "reshape", "eq.Tensor", "opaque")] == ["formula", "composite", "none", "not_implemented"]
    assert [facts[k]["node"] for k in ("add.Tensor", "add.Scalar", "fill_.Scalar")] == ["AddBackward0", "AddBackward1", "FillBackward0"]
    assert facts["sum.dim_IntList"]["samples"][0] == "T(3,4), [0]"


def test_saved_values_are_as_small_as_the_formula_allows(pilot):
    nodes = (pilot / "src/autograd/nodes_pilot.h").read_text()
    of = lambda name: re.search(rf"struct {name} final.*?\n}};", nodes, re.S).group(0)
    assert "SavedVariable" not in of("SumBackward0") and "DimVector self_sizes_" in of("SumBackward0")
    assert "SavedVariable other_;" in of("MulBackward0") and "SavedVariable self_;" in of("MulBackward0")
    kernels = (pilot / "src/autograd/autograd_pilot.cpp").read_text()
    assert "if (node->should_compute_output(0)) node->other_ = SavedVariable(other, false);" in kernels
    # In place: the formula for `other` reads self as it was before.
    assert "node->self_ = SavedVariable(original_self, false);" in kernels
    # Indices are an output, but one without history.
    assert "node->indices_ = SavedVariable(indices, false);" in kernels


def test_loop_reads_scalars_once(pilot):
    loops = (pilot / "src/cpu-isa/pointwise_pilot.cpp").read_text()
    assert "out_[i_] = static_cast<ResultType<PointwiseRule::Promote, T>>(self + alpha * other);" in loops
    assert "const T other = *static_cast<const T*>(ptrs_[2]);" in loops
    assert "const std::optional<T> max = optional_param<T>(ptrs_[3]);" in loops
    assert re.search(r"clamp_loops = \{nullptr, clamp_loop<int32_t>, .*nullptr, nullptr\};", loops)


def test_default_arguments_never_make_two_overloads_equal(family):
    result, out = family('[[op]]\nschema = "r(Scalar end) -> Tensor"\ncpu = "a"\n'
                         '[[op]]\nschema = "r.start(Scalar start, Scalar end=1, Scalar step=1) -> Tensor"\ncpu = "b"\n')
    assert result.code == 0, result.err
    header = (out / "include/cresset/ops/functions_sample.h").read_text()
    assert "Tensor r(const Scalar& start, const Scalar& end, const Scalar& step = 1);" in header


def test_factories_take_options(pilot):
    header = (pilot / "include/cresset/ops/functions_pilot.h").read_text()
    assert "Tensor zeros(IntArrayRef size, TensorOptions options = {});" in header
    assert "std::optional<bool> pin_memory);" in header
    assert "Tensor& zeros_out(Tensor& out, IntArrayRef size);" in header


def test_python_table_and_stubs(pilot):
    table = (pilot / "src/python/python_table.cpp").read_text()
    assert '{{"aten::add", "Tensor", kFunction | kMethod, true, ""}, {"aten::add", "out", kFunction | kMethod, true, ""}}' in table
    stubs = pilot / "data/stubs/cresset/_C"
    for stub in stubs.glob("*.pyi"):
        ast.parse(stub.read_text())
    functions = (stubs / "_VariableFunctions.pyi").read_text()
    assert "def add(input: Tensor, other: Tensor | _Number, *, alpha: _Number = 1, out: Tensor | None = None) -> Tensor: ..." in functions
    assert "def zeros(*size: _int, dtype: _dtype | None = None," in functions
    assert "def add_(" not in functions and "def clamp_(" in functions


def test_where_and_show(opgen):
    where = opgen("where", "add.Tensor", "--tables", TABLES).out
    assert re.search(r"pilot\.toml:5\b", where)
    show = opgen("show", "aten::mul.Tensor", "--tables", TABLES).out
    for words in ("MulBackward0", "saves other: SavedVariable", "aten::mul_.Tensor", "Tensor mul(const Tensor& self, const Tensor& other)"):
        assert words in show
    assert "Did you mean 'mul'?" in opgen("where", "mull", "--tables", TABLES).err


def test_check_names_functions_that_nobody_defines(opgen):
    result = opgen("check", "--tables", TABLES)
    assert result.code == 1
    assert "convolution: cpu 'convolution' is defined nowhere in src/backends/cpu." in result.out or "kernel 'sum_dim'" in result.out


def test_lists_and_names(family):
    row = ('[[op]]\nnames = ["sin", "cos"]\nschema = "_foreach_{name}(Tensor[] self) -> Tensor[]"\nforeach = "{name}"\nout = "out"\n'
           'inplace = true\ndoc = "{name} of each."\n'
           '[[op]]\nnames = ["sin", "cos"]\nschema = "{name}(Tensor self) -> Tensor"\ncpu = "{name}"\ninplace = true\n')
    result, out = family(row)
    assert result.code == 0, result.err
    facts = {f["name"].removeprefix("aten::") + ("." + f["overload"] if f["overload"] else ""): f
             for f in json.loads((out / "data/operators.json").read_text())}
    assert facts["_foreach_cos_"]["schema"] == "aten::_foreach_cos_(Tensor(a!)[] self) -> ()"
    assert facts["_foreach_sin.out"]["schema"] == "aten::_foreach_sin.out(Tensor[] self, *, Tensor(a!)[] out) -> ()"
    assert facts["_foreach_sin"]["doc"] == "sin of each." and facts["_foreach_sin"]["line"] == facts["_foreach_cos"]["line"]
    code = (out / "src/ops/composites_sample.cpp").read_text()
    assert "result.push_back(cresset::cos(self[i]));" in code and "cresset::sin_(target);" in code
