"""Pools and batch norm of images by their definitions, window by window in NumPy: planes, channels that are neighbours, strided images; ties, NaN,
infinities, windows that reach over the edge."""

import itertools

import numpy as np
import pytest

import cresset

F = cresset.nn.functional
LAYOUTS = {
    "planes": lambda x: x,
    "channels": lambda x: x.contiguous(memory_format=cresset.channels_last),
    "strided": lambda x: cresset.stack((x, x), -1)[..., 0].transpose(2, 3).contiguous().transpose(2, 3),
}
WINDOWS = [((2, 2), (2, 2), (0, 0), (1, 1)), ((3, 3), (2, 2), (1, 1), (1, 1)), ((2, 3), (1, 2), (1, 0), (2, 1)), ((1, 4), (3, 5), (0, 2), (1, 2)), ((3, 1), (1, 7), (0, 0), (1, 1))]
ROWS = [((1, k), (2, stride), (0, 0), (1, dilation)) for k, stride, dilation in [(2, 2, 1), (3, 1, 1), (3, 2, 2), (1, 2, 1), (1, 3, 1), (4, 5, 1)]]


def image(dtype, channels=18):
    rng = np.random.default_rng(1)
    x = np.round(rng.standard_normal((2, channels, 9, 11)) * 2)  # ties
    flat = x.reshape(-1)
    for value in (np.nan, -np.inf, np.inf, -0.0):
        flat[rng.integers(0, flat.size, 40)] = value
    x[1, 3] = -np.inf
    return x.astype(dtype)


def windows_of(size, kernel, stride, padding, dilation, ceil):
    out = -(-(size + 2 * padding - dilation * (kernel - 1) - 1) // stride) + 1 if ceil else (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if ceil and (out - 1) * stride >= size + padding:
        out -= 1
    return [[i for i in range(o * stride - padding, o * stride - padding + dilation * kernel, dilation) if 0 <= i < size] for o in range(out)]


def largest(x, windows):
    rows, columns = windows
    value, index = (np.zeros((*x.shape[:2], len(rows), len(columns)), t) for t in (x.dtype, np.int64))
    for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
        places = [h * x.shape[3] + w for h in row for w in column]
        taken = x.reshape(*x.shape[:2], -1)[..., places]
        nan = np.isnan(taken)
        best = np.where(nan.any(-1), taken.shape[-1] - 1 - np.argmax(nan[..., ::-1], -1), np.argmax(np.where(nan, -np.inf, taken), -1))
        value[..., i, j] = np.take_along_axis(taken, best[..., None], -1)[..., 0]
        index[..., i, j] = np.array(places)[best]
    return value, index


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("window", WINDOWS + ROWS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_largest_of_windows(window, ceil, layout, dtype):
    kernel, stride, padding, dilation = window
    x = image(dtype)
    value, index = largest(x, [windows_of(n, *of, ceil) for n, *of in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True)])
    t = LAYOUTS[layout](cresset.from_numpy(x))
    got, at = F.max_pool2d(t, kernel, stride, padding, dilation, ceil, return_indices=True)
    np.testing.assert_array_equal(got.numpy(), value)
    np.testing.assert_array_equal(at.numpy(), index)
    assert got.is_contiguous(memory_format=cresset.channels_last) == (layout == "channels")


@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(2, 2, 1), (3, 1, 1), (3, 2, 4), (1, 2, 1)])
def test_largest_of_long_lines(kernel, stride, dilation):
    x = np.tile(image("float32").reshape(1, 1, 1, -1), 2)[..., :1500]
    value, index = largest(x, [[[0]], windows_of(1500, kernel, stride, 0, dilation, False)])
    got, at = F.max_pool1d(cresset.from_numpy(x[0, 0]), kernel, stride, 0, dilation, return_indices=True)
    np.testing.assert_array_equal(got.numpy(), value[0, 0])
    np.testing.assert_array_equal(at.numpy(), index[0, 0])


