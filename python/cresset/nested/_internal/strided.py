"""Nested tensors of the layout strided: components of any sizes, one behind the other in one buffer, which carries the gradient.

A Python type of tensor over `__torch_function__`. A function is computed on the buffer where each element stands for itself, else component by
component; what has no rule here is refused in PyTorch's words.
"""

import math

import cresset
from cresset.nn import functional as F

from .ops import name_of

__all__ = ["StridedNested", "strided_of", "strided_from_list"]

_HANDLERS = {}
_POINTWISE = frozenset("""
__add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ __neg__ __pos__ __abs__ __ge__ __gt__ __lt__ __le__
add add_ sub sub_ mul mul_ div div_ neg neg_ abs abs_ relu relu_ gelu gelu_ silu silu_ tanh tanh_ cos sin sgn sgn_ sqrt ge gt lt le eq ne __eq__ __ne__ isnan isinf
isposinf isneginf isreal positive softsign tanhshrink logical_not logical_not_ masked_fill masked_fill_ dropout dropout_ detach clone to type float double half bfloat16 int long bool cpu contiguous
cdouble cfloat chalf short char byte
zeros_like ones_like empty_like full_like rand_like randn_like zero_ fill_ copy_ rsub type_as pin_memory where native_dropout alias
""".split())  # fmt: skip


_FORMATS = {cresset.channels_last: "ChannelsLast", cresset.channels_last_3d: "ChannelsLast3d"}


def _base(name):
    if not name.startswith("__"):
        return name
    return name.strip("_").removeprefix("i" if name.startswith("__i") else "").removeprefix("r" if name.startswith("__r") else "").replace("truediv", "div")


class StridedNested(cresset.Tensor):
    """Components of the same number of dimensions. Made by the functions of `cresset.nested`."""

    @staticmethod
    def __new__(cls, buffer, sizes):
        self = cresset.Tensor._make_wrapper_subclass(cls, (len(sizes),), dtype=buffer.dtype, device=buffer.device)
        self._buffer, self._sizes = buffer, sizes
        return self

    def _parts(self):
        numbers = [math.prod(size) for size in self._sizes]
        return [part.view(size) for part, size in zip(self._buffer.split(numbers), self._sizes)] if self._sizes else []

    def _like(self, buffer):
        return StridedNested(buffer, self._sizes)

    def to_padded_tensor(self, padding, output_size=None):
        """A dense tensor in which the components are filled up with `padding` to the largest sizes, or to `output_size`, whose first number may
        be more than there are components. RuntimeError when that is smaller."""
        shape = [max(sizes) for sizes in zip(*self._sizes)]
        if output_size is not None:
            if len(output_size) != len(shape) + 1 or any(want < have for want, have in zip(output_size, [len(self._sizes), *shape])):
                raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
            shape = list(output_size[1:])
        missing = [[n for want, have in zip(reversed(shape), reversed(size)) for n in (0, want - have)] for size in self._sizes]
        result = cresset.stack([F.pad(part, pad, value=padding) for part, pad in zip(self._parts(), missing)])
        more = 0 if output_size is None else output_size[0] - len(self._sizes)
        return F.pad(result, [0] * (2 * len(shape)) + [0, more], value=padding) if more else result

    def _table(self, rows):
        return cresset.tensor(rows, dtype=cresset.int64).view(len(self._sizes), len(self._sizes[0]) if self._sizes else 0)

    def _nested_tensor_size(self):
        """The sizes of the components, int64 of shape (components, dimensions)."""
        return self._table([list(size) for size in self._sizes])

    def _nested_tensor_strides(self):
        """The strides of the components."""
        return self._table([[math.prod(size[i + 1 :]) for i in range(len(size))] for size in self._sizes])

    def _nested_tensor_storage_offsets(self):
        """Where in the buffer each component begins."""
        return cresset.tensor([0] + [math.prod(size) for size in self._sizes], dtype=cresset.int64).cumsum(0)[:-1]

    def __repr__(self, *, tensor_contents=None):
        buffer = self._buffer
        parts = [cresset.Tensor.__repr__(p.detach().requires_grad_(buffer.requires_grad)) for p in self._parts()]
        text = ",\n".join("\n".join("  " + line for line in part.split("\n")) for part in parts)
        facts = f", grad_fn=<{buffer.grad_fn.name()}>" if buffer.grad_fn is not None else ", requires_grad=True" if buffer.requires_grad else ""
        return f"nested_tensor([\n{text}\n]{facts})"

    __str__ = __repr__

    def __format__(self, spec):
        return object.__format__(self, spec)

    def __reduce_ex__(self, protocol):
        parts = self._buffer.detach(), self._nested_tensor_size(), self._nested_tensor_strides(), self._nested_tensor_storage_offsets()
        return cresset._utils._rebuild_nested_tensor, parts

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self._like(self._buffer.detach().clone().requires_grad_(self._buffer.requires_grad))
        return memo[id(self)]

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked, kwargs = name_of(func), kwargs or {}
        func = getattr(func, "overloadpacket", func)  # an overload of torch.ops: handlers know names
        name = name_of(func)
        handler = _HANDLERS.get(name)
        if handler is not None:
            return handler(func, *args, **kwargs)
        if name in _POINTWISE:
            return _pointwise(func, name, args, kwargs)
        if name.startswith("get "):
            return func(args[0]._buffer)
        raise NotImplementedError(
            f"Could not run 'aten::{_base(asked).removesuffix('.default')}' with arguments from the 'NestedTensorCPU' backend: not supported for nested tensors of this layout; "
            "unbind() gives the components, to_padded_tensor() a dense tensor."
        )

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        # What reaches an operator past __torch_function__ would compute with the shell, which has no values.
        raise NotImplementedError(f"Could not run '{func._schema.name}' with arguments from the 'NestedTensorCPU' backend.")


