"""Questions about shapes that tensor subclasses ask under this name."""

import math

__all__ = ["canonicalize_dim", "canonicalize_dims", "infer_size", "is_contiguous_or_false", "make_contiguous_strides_for"]


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
