"""Operators without a schema: which kernel runs under vmap, modes, autograd, and below."""

import pytest

import cresset as torch
from cresset import _C
from cresset._ops import HigherOrderOperator
from cresset.utils._python_dispatch import TorchDispatchMode

Vmap = _C._functorch.TransformType.Vmap


class Operator(HigherOrderOperator):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)


def summing():
    operator = Operator("my_sum")

    @operator.py_impl(Vmap)
    def batched(level, x, dim):
        if not _C._functorch.is_batchedtensor(x):
            with level.lower():
                return operator(x, dim)
        value, at = _C._functorch.get_unwrapped(x), _C._functorch.maybe_get_bdim(x)
        with level.lower():
            result = operator(value.movedim(at, 0), dim + 1)
        return _C._functorch._add_batch_dim(result, 0, level.level())

    operator.py_impl(_C.DispatchKey.AutogradCPU)(lambda x, dim: torch.sum(x, dim))
    return operator


def test_under_vmap_and_grad():
    operator, x = summing(), torch.randn(2, 3, 4)
    assert operator(x, 1).equal(x.sum(1)) and torch.ops.higher_order.my_sum is operator
    assert torch.vmap(operator, (0, None))(x, 0).equal(x.sum(1))
    assert torch.vmap(torch.vmap(operator, (0, None)), (0, None))(x, 0).equal(x.sum(2))
    row = x[0, 0]
    assert torch.func.grad(operator)(row, 0).equal(torch.ones(4))
    twice = torch.func.grad(lambda v: torch.func.grad(lambda u: operator(u.sin(), 0))(v).sum())(row)
    torch.testing.assert_close(twice, -row.sin())
    assert torch.vmap(torch.func.grad(operator), (0, None))(x[0], 0).equal(torch.ones(3, 4))


def test_keys_fall_through():
    operator, x = Operator("steps"), torch.ones(2)
    with pytest.raises(NotImplementedError, match="could not find kernel for HigherOrderOperator steps at dispatch key DispatchKey.AutogradCPU"):
        operator(x)
    operator.fallthrough(_C.DispatchKey.AutogradCPU)
    operator.py_impl(_C.DispatchKey.CompositeExplicitAutograd)(lambda v: v + 2)
    assert operator(x).tolist() == [3, 3]
    operator.py_impl(_C.DispatchKey.CPU)(lambda v: v + 1)
    assert operator(x).tolist() == [2, 2] and operator.has_kernel_for_dispatch_key(_C.DispatchKey.CPU)
    with pytest.raises(RuntimeError, match="Trying to override a python impl for DispatchKey.CPU on operator steps"):
        operator.py_impl(_C.DispatchKey.CPU)(lambda v: v)
    with pytest.raises(NotImplementedError, match="under vmap"):
        torch.vmap(operator)(x)


def test_modes_and_classes():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Seeing(Mode):
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return "seen" if func is operator else func(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        pass

    operator, x = Operator("modal"), torch.ones(2)
    operator.py_impl(_C.DispatchKey.AutogradCPU)(lambda v: v + 1)
    with Mode(), pytest.raises(NotImplementedError, match="no rule registered for HigherOrderOperator modal and mode"):
        operator(x)
    with Seeing():
        assert operator(x) == "seen"
    operator.py_impl(Mode)(lambda mode, v: v * 10)
    with Mode():
        assert operator(x).tolist() == [10, 10]
    assert operator(x).tolist() == [2, 2]

    class Overriding(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return (func, types)

    assert operator(x.as_subclass(Overriding)) == (operator, (Overriding,))
    operator.py_impl(Own)(lambda v: "own")
    with torch._C.DisableTorchFunctionSubclass():
        assert operator(x.as_subclass(Own)) == "own"


def test_only_subclasses_have_instances():
    with pytest.raises(TypeError):
        HigherOrderOperator("none")
