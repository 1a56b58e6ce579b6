"""Sparse tensors: what is differentiable with sparse gradients, and whether indices are checked.

`sparse_coo_tensor`, `sparse_csr_tensor` and their like make sparse tensors, `Tensor.to_sparse()` turns strided ones into them.
"""

import cresset

from .. import _C
from .._dtype_info import word_of
from .._overridable import overridable
from .._recorded import recorded, recording
from . import _legacy
from ._create import (
    convert, sparse_bsc_tensor, sparse_bsr_tensor, sparse_compressed_tensor, sparse_coo_tensor, sparse_csc_tensor, sparse_csr_tensor, spdiags,
)  # fmt: skip
from .semi_structured import (
    SparseSemiStructuredTensor, SparseSemiStructuredTensorCUSPARSELT, SparseSemiStructuredTensorCUTLASS, to_sparse_semi_structured,
)  # fmt: skip

__all__ = ["SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS", "to_sparse_semi_structured", "addmm",
           "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]  # fmt: skip

Tensor = _C.Tensor
globals().update(_legacy.types())


class check_sparse_tensor_invariants:
    """Whether sparse tensors check every index when they are made: enable(), disable(), is_enabled(); as context and decorator for a while."""

    _enabled = False

    def __init__(self, enable=True):
        self.state, self.saved = enable, None

    @staticmethod
    def is_enabled():
        """Whether indices are checked."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable():
        """Check indices from now on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable():
        """Check no indices from now on."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self):
        if self.saved is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager instance for context nesting.")
        self.saved = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *error):
        check_sparse_tensor_invariants._enabled, self.saved = self.saved, None

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with type(self)(self.state):
                return function(*args, **kwargs)

        return wrapper


def mm(mat1, mat2, reduce=None):
    """The product of two matrices, at least one of them sparse. The gradient of a sparse factor is sparse, at its places.

    reduce: "sum" (the product), or "mean", "amax" or "max", "amin" or "min" of what meets in each row of a CSR matrix mat1.
    """
    from ._gradients import Product, under
    from ._tensor import Coordinates

    if recording():
        return recorded("_sparse_mm", mat1, mat2, *([] if reduce is None else [reduce]))
    if reduce in (None, "sum"):
        both = isinstance(mat1, Coordinates) and isinstance(mat2, Coordinates)
        name = "SparseMmReduceImpl" if reduce else "SparseSparseMatmul" if both else "SparseAddmm"
        return under(Product, name + "Backward0").apply(mat1, mat2)
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    rows, columns = mat1.to_sparse()._indices()
    met = mat1.to_sparse().coalesce().values()[:, None] * mat2[columns]
    index = rows[:, None].expand_as(met)
    return met.new_zeros((mat1.shape[0], mat2.shape[1])).scatter_reduce(0, index, met, {"max": "amax", "min": "amin"}.get(reduce, reduce), include_self=False)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """beta * mat + alpha * (mat1 @ mat2), mat1 sparse, with sparse gradient for mat1. With beta = 0 what mat holds does not count, NaN neither."""
    if recording():
        return recorded("_sparse_addmm", mat, mat1, mat2, beta=beta, alpha=alpha)
    if beta == 0:
        mat = cresset.zeros_like(mat)
    return cresset.add(mat * beta if beta not in (0, 1) else mat, mm(mat1, mat2), alpha=alpha)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """alpha * (mat1 @ mat2) + beta * input where the CSR matrix `input` keeps elements, and nowhere else; batches of matrices one by one, and one
    `input` for all."""
    from ._create import batched, coordinates
    from ._rules import _written

    if out is not None:
        return _written(out, sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha))
    if recording():
        return recorded("sparse_sampled_addmm", input, mat1, mat2, beta=beta, alpha=alpha)
    if mat1.dim() > 2 and input.layout is not _C.sparse_coo:
        batch = mat1.shape[:-2]
        inputs = input._matrices() if input._batch_rank() else [input] * batch.numel()
        factors = zip(inputs, mat1.flatten(0, -3), mat2.flatten(0, -3))
        return batched([sampled_addmm(c, a, b, beta=beta, alpha=alpha) for c, a, b in factors], batch, input.layout)
    rows, columns = (input._coordinates() if input.layout is not _C.sparse_coo else coordinates(input)._i).unbind()
    values = alpha * (mat1[rows] * mat2.t()[columns]).sum(1) + beta * input.values()
    if input.layout is _C.sparse_coo:
        return sparse_coo_tensor(input.indices(), values, input.shape, is_coalesced=True)
    return sparse_compressed_tensor(input._p, input._o, values, input.shape, layout=input.layout)


def sum(input, dim=None, dtype=None):
    """The sum of a sparse tensor, over all elements or the dimensions `dim`, with sparse gradient: strided where no sparse dimension is left."""
    from ._gradients import Sum, under

    if recording():
        dims = [] if dim is None else [[dim] if isinstance(dim, int) else list(dim)]
        return recorded("_sparse_sum", input, *dims, **({} if dtype is None else {"dtype": dtype}))
    input = input if dtype is None else input.to(dtype)
    name = "SumBackward0" if dim is None else "SparseSumBackward0"
    return under(Sum, name).apply(input, None if dim is None else tuple([dim] if isinstance(dim, int) else dim))


def _softmax(input, dim, dtype, logarithm):
    if recording():
        return recorded("_sparse_log_softmax" if logarithm else "_sparse_softmax", input, dim, dtype)
    from ._rules import _dim

    if input.layout is not _C.sparse_coo:
        kind = "CPU" if input.layout is _C.strided else "SparseCsrCPU"
        raise NotImplementedError(
            f"Could not run 'aten::_sparse_{'log_' * logarithm}softmax' with arguments from the '{kind}' backend. torch.softmax takes strided tensors."
        )
    input = input.coalesce() if dtype is None else input.to(dtype).coalesce()
    if not input.is_floating_point():
        raise NotImplementedError(f"\"{'log_' * logarithm}softmax\" not implemented for '{word_of(input.dtype)}'")
    dim, count = _dim(input, dim), input.sparse_dim()
    places, values = input.indices(), input.values()
    function = cresset.log_softmax if logarithm else cresset.softmax
    if dim >= count:
        return sparse_coo_tensor(places, function(values, dim - count + 1), input.shape, is_coalesced=True)
    key = cresset.zeros(places.shape[1], dtype=_C.int64)
    for d in range(count):
        key = key if d == dim else key * input.shape[d] + places[d]
    groups, key = cresset.unique(key, return_inverse=True)
    index = key.view(-1, *[1] * (values.dim() - 1)).expand_as(values)
    start = values.new_zeros((len(groups), *values.shape[1:]))
    largest = start.scatter_reduce(0, index, values.detach(), "amax", include_self=False)
    shifted = values - largest[key]
    total = start.scatter_add(0, index, shifted.exp())[key]
    return sparse_coo_tensor(places, shifted - total.log() if logarithm else shifted.exp() / total, input.shape, is_coalesced=True)


def softmax(input, dim, *, dtype=None):
    """softmax along `dim` of a sparse COO tensor among the elements that it keeps: the others count as minus infinity."""
    return _softmax(input, dim, dtype, False)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of softmax()."""
    return _softmax(input, dim, dtype, True)


def _taken_apart(x):
    """(A strided tensor that holds what x holds, the function that makes a tensor like x of it); for other arguments themselves, and None."""
    if not isinstance(x, Tensor) or x.layout in (_C.strided, _C.jagged):
        return x, None
    whole = x.detach()
    if x.layout is _C._mkldnn:
        return whole.to_dense().requires_grad_(x.requires_grad), Tensor.to_mkldnn
    if x.layout is _C.sparse_coo:
        whole = whole.coalesce()

        def make(values):
            return sparse_coo_tensor(whole.indices(), values, whole.shape, is_coalesced=True)
    else:

        def make(values):
            return sparse_compressed_tensor(whole._p, whole._o, values, whole.shape, layout=whole.layout)

    return whole.values().clone().requires_grad_(x.requires_grad), make


def as_sparse_gradcheck(gradcheck):
    """A gradcheck that also takes functions of sparse tensors and of those of the layout `_mkldnn`: they are checked by their values."""

    def check(func, inputs, **options):
        options.pop("masked", None)
        plain, makers = zip(*map(_taken_apart, inputs if isinstance(inputs, (list, tuple)) else (inputs,)))

        def dense_function(*values):
            results = func(*(v if make is None else make(v) for v, make in zip(values, makers)))
            results = results if isinstance(results, (list, tuple)) else (results,)
            return tuple(r.to_dense() if r.layout is not _C.strided else r for r in results)

        return gradcheck(dense_function, list(plain), **options)

    return check


# --- what the package and the class of tensors call


def mask_of(tensor, mask):
    """Tensor.sparse_mask."""
    from ._gradients import Mask

    if mask.layout is _C.strided:
        if tensor.layout not in (_C.strided, _C.sparse_coo):
            raise RuntimeError("sparse_mask_sparse_compressed expects mask to have sparse compressed layout, got Strided")
        raise NotImplementedError("Could not run 'aten::sparse_mask' with arguments from the 'CPU' backend. The mask has to be sparse: to_sparse() makes it so.")
    if tensor.shape != mask.shape:
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(tensor.shape)} but mask has size {list(mask.shape)}")
    return Mask.apply(tensor, mask.detach())


