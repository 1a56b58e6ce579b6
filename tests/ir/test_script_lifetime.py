"""What scripts leave behind when nobody holds them any more. A name is free again when its class is gone."""

import gc
import io
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
    outer, inner = script[0]._c.qualified_name, script[0].first._c.qualified_name
    weak = weakref.ref(script[0].first.linear.weight)
    again = jit.script(Outer())
    assert again._c.qualified_name == outer and not is_free(outer)
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
    name = script[0]._c.qualified_name
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
    outer, child = script[0]._c.qualified_name, script[0].first
    script.pop()
    assert is_free(outer)
    assert child(cresset.ones(1, 2)).shape == (1, 2)
    assert jit.script(Outer()).first._c.qualified_name == child._c.qualified_name


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


def make_function(factor):
    def multiply(x):
        return x * factor_of(x) + 1

    def factor_of(x):
        return x.sum()

    return multiply


def test_functions_go_with_their_python_functions():
    name = jit.script(make_function(2)).qualified_name  # the handle is the only one that is left, and goes at once
    assert name.endswith(".multiply") and is_free(name) and is_free(name.replace("multiply", "factor_of"))
    function = make_function(2)
    held = weakref.ref(function)
    first = jit.script(function)
    assert jit.script(function) is first and not is_free(name) and first.qualified_name == name
    second = jit.script(make_function(3))
    assert second.qualified_name != name  # while the first is there
    del function
    assert held() is None and not is_free(name) and first(cresset.ones(2)).tolist() == [3.0, 3.0]
    del first
    assert is_free(name)


def test_a_graph_keeps_the_functions_that_it_calls():
    x = cresset.ones(2)
    graph = jit.script(make_function(2)).graph
    assert "prim::CallFunction" in str(graph)
    again = _C._create_function_from_graph("again", graph)
    del graph
    gc.collect()
    assert again(x).tolist() == [3.0, 3.0]

    inner = jit.script(make_function(2))
    name = inner.qualified_name

    class Calls(nn.Module):
        def forward(self, x):
            return inner(x)

    module = jit.script(Calls())
    inner = None
    assert not is_free(name) and module(x).tolist() == [3.0, 3.0]
    buffer = io.BytesIO()
    module.save(buffer)
    assert jit.load(io.BytesIO(buffer.getvalue()))(x).tolist() == [3.0, 3.0]


def test_many_functions_of_one_name():
    """Names are looked for in constant time each: with the functions of this test nobody waits."""
    kept = [make_function(i) for i in range(200)]
    names = {jit.script(f).qualified_name for f in kept}
    assert len(names) == 200
    name = min(names, key=len)
    del kept
    assert is_free(name)