@pytest.mark.parametrize("half", [cresset.bfloat16, cresset.float16])
def test_largest_of_half_types(half):
    x = image("float32")
    value, index = largest(x, [windows_of(n, 3, 2, 1, 1, False) for n in x.shape[2:]])
    got, at = F.max_pool2d(cresset.from_numpy(x).to(half), 3, 2, 1, return_indices=True)
    assert got.dtype == half
    np.testing.assert_array_equal(got.float().numpy(), value)
    np.testing.assert_array_equal(at.numpy(), index)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_averages(layout, dtype):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, 18, 9, 11)).astype(dtype)
    t = LAYOUTS[layout](cresset.from_numpy(x))
    want = np.zeros((2, 18, 5, 6))
    for (i, row), (j, column) in itertools.product(enumerate(windows_of(9, 3, 2, 1, 1, False)), enumerate(windows_of(11, 3, 2, 1, 1, False))):
        want[..., i, j] = x[..., row, :][..., column].mean((-2, -1), dtype=np.float64)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(F.avg_pool2d(t, 3, 2, 1, count_include_pad=False).numpy(), want, atol=tolerance)
    np.testing.assert_allclose(F.adaptive_avg_pool2d(t, 1).numpy(), x.mean((2, 3), keepdims=True, dtype=np.float64), atol=tolerance)
    np.testing.assert_allclose(F.adaptive_avg_pool2d(t, (3, 1)).numpy()[:, :, 1, 0], x[:, :, 3:6].mean((2, 3), dtype=np.float64), atol=tolerance)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("channels", [1, 5, 64, 70])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_batch_norm(layout, channels, training):
    rng = np.random.default_rng(4)
    x, g = rng.standard_normal((2, 3, channels, 9, 11))[:, :2]
    w, b, mean, var = rng.uniform(0.5, 2, (4, channels))
    leaves = [LAYOUTS[layout](cresset.from_numpy(x)).requires_grad_(), *(cresset.from_numpy(v).requires_grad_() for v in (w, b))]
    running = [cresset.from_numpy(v.copy()) for v in (mean, var)]
    y = F.batch_norm(leaves[0], *running, *leaves[1:], training, 0.1, 1e-5)
    gx, gw, gb = cresset.autograd.grad(y, leaves, cresset.from_numpy(g))
    over, column = (0, 2, 3), np.s_[None, :, None, None]
    m, v = (x.mean(over), x.var(over)) if training else (mean, var)
    s = 1 / np.sqrt(v + 1e-5)
    hat = (x - m[column]) * s[column]
    inner = g - g.mean(over)[column] - hat * (g * hat).mean(over)[column] if training else g
    for got, want in ((y, hat * w[column] + b[column]), (gx, inner * (w * s)[column]), (gw, (g * hat).sum(over)), (gb, g.sum(over))):
        np.testing.assert_allclose(got.detach().numpy(), want, atol=1e-11)
    if training:
        n = x.size // channels
        np.testing.assert_allclose(running[0].numpy(), 0.9 * mean + 0.1 * m, atol=1e-13)
        np.testing.assert_allclose(running[1].numpy(), 0.9 * var + 0.1 * v * n / (n - 1), atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_convolution_of_single_places(layout, bias, dtype):
    rng = np.random.default_rng(5)
    x, w, b, g = (rng.standard_normal(s).astype(dtype) for s in ((3, 18, 9, 11), (7, 18, 1, 1), 7, (3, 7, 9, 11)))
    leaves = [LAYOUTS[layout](cresset.from_numpy(x)).requires_grad_(), *(cresset.from_numpy(v).requires_grad_() for v in ((w, b) if bias else (w,)))]
    y = F.conv2d(*leaves)
    assert y.is_contiguous(memory_format=cresset.channels_last) == (layout == "channels")
    grads = cresset.autograd.grad(y, leaves, cresset.from_numpy(g))
    x, w, b, g = (v.astype(np.float64) for v in (x, w[..., 0, 0], b, g))
    wants = [np.einsum("nchw,oc->nohw", x, w) + (b[:, None, None] if bias else 0), np.einsum("nohw,oc->nchw", g, w), np.einsum("nohw,nchw->oc", g, x)[..., None, None], g.sum((0, 2, 3))]
    for got, want in zip((y, *grads), wants, strict=False):
        np.testing.assert_allclose(got.detach().numpy(), want, atol=(2e-5 if dtype == "float32" else 1e-12) * np.abs(want).max())


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(18, 22), (5, 30), (9, 4)])
def test_resizing_is_the_same_in_every_layout(mode, size):
    x = np.random.default_rng(6).standard_normal((2, 18, 9, 11)).astype("float32")
    results = []
    for lay_out in LAYOUTS.values():
        t = lay_out(cresset.from_numpy(x)).requires_grad_()
        y = F.interpolate(t, size=size, mode=mode)
        (g,) = cresset.autograd.grad(y, t, cresset.arange(y.numel(), dtype=cresset.float32).reshape(y.shape).sin())
        results.append((y.detach().numpy(), g.numpy()))
    if mode == "nearest":
        rows, columns = (np.floor(np.arange(n) * (m / n)).astype(int) for n, m in zip(size, x.shape[2:], strict=True))
        np.testing.assert_array_equal(results[0][0], x[..., rows, :][..., columns])
    if mode == "bilinear":  # separable: one matrix for each dimension
        def matrix(n, m):
            at = np.clip((np.arange(n) + 0.5) * m / n - 0.5, 0, None)
            low = np.minimum(at.astype(int), m - 1)
            w = np.zeros((n, m))
            np.add.at(w, (np.arange(n), low), 1 - (at - low))
            np.add.at(w, (np.arange(n), np.minimum(low + 1, m - 1)), at - low)
            return w
        np.testing.assert_allclose(results[0][0], np.einsum("ah,nchw,bw->ncab", matrix(size[0], 9), x, matrix(size[1], 11)), atol=1e-5)
    for y, g in results[1:]:
        np.testing.assert_array_equal(y, results[0][0])
        np.testing.assert_array_equal(g, results[0][1])
