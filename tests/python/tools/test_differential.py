"""tools/differential without PyTorch: its calls, its list of meant differences, its snippets, and whole runs of Cresset against itself."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import cresset
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def calls():
    return importlib.import_module("differential_calls")


@pytest.fixture(scope="module")
def some(calls):
    generator = calls.Generator(7, calls.operators(), calls.MODES)
    return generator, [generator.call(i) for i in range(400)]


def test_a_call_is_made_again_from_its_seed_and_number(calls, some):
    generator, first = some
    again = calls.Generator(7, calls.operators(), calls.MODES)
    for number in (0, 17, 399):
        a, b = first[number], again.call(number)
        assert (a.operator, a.mode, repr(a.args), repr(a.kwargs)) == (b.operator, b.mode, repr(b.args), repr(b.kwargs))
        assert all(m.array.tobytes() == n.array.tobytes() for m, n in zip(a.memories, b.memories))
    other = calls.Generator(8, calls.operators(), calls.MODES)
    assert [other.call(i).operator for i in range(20)] != [c.operator for c in first[:20]]


def test_views_lie_in_their_memory(some):
    for call in some[1]:
        for view in call.views():
            last = view.offset + sum((n - 1) * s for n, s in zip(view.shape, view.strides))
            assert 0 in view.shape or last < len(call.memories[view.memory].array)


def test_calls_vary(calls, some):
    dtypes = {m.dtype for c in some[1] for m in c.memories}
    assert dtypes >= {"float32", "float64", "bfloat16", "complex64", "int64", "bool"}
    assert {c.mode for c in some[1]} >= {"plain", "function", "grad", "vmap", "jvp"}
    assert any(v.strides != calls.contiguous(v.shape) for c in some[1] for v in c.views())
    assert any(0 in v.shape for c in some[1] for v in c.views())


def test_bfloat16_is_rounded_to_nearest(calls):
    values = np.array([0.0, -0.0, 1.0, 1.00390625, 1.01171875, 3e38, np.inf, np.nan, 1e-40], dtype=np.float32)
    want = cresset.from_numpy(values).bfloat16()
    have = cresset.from_numpy(calls.stored(values, "bfloat16")).view(cresset.bfloat16)
    assert np.array_equal(have.float().numpy(), want.float().numpy(), equal_nan=True)


def test_outs_over_memory_of_their_own(calls):
    generator = calls.Generator(3, [o for o in calls.operators() if o.name == "aten::add.out"], {"plain": 1})
    rng = np.random.default_rng(0)
    for number in range(30):
        call = calls.with_outs(generator.call(number), ["out"], [((2, 3), "float32")], rng)
        out = call.kwargs["out"]
        assert 0 in out.shape or out.offset + sum((n - 1) * s for n, s in zip(out.shape, out.strides)) < len(call.memories[out.memory].array)


def test_meant_differences(tool, tmp_path):
    (tmp_path / "results.toml").write_text('["it is meant"]\n"aten::add*" = ["^value: .*NaN", "^raises: TypeError", "^gradient: @ conj"]\n')
    (tmp_path / "more.toml").write_text('["it is meant"]\n"aten::cos aten::sin*" = ["^value"]\n')
    known = tool("differential").Known(tmp_path)
    assert known.reason("aten::add.Tensor", "value: 3 NaN, want 1", "plain") == "it is meant"
    assert known.reason("aten::add.Tensor", "value: max abs diff 3", "plain") is None
    assert known.reason("aten::add.Tensor", "gradient: 3", "grad aten::add(float32[3] conj)") == "it is meant"
    assert known.reason("aten::add.Tensor", "gradient: 3", "grad aten::add(float32[3])") is None
    assert known.reason("aten::sub.Tensor", "raises: TypeError: no", "plain") is None
    assert [known.reason(f"aten::{name}", "value: 3", "plain") for name in ("cos", "cosh", "sinh")] == ["it is meant", None, "it is meant"]


def test_the_list_of_meant_differences_is_readable(tool):
    known = tool("differential").Known(ROOT / "tools/differential_known")
    assert known.reason("aten::special_zeta", "no error: want NotImplementedError: \"zeta_cpu\" not implemented for 'Half' in call", "plain")


SELF = """
import os, runpy, sys
import cresset.as_torch
cresset.as_torch.install()
sys.path[:0] = [{tools!r}, {conformance!r}]
import differential_run
if {planted}:
    run = differential_run.run
    turn = []
    def wrong(package, call):
        outcome = run(package, call)
        second = turn[-1:] == [id(call)]
        turn.append(id(call))
        if call.operator.startswith("aten::relu") and second and outcome.results and outcome.results[0].is_floating_point():
            outcome.results[0] = outcome.results[0] + 1
        return outcome
    differential_run.run = wrong
