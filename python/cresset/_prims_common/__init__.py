"""Questions about shapes and dtypes that tensor subclasses and tests ask under this name."""

import math
import warnings

import cresset

__all__ = [
    "canonicalize_dim", "canonicalize_dims", "check", "check_all_strides", "check_significant_strides", "compare_tensor_meta", "corresponding_complex_dtype",
    "corresponding_real_dtype", "dtype_to_type", "get_computation_dtype", "get_higher_dtype", "infer_size", "is_boolean_dtype", "is_complex_dtype",
    "is_contiguous_or_false", "is_float_dtype", "is_grad_dtype", "is_integer_dtype", "is_low_precision_dtype", "make_contiguous_strides_for",
    "suggest_memory_format", "type_to_dtype",
]  # fmt: skip

DeviceLikeType = str | cresset.device | int


def check(b, s, exc_type=RuntimeError):
    """Raise an error with the words that s() gives unless `b`: an older name of torch._check and its siblings. Warns."""
    words = "`torch._prims_common.check` is deprecated and will be removed in the future. Please use `torch._check*` functions instead."
    warnings.warn(words, FutureWarning, stacklevel=2)
    cresset._check_with(exc_type, b, s)


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


# --- dtypes -----------------------------------------------------------------------------------------------------------------------

_COMPLEX_OF = {
    cresset.float16: cresset.complex32, cresset.bfloat16: cresset.complex64, cresset.float32: cresset.complex64, cresset.float64: cresset.complex128,
}  # fmt: skip
_REAL_OF = {cresset.complex32: cresset.float16, cresset.complex64: cresset.float32, cresset.complex128: cresset.float64}
_COMPUTED_IN = {cresset.float16: cresset.float32, cresset.bfloat16: cresset.float32, cresset.complex32: cresset.complex64}
_TYPES = {bool: cresset.bool, int: cresset.int64, complex: None, float: None}


def is_boolean_dtype(dtype):
    return dtype is cresset.bool


def is_integer_dtype(dtype):
    """Of integers; bool is none."""
    return not (is_boolean_dtype(dtype) or dtype.is_floating_point or dtype.is_complex)


def is_float_dtype(dtype):
    return dtype.is_floating_point


def is_complex_dtype(dtype):
    return dtype.is_complex


def is_grad_dtype(dtype):
    """Can a tensor of this dtype require a gradient?"""
    return dtype.is_floating_point or dtype.is_complex


def is_low_precision_dtype(dtype):
    """Is more precision used while something is computed?"""
    return dtype in _COMPUTED_IN


def dtype_to_type(dtype):
    """The Python type of the dtype's numbers."""
    if is_boolean_dtype(dtype):
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def type_to_dtype(typ):
    """The dtype that numbers of a Python type become. ValueError for another type."""
    if typ not in _TYPES:
        raise ValueError(f"Invalid type {typ}!")
    if typ is complex:
        return corresponding_complex_dtype(cresset.get_default_dtype())
    return _TYPES[typ] or cresset.get_default_dtype()


def corresponding_complex_dtype(dtype):
    """KeyError for what is no dtype of real floating-point numbers."""
    return _COMPLEX_OF[dtype]


def corresponding_real_dtype(dtype):
    """KeyError for what is no dtype of complex numbers."""
    return _REAL_OF[dtype]


def get_computation_dtype(dtype):
    """What is computed in: float32 for halves, complex64 for complex halves, otherwise the dtype itself."""
    return _COMPUTED_IN.get(dtype, dtype)


def get_higher_dtype(a, b):
    """The dtype that holds both, given as dtypes, tensors, numbers or None, which leaves the other."""

    def dtype_of(x):
        if x is None or isinstance(x, cresset.dtype):
            return x
        return x.dtype if isinstance(x, cresset.Tensor) else type_to_dtype(type(x))

    a, b = dtype_of(a), dtype_of(b)
    if a is None or b is None:
        return b if a is None else a
    # Any complex number stands above any real one, without regard to precision.
    return max(a, b, key=lambda d: d.itemsize) if a.is_complex and b.is_complex else a if a.is_complex else b if b.is_complex else cresset.promote_types(a, b)


def _different_stride(a, b, only_cuda, significant):
    if only_cuda and a.device.type != "cuda" and b.device.type != "cuda":
        return True, None
    if a.numel() > 0:
        for dim, (x, y) in enumerate(zip(a.stride(), b.stride())):
            if x != y and not (significant and a.shape[dim] <= 1):
                return False, dim
    return True, None


def check_significant_strides(a, b, *, only_cuda=True, allow_rhs_unbacked=False):
    """(do the strides of dimensions with several elements agree?, the first that does not); only_cuda: on other devices they always do."""
    return _different_stride(a, b, only_cuda, True)


def check_all_strides(a, b, *, only_cuda=True):
    """The same for all dimensions."""
    return _different_stride(a, b, only_cuda, False)
