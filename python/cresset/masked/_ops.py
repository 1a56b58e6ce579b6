"""Reductions and normalisations that leave out elements: `mask` is True where an element counts.

Every function takes dense tensors. A mask broadcasts to the input and has no more dimensions than it (IndexError otherwise). Left-out
elements are replaced by the identity of the operation, so a slice with nothing in it gives that identity, or nan where there is none.
`dtype` is the type of the result and of the computation.
"""

import builtins
import functools

import cresset

__all__ = [
    "sum", "prod", "mean", "median", "amax", "amin", "argmax", "argmin", "norm", "var", "std", "logsumexp", "logaddexp", "softmax", "log_softmax",
    "softmin", "normalize", "cumsum", "cumprod",
]  # fmt: skip

_SMALL = (cresset.bool, cresset.uint8, cresset.int8, cresset.int16, cresset.int32)


def _identity(op, input):
    """What an element left out of `op` counts as, as a Python number."""
    if op in ("sum", "cumsum"):
        return 0
    if op in ("prod", "cumprod"):
        return 1
    dtype = input.dtype
    if dtype.is_complex and not op.startswith("log"):
        raise TypeError(f"masked.{op}: complex numbers have no order; given: {dtype}")
    if dtype == cresset.bool:
        raise NotImplementedError(f"identity of {op} on {dtype} input")
    smallest = op in ("amax", "argmax", "logsumexp", "logaddexp")
    if dtype.is_floating_point or dtype.is_complex:
        return -float("inf") if smallest else float("inf")
    info = cresset.iinfo(dtype)
    return info.min if smallest else info.max


def _reduction_identity(op_name, input, *args):
    """What a left-out element counts as in the reduction `op_name` ("sum", "masked.sum", …), as a zero-dimensional tensor; None where there is no such
    element (mean, var, std). The order of "norm" is its first further argument. NotImplementedError for other operators."""
    op = op_name.rpartition(".")[2]
    dtype = input.dtype
    if op not in __all__ or op.endswith(("softmax", "softmin")) or op == "normalize":
        raise NotImplementedError(f"identity of {op} on {dtype} input")
    if op in ("mean", "var", "std"):
        return None
    if op == "median":
        return cresset.tensor(float("nan"), dtype=dtype if dtype.is_floating_point else cresset.get_default_dtype(), device=input.device)
    if op == "norm":
        value = float("inf") if args and args[0] == -float("inf") else 0
    else:
        value = _identity(op, input)
    return cresset.tensor(value, dtype=dtype, device=input.device)


def _strided(tensor):
    return tensor.to_dense() if isinstance(tensor, cresset.Tensor) and tensor.layout is not cresset.strided else tensor


def _layouts(*sparse, needs_mask=True):
    """A function of strided tensors that also takes inputs of these sparse layouts, as strided ones, and gives results of the input's layout; with
    needs_mask only beside a mask. Masks have any layout."""

    def wrap(function):
        @functools.wraps(function)
        def call(input, *args, mask=None, **kwargs):
            if mask is None and hasattr(input, "get_mask"):  # a MaskedTensor
                input, mask = input.get_data(), input.get_mask()
            layout, name = input.layout, function.__name__
            mask = _strided(mask)
            if layout is cresset.strided:
                return function(input, *args, mask=mask, **kwargs)
            if layout not in sparse:
                expected = " or ".join(str(s).rpartition(".")[2] for s in (cresset.strided, *sparse))
                what = "std/var" if name in ("std", "var") else name
                raise ValueError(f"masked {what} expects {expected} tensor (got {layout} tensor)")
            if needs_mask and mask is None:
                raise ValueError(f"masked {name} expects explicit mask for {str(layout).rpartition('.')[2]} tensor input")
            result = function(_strided(input), *args, mask=mask, **kwargs)
            dim = args[0] if args else kwargs.get("dim")
            if mask is not None and dim is not None and dim != ():  # over everything the result is one number, without elements the identity
                kept = _output_mask(function, _strided(input), *args, mask=mask, **kwargs)
                return result.sparse_mask(kept.to_sparse(layout=layout))
            return result.to_sparse(layout=layout)

        return call

    return wrap


_NORMALIZATIONS = ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod")


