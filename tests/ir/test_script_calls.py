"""Calls of scripted functions: bodies go into their callers, and a change of one counts in all of them."""

import pytest

import cresset
from cresset import _C

SOURCE = """
def inner(x: int) -> int:
    return x + 1

def middle(x: int) -> int:
    return inner(x) * 2

def f(x: int) -> int:
    return middle(x) - 3

def fails(x: int) -> int:
    return 1 // x

def g(x: int) -> int:
    return fails(x) + 1
"""


def test_calls_of_small_functions_are_inlined():
    unit = _C.CompilationUnit(SOURCE)
    assert unit.f(5) == 9
    assert "CALL" not in unit.f.dump_code()
    assert "CallFunction" in str(unit.f.graph)


def test_a_changed_callee_counts():
    unit = _C.CompilationUnit(SOURCE)
    assert unit.f(5) == 9
    for node in unit.inner.graph.nodes():
        if node.kind() == "aten::add":
            constant = unit.inner.graph.insertConstant(10)
            constant.node().moveBefore(node)
            node.replaceInput(1, constant)
    assert unit.f(5) == 9  # passes may be in the middle of their work
    unit.inner._invalidate()
    assert unit.f(5) == 27
    assert unit.middle(5) == 30


def test_long_functions_stay_calls():
    lines = [f"    x = x * {i} + a" for i in range(2, 80)]
    unit = _C.CompilationUnit("\n".join(["def long(x: int, a: int) -> int:", *lines, "    return x", "def f(x: int) -> int:", "    return long(x, 1)"]))
    x = 3
    for i in range(2, 80):
        x = (x * i + 1 + (1 << 63)) % (1 << 64) - (1 << 63)  # numbers of scripts have 64 bits
    assert unit.f(3) == x
    assert "CALL_FUNCTION" in unit.f.dump_code()


def test_errors_name_the_functions_of_inlined_bodies():
    unit = _C.CompilationUnit(SOURCE)
    with pytest.raises(ZeroDivisionError) as error:
        unit.g(0)
    text = str(error.value)
    assert text.index("in g") < text.index("in fails") and "return 1 // x" in text


def test_methods_and_gradients_go_through():
    class Scale(cresset.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = cresset.nn.Parameter(cresset.tensor([2.0]))

        def twice(self, x):
            return x * self.weight

        def forward(self, x):
            return self.twice(x) + self.twice(x)

    module = cresset.jit.script(Scale())
    x = cresset.tensor([3.0])
    module(x).backward()
    assert module(x).item() == 12.0 and module.weight.grad.item() == 6.0


def test_numbers_at_the_end_are_a_list_only_where_its_length_is_open():
    """As in PyTorch 2.13: neither `float[]?` nor `int[1]` takes several of them."""
    unit = cresset.jit.CompilationUnit(
        "def f(x):\n    return x.permute(0, 2, 1)\n"
        "def g(x, out):\n    return torch.ops.aten.upsample_nearest1d(x, [2], 0.7, out=out)\n"
        "def h(x, out):\n    return torch.ops.aten.upsample_nearest2d(x[None], [2, 2], 0.7, 0.7, out=out)\n"
    )
    x = cresset.arange(12.0).view(1, 3, 4)
    assert unit.f(x).shape == (1, 4, 3)
    assert unit.g(x, cresset.empty(0)).shape == (1, 3, 2) and unit.h(x, cresset.empty(0)).shape == (1, 1, 2, 2)
    for wrong in ("torch.ops.aten.upsample_nearest2d(x, None, 2.0, 2.0)", "torch.roll(x, 1, 0, 1)"):
        with pytest.raises(RuntimeError, match="Arguments for call are not valid"):
            cresset.jit.CompilationUnit(f"def f(x):\n    return {wrong}\n")
