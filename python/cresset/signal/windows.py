"""Windows of M samples: a tensor of size (M,) whose largest possible value is 1.

`sym=True` gives the symmetric window, for filter design; `sym=False` the periodic one, which is the first M samples of the symmetric
window with M + 1 samples, for spectral analysis. dtype is float32 or float64 (the default floating type unless given). All raise
ValueError for a negative M, another dtype or another layout than strided.
"""

import math
import operator

import cresset

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _check(name, M, dtype, layout):
    """M and the dtype of the window `name`, checked."""
    M = operator.index(M)
    dtype = cresset.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not cresset.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (cresset.float32, cresset.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return M, dtype


def _window(name, formula, M, sym, dtype, layout, device, requires_grad):
    """formula(positions 0 … M - 1 in float64, number of steps between equal points of two periods)."""
    M, dtype = _check(name, M, dtype, layout)
    if M <= 1:
        return cresset.ones((M,), dtype=dtype, device=device, requires_grad=requires_grad)
    positions = cresset.arange(M, dtype=cresset.float64, device=device)
    return formula(positions, M - 1 if sym else M).to(dtype).requires_grad_(requires_grad)


def _cosine_sum(coefficients):
    def formula(k, steps):
        terms = (coefficient * (-1) ** i * cresset.cos(k * (2 * math.pi * i / steps)) for i, coefficient in enumerate(coefficients))
        return sum(terms, cresset.zeros_like(k))

    return formula


def bartlett(M, *, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """The triangle 1 - |2k / N - 1|, zero at its ends."""
    return _window("bartlett", lambda k, n: 1 - (k * (2 / n) - 1).abs(), M, sym, dtype, layout, device, requires_grad)


def blackman(M, *, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """0.42 - 0.5 cos(2 pi k / N) + 0.08 cos(4 pi k / N)."""
    return _window("blackman", _cosine_sum((0.42, 0.5, 0.08)), M, sym, dtype, layout, device, requires_grad)


def cosine(M, *, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """Half a period of the sine: sin(pi (k + 1/2) / (N + 1))."""
    return _window("cosine", lambda k, n: cresset.sin((k + 0.5) * (math.pi / (n + 1))), M, sym, dtype, layout, device, requires_grad)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """exp(-|k - center| / tau), also called Poisson window; the center is N / 2 and may be given for periodic windows only."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def formula(k, steps):
        return cresset.exp((k - (steps / 2 if center is None else center)).abs() / -tau)

    return _window("exponential", formula, M, sym, dtype, layout, device, requires_grad)


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """exp(-((k - N / 2) / std)^2 / 2)."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window("gaussian", lambda k, n: cresset.exp(((k - n / 2) / std) ** 2 * -0.5), M, sym, dtype, layout, device, requires_grad)


def general_cosine(M, *, a, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """The sum of (-1)^i a[i] cos(2 pi i k / N) for a list or tuple of coefficients. Raises TypeError for other kinds of a."""
    M, dtype = _check("general_cosine", M, dtype, layout)
    if M > 1:
        if not isinstance(a, (list, tuple)):
            raise TypeError("Coefficients must be a list/tuple")
        if not a:
            raise ValueError("Coefficients cannot be empty")
    return _window("general_cosine", _cosine_sum(a), M, sym, dtype, layout, device, requires_grad)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(2 pi k / N)."""
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hamming(M, *, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """0.54 - 0.46 cos(2 pi k / N)."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """(1 - cos(2 pi k / N)) / 2."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """I0(beta sqrt(1 - (2k / N - 1)^2)) / I0(beta), with the modified Bessel function I0."""
    M, dtype = _check("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return cresset.kaiser_window(M, not sym, beta, dtype=dtype, device=device, requires_grad=requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """A sum of four cosines with small side lobes (Nuttall 1981)."""
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
