"""NumPy's functions for arrays whose elements a tensor holds (`ndarray.tensor`): what `torch._numpy` has. Needs NumPy, which computes.

Arguments may be arrays, tensors, numbers and sequences; results are arrays, also those without dimensions. No gradient is recorded.
"""

import numpy as _numpy

from . import _dtypes, _ndarray, _ufuncs, _util, fft, linalg, random, testing  # noqa: F401
from ._dtypes import *  # noqa: F403
from ._dtypes import DType  # noqa: F401
from ._names import BINARY as _BINARY
from ._names import CONSTANTS as _CONSTANTS
from ._names import OLD as _OLD
from ._names import OTHERS as _OTHERS
from ._names import UNARY as _UNARY
from ._ndarray import array, asarray, delegate, ndarray, result_type  # noqa: F401
from ._util import AxisError, UFuncTypeError  # noqa: F401

for _name in (*_UNARY, *_BINARY):
    globals()[_name] = getattr(_ufuncs, _name)
for _name in _OTHERS:
    globals()[_name] = delegate(getattr(_numpy, _name), _name)
for _name, _new in _OLD.items():
    globals()[_name] = globals()[_new]
for _name in _CONSTANTS:
    globals()[_name] = getattr(_numpy, _name)
False_, True_ = False, True
s_, index_exp = _numpy.s_, _numpy.index_exp


def isscalar(element):
    """Is it one number, or an array or sequences that hold one?"""
    try:
        return asarray(element).size == 1
    except (NotImplementedError, TypeError):
        return False


def _limits(kind):
    def limits(dyp):
        import cresset

        return getattr(cresset, kind)(_dtypes.dtype(dyp).torch_dtype)

    limits.__name__ = limits.__qualname__ = kind
    limits.__doc__ = f"The {kind} of a dtype."
    return limits


finfo, iinfo = _limits("finfo"), _limits("iinfo")


def from_dlpack(x, /):
    """An array over the memory of another library's."""
    import cresset

    return ndarray(cresset.from_dlpack(x))


def set_default_dtype(fp_dtype="numpy", int_dtype="numpy"):
    """Keeps NumPy's defaults, float64 and int64; NotImplementedError for others."""
    if (fp_dtype, int_dtype) != ("numpy", "numpy"):
        raise NotImplementedError("set_default_dtype: arrays are made with NumPy's defaults.")
