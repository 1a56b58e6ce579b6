"""Dimensions as objects, and tensors with such dimensions.

A Tensor has its first-class dimensions in front: `_plain` is the tensor of [sizes of `dims`..., positional sizes...].
"""

import math
import sys

import cresset
from cresset import _C
from cresset.utils import _pytree as pytree

from ._names import assigned_names

__all__ = ["Dim", "DimList", "DimensionBindError", "DimensionMismatchError", "Tensor", "aligned", "dimlists", "dims", "over_examples", "plain_of", "position", "union", "wrapped"]


class DimensionBindError(Exception):
    """A dimension has another size, or none."""


class DimensionMismatchError(Exception):
    """Tensors do not fit together."""


def position(dim, among):
    """The place of a dimension among others, by identity: == of dimensions compares their indices. None where it is not there."""
    return next((at for at, d in enumerate(among) if d is dim), None)


def union(tensors):
    """The first-class dimensions of tensors, each once, in the order in which they come."""
    found = []
    for t in tensors:
        found.extend(d for d in t.dims if position(d, found) is None)
    return found


def plain_of(x):
    """(the tensor, its first-class dimensions) of a tensor of either kind."""
    return (x._plain, x.dims) if isinstance(x, _Tensor) else (x, ())


def wrapped(plain, dims):
    """A Tensor, or the plain one where it has no first-class dimension."""
    return Tensor(plain, tuple(dims)) if dims else plain


def aligned(x, dims, positional):
    """The plain tensor with axes for all of `dims` in front, of size 1 where it has them not, and for so many positional ones at the least."""
    plain, own = plain_of(x)
    if not own:
        return plain
    order = [at for d in dims if (at := position(d, own)) is not None]
    count, rest = len(own), plain.dim() - len(own)
    if order != list(range(count)):
        plain = plain.permute(*order, *range(count, plain.dim()))
    if count == len(dims) and rest == positional:
        return plain
    sizes = [d.size if position(d, own) is not None else 1 for d in dims]
    return plain.reshape(*sizes, *([1] * (positional - rest)), *plain.shape[count:])


def over_examples(function, args, kwargs):
    """What a function gives for each combination of indices along the first-class dimensions of its arguments, as tensors that have these."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    dims = union([x for x in leaves if isinstance(x, _Tensor)])
    levels = []
    try:
        for d in dims:
            levels.append(_C._vmap_push(d.size, "different"))
        args, kwargs = pytree.tree_unflatten([_batched(x, dims, levels) for x in leaves], spec)
        return pytree.tree_map_only(cresset.Tensor, lambda t: _taken_off(t, dims, levels), function(*args, **kwargs))
    finally:
        for _ in levels:
            _C._vmap_pop()


def _batched(x, dims, levels):
    if not isinstance(x, _Tensor):
        return x
    plain, own = x._plain, list(x.dims)
    for d, level in zip(dims, levels):
        at = position(d, own)
        if at is not None:
            plain = _C._add_batch_dim(plain, at, level)
            del own[at]
    return plain


def _taken_off(t, dims, levels):
    found = []
    for d, level in zip(reversed(dims), reversed(levels)):
        if _C._is_batched_at(t, level):
            t = _C._remove_batch_dim(t, level, d.size, 0)
            found.append(d)
    return wrapped(t, found[::-1])


class _Tensor:
    """What tensors with first-class dimensions and dimensions have in common: the methods of tensors, which see the positional dimensions alone.
    Those that have no form here, and how functions run, are given by `_functions`."""

    __slots__ = ("__weakref__",)

    ndim = property(lambda self: self._plain.dim() - len(self.dims), doc="The number of positional dimensions.")
    shape = property(lambda self: self._plain.shape[len(self.dims) :], doc="The sizes of the positional dimensions.")
    dtype = property(lambda self: self._plain.dtype, doc="The element type.")
    device = property(lambda self: self._plain.device, doc="The device.")
    requires_grad = property(lambda self: self._plain.requires_grad, doc="Is it recorded for derivatives?")

    def dim(self):
        """The number of positional dimensions."""
        return self.ndim

    def size(self, dim=None):
        """The sizes of the positional dimensions, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self):
        """How many elements there are for each index along the first-class dimensions."""
        return self.shape.numel()

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __bool__(self):
        raise RuntimeError(f"A tensor with the dimensions {', '.join(map(str, self.dims))} is no single truth. Reduce them, or use torch.where.")

    __hash__ = object.__hash__

    def order(self, *dims):
        """The tensor with these as its first positional dimensions: a Dim, a DimList, a number of a positional dimension, or a list of such, which become
        one dimension. Other positional dimensions follow; a plain tensor where no first-class dimension is left. ValueError for a Dim that it does not have."""
        plain, own = self._plain, list(self.dims)
        axes = list(range(plain.dim()))  # those that are not taken yet
        groups = [self._axes_of(d, axes) for one in dims for d in (list(one) if isinstance(one, DimList) else [one])]
        left = [a for a in axes if a is not None]
        kept, rest = [a for a in left if a < len(own)], [a for a in left if a >= len(own)]
        sizes = plain.shape
        ordered = plain.permute(*kept, *(a for g in groups for a in g), *rest)
        if any(len(g) != 1 for g in groups):
            ordered = ordered.reshape(*(sizes[a] for a in kept), *(math.prod(sizes[a] for a in g) for g in groups), *(sizes[a] for a in rest))
        return wrapped(ordered, [own[a] for a in kept])

    def _axes_of(self, dim, axes):
        if isinstance(dim, (list, tuple)):
            return [a for d in dim for e in (list(d) if isinstance(d, DimList) else [d]) for a in self._axes_of(e, axes)]
        if isinstance(dim, Dim):
            at = position(dim, self.dims)
        elif isinstance(dim, int):
            at = dim + (len(axes) if dim < 0 else len(self.dims))
            at = at if len(self.dims) <= at < len(axes) else None
        else:
            raise TypeError(f"order: a Dim, a DimList, a number or a list of these was required; a {type(dim).__name__} was given.")
        if at is None or axes[at] is None:
            raise ValueError(f"tensor does not contain dim {dim} or it was specified twice")
        axes[at] = None
        return [at]

    def __repr__(self):
        names = [*map(str, self.dims), *map(str, range(self.ndim))]
        return f"{self._plain!r}\nwith dims=({', '.join(names)}{',' if len(names) == 1 else ''}) sizes={tuple(self._plain.shape)}"


