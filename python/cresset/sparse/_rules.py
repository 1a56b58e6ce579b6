"""What operators do with sparse tensors, below autograd: a rule by the operator's name. What has no rule is refused in PyTorch's words."""

import cresset

from .. import _C
from .._dtype_info import word_of
from .._layout_kernels import kernel_of, kernels
from ._create import NAMES, coalesced, compress, convert, coordinates, dense, empty_like, from_dense, keys, matched
from ._tensor import Compressed, Coordinates, Sparse

_RULES = {}


def _rule(*names):
    def keep(function):
        _RULES.update(dict.fromkeys(names, function))
        return function

    return keep


def apply(func, args, kwargs):
    """The operator `func` with a sparse tensor among its arguments."""
    if kernels and (kernel := kernel_of(func, _backend(args))) is not None:
        return kernel(*args, **kwargs)
    name = func._schema.name.partition("::")[2]
    if name in ("zeros", "empty") and isinstance(kwargs.get("out"), Coordinates):
        return kwargs["out"].sparse_resize_and_clear_(tuple(args[0]), len(args[0]), 0)
    rule = _RULES.get(name)
    if rule is None and name.endswith("_") and name[:-1] in _RULES and isinstance(args[0], Sparse):
        if name == "abs_" and args[0].is_complex():
            raise RuntimeError("In-place abs is not supported for complex tensors.")
        if name[:-1] in _MERGING and isinstance(args[0], Coordinates) and not args[0].is_coalesced():
            raise RuntimeError(f"{name} requires coalesced input")
        return _written(args[0], apply_named(name[:-1], args, kwargs))
    if rule is None and name.startswith("_foreach_"):
        return _of_each(func, name.removeprefix("_foreach_"), args, kwargs)
    if rule is None:
        if func.has_kernel_for_dispatch_key("CompositeImplicitAutograd"):  # in inference mode compositions come here whole
            return func.decompose(*args, **kwargs)
        _refuse(func, args)
    out = kwargs.get("out")
    if out is not None:
        result = rule(*args, **{k: v for k, v in kwargs.items() if k != "out"})
        return _written(out, result) if isinstance(out, Sparse) else _stored(out, result)
    return rule(*args, **kwargs)


def apply_named(name, args, kwargs):
    return _RULES[name](*args, **kwargs)


def _of_each(func, name, args, kwargs):
    """An operator on lists: the one of its name for each tensor, with its members of the other lists."""
    if any(isinstance(a, (list, tuple)) and len(a) != len(args[0]) for a in (*args, *kwargs.values())):
        raise RuntimeError("Tensor lists must have the same number of tensors")
    name = name.replace("maximum", "clamp_min").replace("minimum", "clamp_max")
    operator = getattr(cresset.ops.aten, "linalg_vector_norm" if name == "norm" else name, None)
    if operator is None:
        _refuse(func, args)
    member = lambda a, i: a[i] if isinstance(a, (list, tuple)) else a  # noqa: E731
    results = [operator(*[member(a, i) for a in args], **{k: member(a, i) for k, a in kwargs.items()}) for i in range(len(args[0]))]
    return None if name.endswith("_") else results


def _backend(args):
    kinds = [a for a in args if isinstance(a, Sparse)] or [a for many in args if isinstance(many, (list, tuple)) for a in many if isinstance(a, Sparse)]
    return "SparseCPU" if not kinds or kinds[0].is_sparse else "SparseCsrCPU"


def _refuse(func, args):
    overload = func._schema.overload_name
    raise NotImplementedError(
        f"Could not run '{func._schema.name}{'.' + overload if overload else ''}' with arguments from the '{_backend(args)}' backend. "
        "This could be because the operator doesn't exist for this backend; to_dense() gives a tensor that every operator knows."
    )


def _stored(out, result):
    """A strided out tensor with the values of a result."""
    if not cresset.can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"result type {_word(result)} can't be cast to the desired output type {_word(out)}")
    result = dense(result) if isinstance(result, Sparse) else result
    return (out if out.shape == result.shape else out.resize_(result.shape)).copy_(result)


def _c_name(dtype):
    """Its name in C++: Half."""
    return cresset.empty(0, dtype=dtype).type().rpartition(".")[2].removesuffix("Tensor")


def _written(target, result):
    """In place: the target becomes the result, in its own dtype and layout."""
    if not isinstance(result, Sparse) or result.shape != target.shape:
        raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(result.shape)}")
    result = convert(result, target.layout) if result.layout is not target.layout else result
    if not cresset.can_cast(result.dtype, target.dtype):
        raise RuntimeError(f"result type {_c_name(result.dtype)} can't be cast to the desired output type {_c_name(target.dtype)}")
    values = result._v.to(target.dtype)
    if isinstance(target, Compressed):
        target._p, target._o, target._v = result._p, result._o, values
    else:
        target._i, target._v, target._ordered = result._i, values, result._ordered
    return target


