"""Fourier transforms. The operators whose names begin with `fft_`, without the prefix."""

from . import _C

_PREFIX = "fft_"


def _fill():
    for name, function in vars(_C._fft).items():
        if not name.startswith("__"):
            globals()[name.removeprefix(_PREFIX)] = function


_fill()
