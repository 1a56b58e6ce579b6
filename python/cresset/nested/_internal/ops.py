"""How functions work on jagged nested tensors: on the packed values where they can, otherwise on padded ones."""

import functools
import itertools
import math

import cresset
from cresset.nn import functional as F

from .nested_int import NestedInt
from .nested_tensor import NestedTensor, padded

__all__ = ["call", "from_padded"]

_HANDLERS = {}


def handles(*names):
    def put(function):
        _HANDLERS.update(dict.fromkeys(names, function))
        return function

    return put


def is_nested(x):
    return isinstance(x, NestedTensor)


def name_of(func):
    """The name under which a function is known: "get x" and "set x" for a property."""
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        return f"{name.strip('_')} {func.__self__.__name__}"
    return name.rpartition("::")[2] or str(func)


def call(func, args, kwargs):
    if str(func) == "aten.size.default":
        raise RuntimeError("NestedTensor does not support directly calling torch.ops.aten.size; use `nested_tensor.size()` instead.")
    func = getattr(func, "overloadpacket", func)  # an overload of torch.ops: handlers know names, and the packet chooses by the packed values
    name = name_of(func)
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(func, *args, **kwargs)
    if name.startswith("get "):
        return func(args[0]._packed)
    if name in _POINTWISE or _is_tagged_pointwise(name):
        return pointwise(func, args, kwargs)
    raise NotImplementedError(f"{name}: not supported for nested tensors; unbind() gives the components, to_padded_tensor() a dense tensor.")


NestedTensor._call = staticmethod(call)


@functools.cache
def _is_tagged_pointwise(name):
    packet = getattr(cresset.ops.aten, name.strip("_") if name.startswith("__") else name, None)
    try:
        return any(cresset.Tag.pointwise in getattr(packet, overload).tags for overload in packet.overloads())
    except AttributeError:
        return False


# Rows ---------------------------------------------------------------------------------------------------------------------


def from_padded(dense, nt, ragged_idx=None):
    """The rows of a padded tensor as a nested tensor in the rows of `nt`, without holes."""
    ragged_idx = nt._ragged_idx if ragged_idx is None else ragged_idx
    component, position, _ = nt._rows.index()
    values = dense.movedim(ragged_idx, 1)[component, position].movedim(0, ragged_idx - 1)
    return packed(nt)._like(values, ragged_idx)


def packed(nt):
    """The tensor without holes."""
    if nt._rows.lengths is None:
        return nt
    _, _, row = nt._rows.index()
    with cresset.no_grad():
        offsets = F.pad(nt._rows.lengths.cumsum(0), (1, 0))
    return NestedTensor(nt._packed.index_select(nt._ragged_idx - 1, row), offsets, _ragged_idx=nt._ragged_idx, _root=None)


def components(nt):
    dim = nt._ragged_idx - 1
    if nt._rows.lengths is None:
        return tuple(nt._packed.split(nt._rows.counts, dim))
    return tuple(nt._packed.narrow(dim, start, count) for start, count in zip(nt._rows.starts, nt._rows.counts, strict=True))


# Pointwise ----------------------------------------------------------------------------------------------------------------

_POINTWISE = frozenset("""
__add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ __itruediv__ __div__ __rdiv__ __floordiv__ __rfloordiv__
__pow__ __rpow__ __ipow__ __mod__ __rmod__ __neg__ __pos__ __abs__ __invert__ __and__ __or__ __xor__ __rand__ __ror__ __rxor__ __eq__ __ne__ __lt__ __le__ __gt__
__ge__ relu relu_ relu6 leaky_relu elu celu selu gelu silu mish sigmoid tanh hardtanh hardswish hardsigmoid softplus softsign logsigmoid tanhshrink dropout
alpha_dropout threshold detach clone to type double float half bfloat16 cdouble cfloat chalf int long short char byte bool cpu cuda contiguous_format rsub where masked_fill clamp clip
nan_to_num zeros_like ones_like empty_like full_like rand_like randn_like randint_like detach_ zero_ fill_ positive _to_copy type_as pin_memory data
native_dropout square isnan isinf isfinite logical_not bernoulli abs_ conj normal_ uniform_ masked_fill_ fill real isclose clamp_ clamp_min clamp_max neg_ nan_to_num_ float_power
""".split())  # fmt: skip


