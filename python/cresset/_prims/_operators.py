"""torch.ops.prims: the operators that PyTorch's decompositions end in. They do not promote types and do not broadcast, but for tensors without dimensions."""

import cresset
from cresset import _C, special
from cresset._library.autograd import make_kernel

__all__ = ["NAMES"]

_library = cresset.library.Library("prims", "FRAGMENT")
NAMES = []


def _define(schema, function, *tags):
    name = schema.partition("(")[0]
    _library.define(schema, tags=(*tags, cresset.Tag.pt2_compliant_tag))
    _library.impl(name, function, "CompositeExplicitAutograd")
    if "(a" not in schema and schema.partition("->")[2].strip(" (").startswith("Tensor"):  # none has a gradient, and says so
        overload = getattr(cresset.ops.prims, name).default
        _library._impl(name, make_kernel(overload, lambda: (None, None)), "Autograd", with_keyset=True, role="formula")
    NAMES.append(name)


def _check_same(a, b):
    if not (isinstance(a, cresset.Tensor) and isinstance(b, cresset.Tensor)):  # a number has any dtype
        return
    if a.dtype != b.dtype:
        raise RuntimeError(f"Tensor with dtype {b.dtype} is not the expected dtype of {a.dtype}!")
    if a.dim() and b.dim() and a.shape != b.shape:
        raise RuntimeError(f"Shape {b.shape} is not the expected shape {a.shape}!")


# --- element by element


def _cube_root(x):
    return cresset.copysign(x.abs() ** (1 / 3), x)


def _quotient(a, b):
    whole = not (a.is_floating_point() or a.is_complex())
    return cresset.div(a, b, rounding_mode="trunc") if whole else cresset.div(a, b)


_OF_ONE = dict.fromkeys((
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "conj_physical", "cos", "cosh", "digamma", "erf", "erfc", "exp", "exp2",
    "expm1", "floor", "isfinite", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sign", "signbit", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
)) | {
    "bessel_i0": special.i0, "bessel_i0e": special.i0e, "bessel_i1": special.i1, "bessel_i1e": special.i1e, "bessel_j0": special.bessel_j0,
    "bessel_j1": special.bessel_j1, "cbrt": _cube_root, "erf_inv": special.erfinv, "erfcx": special.erfcx, "ndtri": special.ndtri,
    "spherical_bessel_j0": special.spherical_bessel_j0,
}  # fmt: skip
_OF_TWO = dict.fromkeys((
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "fmax", "fmin", "fmod", "gcd", "ge", "gt", "hypot", "igamma", "igammac", "le", "lt",
    "maximum", "minimum", "mul", "ne", "nextafter", "pow", "remainder", "sub",
)) | {
    "div": _quotient, "shift_left": cresset.bitwise_left_shift, "shift_right_arithmetic": cresset.bitwise_right_shift, "zeta": special.zeta,
}  # fmt: skip


def _of_two(function):
    def call(self, other):
        _check_same(self, other)
        return function(self, other)

    return call


for _name, _function in _OF_ONE.items():
    _define(f"{_name}(Tensor self) -> Tensor", _function or getattr(cresset, _name))
for _name, _function in _OF_TWO.items():
    _define(f"{_name}(Tensor self, Tensor other) -> Tensor", _of_two(_function or getattr(cresset, _name)))


def _where(pred, a, b):
    _check_same(b, a)
    return cresset.where(pred, a, b)


_define("where(Tensor pred, Tensor a, Tensor b) -> Tensor", _where)
_define("frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)", lambda self: tuple(cresset.frexp(self)))
_define("fill(Tensor self, Scalar value) -> Tensor", lambda self, value: cresset.full_like(self, value))
_define("convert_element_type(Tensor a, ScalarType dtype) -> Tensor", lambda a, dtype: a.to(dtype, copy=True), cresset.Tag.pointwise)
_define(
    "device_put(Tensor a, Device device, bool non_blocking=False) -> Tensor",
    lambda a, device, non_blocking=False: a.to(device, non_blocking=non_blocking, copy=True),
)
_define(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    lambda self, *, memory_format=None: self.clone(memory_format=memory_format or _C.preserve_format),
)
_define("copy_to(Tensor(a!) a, Tensor b) -> Tensor(a!)", lambda a, b: a.copy_(b))
_define("copy_strided(Tensor a, SymInt[] stride) -> Tensor", lambda a, stride: cresset.empty_strided(a.shape, stride, dtype=a.dtype, device=a.device).copy_(a))
_define("resize(Tensor(a!) a, SymInt[] shape) -> Tensor(a!)", lambda a, shape: a.resize_(shape))