def _input_mask(input, *args, mask=None, **kwargs):
    """The mask of an input: of its shape and layout. ValueError without one."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    full = _full_mask(_strided(input), _strided(mask))
    return full if input.layout is cresset.strided else full.to_sparse(layout=input.layout)


def _output_mask(op, input, *args, mask=None, keepdim=False, dim=None, **kwargs):
    """Which elements of the result of the masked reduction or normalisation `op` have elements that count."""
    name = op if isinstance(op, str) else op.__name__
    if name not in __all__ or name == "logaddexp":
        raise ValueError(f"_output_mask expected masked operation (got callable torch.masked._ops.{name})")
    full = _strided(_input_mask(input, mask=mask))
    if name in _NORMALIZATIONS:
        return full
    if name == "norm" and args:
        args = args[1:]  # the order
    return cresset.any(full, _dims(args[0] if args else dim, input.dim()), builtins.bool(keepdim))


def _combine_input_and_mask(op, input, mask, *args):
    """The input with the identity of the reduction `op` (a function or its name) where the mask is False."""
    if mask is None:
        return input
    fill = _reduction_identity(op if isinstance(op, str) else op.__name__, input, *args)
    if fill is None:
        raise TypeError(f"{op} has no identity, so no value stands for an element that is left out")
    return cresset.where(_full_mask(input, mask), input, fill)


def _where(mask, input, fill_value):
    """The input with the number `fill_value` where the mask is False. Under a sparse mask the result is sparse and has the elements (rows, with dense
    dimensions) that the mask keeps."""
    if mask.layout is cresset.strided:
        return cresset.where(mask, input, fill_value)
    kept = _strided(mask)
    pattern = mask.coalesce() if mask.dense_dim() else kept.to_sparse(layout=mask.layout)
    return cresset.where(kept, _strided(input), fill_value).sparse_mask(pattern)


def _full_mask(input, mask):
    """`mask` as a bool tensor of the input's shape."""
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return cresset.broadcast_to(mask, input.shape).to(cresset.bool)


def _fill(input, mask, value):
    """The input with `value` where the mask is False."""
    return input if mask is None else cresset.where(_full_mask(input, mask), input, cresset.tensor(value, dtype=input.dtype, device=input.device))


def _without(op, input, mask):
    """The input with the identity of `op` where the mask is False."""
    return input if mask is None else _fill(input, mask, _identity(op, input))


def _dims(dim, ndim):
    """`dim` as a tuple of dimensions; None and () are all of them."""
    if dim is None or isinstance(dim, (tuple, list)) and not dim:
        return tuple(range(ndim))
    dims = []
    for d in dim if isinstance(dim, (tuple, list)) else (dim,):
        limit = max(ndim, 1)
        if not -limit <= d < limit:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {d})")
        if d % limit in dims:
            raise RuntimeError(f"dim={d % limit} appears multiple times in the list of dims")
        dims.append(d % limit)
    return tuple(sorted(dims))


_canonical_dim = _dims


def _sum_dtype(input, dtype):
    """Type of a sum: small integers and bool are summed as int64."""
    if dtype is not None:
        return dtype
    return cresset.int64 if input.dtype in _SMALL else input.dtype


@_layouts(cresset.sparse_coo, cresset.sparse_csr, needs_mask=False)
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sum over `dim`; 0 where nothing counts."""
    values = _fill(input, mask, 0)
    return cresset.sum(values, _dims(dim, input.dim()), builtins.bool(keepdim), dtype=_sum_dtype(input, dtype))


@_layouts(cresset.sparse_coo, cresset.sparse_csr)
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product over `dim`; 1 where nothing counts."""
    dtype = _sum_dtype(input, dtype)
    result = _fill(input, mask, 1)
    for d in reversed(_dims(dim, input.dim())):
        result = result.prod(d, builtins.bool(keepdim), dtype=dtype)
    return result.to(dtype)


@_layouts()
def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sum along `dim`; left-out elements repeat the sum before them."""
    (dim,) = _dims(dim, input.dim())
    return cresset.cumsum(_fill(input, mask, 0), dim, dtype=input.dtype if dtype is None else dtype)


@_layouts()
def cumprod(input, dim, *, dtype=None, mask=None):
    """Running product along `dim`; left-out elements repeat the product before them."""
    (dim,) = _dims(dim, input.dim())
    return cresset.cumprod(_fill(input, mask, 1), dim, dtype=input.dtype if dtype is None else dtype)


def _extreme(op, reduce, input, dim, keepdim, dtype, mask):
    values = _without(op, input, mask)
    return reduce(values, _dims(dim, input.dim()), builtins.bool(keepdim)).to(input.dtype if dtype is None else dtype)


@_layouts(cresset.sparse_coo, cresset.sparse_csr)
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Largest element over `dim`; the type's smallest value where nothing counts. NotImplementedError for bool and complex."""
    return _extreme("amax", cresset.amax, input, dim, keepdim, dtype, mask)


@_layouts(cresset.sparse_coo, cresset.sparse_csr)
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Smallest element over `dim`; the type's largest value where nothing counts. NotImplementedError for bool and complex."""
    return _extreme("amin", cresset.amin, input, dim, keepdim, dtype, mask)


@_layouts()
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Index of the largest element along one dimension, or of all; in the input's type unless `dtype` is given."""
    values = _without("argmax", input, mask)
    return cresset.argmax(values, dim, builtins.bool(keepdim)).to(input.dtype if dtype is None else dtype)