def _valued(sparse, values, shape=None):
    """The same places with other values."""
    return sparse._with(values) if isinstance(sparse, Compressed) else Coordinates(sparse._i, values, shape or sparse.shape, sparse._ordered)


def _coo(sparse):
    return coalesced(coordinates(sparse))


def _like(result, sparse):
    """A result in coordinates in the layout of the operand that made it."""
    if not isinstance(sparse, Compressed):
        return result
    return compress(result, sparse.layout, sparse._blocksize())


# --- elements that are zero stay zero

_PLAIN = (
    "abs", "neg", "sqrt", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p", "sign", "sgn", "ceil", "floor", "round", "trunc",
    "frac", "relu", "erf", "erfinv", "rad2deg", "deg2rad", "isnan", "isinf", "isposinf", "isneginf", "signbit", "nan_to_num", "conj_physical", "_conj", "conj",
    "resolve_conj", "resolve_neg", "angle", "real", "imag", "positive", "square",
)  # fmt: skip
# Those of a sum are not the sum of those of its parts: elements at one place are added first.
_MERGING = set(_PLAIN) - {"neg", "positive", "real", "imag", "conj", "_conj"}


def _elementwise(name):
    function = getattr(cresset, name.lstrip("_"))

    def rule(sparse, *args, **kwargs):
        sparse = coalesced(sparse) if isinstance(sparse, Coordinates) and name in _MERGING else sparse
        return _valued(sparse, function(sparse._v, *args, **kwargs))

    return rule


for _name in _PLAIN:
    _RULES[_name] = _elementwise(_name)


@_rule("pow")
def _pow(base, exponent):
    if not isinstance(base, Sparse) or isinstance(exponent, Sparse):
        raise NotImplementedError("pow: only a sparse base with a number as exponent is known.")
    if not (isinstance(exponent, (int, float)) and exponent > 0):
        raise RuntimeError("pow: the exponent of a sparse tensor has to be above zero, or absent elements would not stay zero.")
    base = coalesced(base) if isinstance(base, Coordinates) else base
    return _valued(base, base._v**exponent)


@_rule("view_as_real")
def _view_as_real(sparse):
    """The parts of complex values as a dense dimension more."""
    if not isinstance(sparse, Coordinates):
        _refuse(cresset.ops.aten.view_as_real.default, (sparse,))
    return Coordinates(sparse._i, cresset.view_as_real(sparse._v), (*sparse.shape, 2), sparse._ordered)


@_rule("threshold_backward")
def _threshold_backward(grad, sparse, threshold):
    sparse = coalesced(sparse) if isinstance(sparse, Coordinates) else sparse
    from ._gradients import gathered

    return _valued(sparse, cresset.where(sparse._v > threshold, gathered(grad, sparse), cresset.zeros((), dtype=grad.dtype)))


# --- copies

_RULES["detach"] = lambda sparse: _valued(sparse, sparse._v.detach())
_RULES["alias"] = _RULES["detach"]


@_rule("clone")
def _clone(sparse, *, memory_format=None):
    if isinstance(sparse, Compressed):
        return Compressed(sparse._p.clone(), sparse._o.clone(), sparse._v.clone(), sparse.shape, sparse.layout)
    return Coordinates(sparse._i.clone(), sparse._v.clone(), sparse.shape, sparse._ordered)


@_rule("resize_as_")
def _resize_as(target, template, *, memory_format=None):
    if isinstance(target, Coordinates) and isinstance(template, Coordinates):
        return target.resize_as_sparse_(template)
    if isinstance(target, Coordinates):
        _refuse(cresset.ops.aten.resize_.default, (target,))
    return target.resize_(template.shape)


@_rule("_to_copy", "to")
def _to_copy(sparse, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None, copy=True):
    if device is not None and cresset.device(device).type == "meta":
        sparse = empty_like(sparse)  # what has no values does not say how many there are
    result = _valued(sparse, sparse._v.to(dtype=dtype or sparse.dtype, device=device or sparse.device, copy=True))
    for name in ("_p", "_o") if isinstance(result, Compressed) else ("_i",):
        setattr(result, name, getattr(result, name).to(device or sparse.device))
    return convert(result, layout) if layout not in (None, sparse.layout) else result


