"""Group normalisation as an operator of its own: both layouts, all types, derivatives of the result and of its statistics."""

import numpy as np
import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck
from cresset.nn import functional as F
from cresset.utils._python_dispatch import TorchDispatchMode

LAYOUTS = {"contiguous": cresset.contiguous_format, "channels last": cresset.channels_last}


def in_numpy(x, groups, weight, bias, eps):
    """(y, mean, rstd) in double precision."""
    x = x.double().numpy()
    split = x.reshape(x.shape[0], groups, -1)
    mean, rstd = split.mean(2), 1 / np.sqrt(split.var(2) + eps)
    y = ((split - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    affine = (1, -1) + (1,) * (x.ndim - 2)
    return y * weight.double().numpy().reshape(affine) + bias.double().numpy().reshape(affine), mean, rstd


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.bfloat16, cresset.float16])
@pytest.mark.parametrize("shape, groups", [((2, 6, 7, 7), 3), ((3, 4, 1, 1), 2), ((1, 32, 50, 41), 1), ((1, 2600, 2, 1), 4)])
def test_values(shape, groups, dtype, layout):
    cresset.manual_seed(0)
    x = (cresset.randn(shape) * 2 + 3).to(dtype).contiguous(memory_format=LAYOUTS[layout])
    weight, bias = cresset.rand(shape[1]).to(dtype), cresset.randn(shape[1]).to(dtype)
    n, c, h, w = shape
    y, mean, rstd = cresset.native_group_norm(x, weight, bias, n, c, h * w, groups, 1e-5)
    assert y.dtype == mean.dtype == rstd.dtype == dtype
    assert y.is_contiguous(memory_format=LAYOUTS[layout]) and mean.shape == rstd.shape == (n, groups)
    for got, expected in zip((y, mean, rstd), in_numpy(x, groups, weight, bias, 1e-5)):
        unit = cresset.finfo(dtype).eps
        np.testing.assert_allclose(got.double().numpy(), expected, rtol=16 * unit, atol=16 * unit)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_half_types_have_the_gradients_of_double(layout):
    cresset.manual_seed(0)
    x, g = (cresset.randn(2, 6, 9, 5).bfloat16().contiguous(memory_format=LAYOUTS[layout]) for _ in range(2))
    weight, bias = cresset.randn(6).bfloat16(), cresset.randn(6).bfloat16()
    gradients = []
    for dtype in (cresset.bfloat16, cresset.float64):
        inputs = [t.to(dtype).requires_grad_() for t in (x, weight, bias)]
        gradients.append(cresset.autograd.grad(F.group_norm(inputs[0], 3, *inputs[1:]), inputs, g.to(dtype)))
    for half, double in zip(*gradients):
        cresset.testing.assert_close(half.double(), double, rtol=2e-2, atol=2e-2)
    assert gradients[0][0].is_contiguous(memory_format=LAYOUTS[layout])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("affine", [True, False])
def test_derivatives(affine, layout):
    cresset.manual_seed(0)
    x = cresset.randn(2, 4, 3, 2, dtype=cresset.float64).contiguous(memory_format=LAYOUTS[layout]).requires_grad_()
    rest = [cresset.randn(4, dtype=cresset.float64, requires_grad=True) for _ in range(2)] if affine else [None, None]

    def all_of_it(x, weight, bias):
        return cresset.native_group_norm(x, weight, bias, 2, 4, 6, 2, 1e-5)

    assert gradcheck(all_of_it, (x, *rest), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(all_of_it, (x, *rest))


def test_a_weight_of_zero():
    x = cresset.randn(1, 2, 3, dtype=cresset.float64, requires_grad=True)
    weight = cresset.zeros(2, dtype=cresset.float64, requires_grad=True)
    assert gradcheck(lambda x, w: F.group_norm(x, 2, w), (x, weight))


def test_tools_see_one_operator():
    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    names = []
    x = cresset.randn(2, 4, 3)
    with Seen():
        F.group_norm(x, 2)
    assert names == ["aten.native_group_norm.default"]
    assert F.group_norm(x.requires_grad_(), 2).grad_fn.name() == "NativeGroupNormBackward0"


def test_examples():
    x = cresset.randn(5, 2, 4, 3)
    each = cresset.stack([F.group_norm(t, 2) for t in x])
    cresset.testing.assert_close(cresset.vmap(lambda t: F.group_norm(t, 2))(x), each)


def test_nothing_to_normalise():
    x = cresset.ones(2, 4, 0, requires_grad=True)
    weight = cresset.ones(4, requires_grad=True)
    cresset.group_norm(x, 2, weight).sum().backward()
    assert x.grad.shape == (2, 4, 0) and weight.grad.tolist() == [0, 0, 0, 0]


def test_sizes_that_are_not_the_inputs():
    with pytest.raises(RuntimeError, match=r"N \* C \* HxW elements was required; got \[2, 4, 3\] with N = 2, C = 4 and HxW = 5"):
        cresset.native_group_norm(cresset.ones(2, 4, 3), None, None, 2, 4, 5, 2, 1e-5)