class Tensor(_Tensor):
    """A tensor some of whose dimensions are Dims: `A[i, j]`. `dims` are these; methods and functions see only the others, and run for each index along them."""

    __slots__ = ("_plain", "dims")

    def __init__(self, plain, dims):
        self._plain, self.dims = plain, dims


class Dim(_Tensor):
    """A dimension. It has a size once it was bound by an index (`A[i]`), or `dim.size = 3`; as a tensor it is the indices 0, 1, … along itself."""

    __slots__ = ("name", "_size", "_indices")

    def __init__(self, name, size=None):
        self.name, self._size, self._indices = name, None, None
        if size is not None:
            self.size = size

    @property
    def size(self):
        """The size; ValueError while it has none."""
        if self._size is None:
            raise ValueError(f"dimension {self.name} is unbound")
        return self._size

    @size.setter
    def size(self, size):
        if self._size is not None and self._size != size:
            raise DimensionBindError(f"Dim '{self.name}' previously bound to a dimension of size {self._size} cannot bind to a dimension of size {size}")
        self._size = int(size)

    @property
    def is_bound(self):
        """Has it a size?"""
        return self._size is not None

    @property
    def dims(self):
        """Itself."""
        return (self,)

    @property
    def _plain(self):
        if self._indices is None:
            self._indices = cresset.arange(self.size)
        return self._indices

    def __repr__(self):
        return self.name

    __str__ = __repr__

    def __format__(self, spec):
        return format(self.name, spec)


class DimList:
    """Several dimensions, whose number may be known later: `A[..., batch, i]` binds a DimList `batch` to all dimensions that no other index takes."""

    def __init__(self, len_or_dims=None, name=None):
        self.name, self._dims = name or "d", None
        if isinstance(len_or_dims, int):
            self.bind_len(len_or_dims)
        elif len_or_dims is not None:
            self._dims = [d if isinstance(d, Dim) else Dim(f"{self.name}{at}", d) for at, d in enumerate(len_or_dims)]

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _Tensor.__torch_function__(func, types, args, kwargs)

    @property
    def is_bound(self):
        """Is the number of dimensions known?"""
        return self._dims is not None

    def _known(self):
        if self._dims is None:
            raise DimensionBindError("DimList not bound")
        return self._dims

    def bind_len(self, size):
        """It has so many dimensions. DimensionBindError where it has another number."""
        if self._dims is None:
            self._dims = [Dim(f"{self.name}{at}") for at in range(size)]
        elif len(self._dims) != size:
            raise DimensionBindError(f"Dimlist has size {len(self._dims)} but it is being bound to size {size}")

    def bind(self, sizes):
        """Its dimensions have these sizes."""
        self.bind_len(len(sizes))
        for dim, size in zip(self._dims, sizes):
            dim.size = size

    def size(self):
        """The number of dimensions."""
        return len(self._known())

    def __len__(self):
        return len(self._known())

    def __getitem__(self, at):
        found = self._known()[at]
        return tuple(found) if isinstance(at, slice) else found

    def __iter__(self):
        return iter(self._known())

    def __repr__(self):
        return f"*{self.name}" if self._dims is None else f"({', '.join(map(str, self._dims))})"


def _made(make, function, n, sizes):
    count, names = assigned_names(sys._getframe(2))
    if sizes is not None:
        if n is not None and n != len(sizes):
            raise ValueError(f"expected {n} sizes but found {len(sizes)}")
        n = len(sizes)
    if n is None:
        if count is None:
            raise SyntaxError(f"{function}() must be assigned to a sequence of variable names or have argument n specified")
        n = count
    elif count != n:
        names = []
    found = tuple(make(names[at] if at < len(names) else f"d{at}", None if sizes is None else sizes[at]) for at in range(n))
    return found[0] if n == 1 else found


def dims(n=None, sizes=None):
    """n new Dims, a tuple, or one for n=1: `i, j = dims()`, `i, j = dims(sizes=[3, None])`. Without n as many as they are assigned to, whose names they have."""
    return _made(Dim, "dims", n, sizes)


def dimlists(n=None, sizes=None):
    """The same of DimLists; a size is the number of dimensions, or a list of their sizes."""
    return _made(lambda name, size: DimList(size, name), "dimlists", n, sizes)
