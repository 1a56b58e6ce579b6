"""Nodes of every kind with other numbers of operands and results than they have, run as they are: an error or an answer, never a crash."""

import subprocess
import sys

import pytest

import cresset
from cresset import _C

ATTRIBUTES = {
    "CallMethod": 'name="f"', "GetAttr": 'name="f"', "SetAttr": 'name="f"', "HasAttr": 'name="f"', "TypeCheck": "types=[Float(2, 3)]",
    "RequiresGradCheck": "types=[Float(2, 3)]", "TupleSlice": "beg=-9, end=99", "isinstance": "types=[int]", "ConstantChunk": "chunks=2, dim=0",
}  # fmt: skip
KINDS = [
    "Constant", "Uninitialized", "If", "Loop", "ListConstruct", "ListUnpack", "TupleConstruct", "TupleUnpack", "TupleIndex",
    "TupleSlice", "DictConstruct", "CreateObject", "GetAttr", "SetAttr", "HasAttr", "CallMethod", "CallFunction", "isinstance", "unchecked_cast",
    "unchecked_unwrap_optional", "Print", "RaiseException", "fork", "awaitable", "Enter", "Exit", "PythonOp", "IgnoredPythonOp", "profile",
    "profile_ivalue", "Guard", "TypeCheck", "RequiresGradCheck", "BailOut", "BailoutTemplate", "ConstantChunk", "AutogradAdd",
    "DifferentiableGraph", "FusionGroup", "FunctionalGraph", "GradOf", "Load", "Store", "LoopContinuation", "ReturnStmt", "BreakStmt",
    "ContinueStmt", "Param", "Return", "NumToTensor", "requires_grad", "device", "range", "tolist",
]  # fmt: skip
TYPES = ["Tensor", "int", "int[]", "Dict(str, int)", "(Tensor, int)", "NoneType", "Future(Tensor)"]
OPERANDS = ["%x", "%i", "%t", "%l", "%d", "%n", "%s", "%b"]


def graph_of(kind, inputs, outputs, turn):
    """A graph with such a node, whose operands and types go round with `turn`."""
    attributes = f"[{ATTRIBUTES[kind]}]" if kind in ATTRIBUTES else ""
    results = ", ".join(f"%o{k} : {TYPES[(turn + k) % len(TYPES)]}" for k in range(outputs))
    operands = ", ".join(OPERANDS[(turn + 3 * k) % len(OPERANDS)] for k in range(inputs))
    return f"""graph(%x : Tensor):
  %i : int = prim::Constant[value=3]()
  %s : str = prim::Constant[value="ab"]()
  %b : bool = prim::Constant[value=1]()
  %n : NoneType = prim::Constant()
  %l : int[] = prim::ListConstruct(%i, %i)
  %t : (Tensor, int) = prim::TupleConstruct(%x, %i)
  %d : Dict(str, int) = prim::DictConstruct(%s, %i)
  {results} = prim::{kind}{attributes}({operands})
  return ({"%o0" if outputs and turn % 2 else "%x"})
"""


def run_all():
    ran = 0
    for kind in KINDS:
        for inputs in range(4):
            for outputs in range(3):
                for turn in range(2 if inputs + outputs else 1):
                    try:
                        graph = _C.parse_ir(graph_of(kind, inputs, outputs, turn))
                        _C._create_function_from_graph("f", graph)(cresset.ones(2, 3))
                        ran += 1
                    except (RuntimeError, ValueError, TypeError, AttributeError, IndexError, KeyError):
                        pass
    print("ran", ran)


def test_wrong_numbers_of_operands_and_results():
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split("ran ")[-1]) > 30  # there are well-formed ones among them


@pytest.mark.parametrize("kind", ["Enter", "Exit"])
def test_what_is_said(kind):
    with pytest.raises(RuntimeError, match=f"^lint: a node of kind prim::{kind} has 1 input; this one has 0"):
        _C._create_function_from_graph("f", _C.parse_ir(f"graph(%x):\n  prim::{kind}()\n  return (%x)"))(cresset.ones(2))


@pytest.mark.parametrize("node", ["%a, %b = prim::Enter(%x)", "%a, %b = prim::Exit(%x)", "%a, %b, %c = prim::TypeCheck[types=[Float(2)]](%x)"])
def test_more_results_than_a_node_gives(node):
    with pytest.raises(RuntimeError, match=r"^prim::(Enter|Exit): a node with 1 results was required; it has 2\.|^prim::TypeCheck: a node with 2 results was required; it has 3\."):
        _C._create_function_from_graph("f", _C.parse_ir(f"graph(%x : Tensor):\n  {node}\n  return (%x)"))(cresset.ones(2))


if __name__ == "__main__":
    run_all()
