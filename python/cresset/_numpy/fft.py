"""NumPy's Fourier transforms."""

import numpy

from ._ndarray import delegate

__all__ = "fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn".split()

for _name in __all__:
    globals()[_name] = delegate(getattr(numpy.fft, _name), _name)
