"""PYTORCH_JIT=0 and the functions behind it; traces that pause."""

import os
import subprocess
import sys

import pytest

import cresset as torch
from cresset.jit import _classes

PROGRAM = """
import cresset as torch
def f(x): return x + 1
class M(torch.nn.Module):
    def forward(self, x): return x
class S(torch.jit.ScriptModule):
    @torch.jit.script_method
    def forward(self, x): return x + 2
m = M()
x = torch.zeros(1)
assert torch.jit.script(f) is f and torch.jit.trace(f, x) is f and torch.jit.script(m) is m and torch.jit.trace(m, x) is m
assert torch.jit.trace_module(m, {"forward": x}) is m and S()(x).item() == 2 and not hasattr(S(), "_c")
torch.jit._state.enable()
assert isinstance(torch.jit.script([1]), torch._C._ScriptContainer) and bool(torch.jit._state._enabled)
torch.jit._state.disable()
assert torch.jit.script(f) is f and not torch.jit._state._enabled
"""


def test_the_environment_disables_compilation():
    """As PyTorch 2.13 answers."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, "PYTORCH_JIT": "0"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def classes_afterwards():
    """Other tests have classes that stay compiled."""
    classes, names = dict(_classes._types), dict(_classes._by_name)
    yield
    _classes._types.update(classes)
    _classes._by_name.update(names)


def test_compiled_classes_are_seen_and_forgotten(classes_afterwards):
    class Plain:
        def __init__(self, x: int):
            self.x = x

    torch.jit.script(Plain)
    assert Plain in torch.jit._state._script_classes
    torch.jit._state._script_classes.clear()
    assert Plain not in torch.jit._state._script_classes


def test_blocks_of_autocast_outlive_forgotten_classes(classes_afterwards):
    for _ in range(2):

        @torch.jit.script
        def f(x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = x @ x
            with torch.no_grad():
                z = x * 2
            return y, z

        y, z = f(torch.ones(2, 2, requires_grad=True))
        assert y.dtype == torch.bfloat16 and not z.requires_grad
        torch.jit._state._clear_class_state()


def test_a_trace_pauses():
    def f(x):
        state = torch._C._get_tracing_state()
        torch._C._set_tracing_state(None)
        seen.append((torch.jit.is_tracing(), float((x * 3).sum())))
        torch._C._set_tracing_state(state)
        seen.append(torch.jit.is_tracing())
        return x + 1

    seen = []
    graph = torch.jit.trace(f, torch.ones(2), check_trace=False).graph
    assert seen == [(False, 6.0), True] and [n.kind() for n in graph.nodes()] == ["prim::Constant", "prim::Constant", "aten::add"]
    torch._C._set_tracing_state(torch._C._get_tracing_state())  # no trace: nothing happens
    assert [n.kind() for n in torch.jit.trace(lambda x: x.relu(), torch.ones(2), check_trace=False).graph.nodes()] == ["aten::relu"]