@_layouts()
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Index of the smallest element along one dimension, or of all; in the input's type unless `dtype` is given."""
    values = _without("argmin", input, mask)
    return cresset.argmin(values, dim, builtins.bool(keepdim)).to(input.dtype if dtype is None else dtype)


def _count(input, dims, keepdim, mask):
    """How many elements count."""
    return cresset.sum(_full_mask(input, mask), dims, keepdim, dtype=cresset.int64)


def _float_dtype(op, input, dtype):
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"{op}(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {dtype}"
        )
    return dtype


@_layouts(cresset.sparse_csr)
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean over `dim` of what counts; nan where nothing does. ValueError for integers without `dtype`."""
    dtype, keepdim, dims = _float_dtype("mean", input, dtype), builtins.bool(keepdim), _dims(dim, input.dim())
    if mask is None:
        return cresset.mean(input, dims, keepdim, dtype=dtype)
    return sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, dims, keepdim, mask)


@_layouts()
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The lower median along one dimension; nan where nothing counts (ValueError for integers)."""
    dtype = input.dtype if dtype is None else dtype
    values = input.to(dtype)
    if mask is None:
        return cresset.median(values, dim, keepdim).values
    full = _full_mask(input, mask)
    if not values.is_floating_point():
        if not full.any(dim).all():
            raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
        values = values.to(cresset.float64)
    return cresset.nanmedian(_fill(values, full, float("nan")), dim, keepdim).values.to(dtype)


@_layouts()
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Vector norm over `dim`; left-out elements are 0 (infinity for ord -inf)."""
    ord = 2.0 if ord is None else ord
    values = _fill(input, mask, float("inf") if ord == -float("inf") else 0)
    return cresset.linalg.vector_norm(values, ord, _dims(dim, input.dim()), builtins.bool(keepdim), dtype=dtype)


def _var(input, dim, unbiased, correction, keepdim, dtype, mask):
    """Variance: squared distances from the mean of what counts, over their count less the correction (not below 0)."""
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0 if unbiased is False else 1
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = cresset.float32
    dims, keepdim = _dims(dim, input.dim()), builtins.bool(keepdim)
    if mask is None:
        mask = cresset.ones(input.shape, dtype=cresset.bool, device=input.device)
    if input.dtype == cresset.bool:
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. Convert it to a number type first.")
    count = _count(input, dims, True, mask)
    input = _fill(input, mask, 0)  # a nan that is left out must not reach the mean's gradient
    distance = input - cresset.true_divide(sum(input, dims, keepdim=True, dtype=dtype, mask=mask), count)
    total = sum(distance * distance.conj(), dims, keepdim=keepdim, dtype=dtype, mask=mask)
    divisor = cresset.clamp_min(_count(input, dims, keepdim, mask) - correction, 0)
    return cresset.true_divide(total, divisor).to(dtype)


@_layouts()
def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variance over `dim`, divided by the count less `correction` (1, or 0 for unbiased=False); integers give float32, complex stays complex."""
    return _var(input, dim, unbiased, correction, keepdim, dtype, mask)


@_layouts()
def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Square root of `var`."""
    return cresset.sqrt(_var(input, dim, unbiased, correction, keepdim, dtype, mask))


@_layouts()
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Logarithm of the sum of exponentials over `dim`; -inf where nothing counts."""
    values = _without("logsumexp", input, mask)
    return cresset.logsumexp(values, _dims(dim, input.dim()), keepdim).to(input.dtype if dtype is None else dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)) with a mask for each."""
    a = _without("logaddexp", input, input_mask)
    b = _without("logaddexp", other, other_mask)
    return cresset.logaddexp(a, b).to(input.dtype if dtype is None else dtype)


def _soft(function, op, input, dim, dtype, mask):
    (dim,) = _dims(dim, input.dim())
    values = _without(op, input, mask)
    return function(values, dim, dtype=input.dtype if dtype is None else dtype)


@_layouts()
def softmax(input, dim, *, dtype=None, mask=None):
    """softmax along `dim` of what counts, 0 elsewhere; nan where nothing counts."""
    return _soft(cresset.nn.functional.softmax, "amax", input, dim, dtype, mask)


@_layouts()
def log_softmax(input, dim, *, dtype=None, mask=None):
    """log_softmax along `dim` of what counts, -inf elsewhere; nan where nothing counts."""
    return _soft(cresset.nn.functional.log_softmax, "amax", input, dim, dtype, mask)


@_layouts()
def softmin(input, dim, *, dtype=None, mask=None):
    """softmax of the negative input along `dim` of what counts, 0 elsewhere; nan where nothing counts."""
    return _soft(cresset.nn.functional.softmin, "amin", input, dim, dtype, mask)


@_layouts()
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The input divided by its norm of what counts along `dim`, but at least by eps; 0 elsewhere."""
    dtype = input.dtype if dtype is None else dtype
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return cresset.true_divide(_fill(input, mask, 0), length.clamp_min(eps) if not length.is_complex() else length).to(dtype)
