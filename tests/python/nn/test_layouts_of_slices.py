"""Layouts of results for parts of images with channels innermost: the channels stay innermost, as PyTorch chooses."""

import cresset as torch
import pytest
from cresset.nn import functional as F

PARTS = {"whole": lambda x: x, "sliced": lambda x: x[:, :, 1:-1, 1:-1], "strided": lambda x: x[:, :, ::2, ::2]}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_interpolation(part, batch, mode, dtype):
    x = PARTS[part](torch.ones(batch, 3, 16, 16).to(dtype).contiguous(memory_format=torch.channels_last))
    y = F.interpolate(x, size=(4, 4), mode=mode)
    assert y.stride() == (48, 1, 12, 3) and bool((y == 1).all())
    alone = x[:1][0][None]  # a batch of one whose stride does not say so
    assert F.interpolate(alone, size=(4, 4), mode=mode).stride() == (48, 16, 4, 1)


@pytest.mark.parametrize("part", PARTS)
def test_other_operators(part):
    x = PARTS[part](torch.randn(2, 4, 16, 16).contiguous(memory_format=torch.channels_last))
    for f in (lambda t: F.max_pool2d(t, 2), lambda t: F.avg_pool2d(t, 2), lambda t: F.batch_norm(t, None, None, training=True), lambda t: F.pixel_shuffle(t, 2)):
        y, plain = f(x), f(x.contiguous())
        assert y.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(y, plain, check_stride=False)
    assert x.to(memory_format=torch.channels_last) is x


def test_suggestions_by_strides():
    # One channel: strides say what sizes do not.
    x = torch.empty_strided((2, 1, 4, 4), (16, 1, 4, 1)).fill_(1)
    assert F.interpolate(x, size=(2, 2)).stride() == (4, 1, 2, 1)
    assert F.interpolate(torch.ones(2, 1, 4, 4), size=(2, 2)).stride() == (4, 4, 2, 1)
    assert F.interpolate(torch.ones(4, 1, 1, 1)[::2], size=(2, 2)).stride() == (4, 4, 2, 1)
