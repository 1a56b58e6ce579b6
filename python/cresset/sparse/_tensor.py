"""Tensors that keep only some of their elements: coordinates (COO), or compressed rows or columns (CSR, CSC, and blocks BSR, BSC).

They are tensors that see operators below autograd (`__torch_dispatch__`; the rules are in _rules.py). What turns their parts into one another
is differentiable by the functions of _gradients.py.
"""

import copy
import functools

import cresset

from .. import _C
from .._recorded import in_traces, recorded, recording
from ._validate import _COMPRESSED

__all__ = ["Compressed", "Coordinates", "Sparse"]

Tensor = _C.Tensor


class Sparse(Tensor):
    """What all sparse layouts have in common."""

    __torch_function__ = _C._disabled_torch_function_impl
    is_sparse = is_sparse_csr = False

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from ._rules import apply

        return apply(func, args, kwargs or {})

    @classmethod
    def _make(cls, values, size, layout, whole=True):
        # Nobody sees these strides but the accumulation of gradients, which keeps a gradient as it is only where it is contiguous.
        strides = None if whole else (0,) * len(size)
        self = Tensor._make_wrapper_subclass(cls, tuple(size), strides=strides, dtype=values.dtype, device=values.device)
        _C._give_layout(self, layout)
        return self

    def _word(self):
        return "Sparse" if self.is_sparse else "Sparse" + str(self.layout).rpartition("_")[2].capitalize()

    def numpy(self, *, force=False):
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, dtype=None):
        return self.numpy()

    def tolist(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def data_ptr(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def untyped_storage(self):
        raise NotImplementedError(f"Cannot access storage of Sparse{'' if self.is_sparse else 'Csr'}TensorImpl")

    storage = _typed_storage = untyped_storage

    def __setitem__(self, index, value):
        raise TypeError("Cannot assign to a sparse tensor")

    def is_contiguous(self, memory_format=None):
        return False

    def sparse_dim(self):
        """Number of dimensions that indices address: 2 of compressed matrices."""
        return 2

    def dense_dim(self):
        """Number of dimensions of each element."""
        return self.dim() - self.sparse_dim()

    def to_dense(self, dtype=None, *, masked_grad=None):
        """A strided tensor with the same elements. Its gradient is taken where elements are kept, with masked_grad=False everywhere."""
        from ._gradients import ToDense

        dense = ToDense.apply(self, masked_grad is not False)
        return dense if dtype is None else dense.to(dtype)

    def __reduce_ex__(self, protocol):
        return cresset._utils._rebuild_sparse_tensor, (self.layout, self._parts())

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            made = memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
            if self.grad is not None:
                made.grad = copy.deepcopy(self.grad, memo)
        return memo[id(self)]

    def __repr__(self, *, tensor_contents=None):
        from ._text import text

        return text(self)

    __str__ = __repr__

    def __format__(self, spec):
        return object.__format__(self, spec)

    def to_sparse_coo(self):
        """The same in coordinates."""
        return self.to_sparse()


def _alias(values):
    """The values as a view: whoever asks for them writes in the tensor's."""
    return cresset.ops.aten.alias(values)


def _conversion(function):
    """to_sparse, which is two operators."""

    @functools.wraps(function)
    def to_sparse(self, sparse_dim=None, **options):
        if not recording():
            return function(self, sparse_dim, **options)
        return recorded("to_sparse", self, **options) if sparse_dim is None else recorded("to_sparse", self, sparse_dim)

    return to_sparse


def _compressed(sparse, layout, blocksize, dense_dim):
    """to_sparse_csr and its like: to_sparse, but for the name of the node."""
    from ._create import asked_for

    if recording():
        return sparse.to_sparse(layout=layout, blocksize=blocksize, dense_dim=dense_dim)
    return asked_for(sparse, layout, blocksize, None, dense_dim, f"ToSparse{str(layout)[-3:].capitalize()}Backward0")


def _of_layout(name, expected):
    def refuse(self):
        raise RuntimeError(f"{name} expected sparse {expected} compressed tensor layout but got {self._word()}")

    refuse.__name__ = name
    return refuse


class Coordinates(Sparse):
    """A sparse COO tensor: indices (sparse_dim, nnz) of int64, values (nnz, *dense sizes)."""

    is_sparse = True

    def __new__(cls, indices, values, size, coalesced=False):
        self = cls._make(values, size, _C.sparse_coo, indices.is_contiguous() and values.is_contiguous())
        self._i, self._v, self._ordered = indices, values, coalesced or indices.shape[1] < 2
        return self

    @property
    def layout(self):
        return _C.sparse_coo

    def _parts(self):
        return self._i, self._v, self.shape, self._ordered

    def _replace(self, other):
        self._i, self._v, self._ordered = other._i, other._v, other._ordered
        return self

    def sparse_dim(self):
        """Number of dimensions that indices address."""
        return self._i.shape[0]

    def _dimI(self):
        return self._i.shape[0]

    def _dimV(self):
        return self._v.dim() - 1

    def _nnz(self):
        return self._i.shape[1]

    def _indices(self):
        return self._i

    def _values(self):
        return self._v

    def is_coalesced(self):
        """Whether the indices are sorted, each once."""
        return self._ordered

    def _coalesced_(self, coalesced):
        self._ordered = coalesced
        return self

    def indices(self):
        """The indices (sparse_dim, nnz) of a coalesced tensor; RuntimeError for others."""
        if not self._ordered:
            raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
        return self._i

    def values(self):
        """The values (nnz, *dense sizes) of a coalesced tensor, differentiable; RuntimeError for others."""
        from ._gradients import Values

        if not self._ordered:
            raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
        return Values.apply(self) if self.requires_grad else _alias(self._v)

    def coalesce(self):
        """The same with sorted indices, each once; values of one index are added."""
        from ._gradients import Coalesce

        return self if self._ordered else Coalesce.apply(self)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        """The same in another sparse layout (itself without one)."""
        from ._create import asked_for

        return asked_for(self, layout, blocksize, sparse_dim, dense_dim)

    def sparse_resize_(self, size, sparse_dim, dense_dim):
        """Another size in place, where the elements stay; RuntimeError where elements are there and a dimension would shrink or go."""
        from ._resize import sparse_resize_

        return sparse_resize_(self, size, sparse_dim, dense_dim)

    def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
        """Another size in place, without elements. RuntimeError where the dimensions are not as many as sizes."""
        from ._resize import sparse_resize_and_clear_

        return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)

    def resize_as_sparse_(self, the_template):
        """sparse_resize_ to the size of another tensor."""
        from ._resize import resize_as_sparse_

        return resize_as_sparse_(self, the_template)

    crow_indices, col_indices = _of_layout("crow_indices", "row"), _of_layout("col_indices", "row")
    ccol_indices, row_indices = _of_layout("ccol_indices", "column"), _of_layout("row_indices", "column")


class Compressed(Sparse):
    """A sparse CSR, CSC, BSR or BSC matrix (or batch of them): pointers, indices of int64 or int32, and values."""

    is_sparse_csr = property(lambda self: self._layout is _C.sparse_csr)

    def __new__(cls, pointers, others, values, size, layout):
        self = cls._make(values, size, layout)
        self._p, self._o, self._v, self._layout = pointers, others, values, layout
        return self

    @property
    def layout(self):
        return self._layout

    def _parts(self):
        return self._p, self._o, self._v, self.shape

    def _nnz(self):
        return self._o.shape[-1]

    def _indices_of(self, name, field):
        if name not in _COMPRESSED[self._layout]:
            raise RuntimeError(f"{name} expected sparse {'row' if name in ('crow_indices', 'col_indices') else 'column'} compressed tensor layout but got {self._word()}")
        return getattr(self, field)

    def resize_(self, *size, memory_format=None):
        """More rows and columns, in place."""
        from ._resize import resize_rows_

        del memory_format
        return resize_rows_(self, size[0] if len(size) == 1 and not isinstance(size[0], int) else size)

    def crow_indices(self):
        """Where each row begins among the values."""
        return self._indices_of("crow_indices", "_p")

    def col_indices(self):
        """The column of each value."""
        return self._indices_of("col_indices", "_o")

    def ccol_indices(self):
        """Where each column begins among the values."""
        return self._indices_of("ccol_indices", "_p")

    def row_indices(self):
        """The row of each value."""
        return self._indices_of("row_indices", "_o")

    def values(self):
        """The values, differentiable."""
        from ._gradients import Values

        return Values.apply(self) if self.requires_grad else _alias(self._v)

    def coalesce(self):
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {self._word()}")

    def indices(self):
        raise RuntimeError(f"indices expected sparse coordinate tensor layout but got {self._word()}")

    def _batch_rank(self):
        """Number of dimensions before those of the matrices."""
        return self._p.dim() - 1

    def _blocksize(self):
        """The size of a block; None in layouts without blocks."""
        at = self._p.dim()
        return tuple(self._v.shape[at : at + 2]) if _COMPRESSED[self._layout][3] else None

    def _matrices(self):
        """Each matrix of a batch."""
        size, batch = self.shape[self._batch_rank() :], self._batch_rank()
        parts = zip(self._p.flatten(0, -2), self._o.flatten(0, -2), self._v.flatten(0, batch - 1))
        return [Compressed(p, o, v, size, self._layout) for p, o, v in parts]

    def dense_dim(self):
        """Number of dimensions of each element."""
        return self.dim() - self._batch_rank() - 2

    def is_coalesced(self):
        raise RuntimeError(f"is_coalesced expected sparse coordinate tensor layout but got {self._word()}")

    def _with(self, values):
        """The same pattern with other values."""
        return Compressed(self._p, self._o, values, self.shape, self._layout)

    def _coordinates(self):
        """Indices (2, nnz) of elements or blocks, in the order of the values. Matrices only."""
        if self._p.dim() != 1:
            raise NotImplementedError("batches of compressed sparse matrices: only to_dense() and values() know them.")
        lengths = self._p.diff()
        major = cresset.repeat_interleave(cresset.arange(len(lengths)), lengths.long())
        pair = (major, self._o.long())
        return cresset.stack(pair if _COMPRESSED[self._layout][2] else pair[::-1])

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        """The same in another sparse layout: in coordinates without one. int32 indices stay so in compressed layouts."""
        from ._create import asked_for

        return asked_for(self, layout, blocksize, sparse_dim, dense_dim)


for _name, _layout in (("csr", _C.sparse_csr), ("csc", _C.sparse_csc)):
    setattr(Sparse, f"to_sparse_{_name}", lambda self, dense_dim=None, _layout=_layout: _compressed(self, _layout, None, dense_dim))
for _name, _layout in (("bsr", _C.sparse_bsr), ("bsc", _C.sparse_bsc)):
    setattr(Sparse, f"to_sparse_{_name}", lambda self, blocksize, dense_dim=None, _layout=_layout: _compressed(self, _layout, blocksize, dense_dim))
for _class, _names in (
    (Sparse, "to_dense"),
    (Coordinates, "_indices _values indices values coalesce _coalesced_ sparse_resize_ sparse_resize_and_clear_ resize_as_sparse_"),
    (Compressed, "crow_indices col_indices ccol_indices row_indices values"),
):  # fmt: skip
    for _name in _names.split():
        setattr(_class, _name, in_traces(_class.__dict__[_name]))
for _class in (Coordinates, Compressed):
    _class.to_sparse = _conversion(_class.to_sparse)
Sparse._to_dense = Sparse.to_dense
