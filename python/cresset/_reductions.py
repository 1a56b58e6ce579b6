"""norm, unique and unique_consecutive: one function each over several operators."""

import cresset

from . import _C
from ._overridable import overridable

_operators = _C._VariableFunctions


@overridable
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm of a tensor's elements: of all of them, or over the dimensions `dim`. "fro" is the 2-norm; "nuc" the nuclear norm of
    matrices, the sum of their singular values."""
    if isinstance(dim, int):
        dim = [dim]
    more = {} if out is None else {"out": out}
    if isinstance(p, str) and (p != "fro" or dim is not None and len(dim) > 2):
        return _C._linalg.linalg_matrix_norm(input, p, list(range(input.dim())) if dim is None else dim, keepdim, dtype=dtype, **more)
    return _C._linalg.linalg_vector_norm(input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype=dtype, **more)


def _chosen(values, inverse, counts, return_inverse, return_counts):
    result = [values]
    if return_inverse:
        result.append(inverse)
    if return_counts:
        result.append(counts)
    return result[0] if len(result) == 1 else tuple(result)


@overridable
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements, or the distinct slices of dimension `dim`; also the place of each element among them and how often each occurs."""
    if dim is not None:
        found = cresset.ops.aten.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        found = _operators._unique2(input, sorted, return_inverse, return_counts)
    return _chosen(*found, return_inverse, return_counts)


@overridable
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Runs of equal neighbours reduced to one element (or slice of dimension `dim`)."""
    found = _operators.unique_consecutive(input, return_inverse, return_counts, dim)
    return _chosen(*found, return_inverse, return_counts)
