"""Fourier transforms against numpy.fft, their identities, layouts, errors, and short-time transforms against their definition."""

import threading

import cresset
import numpy as np
import pytest

# Small factors, factors that have no formula of their own, large primes (Bluestein), even multiples of primes (pairs of reals), all radices.
LENGTHS = [1, 2, 3, 4, 6, 7, 8, 15, 16, 30, 31, 32, 37, 49, 64, 77, 53, 106, 120, 128, 211, 509, 1000, 1018, 1024]
NORMS = [None, "backward", "ortho", "forward"]
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]


def values(*shape, complex=True, seed=0):
    rng = np.random.default_rng([seed, *shape])
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape) if complex else rng.standard_normal(shape)


def takes_complex(name):
    return not name.startswith(("rfft", "ihfft"))


def check(got, want, single=False):
    got = got.numpy()
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=(1e-6 if single else 1e-14) * max(1, np.abs(want).max(initial=0)) * 4)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name", ONE)
def test_lengths(name, n):
    x = values(3, n, complex=takes_complex(name))
    points = {"n": n} if name in ("irfft", "hfft") else {}
    check(getattr(cresset.fft, name)(cresset.from_numpy(x), **points), getattr(np.fft, name)(x, **points))


# Split into rows and columns: of small factors, with a large prime factor, so long that no block has them; and a prime, whose convolution is split.
@pytest.mark.parametrize("n", [1 << 15, 3**10, 1009 * 64, 32771, 1 << 19])
def test_long_lengths(n):
    x = values(n)
    check(cresset.fft.fft(cresset.from_numpy(x)), np.fft.fft(x))
    check(cresset.fft.ifft(cresset.from_numpy(x)), np.fft.ifft(x))
    check(cresset.fft.rfft(cresset.from_numpy(x.real)), np.fft.rfft(x.real))


# Fewer lines than a register has numbers, as many, more, and a rest; in both precisions, along the memory and across it.
@pytest.mark.parametrize("lines", [1, 3, 4, 8, 16, 19, 33])
@pytest.mark.parametrize("n", [12, 62, 97, 256, 289, 512])
@pytest.mark.parametrize("single", [False, True])
def test_lines_at_once(lines, n, single):
    x = values(lines, n)
    for dim, data in ((1, x), (0, np.ascontiguousarray(x.T))):
        t, real = cresset.from_numpy(data), cresset.from_numpy(data.real.copy())
        half = np.fft.rfft(data.real, axis=dim)
        spectrum = cresset.from_numpy(half)
        if single:
            t, real, spectrum = t.to(cresset.complex64), real.float(), spectrum.to(cresset.complex64)
        check(cresset.fft.fft(t, dim=dim), np.fft.fft(data, axis=dim), single)
        check(cresset.fft.ifft(t, dim=dim), np.fft.ifft(data, axis=dim), single)
        check(cresset.fft.rfft(real, dim=dim), half, single)
        check(cresset.fft.fft(real, dim=dim), np.fft.fft(data.real, axis=dim), single)
        check(cresset.fft.irfft(spectrum, n, dim), data.real, single)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [4, 5, 9])