sys.argv = ["differential", *{arguments!r}]
runpy.run_path({tools!r} + "/differential", run_name="__main__")
"""


def against_itself(arguments, planted=False):
    code = SELF.format(tools=str(ROOT / "tools"), conformance=str(ROOT / "tests/conformance"), arguments=arguments, planted=planted)
    environment = {**os.environ, "CRESSET_ORACLE_RUNS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)


def test_a_run_against_itself_finds_nothing():
    done = against_itself(["--seed", "5", "--calls", "300"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 calls of seed 5" in done.stdout and " 0 differences" in done.stdout


def test_a_planted_difference_is_found_and_shortened():
    done = against_itself(["--calls", "40", "--only", r"^aten::relu$", "--modes", "plain", "--first", "1"], planted=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "value            aten::relu x" in done.stdout
    assert "torch.ops.aten.relu.default(m0" in done.stdout


def test_one_call_in_full():
    done = against_itself(["--call", "3", "--only", r"^aten::sigmoid$", "--modes", "grad"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "grad aten::sigmoid(" in done.stdout and "difference: None" in done.stdout


# ---- what is special about a call's numbers, and what is not called


def call_with(calls, operator, *arrays, shapes=None):
    memories = [calls.Memory(a if isinstance(a, np.ndarray) else np.array(a, dtype=np.float32).reshape(-1), "float32") for a in arrays]
    views = [calls.View(i, s, calls.contiguous(s), 0) for i, s in enumerate(shapes)]
    return calls.Call(f"aten::{operator}", views, {}, memories)


def test_extreme_numbers_and_matrices_of_less_than_full_rank(calls):
    extremes = importlib.import_module("differential_numbers").extremes
    assert extremes(call_with(calls, "exp", [1.0, np.nan], shapes=[(2,)])) == "not finite"
    assert extremes(call_with(calls, "exp", [1.0, 1e30], shapes=[(2,)])) == "huge"
    assert extremes(call_with(calls, "linalg_inv", [1.0, 2.0, 2.0, 4.0], shapes=[(2, 2)])) == "singular"
    assert extremes(call_with(calls, "linalg_inv", [1.0, 2.0, 2.0, 3.0], shapes=[(2, 2)])) == ""
    assert extremes(call_with(calls, "linalg_inv", [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0], shapes=[(2, 2, 2)])) == "singular"
    assert extremes(call_with(calls, "exp", [1.0, 2.0, 2.0, 4.0], shapes=[(2, 2)])) == ""  # no matrix there
    assert extremes(call_with(calls, "linalg_solve", [1.0, 0.0, 0.0, 1.0], [1.0, 2.0], shapes=[(2, 2), (2,)])) == ""
    assert extremes(call_with(calls, "linalg_solve", [1.0, 0.0, 0.0, 1.0], [1.0, 2e3], shapes=[(2, 2), (2,)])) == "large"
    assert extremes(call_with(calls, "linalg_lu_solve", [0.0, 1.0, 0.0, 1.0], [1.0, 2.0], shapes=[(2, 2), (2,)])) == "singular"  # factors
    assert extremes(call_with(calls, "linalg_cholesky_ex", [1.0, 2.0, 0.0, 1.0], shapes=[(2, 2)])) == "indefinite"  # of its upper triangle
    assert extremes(call_with(calls, "linalg_cholesky_ex", [2.0, 1.0, 1.0, 2.0], shapes=[(2, 2)])) == ""
    call = call_with(calls, "exp", [1.0], [np.inf], shapes=[(1,), (1,)])
    assert extremes(call) == "not finite"
    call.kwargs, call.written = {"out": call.args.pop()}, ("out",)
    assert extremes(call) == ""


def test_arguments_in_other_forms(calls):
    call = calls.Call("aten::roll", [calls.View(0, (2,), (1,), 0), [1, 2], [0]], {}, [calls.Memory(np.ones(2), "float64")], "spelled")
    seen = [calls.spelled(call, ["self", "shifts", "dims"], np.random.default_rng(i)) for i in range(60)]
    assert any("dims" in c.kwargs for c in seen) and any(len(c.args) == 3 for c in seen)
    forms = {type(v).__name__ + getattr(v, "form", "") for c in seen for v in [*c.args, *c.kwargs.values()]}
    assert {"View", "list", "Spelledtuple", "Spelledsize", "Spelledarray", "Spellednumber"} <= forms
    written = calls.spelled(calls.replace(call, written=("self",)), ["self", "shifts", "dims"], np.random.default_rng(1))
    assert isinstance([*written.args, written.kwargs.get("self")][0], calls.View)


def test_narrow_lists_of_meant_differences(tool):
    known = tool("differential").Known(ROOT / "tools/differential_known")
    text = "gradient: [grad] part 2 value: max abs diff 1"
    assert known.reason("aten::mse_loss", text, "grad aten::mse_loss(float32[3, 4], float32[4] strides [2])")
    assert known.reason("aten::huber_loss", text, "grad aten::huber_loss(float32[], float32[3, 4])")
    assert known.reason("aten::mse_loss", text, "grad aten::mse_loss(float32[3, 4], float32[3, 4] strides [1, 3])") is None
    text = "raises: [singular] _LinAlgError: linalg.inv: The diagonal element 2 is zero"
    assert known.reason("aten::linalg_inv", text, "plain") and known.reason("aten::linalg_inv", text.replace("[singular] ", ""), "plain") is None
    text = "value: result 0 value: 0 NaN, want 3"
    assert known.reason("aten::soft_margin_loss_backward", text, "plain aten::soft_margin_loss_backward(float32[], float32[3], float32[3], 1)")
    assert known.reason("aten::soft_margin_loss_backward", text, "plain aten::soft_margin_loss_backward(float32[], float32[3], int16[3], 1)") is None


ATTRIBUTES = """
import sys
import cresset.as_torch
cresset.as_torch.install()
sys.path[:0] = [{tools!r}, {conformance!r}]
import differential_modes as run
from differential_calls import Call, Memory, View
import numpy as np
class Tensor:
    mT = H = property(lambda self: 1)
    def index(self, dims): ...
    def clone(self): ...
