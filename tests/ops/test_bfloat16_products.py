"""Convolutions and products of bfloat16 are rounded once, with and without instructions for them: beside double precision. test_instruction_sets.py runs
them at each level."""

import pytest

import cresset
from cresset.nn import functional as F

BF16 = cresset.bfloat16


def drawn(*sizes):
    return cresset.randn(*sizes).to(BF16)


def close(got, want):
    """Half a unit in the last place of the exact result, and what sums in float lose."""
    assert got.dtype == BF16
    error = (got.double() - want).abs()
    assert bool((error <= want.abs() * 2**-8 * 1.01 + 1e-4 * want.abs().max()).all()), error.max()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("groups, kernel, stride, padding, dilation", [(1, 3, 1, 1, 1), (1, 1, 1, 0, 1), (4, 3, 2, 1, 2), (32, 3, 1, 1, 1), (1, 5, 3, 0, 1)])
def test_convolutions(groups, kernel, stride, padding, dilation, bias):
    cresset.manual_seed(0)
    x, w, b = drawn(2, 32, 19, 17), drawn(64, 32 // groups, kernel, kernel), drawn(64) if bias else None
    exact = [t.double().requires_grad_() if t is not None else None for t in (x, w, b)]
    given = [t.requires_grad_() if t is not None else None for t in (x, w, b)]
    steps = (stride, padding, dilation, groups)
    want = F.conv2d(*exact, *steps)
    for format in (cresset.contiguous_format, cresset.channels_last):
        got = F.conv2d(given[0].contiguous(memory_format=format), *given[1:], *steps)
        close(got, want)
        g = drawn(*got.shape)
        wanted = [t for t in given if t is not None]
        for have, want_gradient in zip(cresset.autograd.grad(got, wanted, g), cresset.autograd.grad(want, [t for t in exact if t is not None], g.double(), True), strict=True):
            close(have, want_gradient)


def test_convolutions_of_other_dimensions():
    cresset.manual_seed(1)
    for convolution, sizes in ((F.conv1d, (40,)), (F.conv3d, (5, 6, 7))):
        x, w = drawn(2, 16, *sizes), drawn(16, 16, *[3] * len(sizes))
        close(convolution(x, w, drawn(16) * 0, padding=1), convolution(x.double(), w.double(), padding=1))
    x, w, b = drawn(2, 16, 9, 9), drawn(16, 24, 3, 3), drawn(24)
    close(F.conv_transpose2d(x, w, b, stride=2), F.conv_transpose2d(x.double(), w.double(), b.double(), stride=2))
    assert F.conv2d(drawn(0, 16, 9, 9), drawn(4, 16, 3, 3)).shape == (0, 4, 7, 7)


@pytest.mark.parametrize("m, k, n", [(33, 100, 77), (64, 512, 10), (1, 700, 300), (128, 256, 257)])
@pytest.mark.parametrize("threads", [1, 2])
def test_products(m, k, n, threads):
    cresset.manual_seed(2)
    before = cresset.get_num_threads()
    cresset.set_num_threads(threads)
    try:
        x, w, b, c = drawn(m, k), drawn(n, k), drawn(n), drawn(m, n)
        product = x.double() @ w.double().t()
        close(F.linear(x, w), product)
        close(F.linear(x, w, b), product + b.double())
        close(cresset.addmm(c, x, w.t().contiguous(), beta=0.5, alpha=-2), 0.5 * c.double() - 2 * product)
        wide = drawn(m, n + 5)
        kept = wide.clone()
        cresset.addmm(c, x, w.t(), out=wide[:, 2 : n + 2])
        close(wide[:, 2 : n + 2], c.double() + product)
        assert wide[:, :2].equal(kept[:, :2]) and wide[:, n + 2 :].equal(kept[:, n + 2 :])
    finally:
        cresset.set_num_threads(before)
