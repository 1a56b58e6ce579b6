"""Normalisations, pooling and resampling: operators that leave their first dimensions alone."""

from .._call import Strategy, everywhere
from ..placement_types import Partial, Replicate, Shard
from .pointwise import outputs_like, rule as pointwise_rule
from .registry import batch_word, register, register_word


def _outer(call, shape, normalized):
    return range(len(shape) - len(normalized))


@register("native_layer_norm", "layer_norm", "rms_norm", "_fused_rms_norm", "native_rms_norm")
def layer_norm(call):
    """Along dimensions that are not normalised; weights are whole."""
    spec, rest = call.specs[0], (Replicate(),) * (len(call.specs) - 1)
    found = [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
    found += [Strategy(outputs_like(call, Shard(d)), (Shard(d), *rest)) for d in _outer(call, spec.shape, call.argument("normalized_shape"))]
    return found


def _masked(outputs, mask):
    return tuple(p if m else None for p, m in zip(outputs, mask))


@register("native_layer_norm_backward", "_fused_rms_norm_backward", "native_rms_norm_backward")
def layer_norm_backward(call):
    """Gradients of weights are terms where rows are divided."""
    grad, mask = call.specs[0], call.argument("output_mask") or [True] * len(call.op._schema.returns)
    parameters = {id(call.argument(n)) for n in ("weight", "bias")}
    count = len(mask)
    found = [everywhere(call)._replace(outputs=_masked((Replicate(),) * count, mask))]
    for d in _outer(call, grad.shape, call.argument("normalized_shape")):
        inputs = tuple(Replicate() if id(spec) in parameters else Shard(d) for spec in call.specs)
        found.append(Strategy(_masked((Shard(d), *(Partial(),) * (count - 1)), mask), inputs))
    return found


def _along(call, dims):
    """Along each of these dimensions; further tensors (indices, weights of the same sizes) lie like the first."""
    spec = call.specs[0]
    found = [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
    for d in dims:
        inputs = tuple(Shard(d) if s.ndim == spec.ndim and s.shape[d] == spec.shape[d] else Replicate() for s in call.specs)
        found.append(Strategy(outputs_like(call, Shard(d)), inputs))
    return found


def _images(inner):
    """Operators on images, as pooling: of (N, C, ...) both N and C, of (C, ...) C; `inner` counts C and what is behind it."""

    def rule(call):
        spec = call.specs[0]
        found = _along(call, range(spec.ndim - inner + 1))
        if len(call.specs) == 1 and call.name in _LINEAR:
            found += [Strategy(outputs_like(call, p), (p,)) for p in {p for p in spec.placements if p.is_partial("sum")}]
        return found

    return rule


_LINEAR = {"avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"}
register_word("fold", _images)


@register("grid_sampler_2d", "grid_sampler_2d_backward", "grid_sampler_3d", "grid_sampler_3d_backward", "im2col", "col2im", "fractional_max_pool2d", "fractional_max_pool3d")
def batch_alone(call):
    """Along N: the channels' sizes mean something else in another tensor or in the result."""
    inner = batch_word(call.op)[1]
    if call.specs[0].ndim <= inner:
        return [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
    found = [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
    return found + [Strategy(outputs_like(call, Shard(0)), (Shard(0),) * len(call.specs))]


def _matrices(least):
    """Operators on the last dimensions, as on matrices: what stands before the last `least` is a batch anyway. Without a number: element by element."""
    if least == 0:
        return pointwise_rule

    def rule(call):
        spec = call.specs[0]
        batches = range(spec.ndim - least)
        alike = all(s.ndim >= least and s.shape[: s.ndim - least] == spec.shape[: spec.ndim - least] for s in call.specs)
        found = [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
        return found + [Strategy(outputs_like(call, Shard(d)), (Shard(d),) * len(call.specs)) for d in batches if alike]

    return rule


register_word("leading", _matrices)


@register("constant_pad_nd")
def constant_pad(call):
    """Along dimensions without padding."""
    spec, pad = call.specs[0], call.argument("pad")
    padded = {spec.ndim - 1 - i // 2 for i, p in enumerate(pad) if p}
    return [everywhere(call)] + [Strategy(Shard(d), (Shard(d),)) for d in range(spec.ndim) if d not in padded]


def _group_norm_sizes(op, args, kwargs, call, mesh_dims):
    """group_norm counts its batch in an argument."""
    names = [a.name for a in op._schema.arguments]
    args = list(args)
    place = names.index("N")
    args[place] = args[0].shape[0]
    return op(*args, **kwargs)


@register("native_group_norm")
def group_norm(call):
    """Along the batch."""
    rest = (Replicate(),) * (len(call.specs) - 1)
    found = [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
    return found + [Strategy((Shard(0),) * 3, (Shard(0), *rest), _group_norm_sizes)]


@register("native_group_norm_backward")
def group_norm_backward(call):
    """Along the batch; gradients of weights are terms."""
    mask, weight = call.argument("output_mask"), call.argument("weight")
    inputs = tuple(Replicate() if spec is weight else Shard(0) for spec in call.specs)
    found = [everywhere(call)._replace(outputs=_masked((Replicate(),) * 3, mask))]
    return found + [Strategy(_masked((Shard(0), Partial(), Partial()), mask), inputs, _group_norm_sizes)]


@register("native_batch_norm", "_native_batch_norm_legit", "batch_norm", "_batch_norm_impl_index", "_native_batch_norm_legit_no_training")
def batch_norm(call):
    """Along channels; in evaluation along the batch, too. Statistics of a batch need all of it: SyncBatchNorm's are those of ranks' local tensors."""
    spec = call.specs[0]
    found = [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
    count = len(call.op._schema.returns)
    training = call.argument("training")
    if training is False or "no_training" in call.name:
        outputs = (Shard(0), *(Replicate(),) * (count - 1)) if count > 1 else Shard(0)
        found.append(Strategy(outputs, (Shard(0), *(Replicate(),) * (len(call.specs) - 1))))
    outputs = (Shard(1), *(Shard(0),) * (count - 1)) if count > 1 else Shard(1)
    if spec.ndim > 1 and count == 3:
        found.append(Strategy(outputs, (Shard(1), *(Shard(0),) * (len(call.specs) - 1))))
    return found


@register("native_batch_norm_backward")
def batch_norm_backward(call):
    """Along channels; in evaluation along the batch, too, where gradients of weights are terms."""
    mask, wide = call.argument("output_mask"), {id(call.argument("grad_out")), id(call.argument("input"))}
    found = [everywhere(call)._replace(outputs=_masked((Replicate(),) * 3, mask))]
    inputs = tuple(Shard(1) if id(s) in wide else Shard(0) for s in call.specs)
    found.append(Strategy(_masked((Shard(1), Shard(0), Shard(0)), mask), inputs))
    if call.argument("train") is False:
        inputs = tuple(Shard(0) if id(s) in wide else Replicate() for s in call.specs)
        found.append(Strategy(_masked((Shard(0), Partial(), Partial()), mask), inputs))
    return found


