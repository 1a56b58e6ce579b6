"""Pools of inputs without elements, the memory format of unbatched volumes, and the words for what does not fit. PyTorch 2.13's answers."""

import pytest

import cresset
from cresset.nn import functional as F


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_pools_take_no_channels(rank, kind):
    pool = getattr(F, f"adaptive_{kind}_pool{rank}d")
    x = cresset.ones((0, *[10] * rank), requires_grad=True)
    y = pool(x, 2)
    y.sum().backward()
    assert y.shape == (0, *[2] * rank) and x.grad.shape == x.shape
    with pytest.raises(RuntimeError, match="Expected input to have non-zero size for non-batch dimensions"):
        pool(cresset.ones(2, 3, 0, *[10] * (rank - 1)), 2)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("batch", [(), (1,)])
def test_a_gradient_without_places_is_refused(rank, kind, batch):
    x = cresset.randn(*batch, 4, *[8] * rank, requires_grad=True)
    y = getattr(F, f"adaptive_{kind}_pool{rank}d")(x, 0)
    assert y.numel() == 0
    with pytest.raises(RuntimeError, match="Expected grad_output to have non-zero size for non-batch dimensions"):
        y.sum().backward()


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_pools(rank):
    pool = getattr(F, f"fractional_max_pool{rank}d")
    assert pool(cresset.ones(0, *[10] * rank), 2, output_size=2).shape == (0, *[2] * rank)
    with pytest.raises(RuntimeError, match="Expected input to have non-zero size for non-batch dimensions"):
        pool(cresset.ones(1, 0, *[10] * rank), 2, output_size=2)


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("max_pool2d", (1, 0, 10, 10), r"Expected 3D or 4D \(batch mode\) tensor with optional 0 dim batch size for input"),
        ("max_pool2d", (2, 3, 4, 10, 10), r"non-empty 3D or 4D \(batch mode\) tensor expected for input"),
        ("avg_pool2d", (2, 3, 4, 10, 10), r"Expected 3D or 4D \(batch mode\) tensor with optional 0 dim batch size for input"),
        ("avg_pool3d", (1, 0, 9, 9, 9), "Expected input's non-batch dimensions to have positive length"),
        ("max_pool3d", (9, 9, 9), r"non-empty 4D or 5D \(batch mode\) tensor expected for input"),
        ("avg_pool1d", (9,), "Expected 2 to 3 dimensions, but got 1-dimensional tensor for argument #1 'self'"),
        ("max_pool1d", (2, 3, 0), r"Expected 2D or 3D \(batch mode\) tensor with optional 0 dim batch size for input"),
    ],
)
def test_words(name, shape, words):
    with pytest.raises(RuntimeError, match=words):
        getattr(F, name)(cresset.ones(shape), 2)


def test_unbatched_volumes_keep_channels_last():
    x = cresset.randn(1, 6, 8, 8, 8).contiguous(memory_format=cresset.channels_last_3d).squeeze(0)
    y, places = F.max_pool3d(x, 2, return_indices=True)
    assert y.stride() == places.stride() == (1, 96, 24, 6)
    assert F.max_pool3d(x.contiguous(), 2).stride() == (64, 16, 4, 1)
    assert F.avg_pool3d(x, 2).stride() == (64, 16, 4, 1)


@pytest.mark.parametrize("seed", range(12))
def test_channels_last_pools_as_planes_do(seed):
    """The same numbers in another order of memory: NaN, infinity and equal elements included."""
    cresset.manual_seed(seed)
    x = cresset.randn(2, [1, 7, 64][seed % 3], 9, 11)
    if seed % 2:
        x = x.round()
    x[x > 2] = float("nan")
    x[x < -1.5] = -float("inf")
    last = x.contiguous(memory_format=cresset.channels_last)
    kernel, stride, padding, dilation, ceil = [(3, 2, 1, 1, False), (2, 2, 0, 1, True), ((2, 3), 1, (1, 0), 2, False)][seed % 3]
    calls = [
        lambda t: F.max_pool2d(t, kernel, stride, padding, dilation, ceil, return_indices=True),
        lambda t: F.adaptive_max_pool2d(t, (3, 4), return_indices=True),
        lambda t: (F.avg_pool2d(t.nan_to_num(0, 1, -1), kernel, stride, padding, ceil, bool(seed % 4)),),
        lambda t: (F.adaptive_avg_pool2d(t.nan_to_num(0, 1, -1), 1), F.adaptive_avg_pool2d(t.nan_to_num(0, 1, -1), (4, 5))),
    ]
    for call in calls:
        for a, b in zip(call(last), call(x)):
            cresset.testing.assert_close(a, b, equal_nan=True)
            assert a.is_contiguous(memory_format=cresset.channels_last)


@pytest.mark.parametrize("n, size", [(2, (1, 0)), (3, (0, 1, 1)), (3, (2, 1, 0))])
def test_fractional_pooling_into_no_windows(n, size):
    x = cresset.rand(2, 3, *[6] * n, requires_grad=True)
    pooled = getattr(cresset.nn, f"FractionalMaxPool{n}d")(2, output_size=size)(x)
    assert pooled.shape == (2, 3, *size)
    pooled.sum().backward()
    assert not x.grad.any()
    with pytest.raises(RuntimeError, match="output_size must be at least zero"):
        getattr(cresset.nn.functional, f"fractional_max_pool{n}d")(x, 2, output_size=(-1,) * n)