# --- reductions


def _reduction(name, function):
    def reduce(inp, dims, *, output_dtype=None):
        result = function(inp, list(dims))
        return result if output_dtype is None else result.to(output_dtype)

    _define(f"{name}(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor", reduce)


def _product(inp, dims):
    for dim in sorted((d % inp.dim() for d in dims), reverse=True):
        inp = inp.prod(dim)
    return inp


def _xor(inp, dims):
    raise NotImplementedError("xor_sum only implemented with inductor")


def _variance(inp, dims, correction=1, *, output_dtype=None):
    return cresset.var(inp, list(dims), correction=correction).to(inp.dtype if output_dtype is None else output_dtype)


_reduction("sum", cresset.sum)
_reduction("prod", _product)
_reduction("amax", cresset.amax)
_reduction("amin", cresset.amin)
_reduction("xor_sum", _xor)
_define("var(Tensor inp, int[]? dims, float? correction=1, *, ScalarType? output_dtype=None) -> Tensor", _variance)


# --- shapes


def _broadcast_in_dim(a, shape, broadcast_dimensions):
    if len(broadcast_dimensions) != a.dim():
        raise RuntimeError(f"prims.broadcast_in_dim: a place for each of {a.dim()} dimensions was required; {len(broadcast_dimensions)} were given.")
    strides = [0] * len(shape)
    previous = -1
    for dim, place in enumerate(broadcast_dimensions):
        if not previous < place < len(shape):
            raise RuntimeError(f"prims.broadcast_in_dim: places that rise and lie in {len(shape)} dimensions were required; got {list(broadcast_dimensions)}.")
        if a.shape[dim] not in (1, shape[place]):
            raise RuntimeError(f"prims.broadcast_in_dim: dimension {dim} of size {a.shape[dim]} cannot be of size {shape[place]}.")
        strides[place] = a.stride(dim) if a.shape[dim] != 1 or shape[place] == 1 else 0
        previous = place
    return a.as_strided(shape, strides, a.storage_offset())


def _ends(a, start, end):
    rank = max(a.dim(), 1)
    for dim in (start, end):
        if not 0 <= dim < rank:
            raise AssertionError(f"idx {dim} is out of bounds for rank {rank}")
    if end < start:
        raise ValueError(f"Attempting to collapse but end, {end}, is less than start, {start}!")
    size = 1
    for d in range(start, min(end + 1, a.dim())):
        size *= a.shape[d]
    return (*a.shape[:start], size, *a.shape[end + 1 :])


def _collapse_view(a, start, end):
    try:
        return a.view(_ends(a, start, end))
    except RuntimeError as error:
        if "view" not in str(error):
            raise
        raise RuntimeError("Attempting to view a collapsed tensor, but no such view exists!") from error


