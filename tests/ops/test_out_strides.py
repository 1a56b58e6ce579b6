"""A fresh out tensor takes the result's memory format where PyTorch's does (`out_strides` of a row), and stays contiguous where it does not."""

import pytest

import cresset
from cresset.ops import aten

X = cresset.arange(200.0).reshape(2, 4, 5, 5).contiguous(memory_format=cresset.channels_last)
V = cresset.arange(1000.0).reshape(2, 4, 5, 5, 5).contiguous(memory_format=cresset.channels_last_3d)
G, GV = X.new_ones(2, 4, 7, 7).contiguous(memory_format=cresset.channels_last), V.new_ones(2, 4, 7, 7, 7).contiguous(memory_format=cresset.channels_last_3d)

KEPT = {
    "nearest": lambda out: aten.upsample_nearest2d.out(X, [7, 7], None, None, out=out),
    "exact": lambda out: aten._upsample_nearest_exact2d.out(X, [7, 7], None, None, out=out),
    "bilinear": lambda out: aten.upsample_bilinear2d.out(X, [7, 7], False, None, None, out=out),
    "bicubic": lambda out: aten.upsample_bicubic2d.out(X, [7, 7], False, None, None, out=out),
    "antialias": lambda out: aten._upsample_bilinear2d_aa.out(X, [7, 7], False, None, None, out=out),
    "nearest3d": lambda out: aten.upsample_nearest3d.out(V, [7, 7, 7], out=out),
    "trilinear": lambda out: aten.upsample_trilinear3d.out(V, [7, 7, 7], False, out=out),
    "nearest gradient": lambda out: aten.upsample_nearest2d_backward.grad_input(G, [7, 7], [2, 4, 5, 5], None, None, grad_input=out),
    "bilinear gradient": lambda out: aten.upsample_bilinear2d_backward.grad_input(G, [7, 7], [2, 4, 5, 5], False, None, None, grad_input=out),
    "trilinear gradient": lambda out: aten.upsample_trilinear3d_backward.grad_input(GV, [7, 7, 7], [2, 4, 5, 5, 5], False, grad_input=out),
    "adaptive_avg_pool2d": lambda out: aten.adaptive_avg_pool2d.out(X, [2, 2], out=out),
    "mse_loss": lambda out: aten.mse_loss.out(X, X + 1, 0, out=out),
    "huber_loss": lambda out: aten.huber_loss.out(X, X + 1, 0, out=out),
    "smooth_l1_loss": lambda out: aten.smooth_l1_loss.out(X, X + 1, 0, out=out),
    "nan_to_num": lambda out: cresset.nan_to_num(X, out=out),
    "softshrink": lambda out: aten.softshrink.out(X, out=out),
    "glu": lambda out: aten.glu.out(X, 1, out=out),
    "square": lambda out: cresset.square(X, out=out),
    "angle": lambda out: cresset.angle(X, out=out),
    "soft_margin_loss": lambda out: aten.soft_margin_loss.out(X, X, 0, out=out),
}
W = cresset.ones(3, 4, 2, 2)
PLAIN = {
    "relu": lambda out: aten.relu.out(X, out=out),
    "isnan": lambda out: aten.isnan.out(X, out=out),
    "isinf": lambda out: aten.isinf.out(X, out=out),
    "rsub": lambda out: aten.rsub.Scalar_out(X, 2, out=out),
    "roll": lambda out: aten.roll.out(X, [1], [1], out=out),
    "flip": lambda out: aten.flip.out(X, [0, 2], out=out),
    "constant_pad_nd": lambda out: aten.constant_pad_nd.out(X, [1, 1], 2.0, out=out),
    "convolution": lambda out: aten.convolution.out(X, W, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, out=out),
    "_adaptive_avg_pool2d": lambda out: aten._adaptive_avg_pool2d.out(X, [2, 2], out=out),
    "avg_pool3d": lambda out: aten.avg_pool3d.out(V, [2, 2, 2], out=out),
    "bicubic gradient": lambda out: aten.upsample_bicubic2d_backward.grad_input(G, [7, 7], [2, 4, 5, 5], False, None, None, grad_input=out),
    "nearest3d gradient": lambda out: aten.upsample_nearest3d_backward.grad_input(GV, [7, 7, 7], [2, 4, 5, 5, 5], grad_input=out),
}


def _format(t):
    return cresset.channels_last if t.dim() == 4 else cresset.channels_last_3d


@pytest.mark.parametrize("name", KEPT)
def test_the_format_is_kept(name):
    out = cresset.empty(0)
    KEPT[name](out)
    assert out.is_contiguous(memory_format=_format(out)) and not out.is_contiguous()
    sized = cresset.empty(out.shape)
    KEPT[name](sized)
    assert sized.is_contiguous() and cresset.equal(sized, out)


@pytest.mark.parametrize("name", PLAIN)
def test_the_format_is_not_kept(name):
    out = cresset.empty(0, dtype=cresset.bool if name.startswith("is") else cresset.float)
    PLAIN[name](out)
    assert out.is_contiguous()
    formatted = cresset.empty_like(out, memory_format=_format(out))
    PLAIN[name](formatted)
    assert formatted.is_contiguous(memory_format=_format(out)) and cresset.equal(formatted, out)


def test_complex_and_several_results():
    out = cresset.empty(0, dtype=cresset.cfloat)
    assert cresset.complex(X, X, out=out).is_contiguous(memory_format=cresset.channels_last)
    assert cresset.polar(X, X, out=out.resize_(0)).is_contiguous(memory_format=cresset.channels_last)
    values, places = cresset.sort(X, 1, out=(cresset.empty(0), cresset.empty(0, dtype=cresset.long)))
    assert values.stride() == places.stride() == cresset.sort(X, 1).values.stride()
