"""Windows against numpy's and against their formulas."""

import cresset
import numpy as np
import pytest
from cresset.signal import windows

LENGTHS = [2, 3, 8, 11]


def hamming(alpha, beta, n):
    return alpha - beta * np.cos(2 * np.pi * np.arange(n) / (n - 1))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(
    "window, reference",
    [
        (cresset.hann_window, np.hanning),
        (cresset.hamming_window, np.hamming),
        (cresset.blackman_window, np.blackman),
        (cresset.bartlett_window, np.bartlett),
        (cresset.kaiser_window, lambda n: np.kaiser(n, 12)),
        (lambda n, periodic, **more: cresset.kaiser_window(n, periodic, 30.0, **more), lambda n: np.kaiser(n, 30)),
        (lambda n, periodic, **more: cresset.hamming_window(n, periodic, 0.6, **more), lambda n: hamming(0.6, 0.46, n)),
        (lambda n, periodic, **more: cresset.hamming_window(n, periodic, 0.6, 0.4, **more), lambda n: hamming(0.6, 0.4, n)),
    ],
)
def test_window_operators(window, reference, n):
    np.testing.assert_allclose(window(n, False, dtype=cresset.float64).numpy(), reference(n), atol=1e-14)
    periodic = window(n, True, dtype=cresset.float64)
    np.testing.assert_allclose(periodic.numpy(), reference(n + 1)[:-1], atol=1e-14)
    assert window(n, True, dtype=cresset.float16).dtype == cresset.float16
    assert window(n, True, device="meta").shape == (n,)


def test_window_operator_options():
    assert cresset.hann_window(0).shape == (0,) and cresset.kaiser_window(1).tolist() == [1]
    assert cresset.hann_window(4, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="hann_window expects floating point dtypes, got: Long"):
        cresset.hann_window(4, dtype=cresset.int64)
    with pytest.raises(RuntimeError, match="kaiser_window requires non-negative window_length, got window_length=-1"):
        cresset.kaiser_window(-1)


def steps(formula):
    """A symmetric window of n samples from formula(positions, number of steps)."""
    return lambda n: formula(np.arange(n), n - 1)


def cosines(*a):
    return steps(lambda k, n: sum((-1) ** i * c * np.cos(2 * np.pi * i * k / n) for i, c in enumerate(a)))


SIGNAL_WINDOWS = [
    ("bartlett", {}, np.bartlett),
    ("blackman", {}, np.blackman),
    ("cosine", {}, steps(lambda k, n: np.sin(np.pi * (k + 0.5) / (n + 1)))),
    ("exponential", {"tau": 2.0}, steps(lambda k, n: np.exp(-np.abs(k - n / 2) / 2))),
    ("gaussian", {"std": 0.7}, steps(lambda k, n: np.exp(-(((k - n / 2) / 0.7) ** 2) / 2))),
    ("general_cosine", {"a": [0.46, 0.23, 0.31]}, cosines(0.46, 0.23, 0.31)),
    ("general_hamming", {"alpha": 0.6}, cosines(0.6, 0.4)),
    ("hamming", {}, np.hamming),
    ("hann", {}, np.hanning),
    ("kaiser", {"beta": 5}, lambda n: np.kaiser(n, 5)),
    ("nuttall", {}, cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411)),
]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name, options, reference", SIGNAL_WINDOWS)
def test_signal_windows(name, options, reference, n):
    window = getattr(windows, name)
    np.testing.assert_allclose(window(n, dtype=cresset.float64, **options).numpy(), reference(n), atol=1e-14)
    np.testing.assert_allclose(window(n, sym=False, dtype=cresset.float64, **options).numpy(), reference(n + 1)[:-1], atol=1e-14)
    assert window(0, **options).shape == (0,) and window(1, **options).tolist() == [1]
    single = window(n, requires_grad=True, **options)
    assert single.dtype == cresset.float32 and single.requires_grad and single.is_leaf


@pytest.mark.parametrize("name, options, reference", SIGNAL_WINDOWS)
def test_signal_window_errors(name, options, reference):
    window = getattr(windows, name)
    with pytest.raises(ValueError, match="requires non-negative window length, got M=-1"):
        window(-1, **options)
    with pytest.raises(ValueError, match="expects float32 or float64 dtypes, got"):
        window(4, dtype=cresset.half, **options)
    with pytest.raises(ValueError, match="implemented for strided tensors only"):
        window(4, layout=cresset.sparse_coo, **options)
    with pytest.raises(TypeError):
        window(2.5, **options)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: windows.exponential(5, center=1.0), ValueError, "Center must be None for symmetric windows"),
        (lambda: windows.exponential(5, tau=0), ValueError, "Tau must be positive, got: 0 instead."),
        (lambda: windows.gaussian(5, std=-1), ValueError, "Standard deviation must be positive, got: -1 instead."),
        (lambda: windows.kaiser(5, beta=-1), ValueError, "beta must be non-negative, got: -1 instead."),
        (lambda: windows.general_cosine(5, a=3), TypeError, "Coefficients must be a list/tuple"),
        (lambda: windows.general_cosine(5, a=[]), ValueError, "Coefficients cannot be empty"),
    ],
)
def test_parameter_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_exponential_center():
    np.testing.assert_allclose(windows.exponential(4, center=1.0, sym=False).numpy(), np.exp([-1, 0, -1, -2]), rtol=1e-6)
