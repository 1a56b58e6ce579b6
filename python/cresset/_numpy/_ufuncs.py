"""NumPy's functions of elements."""

import numpy

from ._names import BINARY, UNARY
from ._ndarray import delegate

__all__ = [*UNARY, *BINARY]

# The lists by the names that they have in PyTorch.
_unary, _binary = [*UNARY, "fix"], BINARY

for _name in __all__:
    globals()[_name] = delegate(getattr(numpy, _name), _name)
