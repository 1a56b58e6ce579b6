"""Questions about shapes that tensor subclasses ask under this name."""

import math

__all__ = ["canonicalize_dim", "canonicalize_dims", "compare_tensor_meta", "infer_size", "is_contiguous_or_false", "make_contiguous_strides_for", "suggest_memory_format"]


def infer_size(shape, numel):
    """The sizes with -1 replaced by what `numel` elements leave for it. RuntimeError where they do not fit."""
    known = math.prod(s for s in shape if s != -1)
    open_at = [i for i, s in enumerate(shape) if s == -1]
    for s in shape:
        if s < -1:
            raise RuntimeError(f"invalid shape dimension {s}")
    if len(open_at) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if numel != known and not (open_at and known > 0 and numel % known == 0):
        if open_at and known == 0 and numel == 0:
            raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 can be any value and is ambiguous")
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    shape = list(shape)
    if open_at:
        shape[open_at[0]] = numel // known
    return tuple(shape)


def canonicalize_dim(rank, idx, wrap_scalar=True):
    """A dimension from 0 on; IndexError for one that `rank` dimensions do not have."""
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank, indices, wrap_scalar=True):
    """The same for one dimension or several."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, i, wrap_scalar) for i in indices)


def make_contiguous_strides_for(shape, row_major=True):
    """The strides of a contiguous tensor; with row_major=False those of matrices stored by columns."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    strides = tuple(reversed(strides))
    return strides if row_major or len(shape) < 2 else (*strides[:-2], 1, max(shape[-2], 1))


def is_contiguous_or_false(a):
    """a.is_contiguous()"""
    return a.is_contiguous()


def compare_tensor_meta(a, b, check_sizes=True, check_strides=False, *, allow_rhs_unbacked=False, check_conj=True):
    """AssertionError or RuntimeError unless two tensors are of one size, type, device, and with check_strides of one layout (of dimensions that have
    more than one element) and offset."""
    from cresset import Tensor

    for t in (a, b):
        if not isinstance(t, Tensor):
            raise TypeError(f"compare_tensor_meta: two tensors were required; a {type(t).__name__} was given.")
    if check_sizes and a.shape != b.shape:
        raise AssertionError(f"Shapes {a.shape} and {b.shape} are not equal!")
    if a.dtype != b.dtype:
        raise AssertionError(f"Dtypes {a.dtype} and {b.dtype} are not equal!")
    if a.device != b.device:
        raise AssertionError(f"Devices {a.device} and {b.device} are not equal!")
    if check_strides:
        if any(x != y for x, y, size in zip(a.stride(), b.stride(), a.shape) if size > 1 and a.numel()):
            raise RuntimeError(f"Stride mismatch! Strides are {a.stride()} and {b.stride()}!")
        if a.storage_offset() != b.storage_offset():
            raise RuntimeError(f"Storage offset mismatch! Storage offsets are {a.storage_offset()} and {b.storage_offset()}!")
    if check_conj and a.is_conj() != b.is_conj():
        raise RuntimeError(f"Conj mismatch! is_conj is set to {a.is_conj()} and {b.is_conj()}")
    if a.is_neg() != b.is_neg():
        raise RuntimeError(f"Neg mismatch! is_neg is set to {a.is_neg()} and {b.is_neg()}")


def suggest_memory_format(x):
    """The memory format of a tensor's strides: channels_last(_3d) where they are of that order, else contiguous_format."""
    import cresset

    for rank, named in ((4, cresset.channels_last), (5, cresset.channels_last_3d)):
        if x.dim() == rank and x.layout is cresset.strided and x.is_contiguous(memory_format=named) and not x.is_contiguous():
            return named
    return cresset.contiguous_format
