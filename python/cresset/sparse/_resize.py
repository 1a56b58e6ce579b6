"""Sizes of sparse tensors that are changed in place, and copies of their parts."""

import cresset

from .. import _C
from .._overridable import overridable

__all__ = [
    "ccol_indices_copy", "col_indices_copy", "crow_indices_copy", "indices_copy", "resize_as_sparse_", "row_indices_copy", "sparse_resize_",
    "sparse_resize_and_clear_", "values_copy",
]  # fmt: skip


def _copy_of(part):
    @overridable
    def copy(input):
        return getattr(input, part)().clone()

    copy.__name__ = copy.__qualname__ = part + "_copy"
    copy.__doc__ = f"A copy of `input.{part}()`; its errors."
    return copy


values_copy, indices_copy, crow_indices_copy, col_indices_copy, ccol_indices_copy, row_indices_copy = map(
    _copy_of, ("values", "indices", "crow_indices", "col_indices", "ccol_indices", "row_indices")
)


def _check_sum(size, sparse_dim, dense_dim):
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )


def _take(tensor, size, indices, values, ordered):
    _C._take_sizes(tensor, cresset.empty(size, device="meta"))
    tensor._i, tensor._v, tensor._ordered = indices, values, ordered
    return tensor


def resize_rows_(self, size):
    """A CSR matrix with more rows and columns, in place: the new ones are empty.

    RuntimeError for another number of dimensions and for fewer columns; NotImplementedError for other layouts, batches and fewer rows.
    """
    size = tuple(size)
    if self.layout is not _C.sparse_csr or self.dim() != 2 or len(size) > 2:
        raise NotImplementedError(
            f"Could not run 'aten::resize_' with arguments from the 'SparseCsrCPU' backend: only CSR matrices without batches change their size, not {self._word()} "
            f"of size {list(self.shape)} to {list(size)}."
        )
    if len(size) < 2:
        raise RuntimeError(f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(size)}")
    rows, columns = self.shape
    if size[1] < columns:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The original number of columns is "
            f"{columns} while the requested new number of columns is {size[1]}."
        )
    if size[0] < rows:
        raise NotImplementedError(f"torch.resize_: a CSR matrix of {rows} rows cannot have {size[0]}. Take a part of it.")
    pointers = cresset.cat([self._p, self._p[-1:].expand(size[0] - rows)])
    _C._take_sizes(self, cresset.empty(size, device="meta"))
    self._p = pointers
    return self


def sparse_resize_(self, size, sparse_dim, dense_dim):
    """Another size in place, where the elements stay. Those of larger dense parts keep their order in memory, as `Tensor.resize_` does, with zeros behind them.

    RuntimeError where elements are there and a dimension would shrink, or the numbers of sparse and dense dimensions change.
    """
    size = tuple(size)
    _check_sum(size, sparse_dim, dense_dim)
    values = self._v
    if self._nnz():
        for kind, now, wanted in (("sparse", self.sparse_dim(), sparse_dim), ("dense", self.dense_dim(), dense_dim)):
            if now != wanted:
                raise RuntimeError(f"changing the number of {kind} dimensions (from {now} to {wanted}) on a non-empty sparse tensor is not supported.")
        for kind, part in (("sparse", slice(sparse_dim)), ("dense", slice(sparse_dim, None))):
            if any(want < have for want, have in zip(size[part], self.shape[part])):
                raise RuntimeError(
                    f"shrinking the size of {kind} dimensions (from {list(self.shape[part])} to {list(size[part])}) on a non-empty sparse tensor is not supported."
                )
        wanted = (values.shape[0], *size[sparse_dim:])
        if wanted != tuple(values.shape):
            resized = values.new_zeros(wanted)
            resized.view(-1)[: values.numel()] = values.reshape(-1)
            values = resized
        return _take(self, size, self._i, values, self._ordered)
    return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)


def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
    """Another size in place, without elements. RuntimeError where the dimensions are not as many as sizes."""
    size = tuple(size)
    _check_sum(size, sparse_dim, dense_dim)
    return _take(self, size, self._i.new_empty((sparse_dim, 0)), self._v.new_empty((0, *size[sparse_dim:])), True)


@overridable
def resize_as_sparse_(self, the_template):
    """sparse_resize_ to the size of another tensor. RuntimeError for tensors that are not in coordinates."""
    if not self.is_sparse:
        raise RuntimeError("resize_as_sparse_: a sparse coordinate tensor was required")
    return sparse_resize_(self, tuple(the_template.shape), the_template.sparse_dim(), the_template.dense_dim())