def _outer_to_inner_dim(ndim, dim, ragged_dim, canonicalize=False):
    """The dimension of the values, or a list of them, that a dimension of a nested tensor of `ndim` dimensions stands for; for the batch the one in which
    the components lie one behind the other. With `canonicalize` dimensions may count from the end."""
    if isinstance(dim, (tuple, list)):
        return type(dim)(dict.fromkeys(_outer_to_inner_dim(ndim, d, ragged_dim, canonicalize) for d in dim))
    if canonicalize:
        dim = cresset._prims_common.canonicalize_dim(ndim, dim)
    if not 0 <= dim < ndim:
        raise AssertionError(f"_outer_to_inner_dim: a dimension from 0 to {ndim - 1} was required; got {dim}.")
    return (dim or ragged_dim) - 1


def _refuse_pair(func, a, b):
    def shape(x):
        return tuple(x._shape()) if is_nested(x) else x.shape

    raise RuntimeError(f"cannot call binary pointwise function {name_of(func).strip('_')}.Tensor with inputs of shapes {shape(a)} and {shape(b)}")


def _aligned(func, t, nt, args):
    """What stands for a dense tensor beside the values of `nt`."""
    ndim, ragged = nt._packed.dim() + 1, nt._ragged_idx
    if t.dim() == 0:
        return t
    if t.dim() > ndim:
        _refuse_pair(func, *args[:2])
    at = ragged - (ndim - t.dim())  # where the ragged dimension falls in t
    if t.dim() == ndim:
        if t.shape[0] not in (1, len(nt._rows.counts)):
            _refuse_pair(func, *args[:2])
        if t.shape[0] == 1 and t.shape[at] == 1:
            return t.squeeze(0) if nt._rows.lengths is None or not t.requires_grad else _without_holes(t, nt, at)
        component, position, row = nt._rows.index()
        t = t.expand(len(nt._rows.counts), *t.shape[1:])
        moved = t.movedim(at, 1)
        if t.shape[at] == 1:
            picked = moved.squeeze(1)[component]
        elif t.shape[at] == max(nt._rows.counts, default=0):
            picked = moved[component, position]
        else:
            _refuse_pair(func, *args[:2])
        if nt._rows.lengths is not None:
            picked = picked.new_zeros(nt._packed.shape[ragged - 1], *picked.shape[1:]).index_copy(0, row, picked)
        return picked.movedim(0, at - 1)
    if at >= 0 and t.shape[at] != 1:
        _refuse_pair(func, *args[:2])
    return t


def _without_holes(t, nt, at):
    """A tensor of one component and one row for every row of the values; no gradient comes from what lies between the components."""
    row = nt._rows.index()[2]
    moved = t.squeeze(0).movedim(at - 1, 0)
    every = moved.detach().expand(nt._packed.shape[nt._ragged_idx - 1], *moved.shape[1:])
    return every.index_copy(0, row, moved.expand(len(row), *moved.shape[1:])).movedim(0, at - 1)


def _first(args, kwargs):
    for x in itertools.chain(args, kwargs.values()):
        if is_nested(x):
            return x
        if isinstance(x, (list, tuple)):
            for y in x:
                if is_nested(y):
                    return y
    raise AssertionError("no nested tensor")


def _check_same(func, x, nt, args):
    same = x._rows is nt._rows or (x._rows.lengths is None and nt._rows.lengths is None and x._rows.offsets is nt._rows.offsets)
    if not same or x._ragged_idx != nt._ragged_idx or x._packed.dim() != nt._packed.dim():
        pair = [a for a in args if isinstance(a, cresset.Tensor)][:2]
        _refuse_pair(func, *(pair if len(pair) == 2 else (nt, x)))


