"""Functions of tensors with first-class dimensions."""

import functools

import cresset

from ._indexing import get_item, set_item
from ._tensors import Dim, DimensionBindError, DimList, Tensor, _Tensor, aligned, over_examples, plain_of, position, union, wrapped

__all__ = ["call", "cat", "index", "softmax", "split", "stack"]

# Functions along dimensions: (place of the dimension among the arguments, whether the dimension stays, the place of keepdim).
_ALONG = {
    **{name: (1, False, 2) for name in (
        "sum mean nansum nanmean prod amax amin all any argmax argmin max min median nanmedian mode logsumexp count_nonzero".split())},
    **{name: (1, False, 3) for name in ("std", "var", "std_mean", "var_mean")}, "norm": (2, False, 3), "kthvalue": (2, False, 3),
    **{name: (1, True, None) for name in "cumsum cumprod cummax cummin logcumsumexp softmax log_softmax softmin sort argsort flip".split()},
}  # fmt: skip


@functools.cache
def _is_pointwise(name):
    """Does a function of this name work on each element alone? Its tensors are only put side by side then."""
    names = [name, name.strip("_")] if name.startswith("__") else [] if name.endswith("_") else [name]
    packets = [p for n in names if n and isinstance(p := getattr(cresset.ops.aten, n, None), cresset._ops.OpOverloadPacket)]
    forms = [getattr(p, overload) for p in packets for overload in p.overloads() if not overload.endswith("out")]
    return bool(forms) and all(cresset.Tag.pointwise in form.tags for form in forms)  # `max` of one tensor is none, and one of two is


def call(func, args, kwargs):
    """What a function of tensors gives for arguments among which are tensors with first-class dimensions, Dims or DimLists."""
    name = getattr(func, "__name__", "")
    if name == "__getitem__":
        return get_item(*args)
    if name == "__setitem__":
        return set_item(*args)
    if name in _ALONG:
        found = _along(func, name, list(args), dict(kwargs))
        if found is not NotImplemented:
            return found
    if not kwargs and _only_tensors_and_numbers(args) and _is_pointwise(name):
        return _pointwise(func, args)
    special = _SPECIAL.get(name)
    if special is not None:
        found = special(func, *args, **kwargs)
        if found is not NotImplemented:
            return found
    return over_examples(func, args, kwargs)


def _only_tensors_and_numbers(args):
    return all(isinstance(a, (_Tensor, cresset.Tensor, int, float, bool, complex)) for a in args)


def _pointwise(func, args):
    dims = union([a for a in args if isinstance(a, _Tensor)])
    positional = max(a.ndim for a in args if isinstance(a, (_Tensor, cresset.Tensor)))
    plain = [aligned(a, dims, positional) if isinstance(a, _Tensor) else a for a in args]
    return wrapped(func(*plain), dims)


def _dims_of(value):
    """The dimensions that an argument names, as a list, or None where none of them is first-class."""
    entries = list(value) if isinstance(value, (list, tuple)) else [value]
    return entries if any(isinstance(d, Dim) for d in entries) else None


def _axis(x, dim):
    """The axis of the plain tensor."""
    plain, own = plain_of(x)
    if isinstance(dim, Dim):
        at = position(dim, own)
        if at is None:
            names = [*map(str, own), *map(str, range(len(own) - plain.dim(), 0))]
            raise ValueError(f"Tensor with dimensions {names} does not contain {dim}")
        return at
    return dim if dim < 0 else dim + len(own)


def _along(func, name, args, kwargs):
    at, stays, keep = _ALONG[name]
    dim = args[at] if at < len(args) else kwargs.get("dim")
    entries = _dims_of(dim)
    if entries is None:
        return NotImplemented
    x = args[0] if args else kwargs.pop("input")
    plain, own = plain_of(x)
    if keep is not None and (kwargs.get("keepdim") or keep < len(args) and args[keep] is True):
        raise ValueError("cannot preserve first-class dimensions with keepdim=True")
    axes = [_axis(x, d) for d in entries]
    axes = axes if isinstance(dim, (list, tuple)) else axes[0]
    rest = [plain, *args[1:]]
    if at < len(args):
        rest[at] = axes
    else:
        kwargs["dim"] = axes
    gone = [] if stays else entries
    left = [d for d in own if position(d, gone) is None]
    return _mapped(func(*rest, **kwargs), lambda t: wrapped(t, left))


def _mapped(result, change):
    if isinstance(result, cresset.Tensor):
        return change(result)
    values = [change(t) for t in result]
    return type(result)(*values) if hasattr(result, "_fields") else type(result)(values)


def _expand(func, x, *sizes):
    sizes = [e for s in sizes for e in (s if isinstance(s, (list, tuple, DimList)) else [s])]
    new = [s for s in sizes if isinstance(s, Dim)]
    if not new:
        return NotImplemented
    numbers = [s for s in sizes if not isinstance(s, Dim)]
    if numbers:
        x = over_examples(func, (x, *numbers), {})
    plain, own = plain_of(x)
    for d in new:
        if position(d, own) is not None:
            raise ValueError(f"expanding dimension {d} already exists in tensor with dims")
    return wrapped(plain.expand(*(d.size for d in new), *plain.shape), (*new, *own))


