"""Arguments of Function.apply by name: those of forward's parameters with a position; the others keep their defaults."""

import pytest

import cresset
from cresset.autograd import Function


class Clip(Function):
    @staticmethod
    def forward(ctx, x, low, high=1, *, extra=None):
        assert extra is None
        ctx.save_for_backward(x)
        ctx.limits = low, high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ((x >= ctx.limits[0]) & (x <= ctx.limits[1])), None, None


@pytest.mark.parametrize("args, kwargs", [((-1, 1), {}), ((), {"low": -1, "high": 1}), ((), {"low": -1}), ((-1,), {"high": 1})])
def test_by_name(args, kwargs):
    x = cresset.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    y = Clip.apply(x, *args, **kwargs)
    assert y.tolist() == [-1, 0.5, 1]
    y.sum().backward()
    assert x.grad.tolist() == [0, 1, 0]


def test_what_has_no_position():
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'extra'"):
        Clip.apply(cresset.ones(1), -1, extra=2)


def test_grad_variables_is_an_old_name():
    x = cresset.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        cresset.autograd.backward(x * 2, grad_variables=cresset.ones(2))
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="both passed"):
        cresset.autograd.backward(x * 2, cresset.ones(2), grad_variables=cresset.ones(2))