@_rule("copy_")
def _copy(target, source, non_blocking=False):
    if isinstance(target, Compressed):
        return _copy_compressed(target, source)
    if isinstance(source, Compressed):
        raise RuntimeError(f"copy_sparse_compressed_ expected sparse compressed tensor layout but got {NAMES[target.layout]}")
    if not isinstance(target, Sparse):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type = torch.FloatTensor and src type = torch.sparse.FloatTensor")
    if not isinstance(source, Sparse):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type = torch.sparse.FloatTensor and src type = torch.FloatTensor")
    return _written(target, _clone(source))


def _copy_compressed(target, source):
    """Into the memory that the target has, which fits the same layout, blocks and number of elements."""

    def refuse(text):
        raise RuntimeError(f"torch.copy_: {text}")

    ours, other = NAMES[target.layout], NAMES[source.layout]
    if ours != other:
        refuse(f"copy of sparse compressed tensors having different layouts is not supported. self layout is {ours} and src layout is {other}")
    if target._nnz() != source._nnz():
        refuse("only sparse compressed tensors with the same number of specified elements are supported.")
    column = target.layout in (_C.sparse_csc, _C.sparse_bsc)
    dims = [t._batch_rank() + column for t in (target, source)]
    sizes = [t.shape[d] for t, d in zip((target, source), dims)]
    if sizes[0] != sizes[1]:
        where = f"dimension {dims[0]} for" if dims[0] == dims[1] else f"dimensions {dims[0]} and {dims[1]}, respectively, for"
        refuse(
            f"expected shapes of self and src to match along {where} {ours} layout but the corresponding dimensions of self and src are "
            f"{sizes[0]} and {sizes[1]}, respectively."
        )
    if target._blocksize() != source._blocksize():
        refuse(
            "copy of sparse compressed tensors having different block sizes is not supported. self and src block sizes are "
            f"{tuple(target._blocksize())} and {tuple(source._blocksize())}, respectively."
        )
    if target.shape[target._batch_rank() + 1 - column] != source.shape[source._batch_rank() + 1 - column]:
        raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(source.shape)}")
    for to, part in ((target._v, source._v), (target._p, source._p), (target._o, source._o)):
        to.copy_(part)
    return target


def _refuse_format(sparse, memory_format):
    if memory_format is not None and not isinstance(sparse, Compressed):
        raise RuntimeError("memory format option is only supported by strided tensors")


@_rule("zeros_like")
def _zeros_like(sparse, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    if layout is _C.strided:
        return cresset.zeros(sparse.shape, dtype=dtype or sparse.dtype, device=device or sparse.device)
    _refuse_format(sparse, memory_format)
    result = empty_like(sparse)
    result = result if device is None else result.to(device)
    if layout not in (None, sparse.layout):
        result = convert(result, layout, sparse._blocksize() if isinstance(sparse, Compressed) else None)
    return _valued(result, result._v.to(dtype)) if dtype else result


@_rule("empty_like")
def _empty_like(sparse, *, dtype=None, layout=None, device=None, **options):
    if isinstance(sparse, Compressed) and layout not in (None, sparse.layout):
        names = NAMES
        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {names[sparse.layout]} but you requested {names[layout]})"
        )
    if not isinstance(sparse, Compressed):
        return _zeros_like(sparse, dtype=dtype, layout=layout, device=device, memory_format=options.get("memory_format"))
    result = _clone(sparse)._with(cresset.empty_like(sparse._v, dtype=dtype))
    return result if device is None else result.to(device)


def _filled_like(name):
    def rule(sparse, *args, layout=None, memory_format=None, **options):
        """Values at the places that a compressed tensor keeps."""
        if layout is _C.strided:
            return getattr(cresset, name)(dense(sparse), *args, **options)
        if not isinstance(sparse, Compressed) or layout not in (None, sparse.layout):
            raise NotImplementedError(
                f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' backend: absent elements are zero; layout=torch.strided makes a strided tensor."
            )
        return _clone(sparse)._with(getattr(cresset, name)(sparse._v, *args, **options))

    return rule


for _name in ("ones_like", "full_like", "rand_like", "randn_like"):
    _RULES[_name] = _filled_like(_name)


@_rule("zero_")
def _zero(sparse):
    return _written(sparse, empty_like(sparse))


@_rule("new_zeros", "new_empty")
def _new(sparse, size, *, dtype=None, layout=None, device=None, **options):
    dtype, layout, device = dtype or sparse.dtype, layout or sparse.layout, device or sparse.device
    return cresset.zeros(size, dtype=dtype, layout=layout, device=device, **options)


