"""Traced modules keep the methods that are marked for export: they are compiled, beside what the trace recorded."""

import io

import pytest

from cresset import jit, nn, rand


class Stated(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.linear = 3, nn.Linear(4, 4)

    @jit.export
    def __getstate__(self):
        return (self.a, self.linear.weight, self.linear.bias, self.training)

    @jit.export
    def __setstate__(self, state):
        self.a = state[0]
        self.training = state[3]

    def forward(self, x):
        return self.linear(x) + self.a


class Exported(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(rand(4))
        self.bar = Untraceable()

    @jit.export
    def twice(self, x):
        return x * self.weight * 2

    def forward(self, x):
        return self.bar(x) * self.weight


class Untraceable(nn.Module):
    """Its forward can be traced and not be compiled."""

    @jit.export
    def add(self, x, y: int):
        if y > 2:
            return x + y
        return x

    def forward(self, x):
        return (lambda a: a + 1)(x)


def test_exported_methods():
    module = Exported()
    x = rand(3, 4)
    traced = jit.trace(module, x)
    assert isinstance(traced, jit.TopLevelTracedModule)
    assert set(traced._c._method_names()) == {"twice", "forward"} and "add" in traced.bar._c._method_names()
    assert traced(x).equal(module(x)) and traced.twice(x).equal(module.twice(x))
    assert traced.bar.add(x, 3).equal(x + 3) and traced.bar.add(x, 1).equal(x)
    assert dict(traced.named_parameters())["weight"].equal(module.weight)
    file = io.BytesIO()
    jit.save(traced, file)
    file.seek(0)
    loaded = jit.load(file)
    assert loaded(x).equal(module(x)) and loaded.twice(x).equal(module.twice(x)) and loaded.bar.add(x, 3).equal(x + 3)


def test_modules_of_one_class_have_types_of_their_own():
    x = rand(3, 4)
    first, second = jit.trace(Exported(), x), jit.trace(Exported(), x)
    assert first.twice(x).shape == second.twice(x).shape
    assert first._c._type() != second._c._type()


@pytest.mark.parametrize("inside", [False, True])
def test_states(inside):
    module = nn.Sequential(Stated()) if inside else Stated()
    traced = jit.trace(module, rand(3, 4), check_trace=False)
    owner = traced[0] if inside else traced
    assert {"__getstate__", "__setstate__"} <= set(owner._c._method_names())
