"""Derivatives of what turns sparse tensors into their parts and back, and of products whose gradient is sparse."""

import functools

import cresset

from .. import _C
from . import _create
from ._create import coalesced, coordinates, matched
from ._tensor import Compressed, Coordinates, Sparse

Function = cresset.autograd.Function


def node(name):
    """Decorator: nodes of the function are called as PyTorch calls those of the operator."""

    def named(function):
        function._backward_cls.__name__ = function._backward_cls.__qualname__ = name
        return function

    return named


@functools.cache
def under(function, name):
    """The function with nodes of another name."""
    return node(name)(type(function)(function.__name__, (function,), {"__doc__": function.__doc__, "__module__": function.__module__}))


def pattern_of(grad, like):
    """A gradient where `like` keeps elements: sparse with its pattern."""
    if isinstance(like, Compressed):
        if isinstance(grad, Compressed) and grad.layout is like.layout and grad._v.shape == like._v.shape:
            return grad
        return like._with(gathered(grad, like))
    return Coordinates(like._i, gathered(grad, like), like.shape, like._ordered)


def gathered(grad, like):
    """The elements of a gradient, dense or sparse, at the places of a sparse tensor's values."""
    if isinstance(like, Compressed):
        if like._batch_rank():
            grad = (_create.dense(grad) if isinstance(grad, Sparse) else grad).expand(like.shape).flatten(0, like._batch_rank() - 1)
            found = [gathered(g, matrix) for g, matrix in zip(grad, like._matrices())]
            return cresset.stack(found).reshape(like._v.shape) if found else cresset.empty_like(like._v)
        if like._blocksize():
            return _blocks(_create.dense(grad) if isinstance(grad, Sparse) else grad.expand(like.shape), like)
        place = like._coordinates()
    else:
        place = like._i
    if isinstance(grad, Sparse):
        if isinstance(grad, Compressed):
            grad = coordinates(grad)
        return matched(grad, place, like.shape)
    if not place.shape[0]:  # no dimension that indices address
        return grad.expand(like.shape).expand(place.shape[1], *like.shape)
    return grad.expand(like.shape)[tuple(place)]


def _blocks(grad, like):
    place, (height, width) = like._coordinates(), like._blocksize()
    rows = place[0][:, None] * height + cresset.arange(height)
    columns = place[1][:, None] * width + cresset.arange(width)
    return grad[rows[:, :, None], columns[:, None, :]]


@node("SparseCompressedTensorBackward0")
class FromParts(Function):
    """Values to a sparse tensor."""

    @staticmethod
    def forward(ctx, place, values, size, ordered):
        values = values.detach()
        made = Coordinates(place, values, size, ordered) if isinstance(place, _C.Tensor) else Compressed(*place[:2], values, size, place[2])
        ctx.like = made.detach()
        return made

    @staticmethod
    def backward(ctx, grad):
        return None, gathered(grad, ctx.like), None, None


@node("ValuesBackward0")
class Values(Function):
    """A sparse tensor to its values."""

    @staticmethod
    def forward(ctx, sparse):
        ctx.like = sparse.detach()
        return sparse._v.view_as(sparse._v)

    @staticmethod
    def backward(ctx, grad):
        like = ctx.like
        return like._with(grad) if isinstance(like, Compressed) else Coordinates(like._i, grad, like.shape, like._ordered)


@node("CoalesceBackward0")
class Coalesce(Function):
    @staticmethod
    def forward(ctx, sparse):
        return coalesced(sparse)

    @staticmethod
    def backward(ctx, grad):
        return grad


@node("ToDenseBackward0")
class ToDense(Function):
    @staticmethod
    def forward(ctx, sparse, masked):
        ctx.like, ctx.masked = sparse.detach(), masked
        return _create.dense(sparse)

    @staticmethod
    def backward(ctx, grad):
        return pattern_of(grad, coalesced(ctx.like) if isinstance(ctx.like, Coordinates) else ctx.like) if ctx.masked else grad, None


