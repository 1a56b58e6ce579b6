"""Max pooling where a window holds padding only: PyTorch 2.13's values, and no derivative."""

import math

import cresset
import pytest

F = cresset.nn.functional


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.bfloat16, cresset.float16])
def test_floating(n, dtype):
    x = cresset.ones((1, 2) + (1,) * n, dtype=dtype)
    values, indices = getattr(F, f"max_pool{n}d")(x, 2, 1, 1, 2, return_indices=True)
    assert values.flatten().tolist() == [-math.inf] * 2
    assert indices.flatten().tolist() == [n] * 2
    assert getattr(F, f"max_pool{n}d")(x, 2, 1, 1, 2).flatten().tolist() == [-math.inf] * 2


@pytest.mark.parametrize("dtype", [cresset.int64, cresset.int32, cresset.uint8])
def test_integers(dtype):
    x = cresset.ones((1, 1, 1, 1), dtype=dtype)
    assert F.max_pool2d(x, 2, 1, 1, 2).item() == cresset.iinfo(dtype).min


def test_derivatives():
    x = cresset.ones(1, 1, 1, 3, requires_grad=True, dtype=cresset.float64)
    y = F.max_pool2d(x, (1, 2), (1, 1), (0, 1), (1, 4))  # taps at -1 and 3: padding only
    assert y.tolist() == [[[[-math.inf]]]]
    (g,) = cresset.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [[[[0.0, 0.0, 0.0]]]]
    _, tangent = cresset.func.jvp(lambda t: F.max_pool2d(t, (1, 2), (1, 1), (0, 1), (1, 4)), (x.detach(),), (cresset.ones(1, 1, 1, 3, dtype=cresset.float64),))
    assert tangent.tolist() == [[[[0.0]]]]


def test_padding_of_more_than_half_a_window():
    for n, text in ((2, "padW = 2, padH = 2, kW = 2, kH = 2"), (3, "kT: 2 kW: 2 kH: 2 padT: 2 padW: 2 padH: 2")):
        with pytest.raises(RuntimeError, match=f"pad should be smaller than or equal to half of kernel size, but got {text}"):
            getattr(F, f"max_pool{n}d")(cresset.ones((1, 1) + (2,) * n), 2, 1, 2, 3)