empty = type("empty", (), {{}})
package = type("package", (), dict(Tensor=Tensor, _C=type("C", (), dict(_VariableFunctions=empty, _nn=empty, _linalg=empty, _special=empty, _fft=empty))))
run.PYTORCH = package
for name in ("mT", "H", "index.Tensor", "clone"):
    call = Call("aten::" + name, [View(0, (1,), (1,), 0)], {{}}, [Memory(np.ones(1), "float64")], "function")
    try:
        print(name, run.function_of(package, call) is Tensor.clone)
    except run.NoComparison as reason:
        print(name, reason)
"""


def test_attributes_and_methods_of_another_meaning_are_not_called():
    code = ATTRIBUTES.format(tools=str(ROOT / "tools"), conformance=str(ROOT / "tests/conformance"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    none = "no public function or method"
    assert done.stdout.splitlines() == [f"mT {none}", f"H {none}", f"index.Tensor {none}", "clone True"]


# ---- snippets


@pytest.fixture(scope="module")
def snippets():
    return importlib.import_module("differential_snippets")


def test_snippets_of_a_file(snippets, tmp_path):
    (tmp_path / "some.py").write_text("# before\n### one\nprint(1)\n### two\nprint(2)\nprint(3)\n")
    assert snippets.snippets(tmp_path / "some.py") == [("some/one", "print(1)\n"), ("some/two", "print(2)\nprint(3)\n")]


def test_a_snippet_is_alone(tmp_path):
    (tmp_path / "some.py").write_text(
        "### works\nx = torch.ones(2)\nprint(x.sum())\ne(lambda: x + 'a', full=False)\n"
        "### dies\nimport os\nprint('before', flush=True)\nos.kill(os.getpid(), 9)\n"
        "### raises\nraise ValueError('words')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    program = [sys.executable, str(ROOT / "tools/differential_snippets.py"), str(tmp_path), "--run", "cresset"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True, timeout=120)
    found = json.loads(done.stdout)
    assert found["some/works"].startswith("tensor(2.)\nEXC TypeError |")
    assert found["some/dies"] == "before\n\nCRASH signal 9"
    assert found["some/raises"] == "TOP-EXC ValueError | words\n"


def test_refusals_of_a_missing_kernel_end_with_their_first_sentence(snippets):
    words = "Could not run 'aten::exp' with arguments from the 'SparseCPU' backend."
    assert snippets.plain(words + " This could be because of [CPU, Meta].") == words
    assert snippets.plain("Could not run 'aten::exp' with arguments.") == "Could not run 'aten::exp' with arguments."


def test_verdicts_on_snippets(snippets, capsys):
    theirs = {"a": "1\n", "b": "EXC TypeError | some words\n", "c": "2\n"}
    ours = {"a": "1\n", "b": "EXC TypeError | other words\n", "c": "3\n"}
    assert snippets.compare(theirs, ours, verbose=False) == 1
    shown = capsys.readouterr().out
    assert "===== differs c" in shown and "===== words b" not in shown
    assert "3 snippets: 1 the same, 0 meant, 1 with other words or warnings, 1 differ" in shown


def test_snippets_whose_differences_are_meant(snippets, tmp_path, capsys):
    (tmp_path / "meant.toml").write_text('"a reason" = ["x/* @ ^3$"]\n')
    meant = snippets.Meant(tmp_path / "meant.toml")
    theirs, ours = {"x/a": "1\n3\n", "x/b": "1\n3\n", "y/a": "3\n"}, {"x/a": "1\n2\n", "x/b": "2\n3\n", "y/a": "2\n"}
    assert snippets.compare(theirs, ours, False, meant) == 2
    shown = capsys.readouterr().out
    assert "1 meant" in shown and "x/a" not in shown and "===== differs x/b" in shown and "===== differs y/a" in shown


def test_numbers_may_differ_in_the_last_digit_when_asked(snippets, capsys):
    pairs = {
        "same/a": ("tensor([1.2345, 2.])\n", "tensor([1.2346, 2.])\n"), "same/b": ("1.5e-05\n", "1.6e-05\n"),
        "differs/a": ("1.2345\n", "1.2347\n"), "differs/b": ("3\n", "4\n"), "differs/c": ("1e-05\n", "9e-04\n"), "differs/d": ("tensor(1.)\n", "array(1.)\n"),
    }  # fmt: skip
    theirs, ours = ({name: pair[side] for name, pair in pairs.items()} for side in (0, 1))
    assert snippets.compare(theirs, ours, False) == 6
    capsys.readouterr()
    assert snippets.compare(theirs, ours, False, rounding=True) == 4
    assert "same/" not in capsys.readouterr().out


def test_steps_go_on_behind_an_error(tmp_path):
    (tmp_path / "some.py").write_text("### steps\nstep('x = 2')\nstep('x.y')\nstep('x + 1')\nstep('for')\nstep('print(x)')\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    program = [sys.executable, str(ROOT / "tools/differential_snippets.py"), str(tmp_path), "--run", "cresset"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True, timeout=120)
    lines = json.loads(done.stdout)["some/steps"].splitlines()
    assert lines == ["EXC AttributeError | 'int' object has no attribute 'y'", "3", "EXC SyntaxError |", "2"]


def test_examples_of_docstrings_and_pages(tool):
    examples = tool("differential_examples")
    assert examples.prompts("Text\n    >>> for i in x:\n    ...     f(i)\n    1\n    >>> y\n") == ["for i in x:\n    f(i)", "y"]
    page = "Title\n\n.. code:: python\n\n    :caption: words\n\n    @d\n    def f():\n        pass\n\n    f()\n\nText::\n\n    no python here\n\n```python\nx = 1\n```\n"
    assert [examples.statements(block) for block in examples.blocks(page)] == [["@d\ndef f():\n    pass", "f()"], [], ["x = 1"]]
