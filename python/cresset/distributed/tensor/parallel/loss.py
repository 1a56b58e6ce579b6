"""Cross entropy of logits that are divided along the classes: three sums of a number for each target instead of gathering the logits.

log_softmax keeps its division; the loss takes each target's entry from the rank that has it. Targets and weights are whole on every rank.
"""

import contextlib

import cresset

from ... import _functional_collectives as funcol
from .._api import DTensor
from .._dtensor_spec import DTensorSpec, TensorMeta
from .._state import dispatcher
from ..placement_types import Replicate, local_range

__all__ = ["loss_parallel"]

aten = cresset.ops.aten
_MEAN, _SUM = 1, 2


@contextlib.contextmanager
def loss_parallel():
    """A block in which `cross_entropy` on logits that are divided along the classes stays divided; its backward is in such a block, too.

    The mesh has one dimension. RuntimeError or ValueError for logits that are placed otherwise.
    """
    before = dict(dispatcher.handlers)
    dispatcher.handlers.update(_HANDLERS)
    try:
        yield
    finally:
        dispatcher.handlers = before


def _mesh_dim(spec, dim):
    """The mesh dimension along which the classes are divided."""
    if spec.mesh.ndim > 1 and sum(p.is_shard() for p in spec.placements) > 1:
        raise RuntimeError("loss_parallel: the logits must be divided along one mesh dimension.")
    for mesh_dim, placement in enumerate(spec.placements):
        if placement.is_shard(dim):
            return mesh_dim
    raise ValueError(f"loss_parallel() should be enabled only when the input tensor is sharded on exactly one mesh dimension, that of the classes (dimension {dim}); it is placed as {spec}.")


def _class_dim(tensor):
    return 0 if tensor.dim() == 1 else 1


def _reduced(tensor, op, mesh, mesh_dim):
    return funcol.all_reduce(tensor, op, (mesh, mesh_dim)).wait()


def _whole(value, mesh):
    if value is None or not isinstance(value, DTensor):
        return value
    return value.redistribute(mesh, [Replicate()] * mesh.ndim)._local_tensor


def _meta(shape, dtype):
    stride, strides = 1, []
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(1, size)
    return TensorMeta(cresset.Size(shape), tuple(reversed(strides)), dtype)


def _replicated(tensor, mesh):
    return DTensor(tensor, DTensorSpec(mesh, (Replicate(),) * mesh.ndim, TensorMeta(tensor.size(), tensor.stride(), tensor.dtype)), requires_grad=False)


def _log_softmax(x, dim, half_to_float=False):
    spec, local = x._spec, x._local_tensor
    dim %= spec.ndim
    mesh_dim = _mesh_dim(spec, dim)
    local = local.float() if half_to_float else local
    shape = list(local.shape)
    shape[dim] = 1
    top = local.amax(dim, keepdim=True) if local.shape[dim] else local.new_full(shape, float("-inf"))
    shifted = local - _reduced(top, "max", spec.mesh, mesh_dim)
    total = _reduced(shifted.exp().sum(dim, keepdim=True), "sum", spec.mesh, mesh_dim)
    result = shifted - total.log()
    return DTensor(result, DTensorSpec(spec.mesh, spec.placements, _meta(spec.shape, result.dtype)), requires_grad=False)


def _log_softmax_backward(grad, output, dim, input_dtype):
    """The gradient with respect to the logits comes out of nll_loss_backward at once; here it passes."""
    return grad if grad.dtype == input_dtype else grad.to(input_dtype)


def _own(spec, mesh_dim, dim, target):
    """(which targets are of this rank's classes, their places in its part)."""
    coordinate = spec.mesh.get_coordinate()
    count, first = local_range(spec.shape[dim], spec.mesh.shape, [mesh_dim], coordinate)
    own = (target >= first) & (target < first + count)
    return own, cresset.where(own, target - first, cresset.zeros_like(target))


def _weights(weight, target, ignore_index, like):
    safe = cresset.where(target != ignore_index, target, cresset.zeros_like(target))
    picked = weight[safe] if weight is not None else like.new_ones(target.shape)
    return picked * (target != ignore_index)


def _nll_loss(x, target, weight, reduction, ignore_index):
    spec, local, dim = x._spec, x._local_tensor, _class_dim(x)
    mesh, mesh_dim = spec.mesh, _mesh_dim(x._spec, _class_dim(x))
    target, weight = _whole(target, mesh), _whole(weight, mesh)
    own, place = _own(spec, mesh_dim, dim, target)
    if local.shape[dim]:
        picked = -local.gather(dim, place.unsqueeze(dim)).squeeze(dim) * own
    else:
        picked = local.new_zeros(target.shape)
    weights = _weights(weight, target, ignore_index, local)
    losses = _reduced(picked, "sum", mesh, mesh_dim) * weights
    total = weights.sum() if reduction else local.new_zeros(())
    if reduction == _SUM:
        losses = losses.sum()
    elif reduction == _MEAN:
        losses = losses.sum() / total
    return _replicated(losses, mesh), _replicated(total, mesh)


def _nll_loss_backward(grad, x, target, weight, reduction, ignore_index, total_weight):
    """The gradient with respect to the logits: softmax minus one at the target, times weight and gradient."""
    spec, local, dim = x._spec, x._local_tensor, _class_dim(x)
    mesh, mesh_dim = spec.mesh, _mesh_dim(x._spec, _class_dim(x))
    target, weight, grad, total = (_whole(v, mesh) for v in (target, weight, grad, total_weight))
    own, place = _own(spec, mesh_dim, dim, target)
    scale = _weights(weight, target, ignore_index, local) * (grad / total if reduction == _MEAN else grad)
    result = local.exp()
    if local.shape[dim]:
        result.scatter_add_(dim, place.unsqueeze(dim), -own.to(local.dtype).unsqueeze(dim))
    return DTensor(result * scale.unsqueeze(dim), spec, requires_grad=False)


_HANDLERS = {
    aten._log_softmax.default: _log_softmax, aten._log_softmax_backward_data.default: _log_softmax_backward, aten.nll_loss_forward.default: _nll_loss,
    aten.nll_loss2d_forward.default: _nll_loss, aten.nll_loss_backward.default: _nll_loss_backward, aten.nll_loss2d_backward.default: _nll_loss_backward,
}  # fmt: skip
