"""First-class dimensions: `i, j = dims()` are objects that take the place of dimensions in an index, `A[i, j]`, and by which a tensor then has them."""

import cresset

from ._functions import cat, index, softmax, split, stack
from ._tensors import Dim, DimensionBindError, DimensionMismatchError, DimList, Tensor, _Tensor, dimlists, dims

__all__ = ["Dim", "DimList", "DimensionBindError", "DimensionMismatchError", "Tensor", "cat", "dimlists", "dims", "index", "softmax", "split", "stack"]

cresset.Tensor.index = index
