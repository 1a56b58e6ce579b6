"""Fourier transforms. The operators whose names begin with `fft_`, without the prefix."""

from . import _C
from ._C import Tensor  # noqa: F401  where PyTorch has it

_PREFIX = "fft_"


def _fill():
    # Aliases of operators with other names ("special_expit" of sigmoid) stand among the functions.
    for place in (_C._VariableFunctions, _C._fft):
        for name, function in vars(place).items():
            if name.startswith(_PREFIX):
                globals()[name.removeprefix(_PREFIX)] = function


_fill()
# PyTorch leaves the Hermitian transforms of several dimensions out.
__all__ = sorted(name for name in globals() if name[0] != "_" and name not in ("hfft2", "hfftn", "ihfft2", "ihfftn"))  # noqa: PLE0605
