"""Functions of the library in the subset of Python that scripts are made of, where their own text takes what scripts have not."""

from typing import Any, List, Optional, Union

import cresset
from cresset import Tensor


# Take other types in Python (any sequence of dimensions, several results).


def is_tensor(obj: Any) -> bool:
    return isinstance(obj, Tensor)


def tensordot(a: Tensor, b: Tensor, dims: Union[int, List[List[int]]] = 2) -> Tensor:
    dims_a: List[int] = []
    dims_b: List[int] = []
    if isinstance(dims, int):
        for i in range(dims):
            dims_a.append(i - dims)
            dims_b.append(i)
    else:
        dims_a, dims_b = dims[0], dims[1]
    return cresset.ops.aten.tensordot(a, b, dims_a, dims_b)


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tensor:
    if return_inverse or return_counts:
        raise RuntimeError("unique: scripts get the elements only; use torch._unique2 or torch.unique_consecutive for inverse and counts.")
    if dim is not None:
        return cresset.ops.aten.unique_dim(input, dim, sorted)[0]
    return cresset._unique2(input, sorted)[0]
