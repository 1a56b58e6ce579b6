"""Functions of the library in the subset of Python that scripts are made of, where their own text takes what scripts have not."""

from typing import Any, List, Optional, Tuple, Union

import cresset
from cresset import Tensor
from cresset.nn._functional._common import chosen_by

from ._overloads import declare
from .annotations import BroadcastingList1


# Take other types in Python (any sequence of dimensions, several results).


def is_tensor(obj: Any) -> bool:
    return isinstance(obj, Tensor)


def tensordot(a: Tensor, b: Tensor, dims: Union[int, List[List[int]]] = 2, out: Optional[Tensor] = None) -> Tensor:
    dims_a: List[int] = []
    dims_b: List[int] = []
    if isinstance(dims, int):
        for i in range(dims):
            dims_a.append(i - dims)
            dims_b.append(i)
    else:
        dims_a, dims_b = dims[0], dims[1]
    if out is not None:
        return cresset.ops.aten.tensordot(a, b, dims_a, dims_b, out=out)
    return cresset.ops.aten.tensordot(a, b, dims_a, dims_b)


# norm is the operator where that takes the arguments; it has no default for p, no names of norms and no dtype beside dim.


@declare
def norm(input: Tensor, p: str = "fro", dim: Optional[BroadcastingList1[int]] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor: ...  # noqa: F811  # fmt: skip
@declare
def norm(input: Tensor, p: Optional[int] = None, dim: Optional[BroadcastingList1[int]] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor: ...  # noqa: F811  # fmt: skip
@declare
def norm(input: Tensor, p: Optional[float] = None, dim: Optional[BroadcastingList1[int]] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor: ...  # noqa: F811  # fmt: skip
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):  # noqa: F811
    if cresset.jit.isinstance(p, str):
        if p != "fro" or (dim is not None and len(dim) > 2):
            over = [d for d in range(input.dim())] if dim is None else dim
            result = cresset.ops.aten.linalg_matrix_norm(input, p, over, keepdim, dtype=dtype)
        else:
            result = cresset.ops.aten.linalg_vector_norm(input, 2, dim, keepdim, dtype=dtype)
    elif p is None:
        result = cresset.ops.aten.linalg_vector_norm(input, 2, dim, keepdim, dtype=dtype)
    else:
        result = cresset.ops.aten.linalg_vector_norm(input, p, dim, keepdim, dtype=dtype)
    if out is not None:
        return out.resize_(result.size()).copy_(result)
    return result


norm._script_otherwise = True


def stft(
    input: Tensor, n_fft: int, hop_length: Optional[int] = None, win_length: Optional[int] = None, window: Optional[Tensor] = None, center: bool = True,
    pad_mode: str = "reflect", normalized: bool = False, onesided: Optional[bool] = None, return_complex: Optional[bool] = None,
    align_to_window: Optional[bool] = None,
) -> Tensor:  # fmt: skip
    return cresset.ops.aten.stft(input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window)


# The flags of unique, unique_consecutive and lu decide how many results there are.


def _unique_all(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    if dim is not None:
        return cresset.ops.aten.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return cresset._unique2(input, sorted, return_inverse, return_counts)


def _unique_inverse(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    found = _unique_all(input, sorted, True, False, dim)
    return found[0], found[1]


def _unique_counts(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    found = _unique_all(input, sorted, False, True, dim)
    return found[0], found[2]


def _unique_elements(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tensor:
    return _unique_all(input, sorted, False, False, dim)[0]


@chosen_by("return_counts", _unique_all, _unique_inverse)
def _unique_with_inverse(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    return _unique_all(input, sorted, return_inverse, return_counts, dim)


@chosen_by("return_counts", _unique_counts, _unique_elements)
def _unique_without_inverse(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    return _unique_all(input, sorted, return_inverse, return_counts, dim)


@chosen_by("return_inverse", _unique_with_inverse, _unique_without_inverse)
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    return _unique_all(input, sorted, return_inverse, return_counts, dim)


def _runs_all(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    return cresset.ops.aten.unique_consecutive(input, return_inverse, return_counts, dim)


def _runs_inverse(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    found = _runs_all(input, True, False, dim)
    return found[0], found[1]


def _runs_counts(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    found = _runs_all(input, False, True, dim)
    return found[0], found[2]


def _runs_elements(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tensor:
    return _runs_all(input, False, False, dim)[0]


@chosen_by("return_counts", _runs_all, _runs_inverse)
def _runs_with_inverse(input, return_inverse=False, return_counts=False, dim=None):
    return _runs_all(input, return_inverse, return_counts, dim)


@chosen_by("return_counts", _runs_counts, _runs_elements)
def _runs_without_inverse(input, return_inverse=False, return_counts=False, dim=None):
    return _runs_all(input, return_inverse, return_counts, dim)


@chosen_by("return_inverse", _runs_with_inverse, _runs_without_inverse)
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    return _runs_all(input, return_inverse, return_counts, dim)


def _lu_infos(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Optional[Tuple[Tensor, Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    if out is not None:
        raise RuntimeError("lu: scripts have no out.")
    return cresset._lu_with_info(A, pivot, False)


def _lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
    if out is not None:
        raise RuntimeError("lu: scripts have no out.")
    factors = cresset._lu_with_info(A, pivot, True)
    return factors[0], factors[1]


@chosen_by("get_infos", _lu_infos, _lu)
def lu(A, pivot=True, get_infos=False, out=None):
    return cresset._lu_with_info(A, pivot, not get_infos)
