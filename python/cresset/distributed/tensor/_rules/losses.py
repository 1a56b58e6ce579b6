"""Losses: pointwise without a reduction; terms of a sum with one. A mean of parts counts by how many elements each has."""

from .._call import Strategy, everywhere
from ..placement_types import Partial, Replicate, Shard
from .pointwise import broadcast_shape, followed_dims, rule as pointwise_rule, shard_of
from .registry import register

_NONE, _MEAN, _SUM = 0, 1, 2
_POINTWISE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "soft_margin_loss", "binary_cross_entropy_with_logits", "kl_div")


def _with_sum(op, args, kwargs):
    """The call with the reduction "sum"."""
    names = [a.name for a in op._schema.arguments]
    place = names.index("reduction")
    args = list(args)
    if place < len(args):
        args[place] = _SUM
    else:
        kwargs = kwargs | {"reduction": _SUM}
    return op(*args, **kwargs)


def mean_of_parts(op, args, kwargs, call, mesh_dims):
    """This rank's term of a mean: the sum of its part by the number of all elements."""
    shape = broadcast_shape([s.shape for s in call.specs[:2]])
    return _with_sum(op, args, kwargs) / _count(shape)


def _count(shape):
    count = 1
    for size in shape:
        count *= size
    return count


@register(*_POINTWISE)
def loss(call):
    """Losses of pairs of elements."""
    reduction = call.argument("reduction")
    if reduction == _NONE:
        return pointwise_rule(call)
    shape = broadcast_shape([s.shape for s in call.specs[:2]])
    found = [everywhere(call)]
    for d in followed_dims(call, shape):
        inputs = tuple(shard_of(s.shape, shape, d) for s in call.specs)
        found.append(Strategy(Partial(), inputs, mean_of_parts if reduction == _MEAN else None))
    return found


def backward_of_parts(op, args, kwargs, call, mesh_dims):
    """The gradient of a mean divides by the number of all elements, not by this rank's."""
    args = list(args)
    local = _count(broadcast_shape([a.shape for a in args[1:3]]))
    args[0] = args[0] * (local / max(1, _count(broadcast_shape([s.shape for s in call.specs[1:3]]))))
    return op(*args, **kwargs)


@register(*[f"{name}_backward" for name in _POINTWISE])
def loss_backward(call):
    """Gradients of losses of pairs of elements."""
    reduction = call.argument("reduction")
    if reduction == _NONE:
        return pointwise_rule(call)
    shape = broadcast_shape([s.shape for s in call.specs[1:3]])
    found = [everywhere(call)]
    for d in followed_dims(call, shape):
        inputs = (Replicate(), *(shard_of(s.shape, shape, d) for s in call.specs[1:]))
        found.append(Strategy(Shard(d), inputs, backward_of_parts if reduction == _MEAN else None))
    return found


def _class_dim(spec):
    return 0 if spec.ndim == 1 else 1


def _target_shard(dim, class_dim):
    return Shard(dim - (dim > class_dim))


def nll_of_parts(op, args, kwargs, call, mesh_dims):
    """(term of the loss, weight of all targets): a mean divides by the weights of all ranks' targets."""
    from ... import _collectives

    reduction = call.argument("reduction")
    loss_sum, weight = _with_sum(op, args, kwargs)
    weight = weight.clone()
    for mesh_dim in mesh_dims:
        _collectives.all_reduce(weight, group=call.mesh.get_group(mesh_dim))
    return (loss_sum / weight if reduction == _MEAN else loss_sum), weight


@register("nll_loss_forward", "nll_loss2d_forward")
def nll_loss(call):
    """Along other dimensions than the classes."""
    spec, classes = call.specs[0], _class_dim(call.specs[0])
    reduction, rest = call.argument("reduction"), (Replicate(),) * (len(call.specs) - 2)
    found = [everywhere(call)._replace(outputs=(Replicate(), Replicate()))]
    for d in range(spec.ndim):
        if d != classes:
            target = _target_shard(d, classes)
            if reduction == _NONE:
                found.append(Strategy((target, Replicate()), (Shard(d), target, *rest)))
            else:
                found.append(Strategy((Partial(), Replicate()), (Shard(d), target, *rest), nll_of_parts))
    return found


@register("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(call):
    """Along other dimensions than the classes; `total_weight` is that of all targets."""
    spec, classes = call.specs[1], _class_dim(call.specs[1])
    rest = (Replicate(),) * (len(call.specs) - 3)
    found = [everywhere(call)]
    for d in range(spec.ndim):
        if d != classes:
            target = _target_shard(d, classes)
            grad = target if call.argument("reduction") == _NONE else Replicate()
            found.append(Strategy(Shard(d), (grad, Shard(d), target, *rest)))
    return found