def is_strided(x):
    return isinstance(x, StridedNested)


def strided_of(parts, empty=None):
    """The nested tensor of differentiable components."""
    sizes = [tuple(p.shape) for p in parts]
    buffer = cresset.cat([p.reshape(-1) for p in parts]) if parts else (cresset.empty(0) if empty is None else empty)
    return StridedNested(buffer, sizes)


def strided_from_list(tensors, dtype=None, device=None):
    """The nested tensor of a list; gradients flow to its elements, which take the first one's dtype. RuntimeError for other numbers of dimensions."""
    made = [t if isinstance(t, cresset.Tensor) else cresset.tensor(t) for t in tensors]
    for i, t in enumerate(made):
        if t.dim() != made[0].dim():
            raise RuntimeError(
                f"All Tensors given to nested_tensor must have the same dimension. Found dimension {t.dim()} for Tensor at index {i} and dimension "
                f"{made[0].dim()} for Tensor at index 0."
            )
    if not made:
        return StridedNested(cresset.empty(0, dtype=dtype, device=device), [])
    return strided_of([t.to(dtype=dtype or made[0].dtype, device=device or made[0].device) for t in made])


def rebuild(buffer, sizes, strides, storage_offsets):
    """The nested tensor of a file."""
    parts = zip(sizes.tolist() if sizes.numel() else [[]] * len(storage_offsets), strides.tolist() if strides.numel() else [[]] * len(storage_offsets), storage_offsets.tolist())
    return strided_of([buffer.as_strided(size, stride, offset) for size, stride, offset in parts], buffer)


def _handles(*names):
    def put(function):
        _HANDLERS.update(dict.fromkeys(names, function))
        return function

    return put


# Elementwise ------------------------------------------------------------------------------------------------------------


def _check_format(base, given):
    """RuntimeError for a memory format that sequences of sizes have not. contiguous() takes any: the buffer has one order."""
    name = next((_FORMATS[x] for x in given if isinstance(x, cresset.memory_format) and x in _FORMATS), None)
    if name is None or base == "contiguous":
        return
    if base == "clone":
        raise RuntimeError(f"Nested tensor clone supports Preserve and Contiguous memory formats, called clone with memory format: {name}")
    raise RuntimeError(f"empty_like_nested only supports memory format Preserve or Contiguous, but got {name} instead.")


_ARITHMETIC = {"add", "sub", "mul", "div", "eq"}  # of these a dense operand has no dimensions