@_rule("new_ones", "new_full")
def _new_filled(sparse, size, *args, dtype=None, **options):
    raise NotImplementedError("new_ones and new_full of a sparse tensor: absent elements are zero; cresset.ones(size) makes a strided tensor.")


# --- sums and products, element by element


def _scalar(value):
    return not isinstance(value, _C.Tensor) or value.dim() == 0 and not isinstance(value, Sparse)


def _number(value):
    return value.item() if isinstance(value, _C.Tensor) else value


@_rule("mul")
def _mul(a, b):
    if not isinstance(a, Sparse) or isinstance(b, Sparse) and isinstance(a, Sparse) and a.numel() < b.numel():
        a, b = b, a
    if isinstance(b, Sparse) and a.dim() and not b.dim():
        b = dense(b)  # a number, as far as dtypes go
    if _scalar(b):
        return _valued(a, a._v * b)
    if isinstance(b, Sparse):
        if a.shape != b.shape:
            b = dense(b)
        else:
            left, right = _coo(a), _coo(b)
            hit = cresset.isin(keys(left._i, left.shape), keys(right._i, right.shape))
            places = left._i[:, hit]
            return _like(Coordinates(places, left._v[hit] * matched(right, places, left.shape), a.shape, True), a)
    shape = cresset.broadcast_shapes(a.shape, b.shape)
    if tuple(shape) != tuple(a.shape):
        return from_dense(dense(a) * b)
    if isinstance(a, Compressed):
        return _like(_mul(coordinates(a), b), a)
    return _valued(a, a._v * b.expand(shape)[tuple(a._i)])


@_rule("div", "true_divide")
def _div(a, b, *, rounding_mode=None):
    if not isinstance(a, Sparse) or isinstance(b, Sparse) and b.dim():
        raise RuntimeError(f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(b.shape)} for divisor)")
    a = coalesced(a) if isinstance(a, Coordinates) and rounding_mode else a
    if _scalar(b):
        return _valued(a, cresset.div(a._v, b, rounding_mode=rounding_mode))
    coo = _coo(a)
    return _like(_valued(coo, cresset.div(coo._v, b.expand(a.shape)[tuple(coo._i)], rounding_mode=rounding_mode)), a)


@_rule("floor_divide")
def _floor_divide(a, b):
    if isinstance(b, cresset.Tensor) and b.dim():
        raise RuntimeError(f"Sparse floor division requires a scalar or zero-dim dense tensor divisor (got shape {list(b.shape)} for divisor)")
    return _div(a, b, rounding_mode="floor")


def _scaled(values, alpha):
    """alpha * values in the values' own type, as the dense operators round it."""
    return values if alpha == 1 else values.new_zeros(()).add(values, alpha=alpha)


def _dense_like(value):
    """A dense tensor without the values, for what follows from types alone."""
    return cresset.empty(() if value.dim() == 0 else 0, dtype=value.dtype) if isinstance(value, cresset.Tensor) else value


@_rule("result_type")
def _result_type(a, b):
    return cresset.result_type(_dense_like(a), _dense_like(b))


def _check_sum(a, b, alpha, subtracts):
    """What the dense operators refuse: differences of bools, a factor that is no integer for integers."""
    (cresset.sub if subtracts else cresset.add)(_dense_like(a), _dense_like(b), alpha=alpha)


def _in_order(coo):
    """Whether the indices are sorted, each once, also where nobody has said so."""
    if coo._ordered:
        return True
    key = keys(coo._i, coo.shape)
    return bool((key[1:] > key[:-1]).all())


@_rule("add")
def _add(a, b, *, alpha=1, subtracts=False):
    _check_sum(a, b, alpha, subtracts)
    alpha = -alpha if subtracts else alpha
    if isinstance(a, Sparse) and isinstance(b, Sparse):
        if a.shape != b.shape:
            if isinstance(a, Compressed):
                words = f"but got tensor `self` with shape {list(a.shape)} and tensor `other` with shape {list(b.shape)}"
                raise RuntimeError(f"torch.add: Expected input tensors to have the same shape, {words}")
            raise RuntimeError(f"add: expected 'self' and 'other' to have same sizes, but {list(a.shape)} != {list(b.shape)}")
        left, right = coordinates(a), coordinates(b)
        common = cresset.promote_types(left.dtype, right.dtype)
        values = cresset.cat((left._v.to(common), _scaled(right._v.to(common), alpha)))
        if left.sparse_dim() != right.sparse_dim():
            raise RuntimeError("add: expected 'self' and 'other' to have same number of sparse dimensions")
        joined = Coordinates(cresset.cat((left._i, right._i), 1), values, a.shape)
        if left._ordered and right._ordered:
            return _like(coalesced(joined), a)
        if _in_order(left) and _in_order(right):
            merged = coalesced(joined)
            return Coordinates(merged._i, merged._v, a.shape)
        # Gradients that are added up again and again stay within what the dense tensor would take.
        return coalesced(joined) if joined._nnz() > joined.numel() else joined
    if isinstance(a, Sparse):
        if isinstance(a, Compressed) and not _scalar(b):
            return dense(a).add(b, alpha=alpha)
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    return a.add(dense(b), alpha=alpha) if isinstance(a, cresset.Tensor) else dense(b) * alpha + a


