"""The switch documented_forms=1: what the page "Lowering Phase" draws and says, where the passes by themselves ask for more before they rewrite."""

import subprocess
from pathlib import Path

import pytest

import cresset
from cresset import _C, lowering

COMMAND = Path(__file__).resolve().parents[2] / "build/dev/bin/cresset"

# pass: (before, after, passes that clear away behind it)
FORMS = {
    # The page's own graph: nothing is known of the rank of %x9.1.
    "fuse-addmm-branches": ("""
graph(%self.fc.bias : Tensor, %x9.1 : Tensor, %3677 : Tensor, %622 : bool):
  %3 : int = prim::Constant[value=1]()
  %ret : Tensor = prim::If(%622)
    block0():
      %ret.1 : Tensor = aten::addmm(%self.fc.bias, %x9.1, %3677, %3, %3)
      -> (%ret.1)
    block1():
      %output.1 : Tensor = aten::matmul(%x9.1, %3677)
      %output0.1 : Tensor = aten::add_(%output.1, %self.fc.bias, %3)
      -> (%output0.1)
  return (%ret)
""", """
graph(%self.fc.bias : Tensor, %x9.1 : Tensor, %3677 : Tensor, %622 : bool):
  %3 : int = prim::Constant[value=1]()
  %ret : Tensor = aten::addmm(%self.fc.bias, %x9.1, %3677, %3, %3)
  return (%ret)
""", ["eliminate-dead-code"]),
    "eliminate-exception-or-pass-pattern": ("""
graph(%x : Tensor, %1012 : int, %24 : int, %23 : str):
  %1013 : bool = aten::ne(%1012, %24)
   = prim::If(%1013)
    block0():
       = prim::RaiseException(%23)
      -> ()
    block1():
      -> ()
  return (%x)
""", "graph(%x : Tensor, %1012 : int, %24 : int, %23 : str):\n  return (%x)\n", ["eliminate-dead-code"]),
    "fuse-linear": ("""
graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %one : int = prim::Constant[value=1]()
  %t : Tensor = aten::t(%w)
  %m : Tensor = aten::matmul(%x, %t)
  %r : Tensor = aten::add_(%m, %b, %one)
  return (%r)
""", "graph(%x : Tensor, %w : Tensor, %b : Tensor):\n  %r : Tensor = aten::linear(%x, %w, %b)\n  return (%r)\n", ["eliminate-dead-code"]),
    "fuse-flatten-linear": ("""
graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %one : int = prim::Constant[value=1]()
  %end : int = prim::Constant[value=-1]()
  %f : Tensor = aten::flatten(%x, %one, %end)
  %r : Tensor = aten::linear(%f, %w, %b)
  return (%r)
""", "graph(%x : Tensor, %w : Tensor, %b : Tensor):\n  %r : Tensor = aten::linear(%x, %w, %b)\n  return (%r)\n", ["eliminate-dead-code"]),
    "remove-contiguous": ("""
graph(%x : Tensor):
  %f : int = prim::Constant[value=2]()
  %c : Tensor = aten::contiguous(%x, %f)
  return (%c)
""", "graph(%x : Tensor):\n  return (%x)\n", ["eliminate-dead-code"]),
    "remove-dropout": ("""
graph(%x : Tensor):
  %p : float = prim::Constant[value=0.5]()
  %yes : bool = prim::Constant[value=1]()
  %d : Tensor = aten::dropout(%x, %p, %yes)
  return (%d)
""", "graph(%x : Tensor):\n  return (%x)\n", ["eliminate-dead-code"]),
    "remove-to": ("""
graph(%x : Tensor):
  %five : int = prim::Constant[value=5]()
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %t : Tensor = aten::to(%x, %five, %no, %no, %none)
  %r : Tensor = aten::relu(%t)
  return (%r)
""", "graph(%x : Tensor):\n  %r : Tensor = aten::relu(%x)\n  return (%r)\n", ["eliminate-dead-code"]),
    "unpack-addmm": ("""
graph(%b : Tensor, %x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %r : Tensor = aten::addmm(%b, %x, %w, %one, %one)
  return (%r)
""", """
graph(%b : Tensor, %x : Tensor, %w : Tensor):
  %m : Tensor = aten::matmul(%x, %w)
  %c : Tensor = trt::const(%b)
  %one : int = prim::Constant[value=1]()
  %r : Tensor = aten::add_(%m, %c, %one)
  return (%r)
""", ["eliminate-dead-code"]),
    "unpack-log-softmax": ("""
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %r : Tensor = aten::log_softmax(%x, %one, %none)
  return (%r)
""", """
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %s : Tensor = aten::softmax(%x, %one, %none)
  %r : Tensor = aten::log(%s)
  return (%r)
""", []),
    "replace-tile-with-repeat": ("""
graph(%x : Tensor, %reps : int[]):
  %r : Tensor = aten::tile(%x, %reps)
  return (%r)
""", "graph(%x : Tensor, %reps : int[]):\n  %r : Tensor = aten::repeat(%x, %reps)\n  return (%r)\n", []),
    "peephole-optimize": ("graph(%x : Tensor):\n  %a : Tensor = aten::t(%x)\n  %b : Tensor = aten::t(%a)\n  %r : Tensor = aten::relu(%b)\n  return (%r)\n",
                          "graph(%x : Tensor):\n  %r : Tensor = aten::relu(%x)\n  return (%r)\n", []),
}  # fmt: skip
by_pass = pytest.mark.parametrize("name", FORMS)


def difference(found, wanted):
    return _C._jit_graph_difference(found.canonicalize(), _C.parse_ir(wanted).canonicalize())


@by_pass
def test_from_python(name):
    before, after, then = FORMS[name]
    found = _C.parse_ir(before)
    assert lowering.run_pass(name, found, documented_forms=True).changed
    for other in then:
        lowering.run_pass(other, found)
    assert difference(found, after) is None, found


@by_pass
@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
def test_on_the_command_line(name):
    before, after, then = FORMS[name]
    passes = ",".join([name, *then])
    done = subprocess.run([COMMAND, "lower", "--pass", passes, "--option", "documented_forms=1"], input=before, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert difference(_C.parse_ir(done.stdout), after) is None, done.stdout


@pytest.mark.parametrize("name", ["fuse-addmm-branches", "fuse-linear", "unpack-addmm", "unpack-log-softmax", "remove-to", "replace-tile-with-repeat", "remove-contiguous"])
def test_without_the_switch_passes_ask_for_more(name):
    before, after, then = FORMS[name]
    found = _C.parse_ir(before)
    lowering.run_pass(name, found)
    for other in then:
        lowering.run_pass(other, found)
    assert difference(found, after) is not None


def test_a_later_option_takes_one_form_back():
    before = FORMS["unpack-log-softmax"][0]
    found = _C.parse_ir(before)
    lowering.run_pass("unpack-log-softmax", found, documented_forms=True, stable_numerics=True)
    assert "aten::softmax" not in str(found)
    found = _C.parse_ir(before)
    lowering.run_pass("unpack-log-softmax", found, documented_forms=False)
    assert "aten::softmax" not in str(found)


def test_the_documented_addmm_runs():
    before, _, _ = FORMS["unpack-addmm"]
    found = _C.parse_ir(before)
    lowering.run_pass("unpack-addmm", found, documented_forms=True)
    for bias in (cresset.randn(4), cresset.randn(1), cresset.randn(2, 4)):
        assert _C._jit_run_difference(_C.parse_ir(before), found, [bias, cresset.randn(2, 3), cresset.randn(3, 4)]) is None