def pointwise(func, args, kwargs):
    """Compute on the values; other nested tensors have the same rows, dense ones broadcast with the shape."""
    nt = _first(args, kwargs)
    if kwargs.get("layout") is cresset.jagged:
        kwargs = {k: v for k, v in kwargs.items() if k != "layout"}

    def plain(x):
        if is_nested(x):
            _check_same(func, x, nt, args)
            return x._packed
        if isinstance(x, NestedInt):
            x._no_operand(nt)
        if isinstance(x, cresset.Tensor):
            return _aligned(func, x, nt, args)
        if isinstance(x, (list, tuple)) and any(isinstance(y, cresset.Tensor) for y in x):
            return type(x)(plain(y) for y in x)
        return x

    result = func(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
    return _wrapped(result, nt, args)


def _wrapped(result, nt, args):
    if isinstance(result, cresset.Tensor):
        for x in args:
            if is_nested(x) and x._packed is result:  # in place, or nothing to do
                return x
        if result.device != nt._rows.offsets.device:
            offsets, lengths = nt._rows.offsets.to(result.device), None if nt._rows.lengths is None else nt._rows.lengths.to(result.device)
            return NestedTensor(
                result, offsets, lengths=lengths, _ragged_idx=nt._ragged_idx, _min_seqlen=nt._seqlens[0], _max_seqlen=nt._seqlens[1], _root=None
            )  # fmt: skip
        return nt._like(result)
    if isinstance(result, tuple):
        return type(result)(*(_wrapped(r, nt, ()) for r in result)) if hasattr(result, "_fields") else type(result)(_wrapped(r, nt, ()) for r in result)
    return result


# Facts --------------------------------------------------------------------------------------------------------------------


@handles("get shape")
def _get_shape(func, nt):
    return nt._shape()


@handles("size", "sym_size")
def _size(func, nt, dim=None):
    return nt._shape() if dim is None else nt._shape()[dim]


@handles("stride", "sym_stride")
def _stride(func, nt, dim=None):
    shape, strides = nt._shape(), list(nt._packed.stride())
    ragged = nt._ragged_idx - 1
    inner = nt._packed.stride(ragged) if nt._packed.dim() else 1
    # The batch steps over what one component has.
    step = inner if ragged == 0 else math.prod(s for s in shape[1:] if not isinstance(s, NestedInt))
    strides = (nt._rows.size * step, *strides)
    return strides if dim is None else strides[dim]


@handles("dim", "ndimension", "get ndim")
def _dim(func, nt):
    return nt._packed.dim() + 1


@handles("numel", "nelement", "sym_numel")
def _numel(func, nt):
    return packed(nt)._packed.numel()


@handles("__len__")
def _len(func, nt):
    return len(nt._rows.counts)


@handles("get layout")
def _layout(func, nt):
    return cresset.jagged


@handles("is_non_overlapping_and_dense")
def _is_dense(func, nt):
    return False


@handles("sym_storage_offset")
def _storage_offset(func, nt):
    return nt._packed.storage_offset()


@handles("get is_nested")
def _is_nested(func, nt):
    return True


@handles("get data")
def _data(func, nt):
    return nt._like(nt._packed.detach())


@handles("_is_view")
def _is_view(func, nt):
    return nt._root is not None


@handles("get _base")
def _base(func, nt):
    return nt._root


@handles("is_contiguous")
def _is_contiguous(func, nt, memory_format=None):
    return nt._rows.lengths is None and nt._packed.is_contiguous()


@handles("contiguous")
def _contiguous(func, nt, memory_format=None):
    return nt if _is_contiguous(None, nt) else packed(nt)._like(packed(nt)._packed.contiguous()) if nt._rows.lengths is None else packed(nt)


@handles("is_floating_point", "is_complex", "is_signed", "element_size", "is_pinned", "get_device", "is_inference", "storage_offset", "item", "__bool__", "__float__", "__int__")
def _of_values(func, nt, *args, **kwargs):
    return func(nt._packed, *args, **kwargs)


@handles("tolist", "numpy", "__array__")
def _no_export(func, nt, *args, **kwargs):
    raise RuntimeError(f".{name_of(func).strip('_')}() is not supported for tensor subclasses" + (", got NestedTensor" if name_of(func) == "tolist" else "."))


@handles("is_same_size")
def _is_same_size(func, a, b):
    return a._shape() == b._shape()


@handles("equal", "allclose")
def _equal(func, a, b, *args, **kwargs):
    if not (is_nested(a) and is_nested(b)) or a._rows.counts != b._rows.counts or a._ragged_idx != b._ragged_idx:
        return False
    return func(packed(a)._packed, packed(b)._packed, *args, **kwargs)


@handles("__repr__", "__format__", "__str__")
def _text(func, nt, *args, **kwargs):
    return NestedTensor.__repr__(nt)


@handles("__reduce_ex__")
def _reduce_ex(func, nt, protocol):
    return NestedTensor.__reduce_ex__(nt, protocol)


# Gradients ----------------------------------------------------------------------------------------------------------------


@handles("requires_grad_")
def _requires_grad_(func, nt, requires_grad=True):
    nt._packed.requires_grad_(requires_grad)
    return nt


@handles("set requires_grad")
def _set_requires_grad(func, nt, value):
    nt._packed.requires_grad_(value)


@handles("get grad")
def _grad(func, nt):
    grad = nt._packed.grad
    return None if grad is None else nt._like(grad)


@handles("set grad")
def _set_grad(func, nt, value):
    nt._packed.grad = value._packed if is_nested(value) else value


@handles("backward")
def _backward(func, nt, gradient=None, *args, **kwargs):
    nt._packed.backward(gradient._packed if is_nested(gradient) else gradient, *args, **kwargs)


@handles("retain_grad")
def _retain_grad(func, nt):
    nt._packed.retain_grad()


@handles("register_hook")
def _register_hook(func, nt, hook):
    def on_values(grad):
        result = hook(nt._like(grad))
        return result._packed if is_nested(result) else result

    return nt._packed.register_hook(on_values)


@handles("grad")
def _autograd_grad(func, outputs, inputs, grad_outputs=None, *args, **kwargs):
    def plain(x):
        return x._packed if is_nested(x) else type(x)(map(plain, x)) if isinstance(x, (list, tuple)) else x

    found = func(plain(outputs), plain(inputs), plain(grad_outputs), *args, **kwargs)
    owners = [inputs] if isinstance(inputs, cresset.Tensor) else inputs
    return tuple(o._like(g) if is_nested(o) and g is not None else g for o, g in zip(owners, found, strict=True))


# Shapes -------------------------------------------------------------------------------------------------------------------


def _wrap(nt, dim, extra=0):
    """The dimension, counted from the front."""
    n = nt._packed.dim() + 1 + extra
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


_OF_CONTIGUOUS = frozenset(["chunk", "narrow", "split", "split_with_sizes", "squeeze"])  # which PyTorch has for the others nowhere


def _inner(func, nt, dim, extra=0, ragged=True):
    """`dim` in the values; RuntimeError for the batch, and for the ragged one unless it is allowed."""
    dim = _wrap(nt, dim, extra)
    if (dim == 0 or dim == nt._ragged_idx) and name_of(func) in _OF_CONTIGUOUS and (nt._rows.lengths is not None or nt._ragged_idx != 1):
        raise ValueError(f"{name_of(func)}(): expected self to be a contiguous jagged layout NestedTensor")
    if dim == 0:
        raise RuntimeError(f"{name_of(func)}(): not supported for NestedTensor on dim=0")
    if ragged and dim == nt._ragged_idx:
        raise RuntimeError(f"{name_of(func)}(): not supported for NestedTensor on ragged dim")
    return dim - 1


@handles("unbind")
def _unbind(func, nt, dim=0):
    if nt._ragged_idx < 1:
        raise RuntimeError("unbind(): nested tensor ragged_idx out of bounds (should be >= 1)")
    if _wrap(nt, dim):
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    rows, size = nt._rows, nt._packed.shape[nt._ragged_idx - 1]
    if rows.lengths is not None and any(start + count > size for start, count in zip(rows.starts, rows.counts, strict=True)):
        raise RuntimeError(f"unbind(): nested tensor offsets and lengths do not match ragged_idx dimension {nt._ragged_idx - 1} of the values, whose size is {size}")
    return components(nt)


@handles("copy_")
def _copy(func, nt, source, *args, **kwargs):
    if not is_nested(source) or source._rows.offsets is not nt._rows.offsets or source._shape() != nt._shape():
        raise RuntimeError("copy_ only supports Nested Tensors that have same size and the exact same offset tensor.")
    nt._packed.copy_(source._packed, *args, **kwargs)
    return nt


@handles("__iter__")
def _iter(func, nt):
    return iter(components(nt))


@handles("select")
def _select(func, nt, dim, index):
    if _wrap(nt, dim) == 0:
        return components(nt)[index]
    inner = _inner(func, nt, dim)
    return nt._like(nt._packed.select(inner, index), nt._ragged_idx - (inner < nt._ragged_idx - 1))


@handles("narrow", "slice")
def _narrow(func, nt, dim, *args, **kwargs):
    return nt._like(func(nt._packed, _inner(func, nt, dim), *args, **kwargs))


@handles("__getitem__")
def _getitem(func, nt, index):
    index = index if isinstance(index, tuple) else (index,)
    if index and type(index[0]) is int:
        found = components(nt)[index[0]]
        return found[index[1:]] if len(index) > 1 else found
    given = sum(i is not None and i is not Ellipsis for i in index)
    at = next((k for k, i in enumerate(index) if i is Ellipsis), None)
    whole = [slice(None)] * (nt._packed.dim() + 1 - given)
    index = list(index) + whole if at is None else [*index[:at], *whole, *index[at + 1 :]]
    result, dim = nt, 0
    for i in index:
        if isinstance(i, slice):
            if i != slice(None):
                if dim == 0 or dim == result._ragged_idx:
                    raise RuntimeError(f"slice(): not supported for NestedTensor on {'dim=0' if dim == 0 else 'ragged dim'}")
                result = result._like(result._packed[(slice(None),) * (dim - 1) + (i,)])
            dim += 1
        elif i is None:
            result = result.unsqueeze(dim)
            dim += 1
        elif type(i) is int:
            result = result.select(dim, i)
        else:
            raise NotImplementedError("__getitem__: nested tensors are indexed by numbers and slices only.")
    return result


@handles("_unsafe_view")
def _unsafe_view(func, nt, size):
    made = nt.view(size)
    made._root = None
    return made


@handles("view", "reshape")
def _view(func, nt, *shape):
    shape = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
    if len(shape) == 1 and isinstance(shape[0], cresset.dtype):
        return nt._like(nt._packed.view(shape[0]))

    def refuse():
        raise RuntimeError(f"{name_of(func)}(): cannot view shape {tuple(nt._shape())} as {shape}")

    ragged = next((k for k, s in enumerate(shape) if isinstance(s, NestedInt)), None)
    if ragged is None:
        ragged = next((k for k, s in enumerate(shape) if k and s == -1), None)
    elif shape[ragged] != nt._rows.size:
        refuse()
    if ragged is None or shape[0] not in (len(nt._rows.counts), -1):
        refuse()
    old = nt._packed.shape
    front, back = old[: nt._ragged_idx - 1], old[nt._ragged_idx :]
    for given, had in ((shape[1:ragged], front), (shape[ragged + 1 :], back)):
        known = math.prod(s for s in given if s != -1)
        if (known != math.prod(had)) if -1 not in given else (not known or math.prod(had) % known):
            refuse()
    inner = shape[1:]
    inner[ragged - 1] = old[nt._ragged_idx - 1]
    return nt._like(getattr(nt._packed, name_of(func))(inner), ragged)


@handles("view_as", "reshape_as")
def _view_as(func, nt, other):
    return nt.view(other.shape) if name_of(func) == "view_as" else nt.reshape(other.shape)


@handles("expand")
def _expand(func, nt, *shape):
    shape = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
    if len(shape) != nt._packed.dim() + 1 or shape[0] not in (-1, len(nt._rows.counts)) or not (shape[nt._ragged_idx] == -1 or shape[nt._ragged_idx] == nt._rows.size):
        raise RuntimeError(f"expand(): cannot expand shape {tuple(nt._shape())} -> {tuple(shape)}")
    shape[nt._ragged_idx] = -1
    return nt._like(nt._packed.expand(shape[1:]))


@handles("expand_as")
def _expand_as(func, nt, other):
    return nt.expand(other.shape)


def _permuted(nt, dims):
    """Axes of the values in another order: dims of the tensor, the batch first."""
    return nt._like(nt._packed.permute([d - 1 for d in dims[1:]]), dims.index(nt._ragged_idx))


@handles("transpose", "swapaxes", "swapdims")
def _transpose(func, nt, dim0, dim1):
    a, b = _wrap(nt, dim0), _wrap(nt, dim1)
    if a == b:
        return nt
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    dims = list(range(nt._packed.dim() + 1))
    dims[a], dims[b] = b, a
    return _permuted(nt, dims)


@handles("permute")
def _permute(func, nt, *dims):
    dims = [_wrap(nt, d) for d in (dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims)]
    ndim = nt._packed.dim() + 1
    if len(dims) != ndim:
        raise ValueError(f"permute(): number of dimensions in the tensor input ({ndim}) does not match the length of the desired ordering of dimensions ({len(dims)}).")
    if len(set(dims)) < ndim:
        raise ValueError("permute(): duplicate dims are not allowed.")
    if dims[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return _permuted(nt, dims)


@handles("movedim", "moveaxis")
def _movedim(func, nt, source, destination):
    dims = list(range(nt._packed.dim() + 1))
    dims.insert(_wrap(nt, destination), dims.pop(_wrap(nt, source)))
    return _permute(None, nt, dims)


@handles("get mT")
def _mt(func, nt):
    return nt.transpose(-2, -1)


@handles("get T")
def _t(func, nt):
    raise ValueError("Permute is not supported on the batch dimension for jagged NT")


@handles("unsqueeze")
def _unsqueeze(func, nt, dim):
    inner = _inner(func, nt, dim, extra=1, ragged=False)
    return nt._like(nt._packed.unsqueeze(inner), nt._ragged_idx + (inner + 1 <= nt._ragged_idx))


@handles("squeeze")
def _squeeze(func, nt, dim=None):
    if dim is None:
        raise NotImplementedError("squeeze: nested tensors need a dimension.")
    inner = _inner(func, nt, dim)
    goes = nt._packed.shape[inner] == 1
    return nt._like(nt._packed.squeeze(inner), nt._ragged_idx - (goes and inner + 1 < nt._ragged_idx))


@handles("flatten")
def _flatten(func, nt, start_dim=0, end_dim=-1):
    start, end = _inner(func, nt, start_dim, ragged=False), _inner(func, nt, end_dim, ragged=False)
    if start < nt._ragged_idx <= end + 1:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    return nt._like(nt._packed.flatten(start, end), nt._ragged_idx - (end - start if end + 1 < nt._ragged_idx else 0))


@handles("unflatten")
def _unflatten(func, nt, dim, sizes):
    if _wrap(nt, dim) == 0:
        if nt._ragged_idx != 1:
            raise RuntimeError("unflatten(): does not support ragged_idx != 1 except when the sizes up to the ragged dimension stay the same")
        raise RuntimeError(f"unflatten(): cannot view shape {tuple(nt._shape())} as {(*sizes, *nt._shape()[1:])}")
    inner = _inner(func, nt, dim)
    return nt._like(nt._packed.unflatten(inner, sizes), nt._ragged_idx + (len(sizes) - 1 if inner + 1 < nt._ragged_idx else 0))


def _some_components(nt, first, end):
    """Those from `first` on, a view."""
    rows, places, counts = nt._rows, nt._rows.offsets.tolist(), nt._rows.counts[first:end]
    begin, end = places[first], min(end, len(rows.counts))
    values = nt._packed.narrow(nt._ragged_idx - 1, begin, places[end] - begin)
    lengths = None if rows.lengths is None else rows.lengths[first:end]
    return NestedTensor(values, rows.offsets[first : end + 1] - begin, lengths=lengths, _ragged_idx=nt._ragged_idx, _min_seqlen=min(counts), _max_seqlen=max(counts))


@handles("apply_")
def _apply(func, nt, function):
    nt._packed.detach().apply_(function)
    return nt


@handles("chunk", "tensor_split")
def _chunk(func, nt, chunks, dim=0):
    if _wrap(nt, dim) == 0 and name_of(func) == "chunk":
        step = max(-(-len(nt._rows.counts) // chunks), 1)
        return tuple(_some_components(nt, i, i + step) for i in range(0, len(nt._rows.counts), step))
    inner = _inner(func, nt, dim)
    return tuple(nt._like(v) for v in func(nt._packed, chunks, inner))


@handles("split", "split_with_sizes")
def _split(func, nt, *args, dim=0, **kwargs):
    sizes = args[0] if args else next(kwargs[name] for name in ("split_size", "split_sizes", "split_size_or_sections") if name in kwargs)
    dim = args[1] if len(args) > 1 else dim
    inner = _inner(func if isinstance(sizes, int) else cresset.split_with_sizes, nt, dim)
    return tuple(nt._like(v) for v in nt._packed.split(sizes, inner))


@handles("cat", "concat", "concatenate")
def _cat(func, tensors, dim=0):
    nt = next(t for t in tensors if is_nested(t))
    inner = _inner(cresset.cat, nt, dim)
    for t in tensors:
        if not is_nested(t):
            _refuse_pair(func, nt, t)
        _check_same(func, t, nt, (nt, t))
    return nt._like(cresset.cat([t._packed for t in tensors], inner))


@handles("stack")
def _stack(func, tensors, dim=0):
    nt = next(t for t in tensors if is_nested(t))
    inner = _inner(func, nt, dim, extra=1, ragged=False)
    for t in tensors:
        _check_same(func, t, nt, (nt, t))
    return nt._like(cresset.stack([t._packed for t in tensors], inner), nt._ragged_idx + (inner + 1 <= nt._ragged_idx))


@handles("broadcast_tensors")
def _broadcast(func, *tensors):
    nt = _first(tensors, {})
    tensors = tensors[0] if isinstance(tensors[0], (list, tuple)) else tensors
    zero = cresset.zeros((), dtype=nt.dtype)
    return tuple(t + zero * nt if not is_nested(t) else t for t in tensors)


@handles("where")
def _where(func, condition, *args, **kwargs):
    if not is_nested(condition):
        raise ValueError("where(): expected condition to be a jagged layout NestedTensor")
    for x in (*args, *kwargs.values()):
        if isinstance(x, cresset.Tensor) and not is_nested(x) and x.dim() > condition._packed.dim():
            raise ValueError("where(): broadcasting nested tensors with dense tensors of equal or higher dim is not currently supported")
    return pointwise(func, (condition, *args), kwargs)


@handles("index_put", "index_put_")
def _index_put(func, nt, indices, values, accumulate=False):
    """The first index is that of the component. Where none is for the ragged dimension, whole components are written."""
    in_place = name_of(func).endswith("_")
    if len(indices) > nt._ragged_idx:
        batch, *inner = indices
        at = nt._ragged_idx - 1
        counts = cresset.tensor(nt._rows.counts, device=batch.device)[batch]
        if bool((inner[at] >= counts).any() | (inner[at] < -counts).any()):
            raise IndexError(f"index_put(): an index is out of range for the ragged dimension {nt._ragged_idx}")
        inner[at] = nt._rows.offsets[batch] + inner[at] % counts.clamp(min=1)
        result = func(nt._packed, tuple(inner), values, accumulate)
        return nt if in_place else nt._like(result)
    if not _is_contiguous(None, nt):
        raise RuntimeError("index_put(): If ragged dimension is not part of indices, this only works on contiguous NJTs")
    written = from_padded(cresset.index_put(padded(nt, 0), tuple(indices), values, accumulate), nt)
    if not in_place:
        return written
    nt._packed.copy_(written._packed)
    return nt


@handles("masked_select")
def _masked_select(func, nt, mask):
    if nt._rows.lengths is not None or nt._ragged_idx != 1:
        raise ValueError("masked_select(): expected self to be a contiguous jagged layout NestedTensor")
    _check_same(func, mask, nt, (nt, mask))
    picked = mask._packed.reshape(len(mask._packed), -1).sum(1)
    offsets = F.pad(cresset.stack([c.sum() for c in picked.split(nt._rows.counts)]).cumsum(0), (1, 0))
    return NestedTensor(nt._packed.masked_select(mask._packed), offsets, _root=None)


@handles("prelu")
def _prelu(func, nt, *args, **kwargs):
    weight = args[0] if args else kwargs.get("weight")
    if weight is None or weight.numel() == 1:
        return nt._like(func(nt._packed, *args, **kwargs))
    if nt._ragged_idx == 1:
        raise RuntimeError("prelu(): not supported for NestedTensor on ragged dim")
    shape = [-1, *[1] * (nt._packed.dim() - 1)]
    return nt._like(cresset.where(nt._packed >= 0, nt._packed, nt._packed * weight.view(shape)))


@handles("atleast_1d", "atleast_2d")
def _at_least(func, nt):
    return nt