@_rule("sub")
def _sub(a, b, *, alpha=1):
    return _add(a, b, alpha=alpha, subtracts=True)


@_rule("add_")
def _add_(a, b, *, alpha=1, subtracts=False):
    _check_sum(a, b, alpha, subtracts)
    if isinstance(b, Sparse) and not cresset.can_cast(common := _result_type(a, b), a.dtype):
        raise RuntimeError(f"Can't convert result type {_c_name(common)} to output {_c_name(a.dtype)} in add operation")
    if isinstance(a, Sparse):
        return _written(a, _add(a, b, alpha=alpha, subtracts=subtracts))
    alpha = -alpha if subtracts else alpha
    if isinstance(b, Coordinates) and b.sparse_dim() and a.shape == b.shape and b.dtype == a.dtype:
        return a.index_put_(tuple(b._i), _scaled(b._v, alpha), accumulate=True)
    return a.add_(dense(b), alpha=alpha)


_RULES["sub_"] = lambda a, b, *, alpha=1: _add_(a, b, alpha=alpha, subtracts=True)
_RULES["mul_"] = lambda a, b: _written(a, _mul(a, b)) if isinstance(a, Sparse) else a.mul_(dense(b))


@_rule("addcmul")
def _addcmul(self, a, b, *, value=1):
    return self.add(_mul(a, b), alpha=value)


@_rule("ldexp")
def _ldexp(self, other):
    if isinstance(other, Sparse):
        raise NotImplementedError("ldexp: an exponent that is not sparse was required; where it is absent the power would be 1.")
    return _mul(self, cresset.pow(2.0, other))


@_rule("dist")
def _dist(a, b, p=2):
    if not (isinstance(a, Sparse) and isinstance(b, Sparse)):
        raise RuntimeError("dist: two sparse tensors were required, or none.")
    return cresset.norm(coalesced(coordinates(_add(a, b, alpha=-1)))._v, p)


@_rule("fill_")
def _fill_(sparse, value):
    """The elements that are there."""
    if not isinstance(sparse, Compressed):
        raise NotImplementedError("Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend: absent elements are zero.")
    sparse._v.fill_(value)
    return sparse


_RULES["addcmul_"] = lambda self, a, b, *, value=1: self.add_(_mul(a, b), alpha=value)


# --- shapes


def _dim(sparse, dim, more=0):
    rank = max(sparse.dim() + more, 1)
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank


_TURNED = {_C.sparse_csr: _C.sparse_csc, _C.sparse_csc: _C.sparse_csr, _C.sparse_bsr: _C.sparse_bsc, _C.sparse_bsc: _C.sparse_bsr}


@_rule("transpose")
def _transpose(sparse, a, b):
    a, b = _dim(sparse, a), _dim(sparse, b)
    order = list(range(sparse.dim()))
    if a != b:
        order[a], order[b] = b, a
    if isinstance(sparse, Compressed):
        _check_kinds(sparse, [(a, b)])
    return _permute(sparse, order)


@_rule("t")
def _t(sparse):
    if sparse.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {sparse.sparse_dim()} sparse and {sparse.dense_dim()} dense dimensions")
    return sparse if sparse.dim() < 2 else _transpose(sparse, 0, 1)


@_rule("permute")
def _permute(sparse, dims):
    if len(dims) != sparse.dim():
        raise RuntimeError(
            f"permute({str(sparse.layout).rpartition('.')[2]}): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {sparse.dim()} is not equal to len(dims) = {len(dims)}"
        )
    dims = [_dim(sparse, d) for d in dims]
    if len(set(dims)) != len(dims):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    shape = [sparse.shape[d] for d in dims]
    if dims == sorted(dims):
        return _valued(sparse, sparse._v)
    if isinstance(sparse, Compressed):
        return _permute_compressed(sparse, dims, shape)
    count = sparse.sparse_dim()
    if any(d >= count for d in dims[:count]):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.Only transpositions within sparse and dense "
            "dimensions are supported."
        )
    values = sparse._v.permute(0, *(d - count + 1 for d in dims[count:]))
    return Coordinates(sparse._i[dims[:count]], values, shape)