def _pointwise(func, name, args, kwargs):
    nt = next(x for x in (*args, *kwargs.values()) if is_strided(x))
    base = _base(name)
    if base in ("eq", "ne") and sum(map(is_strided, args)) > 1:
        raise RuntimeError(f"{base} does not support nested tensor as other value.")

    def plain(x):
        if is_strided(x):
            if x._sizes != nt._sizes:
                raise RuntimeError(f"{base} does not support broadcasting when given a NestedTensor")
            return x._buffer
        if isinstance(x, cresset.Tensor) and (x.numel() != 1 or (x.dim() and base.rstrip("_") in _ARITHMETIC)):
            said = ("nested", "non-nested") if is_strided(args[0]) else ("non-nested", "nested")
            raise RuntimeError(f"Expected both self and other to be nested, but got a {said[0]} self and {said[1]} other")
        return x

    _check_format(base, (*args, *kwargs.values()))
    kwargs = {k: plain(v) for k, v in kwargs.items() if k != "memory_format" and not (k == "layout" and v is cresset.strided)}
    values = [plain(x) for x in args if not isinstance(x, cresset.memory_format)]
    result = func(*values, **kwargs)
    if result is nt._buffer:  # in place, or nothing to do
        return nt
    if isinstance(result, tuple):
        return tuple(nt._like(r) for r in result)
    return nt._like(result)


# Facts ------------------------------------------------------------------------------------------------------------------


def _rank(nt):
    return 1 + (len(nt._sizes[0]) if nt._sizes else 0)


def _dim_of(nt, dim):
    rank = _rank(nt)
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank


@_handles("_is_view")
def _is_view(func, nt):
    return nt._buffer._is_view()


@_handles("size", "get shape")
def _size(func, nt, dim=None):
    if dim is None:
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")
    dim = _dim_of(nt, dim)
    if dim == 0:
        return len(nt._sizes)
    found = {size[dim - 1] for size in nt._sizes}
    if len(found) != 1:
        raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
    return found.pop()


@_handles("stride", "tolist")
def _stride(func, nt, *args):
    raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides. Please file an issue.")


@_handles("numpy", "__array__", "flatten")
def _no_sizes(func, nt, *args, **kwargs):
    raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")


@_handles("dim", "ndimension", "get ndim")
def _dim(func, nt):
    return _rank(nt)


@_handles("numel", "nelement")
def _numel(func, nt):
    return nt._buffer.numel()


@_handles("__len__")
def _len(func, nt):
    return len(nt._sizes)


@_handles("get layout")
def _layout(func, nt):
    return cresset.strided


@_handles("get is_nested", "is_contiguous")
def _yes(func, nt, memory_format=None):
    return True


@_handles("is_floating_point", "is_complex", "is_signed", "element_size", "is_pinned", "get_device", "is_inference", "storage_offset", "item", "untyped_storage", "data_ptr", "nbytes")
def _of_buffer(func, nt, *args, **kwargs):
    return func(nt._buffer, *args, **kwargs)


@_handles("is_same_size")
def _is_same_size(func, a, b):
    return is_strided(a) and is_strided(b) and a._sizes == b._sizes


@_handles("values")
def _values(func, nt):
    return nt._buffer


@_handles("__repr__", "__str__")
def _text(func, nt, *args, **kwargs):
    return StridedNested.__repr__(nt)


@_handles("__reduce_ex__")
def _reduce_ex(func, nt, protocol):
    return StridedNested.__reduce_ex__(nt, protocol)


@_handles("__hash__")
def _hash(func, nt):
    return id(nt)


# Gradients --------------------------------------------------------------------------------------------------------------


@_handles("requires_grad_")
def _requires_grad_(func, nt, requires_grad=True):
    nt._buffer.requires_grad_(requires_grad)
    return nt


@_handles("set requires_grad")
def _set_requires_grad(func, nt, value):
    nt._buffer.requires_grad_(value)


@_handles("get grad")
def _grad(func, nt):
    return None if nt._buffer.grad is None else nt._like(nt._buffer.grad)


@_handles("set grad")
def _set_grad(func, nt, value):
    nt._buffer.grad = value._buffer if is_strided(value) else value


@_handles("backward")
def _backward(func, nt, gradient=None, *args, **kwargs):
    nt._buffer.backward(gradient._buffer if is_strided(gradient) else gradient, *args, **kwargs)


