"""What scripts leave behind when nobody holds them any more. A name is free again when its class is gone."""

import gc
import weakref

import cresset
import pytest
from cresset import _C, nn

jit = cresset.jit


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x) + 1


class Outer(nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.first, self.second = Inner(), Inner()
        self.factor = factor

    def helper(self, x):
        return x * self.factor

    def forward(self, x):
        return self.second(self.helper(self.first(x)))


def is_free(name):
    gc.collect()
    return _C._jit_mangled(name) == name


@pytest.fixture
def script():
    module = jit.script(Outer())
    module(cresset.ones(1, 2))
    return [module]  # the only reference


def test_class_goes_with_its_last_module(script):
    outer, inner = script[0]._c.qualified_name(), script[0].first._c.qualified_name()
    weak = weakref.ref(script[0].first.linear.weight)
    again = jit.script(Outer())
    assert again._c.qualified_name() == outer and not is_free(outer)
    script.pop()
    assert not is_free(outer) and again(cresset.ones(1, 2)).shape == (1, 2)
    del again
    assert is_free(outer) and is_free(inner) and weak() is None


HELD = {
    "method": lambda m: m._c._get_method("forward"),
    "function": lambda m: m._c._get_method("forward").function,
    "graph": lambda m: m.graph,
    "type": lambda m: m._c._type(),
    "object": lambda m: m._c,
}


@pytest.mark.parametrize("what", HELD)
def test_parts_keep_the_class(script, what):
    name = script[0]._c.qualified_name()
    held = HELD[what](script[0])
    script.pop()
    assert not is_free(name)
    if what == "graph":
        inlined = held.copy()
        _C._jit_pass_inline(held)
        assert "CallMethod" in str(inlined)
    del held
    if what == "graph":
        del inlined
    assert is_free(name)


def test_child_outlives_its_parent(script):
    outer, child = script[0]._c.qualified_name(), script[0].first
    script.pop()
    assert is_free(outer)
    assert child(cresset.ones(1, 2)).shape == (1, 2)
    assert jit.script(Outer()).first._c.qualified_name() == child._c.qualified_name()


def test_failed_compilation_leaves_nothing():
    class Wrong(nn.Module):
        def forward(self, x):
            return self.nothing

    for _ in range(2):
        with pytest.raises(RuntimeError, match="has no attribute 'nothing'"):
            jit.script(Wrong())
    with pytest.raises(RuntimeError) as error:
        jit.script(Wrong())
    assert "mangle" not in str(error.value)