def _check_kinds(sparse, pairs):
    """RuntimeError for two dimensions that do not take each other's place in a compressed tensor."""
    batch = sparse._batch_rank()
    kinds = ["Batch" if d < batch else "Sparse" if d < batch + 2 else "Dense" for d in range(sparse.dim())]
    for to, from_ in pairs:
        if kinds[to] != kinds[from_]:
            words = f"{to}({kinds[to]}) and {from_}({kinds[from_]})"
            raise RuntimeError(f"transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got {words}")


def _permute_compressed(sparse, dims, shape):
    batch = sparse._batch_rank()
    _check_kinds(sparse, enumerate(dims))
    turned = dims[batch] > dims[batch + 1]
    blocks = ((batch + 2, batch + 1) if turned else (batch + 1, batch + 2)) if sparse._blocksize() else ()
    behind = 1 + len(blocks) - 2  # the values have their number, and the size of a block, instead of rows and columns
    values = sparse._v.permute(*dims[:batch], batch, *blocks, *(d + behind for d in dims[batch + 2 :]))
    indices = (*dims[:batch], batch)
    layout = _TURNED[sparse.layout] if turned else sparse.layout
    return Compressed(sparse._p.permute(indices), sparse._o.permute(indices), values, shape, layout)


@_rule("unsqueeze")
def _unsqueeze(sparse, dim):
    if isinstance(sparse, Compressed):
        raise RuntimeError("Sparse CSR tensors do not have strides")
    dim = _dim(sparse, dim, more=1)
    shape, count = list(sparse.shape), sparse.sparse_dim()
    shape.insert(dim, 1)
    if dim > count:
        return Coordinates(sparse._i, sparse._v.unsqueeze(dim - count + 1), shape, sparse._ordered)
    row = cresset.zeros(1, sparse._nnz(), dtype=_C.int64)
    return Coordinates(cresset.cat((sparse._i[:dim], row, sparse._i[dim:])), sparse._v, shape, sparse._ordered)


@_rule("select_copy")
def _select_copy(sparse, dim, index):
    return _select(sparse, dim, index, "select_copy").clone()


@_rule("select")
def _select(sparse, dim, index, name="select"):
    dim = _dim(sparse, dim)
    size = sparse.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"{name}(): index {index} out of range for tensor of size {list(sparse.shape)} at dimension {dim}")
    if isinstance(sparse, Compressed):
        batch = sparse._batch_rank()
        shape = [s for d, s in enumerate(sparse.shape) if d != dim]
        if dim < batch:
            return Compressed(*(part.select(dim, index) for part in (sparse._p, sparse._o, sparse._v)), shape, sparse.layout)
        if dim >= batch + 2:
            behind = dim - 1 + (2 if sparse._blocksize() else 0)
            return Compressed(sparse._p, sparse._o, sparse._v.select(behind, index), shape, sparse.layout)
        if batch:
            raise RuntimeError(f"{name}(): selecting sparse dimensions is not supported for batched sparse compressed tensors.")
        coo = _coo(sparse)
    else:
        coo = sparse
    count, index = coo.sparse_dim(), index % size
    shape = [s for d, s in enumerate(coo.shape) if d != dim]
    if dim >= count:
        return Coordinates(coo._i, coo._v.select(dim - count + 1, index), shape, coo._ordered)
    hit = coo._i[dim] == index
    if count == 1:
        return coo._v[hit].sum(0).to(coo.dtype)
    rest = [d for d in range(count) if d != dim]
    return Coordinates(coo._i[rest][:, hit], coo._v[hit], shape, coo._ordered)


@_rule("unbind")
def _unbind(sparse, dim=0):
    dim = _dim(sparse, dim)
    return [_select(sparse, dim, index) for index in range(sparse.shape[dim])]


@_rule("index_select")
def _index_select(sparse, dim, index):
    dim, like = _dim(sparse, dim), sparse
    sparse = _coo(sparse) if isinstance(sparse, Compressed) else sparse
    shape = [len(index) if d == dim else s for d, s in enumerate(sparse.shape)]
    count = sparse.sparse_dim()
    if dim >= count:
        return Coordinates(sparse._i, sparse._v.index_select(dim - count + 1, index), shape, sparse._ordered)
    order = sparse._i[dim].argsort(stable=True)
    have = sparse._i[dim][order].contiguous()
    wanted = index.to(_C.int64) % max(sparse.shape[dim], 1)
    first, last = cresset.searchsorted(have, wanted), cresset.searchsorted(have, wanted, right=True)
    lengths = last - first
    new = cresset.repeat_interleave(cresset.arange(len(index)), lengths)
    inside = cresset.arange(len(new)) - cresset.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
    source = order[cresset.repeat_interleave(first, lengths) + inside]
    places = sparse._i[:, source].clone()
    places[dim] = new
    return _like(Coordinates(places, sparse._v[source], shape, sparse._ordered and dim == 0), like)