def _split_dim(a, dim, outer_length):
    if a.shape[dim] % outer_length:
        raise ValueError(f"Attempting to split dimension of length {a.shape[dim]}, but outer length of {outer_length} divides it with a remainder!")
    return a.view((*a.shape[:dim], outer_length, a.shape[dim] // outer_length, *a.shape[dim + 1 :]))


_define("as_strided(Tensor(a!) a, SymInt[] size, SymInt[] stride, SymInt storage_offset) -> Tensor(a!)", cresset.as_strided)
_define(
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt storage_offset) -> Tensor", cresset.as_strided_scatter
)
_define("broadcast_in_dim(Tensor(a) a, SymInt[] shape, int[] broadcast_dimensions) -> Tensor(a)", _broadcast_in_dim)
_define("collapse(Tensor a, int start, int end) -> Tensor", lambda a, start, end: a.reshape(_ends(a, start, end)).clone(memory_format=_C.contiguous_format))
_define("collapse_view(Tensor(a) a, int start, int end) -> Tensor(a)", _collapse_view)
_define("split_dim(Tensor(a) a, int dim, SymInt outer_length) -> Tensor(a)", _split_dim)
_define("squeeze(Tensor(a) a, int[] dimensions) -> Tensor(a)", lambda a, dimensions: a.squeeze(list(dimensions)))
_define("transpose(Tensor(a) a, int[] permutation) -> Tensor(a)", lambda a, permutation: a.permute(permutation))
_define("view_of(Tensor(a) a) -> Tensor(a)", lambda a: a.view(a.shape))
_define("view_element_type(Tensor(a) a, ScalarType dtype) -> Tensor(a)", lambda a, dtype: a.view(dtype))
_define("conj(Tensor(a) a) -> Tensor(a)", lambda a: cresset.conj(a))
_define("real(Tensor(a) self) -> Tensor(a)", lambda self: _part(self, "real"))
_define("imag(Tensor(a) self) -> Tensor(a)", lambda self: _part(self, "imag"))
_define("cat(Tensor[] tensors, int dim) -> Tensor", lambda tensors, dim: cresset.cat(list(tensors), dim))
_define("reshape(Tensor a, SymInt[] shape) -> Tensor", lambda a, shape: a.reshape(shape).clone(memory_format=_C.contiguous_format))
_define("rev(Tensor a, int[] dims) -> Tensor", lambda a, dims: a.flip(dims))


def _part(x, name):
    if not x.is_complex():
        raise RuntimeError("Only complex dtype is supported")
    return cresset.view_as_real(x).select(-1, int(name == "imag"))


# --- new tensors


def _iota(length, *, start, step, dtype, device, requires_grad):
    return cresset.arange(start, start + step * length, step, dtype=dtype, device=device, requires_grad=requires_grad)


def _normal(shape, *, mean, std, dtype, device, requires_grad, generator=None):
    return cresset.empty(shape, dtype=dtype, device=device).normal_(mean, std, generator=generator).requires_grad_(requires_grad)


def _new(make):
    return lambda shape, order, *, dtype, device, requires_grad: make(shape, order, dtype=dtype, device=device, requires_grad=requires_grad)


_FACTS = "*, ScalarType dtype, Device device, bool requires_grad"
_define(f"empty_permuted(SymInt[] shape, int[] physical_layout, {_FACTS}) -> Tensor", _new(cresset.empty_permuted))
_define(f"empty_strided(SymInt[] shape, SymInt[] strides, {_FACTS}) -> Tensor", _new(cresset.empty_strided))
_define("iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, bool requires_grad) -> Tensor", _iota)
_define(
    "normal(SymInt[] shape, *, Scalar mean, Scalar std, ScalarType dtype, Device device, bool requires_grad, Generator? generator=None) -> Tensor", _normal,
    cresset.Tag.nondeterministic_seeded,
)  # fmt: skip
_define(
    "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    lambda s, *, dtype=None, device=None: cresset.scalar_tensor(s, dtype=dtype, device=device),
)
_define("_make_token() -> Tensor", lambda: cresset.empty(0))
_define("_sink_tokens(Tensor[] tokens) -> ()", lambda tokens: None)


# --- numbers, and linear algebra


def _limit(name, truth):
    def limit(dtype):
        if dtype is _C.bool:
            return truth
        return getattr(cresset.finfo(dtype) if dtype.is_floating_point else cresset.iinfo(dtype), name)

    return limit


_define("item(Tensor a) -> Scalar", lambda a: a.item())
_define("maximum_value(ScalarType dtype) -> Scalar", _limit("max", True))
_define("minimum_value(ScalarType dtype) -> Scalar", _limit("min", False))
_define("fft_r2c(Tensor self, *, int[] dim, bool onesided) -> Tensor", lambda self, *, dim, onesided: cresset._fft_r2c(self, dim, 0, onesided))
_define("fft_c2r(Tensor self, *, int[] dim, SymInt last_dim_size) -> Tensor", lambda self, *, dim, last_dim_size: cresset._fft_c2r(self, dim, 0, last_dim_size))
_define("fft_c2c(Tensor self, *, int[] dim, bool forward) -> Tensor", lambda self, *, dim, forward: cresset._fft_c2c(self, dim, 0, forward))
_define(
    "svd(Tensor A, *, bool full_matrices) -> (Tensor U, Tensor S, Tensor Vh)", lambda A, *, full_matrices: tuple(cresset.linalg.svd(A, full_matrices=full_matrices))
)