@pytest.mark.parametrize("name", ONE)
def test_points_dimension_norm(name, n, norm):
    x = values(5, 6, 2, complex=takes_complex(name))
    check(getattr(cresset.fft, name)(cresset.from_numpy(x), n, 1, norm), getattr(np.fft, name)(x, n, 1, norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("s, dim", [(None, (0, 2)), ((4, 7), (2, 0)), ((3, 8), (1, 2)), ((2, 3, 5), (0, 1, 2)), ((6,), (1,))])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_several_dimensions(name, s, dim, norm):
    x = values(3, 4, 5, complex=takes_complex(name))
    check(getattr(cresset.fft, name)(cresset.from_numpy(x), s, dim, norm), getattr(np.fft, name)(x, s, dim, norm))


@pytest.mark.parametrize("norm, other", [(None, "forward"), ("ortho", "ortho"), ("forward", "backward")])
def test_hermitian_transforms_are_conjugate_real_ones(norm, other):
    x, real = values(3, 4), values(3, 4, complex=False)
    check(cresset.fft.hfftn(cresset.from_numpy(x), norm=norm), np.fft.irfftn(x.conj(), norm=other))
    check(cresset.fft.ihfftn(cresset.from_numpy(real), norm=norm), np.fft.rfftn(real, norm=other).conj())
    check(cresset.fft.hfft2(cresset.from_numpy(x), norm=norm), np.fft.irfft2(x.conj(), norm=other))
    check(cresset.fft.ihfft2(cresset.from_numpy(real), norm=norm), np.fft.rfft2(real, norm=other).conj())


def test_any_strides():
    x = values(6, 8, 10)
    t = cresset.from_numpy(x)
    for view in ((slice(None), slice(None, None, 2)), (slice(1, None, 3), slice(None), slice(None, None, 5))):
        for dim in range(3):
            check(cresset.fft.fft(t[view], dim=dim), np.fft.fft(x[view], axis=dim))
    check(cresset.fft.irfftn(t.permute(2, 0, 1)), np.fft.irfftn(x.transpose(2, 0, 1)))
    check(cresset.fft.rfft(t.real.expand(6, 8, 10)[:1].expand(4, 8, 10), dim=1), np.fft.rfft(np.broadcast_to(x.real[:1], (4, 8, 10)), axis=1))


def test_many_lines_on_threads():
    x = values(300, 77)
    check(cresset.fft.fft(cresset.from_numpy(x)), np.fft.fft(x))
    check(cresset.fft.fft(cresset.from_numpy(x), dim=0), np.fft.fft(x, axis=0))


def test_one_plan_in_several_threads():
    x = values(250, 91)
    want, t, results = np.fft.fft(x), cresset.from_numpy(x), []
    threads = [threading.Thread(target=lambda: results.extend(cresset.fft.fft(t) for _ in range(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    for result in results:
        check(result, want)


@pytest.mark.parametrize("n", [53, 1009])
def test_convolutions_of_single_precision_are_computed_in_double(n):
    x = values(n).astype(np.complex64)
    y = cresset.fft.fft(cresset.from_numpy(x))
    assert y.dtype == cresset.complex64
    np.testing.assert_array_equal(y.numpy(), np.fft.fft(x.astype(complex)).astype(np.complex64))


@pytest.mark.parametrize("n", [1000, 1024, 1 << 18])
def test_single_precision_loses_few_bits(n):
    """Root mean square error as Schatzman (1996) measures it: factors are rounded from exact ones."""
    x = values(n).astype(np.complex64)
    want = np.fft.fft(x.astype(complex))
    error = np.abs(cresset.fft.fft(cresset.from_numpy(x)).numpy() - want)
    assert np.sqrt((error**2).mean() / (np.abs(want) ** 2).mean()) < 2.5e-7


@pytest.mark.parametrize("dtype", [cresset.bool, cresset.uint8, cresset.int32, cresset.int64])
def test_integers_become_floating(dtype):
    x = cresset.tensor([1, 0, 1, 1]).to(dtype)
    assert cresset.fft.fft(x).dtype == cresset.complex64 and cresset.fft.irfft(x).dtype == cresset.float32
    check(cresset.fft.rfft(x), np.fft.rfft([1, 0, 1, 1]), single=True)


@pytest.mark.parametrize(
    "call, strides",
    [
        (lambda x: cresset.fft.fft(x, dim=0), (1, 15, 3)),
        (lambda x: cresset.fft.rfft(x, dim=1), (15, 1, 3)),
        (lambda x: cresset.fft.irfft(x, 6, dim=0), (1, 30, 6)),
        (lambda x: cresset.fft.fftn(x, dim=(0, 1)), (4, 1, 12)),
        (lambda x: cresset.fft.rfftn(x, dim=(2, 0)), (1, 10, 2)),
        (lambda x: cresset.fft.ihfftn(x, dim=(0, 2)), (1, 9, 3)),
        (lambda x: cresset.fft.fft(x.permute(2, 0, 1)), (4, 20, 1)),
    ],
)
def test_transformed_dimensions_lie_innermost(call, strides):
    x = cresset.zeros(3, 4, 5)
    assert call(x).stride() == strides
    assert call(x.to("meta")).stride() == strides


def test_out():
    x = cresset.from_numpy(values(3, 4))
    out = cresset.empty(0, dtype=cresset.complex128)
    assert cresset.fft.fft(x, dim=0, out=out) is out
    check(out, np.fft.fft(x.numpy(), axis=0))
    wide = cresset.empty(3, 6, dtype=cresset.float64)
    check(cresset.fft.irfft(x.to(cresset.complex64), out=wide), np.fft.irfft(x.numpy().astype(np.complex64)), single=True)
    for call, text in [
        (lambda: cresset.fft.fft(x, out=cresset.empty(3, 4)), "fft expects a complex output tensor, but got Float"),
        (lambda: cresset.fft.irfft2(x, out=out), "irfftn expects a floating point output tensor, but got ComplexDouble"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


REAL, COMPLEX = cresset.zeros(3, 4), cresset.zeros(3, 4, dtype=cresset.complex64)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: cresset.fft.fft(REAL, 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: cresset.fft.irfft(REAL[:, :1]), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: cresset.fft.fftn(REAL, (-2, 3)), RuntimeError, r"Invalid number of data points \(-2\) specified"),
        (lambda: cresset.fft.fft(REAL, dim=2), IndexError, r"expected to be in range of \[-2, 1\], but got 2"),
        (lambda: cresset.fft.fft(cresset.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
        (lambda: cresset.fft.fft(REAL, norm="bad"), RuntimeError, 'Invalid normalization mode: "bad"'),
        (lambda: cresset.fft.fft(REAL.half()), RuntimeError, "Unsupported dtype Half"),
        (lambda: cresset.fft.rfft(COMPLEX), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
        (lambda: cresset.fft.rfftn(COMPLEX), RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat"),
        (lambda: cresset.fft.fftn(REAL, dim=(0, -2)), RuntimeError, "FFT dims must be unique"),
        (lambda: cresset.fft.fftn(REAL, (2,), (0, 1)), RuntimeError, "must have the same length"),
        (lambda: cresset.fft.fftn(REAL, (2, 2, 2)), RuntimeError, "Got shape with 3 values but input tensor only has 2 dimensions."),
        (lambda: cresset.fft.hfftn(REAL, dim=()), RuntimeError, "hfftn must transform at least one axis"),
        (lambda: cresset._fft_c2c(REAL, [0], 0, True), RuntimeError, "Only supports complex dtypes, but found: Float"),
        (lambda: cresset._fft_c2c(COMPLEX, [0, 0], 0, True), RuntimeError, "dim 0 appears multiple times"),
        (lambda: cresset._fft_c2c(COMPLEX, [0], 3, True), RuntimeError, "normalization 0 .* was required; given 3"),
        (lambda: cresset._fft_c2r(COMPLEX, [1], 0, 8), RuntimeError, "at least 5 values .* were required for 8 points; given 4"),
        (lambda: cresset._fft_r2c(REAL, [], 0, True), RuntimeError, "at least one dimension was required"),
        (lambda: cresset.fft.fftfreq(4, dtype=cresset.int64), RuntimeError, "fftfreq requires a floating point or complex dtype"),
        (lambda: cresset.fft.fftshift(REAL, ()), RuntimeError, "`shifts` required"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_no_lines():
    assert cresset.fft.fft(cresset.zeros(0, 3)).shape == (0, 3)
    assert cresset.fft.irfft(cresset.zeros(2, 0, 3), dim=2).shape == (2, 0, 4)


def test_parts_that_real_signals_do_not_have_are_ignored():
    x = values(4)
    for n in (6, 7):
        got = cresset.fft.irfft(cresset.from_numpy(x), n)
        x[0] = x[0].real
        if n == 6:
            x[3] = x[3].real
        check(got, np.fft.irfft(x, n))


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
def test_frequencies_and_shifts(n):
    if n:
        check(cresset.fft.fftfreq(n, 0.5, dtype=cresset.float64), np.fft.fftfreq(n, 0.5))
        check(cresset.fft.rfftfreq(n, 0.5, dtype=cresset.float64), np.fft.rfftfreq(n, 0.5))
    x = values(n, 3, complex=False)
    t = cresset.from_numpy(x)
    for dim in (None, 0, (0, 1)):
        np.testing.assert_array_equal(cresset.fft.fftshift(t, dim).numpy(), np.fft.fftshift(x, dim))
        np.testing.assert_array_equal(cresset.fft.ifftshift(t, dim).numpy(), np.fft.ifftshift(x, dim))


def frames(x, n_fft, hop, window):
    """stft without padding, from its definition."""
    starts = range(0, len(x) - n_fft + 1, hop)
    left = (n_fft - len(window)) // 2
    wide = np.pad(window, (left, n_fft - len(window) - left))
    return np.stack([np.fft.fft(x[s : s + n_fft] * wide) for s in starts], axis=1)


@pytest.mark.parametrize("n_fft, hop, win", [(8, 2, 8), (9, 3, 6), (7, 7, 4)])
def test_stft_by_definition(n_fft, hop, win):
    x, w = values(40, complex=False), np.hanning(win + 2)[1:-1]
    t, window = cresset.from_numpy(x), cresset.from_numpy(w)
    want = frames(x, n_fft, hop, w)
    half = want[: n_fft // 2 + 1]
    args = (t, n_fft, hop, win, window)
    check(cresset.stft(*args, center=False, return_complex=True), half)
    check(t.stft(n_fft, hop, win, window, center=False, onesided=False, return_complex=True), want)
    check(cresset.stft(*args, center=False, normalized=True, return_complex=True), half / np.sqrt(n_fft))
    padded = frames(np.pad(x, n_fft // 2, mode="reflect"), n_fft, hop, w)
    check(cresset.stft(cresset.stack([t, 2 * t]), *args[1:], return_complex=True)[1], 2 * padded[: n_fft // 2 + 1])
    left = (n_fft - win) // 2
    aligned = frames(np.pad(x, (left, n_fft - win - left)), n_fft, hop, w)
    check(cresset.stft(*args, center=False, align_to_window=True, onesided=False, return_complex=True), aligned)
    complex_signal = values(40)
    check(cresset.stft(cresset.from_numpy(complex_signal), *args[1:], center=False), frames(complex_signal, n_fft, hop, w))


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("win", [8, 5])
def test_istft_inverts_stft(win, normalized, complex):
    x = cresset.from_numpy(values(2, 40, complex=complex))
    window = cresset.hann_window(win + 1, dtype=cresset.float64)[1:]
    spectrum = cresset.stft(x, 8, 2, win, window, normalized=normalized, return_complex=True)
    check(cresset.istft(spectrum, 8, 2, win, window, normalized=normalized, length=40, return_complex=complex), x.numpy())


def test_istft_length():
    spectrum = cresset.stft(cresset.ones(40), 8, window=cresset.ones(8), return_complex=True)
    check(cresset.istft(spectrum, 8, window=cresset.ones(8), length=30), np.ones(30), single=True)
    with pytest.warns(UserWarning, match="padded with zeros in the tail"):
        longer = cresset.istft(spectrum, 8, window=cresset.ones(8), length=50)
    assert longer.shape == (50,) and longer[:40].min() > 0.99 and longer[-4:].abs().max() == 0


SIGNAL, SPECTRUM, WINDOW = cresset.zeros(20), cresset.zeros(5, 6, dtype=cresset.complex64), cresset.ones(8)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: cresset.stft(SIGNAL, 8, window=WINDOW), "stft requires the return_complex parameter be given for real inputs"),
        (lambda: cresset.stft(SIGNAL, 8, window=WINDOW[1:], return_complex=True), r"window=torch.FloatTensor\{\[7\]\}.*equal to win_length=8"),
        (lambda: cresset.stft(SIGNAL, 8, 0, window=WINDOW, return_complex=True), "expected hop_length > 0, but got hop_length=0"),
        (lambda: cresset.stft(SIGNAL, 8, win_length=9, window=WINDOW, return_complex=True), "expected 0 < win_length <= n_fft, but got win_length=9"),
        (lambda: cresset.stft(SIGNAL, 21, window=WINDOW, center=False, return_complex=True), "expected 0 < n_fft < 20, but got n_fft=21"),
        (lambda: cresset.stft(SIGNAL.long(), 8, window=WINDOW, return_complex=True), "expected a tensor of floating point or complex values"),
        (lambda: cresset.stft(SIGNAL, 8, window=WINDOW, return_complex=True, align_to_window=True), "only be set when center = false"),
        (lambda: cresset.stft(SPECTRUM[0], 4, window=WINDOW[:4], onesided=True), "Cannot have onesided output if window or input is complex"),
        (lambda: cresset.istft(SIGNAL, 8, window=WINDOW), "istft requires a complex-valued input tensor"),
        (lambda: cresset.istft(SPECTRUM[:, :0], 8, window=WINDOW), "input tensor cannot be empty"),
        (lambda: cresset.istft(SPECTRUM, 10, window=cresset.ones(10)), r"to match n_fft / 2 \+ 1 when onesided=True, but got 5"),
        (lambda: cresset.istft(SPECTRUM, 8, 9, window=WINDOW), "expected 0 < hop_length <= win_length"),
        (lambda: cresset.istft(SPECTRUM, 8, window=WINDOW * 0), "window overlap add min"),
        (lambda: cresset.istft(SPECTRUM, 8, window=WINDOW, return_complex=True), "Cannot have onesided output"),
        (lambda: cresset.istft(SPECTRUM, 8, window=WINDOW, length=0), "expected length > 0"),
    ],
)
def test_short_time_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()