@_rule("slice", "narrow_copy", "narrow")
def _slice(sparse, dim=0, start=None, end=None, step=1):
    size = sparse.shape[_dim(sparse, dim)]
    return _index_select(sparse, dim, cresset.arange(*slice(start, end, step).indices(size)))


_RULES["narrow"] = _RULES["narrow_copy"] = lambda sparse, dim, start, length: _slice(sparse, dim, start, start + length)


@_rule("cat")
def _cat(tensors, dim=0):
    if not all(isinstance(t, Sparse) for t in tensors):
        raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found among them.")
    first = tensors[0]
    parts = [coordinates(t) for t in tensors]
    dim, count = _dim(first, dim), parts[0].sparse_dim()
    shape = list(first.shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    places, values, offset = [], [], 0
    for part in parts:
        moved = part._i.clone()
        value = part._v
        if dim < count:
            moved[dim] += offset
        else:
            before, after = list(value.shape), list(value.shape)
            before[dim - count + 1], after[dim - count + 1] = offset, shape[dim] - offset - part.shape[dim]
            value = cresset.cat((value.new_zeros(before), value, value.new_zeros(after)), dim - count + 1)
        places.append(moved)
        values.append(value)
        offset += part.shape[dim]
    return _like(Coordinates(cresset.cat(places, 1), cresset.cat(values), shape), first)


@_rule("stack")
def _stack(tensors, dim=0):
    return _cat([_unsqueeze(coordinates(t), dim) for t in tensors], dim)


# --- sums, questions


@_rule("sum")
def _sum(sparse, dim=None, keepdim=False, *, dtype=None):
    values = sparse._v if dtype is None else sparse._v.to(dtype)
    if dim is None or not len([dim] if isinstance(dim, int) else dim):
        total = values.sum()
        return total.reshape([1] * sparse.dim()) if keepdim else total
    like, sparse = sparse, _coo(sparse) if isinstance(sparse, Compressed) else sparse
    values = sparse._v if dtype is None else sparse._v.to(dtype)
    dims = {_dim(sparse, d) for d in ([dim] if isinstance(dim, int) else dim)}
    count = sparse.sparse_dim()
    inner = [d - count + 1 for d in dims if d >= count]
    values = values.sum(inner, keepdim=keepdim) if inner else values
    kept = [d for d in range(count) if d not in dims]
    shape = [1 if d in dims else s for d, s in enumerate(sparse.shape) if keepdim or d not in dims]
    if not kept:
        total = values.sum(0)
        return total.reshape(shape) if keepdim else total
    places = sparse._i if len(kept) == count else sparse._i[kept]
    if values.dtype is not sparse.dtype and dtype is None or values.dtype in (_C.int32, _C.int16, _C.uint8, _C.bool) and dtype is None:
        values = values.to(_C.int64)
    reduced = Coordinates(places, values, [s for d, s in enumerate(sparse.shape) if d in kept] + list(values.shape[1:]))
    reduced = coalesced(reduced) if len(kept) < count else reduced
    if keepdim:
        places = cresset.zeros(count, reduced._nnz(), dtype=_C.int64)
        places[kept] = reduced._i
        reduced = Coordinates(places, reduced._v, shape, True)
    return _like(reduced, like) if reduced.dim() == 2 else reduced


@_rule("norm", "linalg_vector_norm")
def _norm(sparse, p=2, *args, **kwargs):
    if args and args[0] not in (None, []) and len(args[0]) not in (0, sparse.dim()):
        raise RuntimeError("norm of a sparse tensor: only over all of its elements.")
    return cresset.linalg.vector_norm(_coo(sparse)._v.flatten(), 2 if p is None else _number(p))


@_rule("any")
def _any(sparse, *args):
    return dense(sparse).any(*args)


@_rule("_local_scalar_dense", "item")
def _item(sparse):
    if sparse.numel() != 1:
        raise RuntimeError(f"a Tensor with {sparse.numel()} elements cannot be converted to Scalar")
    return sparse._v.sum().item()


@_rule("equal")
def _equal(a, b):
    if a.shape != b.shape:
        return False
    return cresset.equal(dense(a) if isinstance(a, Sparse) else a, dense(b) if isinstance(b, Sparse) else b)


_RULES["is_same_size"] = lambda a, b: a.shape == b.shape


# --- matrices


def _spread(sparse, factor):
    """A sparse matrix times a strided one: rows of the factor, weighted and added."""
    sparse = coordinates(sparse)
    rows, columns = sparse._i
    result = factor.new_zeros((sparse.shape[0], factor.shape[1]))
    return result.index_add_(0, rows, sparse._v[:, None] * factor[columns])


def _both_sparse(a, b):
    """Sparse times sparse, in coordinates: each element of a with the row of b that it meets."""
    a, b = _coo(a), _coo(b)
    first = cresset.searchsorted(b._i[0].contiguous(), a._i[1].contiguous())
    lengths = cresset.searchsorted(b._i[0].contiguous(), a._i[1].contiguous(), right=True) - first
    left = cresset.repeat_interleave(cresset.arange(len(lengths)), lengths)
    right = cresset.repeat_interleave(first, lengths) + cresset.arange(len(left)) - cresset.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
    places = cresset.stack((a._i[0][left], b._i[1][right]))
    return coalesced(Coordinates(places, a._v[left] * b._v[right], (a.shape[0], b.shape[1])))


@_rule("mm", "_sparse_mm")
def _mm(a, b):
    if a.dim() != 2 or b.dim() != 2:
        raise RuntimeError(f"mm: expected two matrices, got {a.dim()} and {b.dim()} dimensions")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})")
    if a.dtype != b.dtype:
        if isinstance(a, Sparse) and isinstance(b, Sparse):
            raise RuntimeError(f"mat1 dtype {_word(a)} does not match mat2 dtype {_word(b)}")
        raise RuntimeError(f"expected scalar type {_word(a)} but found {_word(b)}")
    if isinstance(a, Sparse) and isinstance(b, Sparse):
        return _like(_both_sparse(a, b), a)
    if isinstance(a, Sparse):
        return _spread(a, b)
    return _spread(_permute(coordinates(b), (1, 0)), a.t()).t().contiguous()