@_handles("get data")
def _data(func, nt):
    return nt._like(nt._buffer.detach())


# By component -----------------------------------------------------------------------------------------------------------


def _each(nt, function):
    return strided_of([function(part) for part in nt._parts()], nt._buffer)


@_handles("unbind", "__iter__")
def _unbind(func, nt, dim=0):
    if _dim_of(nt, dim) != 0:
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {_dim_of(nt, dim)} instead.")
    parts = tuple(nt._parts())
    return iter(parts) if name_of(func) == "__iter__" else parts


@_handles("select")
def _select(func, nt, dim, index):
    dim = _dim_of(nt, dim)
    return nt._parts()[index] if dim == 0 else _each(nt, lambda p: p.select(dim - 1, index))


@_handles("__getitem__")
def _getitem(func, nt, index):
    first, *rest = index if isinstance(index, tuple) else (index,)
    if isinstance(first, bool) or not isinstance(first, int):
        raise NotImplementedError("Could not run 'aten::slice.Tensor' with arguments from the 'NestedTensorCPU' backend: take components by their number.")
    part = nt._parts()[first]
    return part[tuple(rest)] if rest else part


@_handles("softmax", "log_softmax", "_softmax", "_log_softmax")
def _softmax(func, nt, dim=None, *args, **kwargs):
    kwargs.pop("_stacklevel", None)
    dim = _dim_of(nt, kwargs.pop("dim", dim))
    if dim == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return _each(nt, lambda p: func(p, dim - 1, *args, **kwargs))


@_handles("linear")
def _linear(func, input, weight, bias=None):
    if not is_strided(input) or is_strided(weight):
        raise RuntimeError("linear: of nested tensors only the input")
    return _each(input, lambda p: F.linear(p, weight, bias))


@_handles("layer_norm")
def _layer_norm(func, input, normalized_shape, weight=None, bias=None, eps=1e-5):
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    return _each(input, lambda p: F.layer_norm(p, normalized_shape, weight, bias, eps))


@_handles("embedding")
def _embedding(func, input, weight, *args, **kwargs):
    return _each(input, lambda p: F.embedding(p, weight, *args, **kwargs))


@_handles("sum")
def _sum(func, nt, dim=None, keepdim=False, *, dtype=None):
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is None:
        raise NotImplementedError("Could not run 'aten::sum' with arguments from the 'NestedTensorCPU' backend: give the last dimension, or sum values().")
    if len(dims) != 1 or _dim_of(nt, dims[0]) != _rank(nt) - 1:
        raise RuntimeError(f"NestedTensor can only be reduced across the last dimension for now got dimension {_dim_of(nt, dims[0])} instead.")
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return _each(nt, lambda p: p.sum(-1, keepdim=True, dtype=dtype))


@_handles("transpose")
def _transpose(func, nt, dim0, dim1):
    a, b = _dim_of(nt, dim0), _dim_of(nt, dim1)
    if 0 in (a, b) and a != b:
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return nt if a == b else _each(nt, lambda p: p.transpose(a - 1, b - 1))


@_handles("view", "reshape")
def _view(func, nt, *shape):
    shape = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
    if not shape or shape[0] != len(nt._sizes):
        raise RuntimeError(f"{name_of(func)}: For now nested view cannot change or infer the implicit batch dimension")

    def one(part):
        # -1 stands for the size that is there, at its place.
        wanted = [part.shape[i] if s == -1 and i < part.dim() and sum(x == -1 for x in shape[1:]) == 1 and _fits(part, shape[1:], i) else s for i, s in enumerate(shape[1:])]
        return part.reshape(wanted)

    return _each(nt, one)


def _fits(part, shape, at):
    rest = math.prod([s for i, s in enumerate(shape) if i != at])
    return rest * part.shape[at] == part.numel()


