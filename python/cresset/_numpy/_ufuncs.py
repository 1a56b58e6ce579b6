"""NumPy's functions of elements."""

import numpy

from ._names import BINARY, UNARY
from ._ndarray import delegate

__all__ = [*UNARY, *BINARY]

for _name in __all__:
    globals()[_name] = delegate(getattr(numpy, _name), _name)