def _word(tensor):
    return word_of(tensor.dtype)


@_rule("mv")
def _mv(a, b):
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {_word(a)} but found {_word(b)}")
    if a.dim() != 2 or b.dim() != 1:
        raise RuntimeError(f"mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: {a.dim()} Tensor Dim: {b.dim()}")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    return _spread(a, dense(b)[:, None] if isinstance(b, Sparse) else b[:, None])[:, 0]


@_rule("addmm", "_sparse_addmm")
def _addmm(self, a, b, *, beta=1, alpha=1):
    product = _mm(a, b) if isinstance(a, Sparse) or isinstance(b, Sparse) else a @ b
    if isinstance(self, Sparse) and isinstance(product, Sparse):
        return _add(_mul(self, beta) if beta != 0 else cresset.zeros_like(self), product, alpha=alpha)
    product = (dense(product) if isinstance(product, Sparse) else product) * alpha
    if beta == 0:  # what self holds does not count, NaN neither
        return product
    return (dense(self) if isinstance(self, Sparse) else self) * beta + product


@_rule("addmv")
def _addmv(self, mat, vec, *, beta=1, alpha=1):
    if not isinstance(mat, Compressed):
        _refuse(cresset.ops.aten.addmv.default, (mat,))
    if isinstance(self, Sparse) or isinstance(vec, Sparse):
        raise RuntimeError("addmv: only the matrix may be sparse.")
    product = _spread(mat, vec[:, None])[:, 0] * alpha
    return (product + self * beta if beta != 0 else product).expand(mat.shape[0])


@_rule("addmv_")
def _addmv_(self, mat, vec, *, beta=1, alpha=1):
    return self.copy_(_addmv(self, mat, vec, beta=beta, alpha=alpha))


@_rule("bmm")
def _bmm(a, b):
    if isinstance(b, Sparse):
        raise NotImplementedError("bmm: only the first factor may be sparse.")
    return cresset.stack([_spread(_select(a, 0, i), b[i]) for i in range(a.shape[0])])


@_rule("expand")
def _expand(sparse, size, *, implicit=False):
    return from_dense(dense(sparse).expand(size))


@_rule("isclose")
def _isclose(a, b, *args, **kwargs):
    return cresset.isclose(dense(a) if isinstance(a, Sparse) else a, dense(b) if isinstance(b, Sparse) else b, *args, **kwargs)


_RULES["allclose"] = lambda *args, **kwargs: bool(_isclose(*args, **kwargs).all())
