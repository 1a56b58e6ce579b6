"""OpOverload.py_impl with a class: what a mode or a subclass does with one overload."""

import pytest

import cresset
from cresset.library import Library, custom_op
from cresset.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def op():
    library = Library("rules_of_classes", "DEF")
    library.define("f(Tensor x, Tensor y) -> Tensor")
    library.impl("f", lambda x, y: x * y, "CPU")
    yield cresset.ops.rules_of_classes.f.default
    library._destroy()


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_modes(op):
    class Mine(Mode):
        pass

    @op.py_impl(Mine)
    def rule(mode, x, y):
        assert type(mode) is Mine
        return x - y

    x = cresset.full((2,), 3.0)
    assert op(x, x).tolist() == [9, 9]
    with Mine():
        assert op(x, x).tolist() == [0, 0]
    with Mode():
        assert op(x, x).tolist() == [9, 9]
    with pytest.raises(RuntimeError, match="Trying to override a python impl"):
        op.py_impl(Mine)(rule)
    del op.py_kernels[Mine]
    with Mine():
        assert op(x, x).tolist() == [9, 9]


def test_subclasses(op):
    class Sub(cresset.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    seen = []

    @op.py_impl(Sub)
    def rule(x, y):
        seen.append((type(x).__name__, type(y).__name__))
        return cresset.zeros(3)

    x = cresset.ones(1)
    assert op(x.as_subclass(Sub), x).tolist() == op(x, x.as_subclass(Sub)).tolist() == [0, 0, 0]
    assert seen == [("Sub", "Tensor"), ("Tensor", "Sub")]


def test_compositions():
    assert cresset.ops.aten.linear.default._can_decompose()
    assert not cresset.ops.aten.mm.default._can_decompose()


def test_gradients_are_counted_from_the_first_argument():
    @custom_op("rules_of_classes::scaled", mutates_args=())
    def scaled(x: cresset.Tensor, k: int) -> cresset.Tensor:
        return x * k

    scaled.register_autograd(lambda ctx, grad: (grad, grad))
    with pytest.raises(RuntimeError, match="gradient different than None at position 2,"):
        scaled(cresset.ones(1, requires_grad=True), 2).sum().backward()