def _rows(values, rows, count):
    """A sparse tensor with `count` rows of values, in any order: what C++ makes of the gradient of a table."""
    from ._tensor import Coordinates

    return Coordinates(rows.unsqueeze(0), values, (count, values.shape[1]))


def _new(size, dtype, layout, device):
    """A tensor of a sparse layout that keeps no element: zeros and empty of C++."""
    from ._create import new

    return new(size, dtype, layout, device)


def rows_of(weight, indices, padding_idx, scale_grad_by_freq):
    """nn.functional.embedding with sparse gradient."""
    from ._gradients import EmbeddingRows

    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    return EmbeddingRows.apply(weight, indices, padding_idx)


# Scripts call the operators of sparse._operators.
for _function, _operator in (
    (mm, "_sparse_mm"), (addmm, "_sparse_addmm"), (sum, "_sparse_sum"), (softmax, "_sparse_softmax"), (log_softmax, "_sparse_log_softmax"),
    (sampled_addmm, "sparse_sampled_addmm"),
):  # fmt: skip
    _function._script_operator = f"aten::{_operator}"


@overridable
def spmm(mat1, mat2):
    """The product of two matrices, of any layouts."""
    return cresset.mm(mat1, mat2)


dsmm = hsmm = spmm


@overridable
def smm(input, mat2):
    """The product of a sparse and a strided matrix, as a sparse one."""
    if recording():
        return recorded("smm", input, mat2)
    return cresset.mm(input, mat2).to_sparse()


@overridable
def hspmm(mat1, mat2):
    """The product of a sparse COO matrix and a strided one, in coordinates of rows."""
    if recording():
        return recorded("hspmm", mat1, mat2)
    return cresset.mm(mat1, mat2).to_sparse(1)


@overridable
def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * (mat1 @ mat2), with sparse input and mat1, as a sparse tensor."""
    if recording():
        return recorded("sspaddmm", input, mat1, mat2, beta=beta, alpha=alpha)
    return cresset.add(input * beta, cresset.mm(mat1, mat2).to_sparse(), alpha=alpha)


@overridable
def saddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """addmm of matrices of any layouts."""
    return cresset.addmm(input, mat1, mat2, beta=beta, alpha=alpha)
