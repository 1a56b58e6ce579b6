"""Traces know a tensor again that was made without an operator: results of Functions that are inputs, tensors saved for backward, transforms."""

import pytest

import cresset
from cresset.autograd import Function, forward_ad
from cresset.utils.checkpoint import checkpoint

jit = cresset.jit


class Same(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class Swap(Function):
    @staticmethod
    def forward(ctx, x, y):
        return y, x

    @staticmethod
    def backward(ctx, a, b):
        return b, a


class Written(Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


def gradient(x):
    x = (x * 1).requires_grad_()
    return cresset.autograd.grad((x.exp() * x.sigmoid()).sum(), x)[0]


def other_data(x):
    y = cresset.zeros(3)
    y.data = x * 2
    return y + 1


PROGRAMS = {
    "an input": lambda x: Same.apply(x),
    "an input that is used": lambda x: Same.apply(x) + 1,
    "what was computed": lambda x: Same.apply(x * 2) * x,
    "two inputs": lambda x: Swap.apply(x * 2, x[:1])[0] + Swap.apply(x, x.sin())[0],
    "an input that was written": lambda x: Written.apply(x.clone()) * 2,
    "a checkpoint": lambda x: checkpoint(lambda t: t, x, use_reentrant=True) + 1,
    "saved results": gradient,
    "a parameter": lambda x: cresset.nn.Parameter(x * 1).detach() + 1,
    "vjp": lambda x: cresset.func.vjp(cresset.exp, x)[1](x)[0],
    "grad": lambda x: cresset.func.grad(lambda t: (t * t.exp()).sum())(x),
    "jacrev": lambda x: cresset.func.jacrev(cresset.exp)(x).sum(0),
    "other data": other_data,
    "func": lambda x: cresset.func.functional_call(cresset.nn.Tanh(), {}, (x,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_follows_the_input(name):
    program, seen, other = PROGRAMS[name], cresset.tensor([1.0, 2, 3]), cresset.tensor([0.5, -1, 4])
    traced = jit.trace(program, (seen,), check_trace=False)
    assert cresset.allclose(traced(other.clone()), program(other.clone()))


def test_an_attribute_through_a_function():
    class M(cresset.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = cresset.nn.Parameter(cresset.ones(3))

        def forward(self, x):
            return x * Same.apply(self.weight)

    m = M()
    traced = jit.trace(m, (cresset.ones(3),))
    with cresset.no_grad():
        traced.weight.mul_(5)
    assert traced(cresset.ones(3)).tolist() == [5, 5, 5]
    traced(cresset.ones(3)).sum().backward()
    assert traced.weight.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "program",
    [lambda x: cresset.func.jvp(cresset.sin, (x,), (x,))[1], lambda x: forward_ad.unpack_dual(forward_ad.make_dual(x, x * 2).sin()).tangent],
)
def test_tangents_are_refused(program):
    with forward_ad.dual_level() if program.__code__.co_names[0] == "forward_ad" else cresset.enable_grad():
        with pytest.raises(RuntimeError, match="A trace cannot follow tangents of forward mode"):
            jit.trace(program, (cresset.ones(3),), check_trace=False)