@_handles("squeeze")
def _squeeze(func, nt, dim=None):
    if dim is None:
        raise RuntimeError("squeeze(): For nested tensors, squeeze without the dim argument is not supported at the moment; give dim.")
    dims = {_dim_of(nt, d) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    if 0 in dims:
        raise RuntimeError("squeeze(): For nested tensors, squeezing dimension 0 is not supported at the moment.")
    single = [d - 1 for d in dims if all(size[d - 1] == 1 for size in nt._sizes)]
    if single and len(single) == _rank(nt) - 1:
        raise RuntimeError("squeeze(): For nested tensors, squeezing a nested tensor of singleton tensors is not supported at the moment.")
    return _each(nt, lambda p: p.squeeze(single))


@_handles("unsqueeze")
def _unsqueeze(func, nt, dim):
    rank = _rank(nt) + 1
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    dim = dim % rank
    if dim == 0:
        raise RuntimeError("unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported at the moment.")
    return _each(nt, lambda p: p.unsqueeze(dim - 1))


@_handles("chunk", "split", "split_with_sizes")
def _split(func, nt, sizes, dim=0):
    if _dim_of(nt, dim) != _rank(nt) - 1:
        raise RuntimeError(f"{name_of(func)} for nested tensors is currently only supported for the last dimension.")
    return tuple(map(strided_of, zip(*(getattr(p, name_of(func))(sizes, -1) for p in nt._parts()))))


@_handles("cat")
def _cat(func, tensors, dim=0):
    if not all(map(is_strided, tensors)):
        raise RuntimeError("cat: all tensors have to be nested, or none")
    if dim == 0:
        return strided_of([p for nt in tensors for p in nt._parts()])
    dim = _dim_of(tensors[0], dim)
    return strided_of([cresset.cat(parts, dim - 1) for parts in zip(*(nt._parts() for nt in tensors), strict=True)])


@_handles("matmul", "bmm", "__matmul__", "__rmatmul__")
def _matmul(func, a, b):
    if name_of(func) == "__rmatmul__":
        a, b = b, a
    if name_of(func) != "bmm" and not (is_strided(a) and is_strided(b)):
        said = ["nested" if is_strided(x) else "non-nested" for x in (a, b)]
        raise RuntimeError(f"Expected both to be nested, but got a {said[0]} self and {said[1]} other")
    parts = [x._parts() if is_strided(x) else list(x) for x in (a, b)]
    if len(parts[0]) != len(parts[1]):
        raise RuntimeError(f"Expected size for the 1st dimension of batch2 tensor to be: {len(parts[0])} but got: {len(parts[1])}.")
    return strided_of([x @ y for x, y in zip(*parts)])


@_handles("scaled_dot_product_attention")
def _attention(func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    parts = zip(*(x._parts() if is_strided(x) else list(x) for x in (query, key, value)), strict=True)
    return strided_of([F.scaled_dot_product_attention(*qkv, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa) for qkv in parts])


@_handles("multi_head_attention_forward")
def _multi_head(func, query, key, value, *args, **kwargs):
    """Each component is a sequence of its own: (1, length, features) and the results."""
    found = [func(*(part.unsqueeze(1) for part in qkv), *args, **kwargs) for qkv in zip(query._parts(), key._parts(), value._parts(), strict=True)]
    weights = [w.squeeze(0) for _, w in found] if found and found[0][1] is not None else None
    return strided_of([out.squeeze(1) for out, _ in found]), None if weights is None else strided_of(weights)


@_handles("_native_multi_head_attention")
def _native_multi_head(func, query, key, value, *args, mask=None, need_weights=True, **kwargs):
    """As _multi_head; weights come dense, with zeros behind the components. A mask is refused: components have no padding."""
    args = list(args)
    mask, need_weights = args.pop(6) if len(args) > 6 else mask, args.pop(6) if len(args) > 6 else need_weights
    if mask is not None:
        raise RuntimeError("NestedTensor with mask is not supported yet")
    found = [
        func(*(part.unsqueeze(0) for part in qkv), *args[:6], None, need_weights, *args[6:], **kwargs)
        for qkv in zip(query._parts(), key._parts(), value._parts(), strict=True)
    ]
    weights = strided_of([w.squeeze(0) for _, w in found]).to_padded_tensor(0.0) if need_weights else None
    return strided_of([out.squeeze(0) for out, _ in found]), weights


@_handles("_transformer_encoder_layer_fwd")
def _encoder_layer(func, src, *args, **kwargs):
    return strided_of([func(part.unsqueeze(0), *args, **kwargs).squeeze(0) for part in src._parts()])