@node("ToSparseBackward1")
class Convert(Function):
    """A strided or sparse tensor to another layout."""

    @staticmethod
    def forward(ctx, tensor, layout, blocksize, sparse_dim, dense_dim):
        ctx.layout = tensor.layout
        ctx.blocksize = tensor._blocksize() if isinstance(tensor, Compressed) else None
        return _create.converted(tensor, layout, blocksize, sparse_dim, dense_dim)

    @staticmethod
    def backward(ctx, grad):
        if grad.layout is not ctx.layout:
            grad = _create.converted(grad, ctx.layout, ctx.blocksize)
        return grad, None, None, None, None


@node("SparseMaskBackward0")
class Mask(Function):
    """A strided tensor to a sparse one with the places of another."""

    @staticmethod
    def forward(ctx, tensor, mask):
        return pattern_of(tensor, mask)

    @staticmethod
    def backward(ctx, grad):
        return _create.dense(grad) if isinstance(grad, Sparse) else grad, None


@node("SparseAddmmBackward0")
class Product(Function):
    """sparse.mm: the gradient of a sparse factor is sparse, at its places."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return cresset.mm(a.detach(), b.detach())

    @staticmethod
    def backward(ctx, grad):
        a, b = (factor.detach() for factor in ctx.saved_tensors)
        return product_gradient(ctx.needs_input_grad[0], a, lambda: grad @ b.t().conj(), grad, b), _second(ctx, grad, a, b)


def product_gradient(needed, sparse, whole, grad, other):
    """grad @ other^H where `sparse` keeps elements; only those are computed where both factors are strided."""
    if not needed:
        return None
    if not isinstance(sparse, Sparse):
        result = whole()
        return _create.dense(result) if isinstance(result, Sparse) else result
    if isinstance(grad, Sparse) or isinstance(other, Sparse) or not isinstance(sparse, Coordinates) or sparse.dense_dim():
        return pattern_of(whole(), coalesced(sparse) if isinstance(sparse, Coordinates) else sparse)
    sparse = coalesced(sparse)
    rows, columns = sparse._i
    return Coordinates(sparse._i, (grad[rows] * other[columns].conj()).sum(1), sparse.shape, True)


def _second(ctx, grad, a, b):
    if not ctx.needs_input_grad[1]:
        return None
    result = a.t().conj() @ grad
    if isinstance(b, Sparse):
        return pattern_of(result, coalesced(b) if isinstance(b, Coordinates) else b)
    return _create.dense(result) if isinstance(result, Sparse) else result


@node("SparseSumBackward0")
class Sum(Function):
    """sparse.sum: the gradient is sparse, at the places of the input."""

    @staticmethod
    def forward(ctx, sparse, dims):
        ctx.like, ctx.dims = sparse.detach(), dims
        return cresset.sum(ctx.like) if not dims else cresset.sum(ctx.like, dims)

    @staticmethod
    def backward(ctx, grad):
        grad = _create.dense(grad) if isinstance(grad, Sparse) else grad
        for dim in sorted(d % ctx.like.dim() for d in ctx.dims or ()):
            grad = grad.unsqueeze(dim)
        return pattern_of(grad, coalesced(ctx.like) if isinstance(ctx.like, Coordinates) else ctx.like), None


@node("EmbeddingBackward0")
class EmbeddingRows(Function):
    """Rows of a table, whose gradient is sparse: the rows that were taken."""

    @staticmethod
    def forward(ctx, weight, indices, padding_idx):
        ctx.save_for_backward(indices)
        ctx.size, ctx.padding = weight.shape, padding_idx
        return cresset.embedding(weight.detach(), indices, padding_idx)

    @staticmethod
    def backward(ctx, grad):
        # The gradient may outlive the indices as they are now: places of its own.
        rows = ctx.saved_tensors[0].reshape(1, -1).to(cresset.int64, copy=True)
        grad = grad.reshape(rows.shape[1], ctx.size[1])
        if ctx.padding >= 0:
            kept = (rows[0] != ctx.padding).nonzero()[:, 0]
            rows, grad = rows[:, kept], grad[kept]
        return Coordinates(rows, grad, ctx.size), None, None