def _split(func, x, split_size_or_sections, dim=0):
    sections = split_size_or_sections
    if not isinstance(sections, (list, tuple)) or not any(isinstance(d, Dim) for d in sections):
        if isinstance(dim, Dim):
            raise TypeError("when dim is specified as a Dim object, split sizes must also be dimensions.")
        return NotImplemented
    plain, own = plain_of(x)
    axis = _axis(x, dim) % plain.dim()
    total = plain.shape[axis]
    left = total - sum(d.size for d in sections if d.is_bound)
    unknown = [d for d in sections if not d.is_bound]
    each = -(-left // len(unknown)) if unknown else 0
    for d in unknown:
        d.size = max(0, min(each, left))
        left -= d.size
    if left:
        raise DimensionBindError(f"result dimensions do not add up to the size {total} of the dimension that is split: {[d.size for d in sections]}")
    kept = [d for d in own if d is not dim]
    pieces, start = [], 0
    for d in sections:
        piece = plain.narrow(axis, start, d.size)
        pieces.append(wrapped(piece.movedim(axis, 0), (d, *kept)))
        start += d.size
    return tuple(pieces)


def _renorm(func, x, p, dim, maxnorm):
    if not isinstance(dim, Dim):
        return NotImplemented
    return get_item(over_examples(func, (x.order(dim), p, 0, maxnorm), {}), dim)


_SPECIAL = {"expand": _expand, "split": _split, "renorm": _renorm}


def split(tensor, split_size_or_sections, dim=0):
    """The tensor in pieces along a dimension, a Dim or a number. Where the sizes are Dims, each is the dimension of its piece in place of that; those without a
    size share what is left."""
    found = _split(None, tensor, split_size_or_sections, dim)
    return over_examples(cresset.Tensor.split, (tensor, split_size_or_sections, dim), {}) if found is NotImplemented else found


def index(self, positions, dims):
    """The tensor with what stands at a position (a Dim, or a number of a positional dimension) replaced by what `dims` says, as in an index; a tuple of positions
    for one of `dims` is one dimension made of them, tuples of the same length are pairs. The method of plain tensors, too."""
    pairs = isinstance(positions, (list, tuple)) and isinstance(dims, (list, tuple)) and len(positions) == len(dims)
    plain, own = plain_of(self)
    places = [_numbers(p, plain.dim() - len(own)) for p in (positions if pairs else [positions])]
    ordered = (self if isinstance(self, _Tensor) else Tensor(self, ())).order(*places)
    return get_item(ordered, tuple(dims) if pairs else (dims,))


def _numbers(place, count):
    """Numbers of positional dimensions counted from the front."""
    if isinstance(place, (list, tuple)):
        return tuple(_numbers(p, count) for p in place)
    return place + count if isinstance(place, int) and place < 0 else place


def _together(tensors, dims, last):
    """The plain tensors with all of `dims` in front, each of its size, then those of `last`, then the positional ones."""
    positional = max(t.ndim for t in tensors)
    found = []
    for t in tensors:
        plain = aligned(t, [*dims, *last], positional)
        found.append(plain.expand(*(d.size for d in dims), *plain.shape[len(dims) :]))
    return found


def cat(tensors, dim, new_dim):
    """The tensors one behind the other along the first-class dimension `dim`; the result has `new_dim` in its place."""
    tensors = list(tensors)
    dims = [d for d in union(tensors) if d is not dim]
    found = cresset.cat(_together(tensors, dims, [dim]), len(dims))
    new_dim.size = found.shape[len(dims)]
    return wrapped(found, (*dims, new_dim))


def stack(tensors, new_dim, dim=0):
    """The tensors along a new first-class dimension. `dim`, the place of the new dimension, changes nothing: first-class dimensions have no order."""
    del dim
    tensors = [t if isinstance(t, _Tensor) else Tensor(t, ()) for t in tensors]
    new_dim.size = len(tensors)
    dims = union(tensors)
    return wrapped(cresset.stack(_together(tensors, dims, []), 0), (new_dim, *dims))


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """nn.functional.softmax along a number or a Dim."""
    return cresset.nn.functional.softmax(input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)


def _method(name, function):
    def method(self, *args, **kwargs):
        return call(function, (self, *args), kwargs)

    method.__name__, method.__doc__ = name, function.__doc__
    return method


def _attribute(name, descriptor):
    def get(self):
        return over_examples(lambda t: getattr(t, name), (self,), {})

    return property(get, doc=getattr(descriptor, "__doc__", None))


_OPERATORS = (
    "abs add and div eq floordiv ge getitem gt iadd iand ifloordiv ilshift imod imul invert ior ipow irshift isub itruediv ixor le lshift lt matmul mod mul ne "
    "neg or pos pow radd rand rdiv rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rshift rsub rtruediv rxor setitem sub truediv xor"
).split()


def _torch_function(cls, func, types, args=(), kwargs=None):
    return call(func, args, kwargs or {})


_Tensor.__torch_function__, _Tensor.index = classmethod(_torch_function), index


def _give_methods():
    """All methods and attributes of tensors that have no form of their own."""
    names = [*(n for n in dir(cresset.Tensor) if not n.startswith("__")), *(f"__{n}__" for n in _OPERATORS)]
    for name in names:
        function = getattr(cresset.Tensor, name, None)
        if any(name in vars(c) for c in (_Tensor, Tensor, Dim)) or function is None:
            continue
        setattr(_Tensor, name, _method(name, function) if callable(function) else _attribute(name, function))


_give_methods()
