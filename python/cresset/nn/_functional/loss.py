"""Loss functions. `reduction` is "mean", "sum" or "none"; `size_average` and `reduce` are its old spelling."""

import math
import warnings

import cresset
from cresset._C import _nn

from ._common import handle, overrides, reduced, reduction_code

__all__ = [
    "nll_loss", "cross_entropy", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "gaussian_nll_loss", "margin_ranking_loss",
    "hinge_embedding_loss", "cosine_embedding_loss", "soft_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "multi_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss", "ctc_loss",
    "linear_cross_entropy",
]  # fmt: skip


def _broadcast_pair(input, target):
    """The two tensors at one shape, with a warning when they had different ones."""
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely lead to "
        "incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=3,
    )
    shape = cresset.broadcast_shapes(tuple(input.size()), tuple(target.size()))
    return input.expand(shape), target.expand(shape)


def _weighted(loss, weight, input, code):
    """An unreduced loss, weighted; its mean is the weighted mean."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if code == 1:
        return loss.sum() / weight.sum()
    return reduced(loss, code)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Negative log likelihood of the classes `target` under the log-probabilities `input` (N, C, ...) or (C,)."""
    if overrides((input, target, weight)):
        return handle(
            nll_loss, (input, target, weight), input, target, weight=weight, size_average=size_average,
            ignore_index=ignore_index, reduce=reduce, reduction=reduction,
        )  # fmt: skip
    return _nn.nll_loss_nd(input, target, weight, reduction_code(reduction, size_average, reduce), ignore_index)


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """Cross entropy of the logits `input` (N, C, ...) or (C,) against class indices, or probabilities of input's shape."""
    if overrides((input, target, weight)):
        return handle(
            cross_entropy, (input, target, weight), input, target, weight=weight, size_average=size_average,
            ignore_index=ignore_index, reduce=reduce, reduction=reduction, label_smoothing=label_smoothing,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    return _nn.cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Squared difference."""
    if overrides((input, target, weight)):
        return handle(
            mse_loss, (input, target, weight), input, target, size_average=size_average, reduce=reduce, reduction=reduction,
            weight=weight,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    input_, target = _broadcast_pair(input, target)
    if weight is not None:
        return _weighted(_nn.mse_loss(input_, target, 0), weight, input, code)
    return _nn.mse_loss(input_, target, code)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Absolute difference."""
    if overrides((input, target, weight)):
        return handle(
            l1_loss, (input, target, weight), input, target, size_average=size_average, reduce=reduce, reduction=reduction,
            weight=weight,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    input_, target = _broadcast_pair(input, target)
    if weight is not None:
        return _weighted(_nn.l1_loss(input_, target, 0), weight, input, code)
    return _nn.l1_loss(input_, target, code)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Squared below `beta`, linear above; beta 0 is the absolute difference."""
    if overrides((input, target)):
        return handle(
            smooth_l1_loss,
            (input, target),
            input,
            target,
            size_average=size_average,
            reduce=reduce,
            reduction=reduction,
            beta=beta,
        )
    code = reduction_code(reduction, size_average, reduce)
    input, target = _broadcast_pair(input, target)
    if beta == 0.0:
        return _nn.l1_loss(input, target, code)
    return _nn.smooth_l1_loss(input, target, code, beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Squared below `delta`, linear above."""
    if overrides((input, target, weight)):
        return handle(
            huber_loss, (input, target, weight), input, target, reduction=reduction, delta=delta, weight=weight
        )
    code = reduction_code(reduction)
    input_, target = _broadcast_pair(input, target)
    if weight is not None:
        return _weighted(_nn.huber_loss(input_, target, 0, delta), weight, input, code)
    return _nn.huber_loss(input_, target, code, delta)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Cross entropy of the probabilities `input` against targets in [0, 1] of the same shape."""
    if overrides((input, target, weight)):
        return handle(
            binary_cross_entropy, (input, target, weight), input, target, weight=weight, size_average=size_average, reduce=reduce,
            reduction=reduction,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(cresset.broadcast_shapes(tuple(target.size()), tuple(weight.size())))
    return _nn.binary_cross_entropy(input, target, weight, code)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Binary cross entropy of sigmoid(input), computed stably."""
    if overrides((input, target, weight, pos_weight)):
        return handle(
            binary_cross_entropy_with_logits, (input, target, weight, pos_weight), input, target, weight=weight,
            size_average=size_average, reduce=reduce, reduction=reduction, pos_weight=pos_weight,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return cresset.binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target (log target - input), where `input` holds log-probabilities; "batchmean" divides the sum by the batch size."""
    if overrides((input, target)):
        return handle(
            kl_div, (input, target), input, target, size_average=size_average, reduce=reduce, reduction=reduction,
            log_target=log_target,
        )  # fmt: skip
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = cresset.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() != 0 else total
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides only by the "
            "batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    return cresset.kl_div(input, target, reduction_code(reduction, size_average, reduce), log_target=log_target)


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """Negative log likelihood of counts `target` under Poisson; `input` is the log of the rate unless `log_input=False`."""
    if overrides((input, target)):
        return handle(
            poisson_nll_loss, (input, target), input, target, log_input=log_input, full=full, size_average=size_average, eps=eps,
            reduce=reduce, reduction=reduction,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    return cresset.poisson_nll_loss(input, target, log_input, full, eps, code)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log likelihood of `target` under normal distributions of mean `input` and variance `var` (at least `eps`)."""
    if overrides((input, target, var)):
        return handle(
            gaussian_nll_loss, (input, target, var), input, target, var, full=full, eps=eps, reduction=reduction
        )
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * cresset.ones_like(input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)  # one variance for all of the last dimension
        elif input.dim() != var.dim() or any(v not in (n, 1) for n, v in zip(input.size(), var.size())):
            raise ValueError("var is of incorrect size")
    code = reduction_code(reduction)
    var = var.clone()
    with cresset.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, code)


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target (input1 - input2) + margin), target being 1 or -1."""
    if overrides((input1, input2, target)):
        return handle(
            margin_ranking_loss, (input1, input2, target), input1, input2, target, margin=margin, size_average=size_average,
            reduce=reduce, reduction=reduction,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()}"
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), code)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """`input` where target is 1, max(0, margin - input) where it is -1."""
    if overrides((input, target)):
        return handle(
            hinge_embedding_loss, (input, target), input, target, margin=margin, size_average=size_average, reduce=reduce,
            reduction=reduction,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    zeros = cresset.zeros_like(input)
    negative = cresset.where(target != 1, (margin - input).clamp_min(0), zeros)
    positive = cresset.where(target != -1, input, zeros)
    return reduced(negative + positive, code)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1; inputs (N, D) or (D,)."""
    if overrides((input1, input2, target)):
        return handle(
            cosine_embedding_loss, (input1, input2, target), input1, input2, target, margin=margin, size_average=size_average,
            reduce=reduce, reduction=reduction,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    if target.dim() not in (0, 1):
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported; got {target.dim()}D")
    if input1.dim() != target.dim() + 1 or input2.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes "
            f"{input1.size()} and {input2.size()}."
        )
    eps = 1e-12
    dot = (input1 * input2).sum(-1)
    cos = dot / (((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)).sqrt()
    zeros = cresset.zeros_like(cos)
    positive = cresset.where(target == 1, 1 - cos, zeros)
    negative = cresset.where(target == -1, (cos - margin).clamp_min(0), zeros)
    return reduced(positive + negative, code)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target input)), target being 1 or -1."""
    if overrides((input, target)):
        return handle(
            soft_margin_loss,
            (input, target),
            input,
            target,
            size_average=size_average,
            reduce=reduce,
            reduction=reduction,
        )
    return _nn.soft_margin_loss(input, target, reduction_code(reduction, size_average, reduce))


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Multi-label hinge loss; `target` (N, C) lists class indices, ended by -1."""
    if overrides((input, target)):
        return handle(
            multilabel_margin_loss,
            (input, target),
            input,
            target,
            size_average=size_average,
            reduce=reduce,
            reduction=reduction,
        )
    code = reduction_code(reduction, size_average, reduce)
    samples, classes = _samples_and_classes(input)
    fits = target.shape == input.shape if input.dim() == 2 else target.dim() <= 1 and target.numel() == classes
    if not fits:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    _check_class_type(target)
    x, y = input.reshape(samples, classes), target.reshape(samples, classes)
    valid = (y >= 0).to(x.dtype).cumprod(1)  # up to the first negative entry
    y = y.clamp(min=0)
    others = cresset.zeros_like(x).scatter_add(1, y, valid) == 0
    pairs = (1 - x.gather(1, y).unsqueeze(2) + x.unsqueeze(1)).clamp_min(0)
    loss = (pairs * valid.unsqueeze(2) * others.unsqueeze(1)).sum((1, 2)) / classes
    return reduced(loss if input.dim() == 2 else loss.squeeze(0), code)


def _samples_and_classes(input):
    """N and C of scores (N, C), (C) or (); N may be 0, C may not."""
    shape = input.shape
    if input.dim() > 2 or (input.dim() > 0 and shape[-1] == 0):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}")
    return (shape[0] if input.dim() == 2 else 1), (shape[-1] if input.dim() else 1)


def _check_class_type(target):
    if target.dtype != cresset.int64:
        raise RuntimeError(f"expected scalar type Long but found {str(target.dtype).rpartition('.')[2]}")


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Mean over the classes of the binary cross entropy of sigmoid(input)."""
    if overrides((input, target, weight)):
        return handle(
            multilabel_soft_margin_loss, (input, target, weight), input, target, weight=weight, size_average=size_average,
            reduce=reduce, reduction=reduction,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    log_sigmoid = cresset._C._nn.log_sigmoid
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(input.dim() - 1) / input.size(input.dim() - 1), code)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Multi-class hinge loss: mean over wrong classes of max(0, margin - input[y] + input[i]) ** p, p 1 or 2."""
    if overrides((input, target, weight)):
        return handle(
            multi_margin_loss, (input, target, weight), input, target, p=p, margin=margin, weight=weight, size_average=size_average,
            reduce=reduce, reduction=reduction,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    samples, classes = _samples_and_classes(input)
    if target.dim() > 1 or target.numel() != samples:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{samples}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    _check_class_type(target)
    x, y = input.reshape(samples, classes), target.reshape(samples, 1)
    if samples and not input.is_meta and ((y < 0) | (y >= classes)).any():
        raise RuntimeError("target out of range")
    gap = (margin - x.gather(1, y) + x).clamp_min(0)
    if p == 2:
        gap = gap * gap
    if weight is not None:
        gap = gap * weight[y]
    loss = gap.scatter(1, y, 0.0).sum(1) / classes
    return reduced(loss.reshape(target.shape), code)


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with p-norm distances."""
    if overrides((anchor, positive, negative)):
        return handle(
            triplet_margin_loss, (anchor, positive, negative), anchor, positive, negative, margin=margin, p=p, eps=eps, swap=swap,
            size_average=size_average, reduce=reduce, reduction=reduction,
        )  # fmt: skip
    code = reduction_code(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _triplet(
        anchor, positive, negative, lambda a, b: cresset.pairwise_distance(a, b, p, eps), margin, swap, code
    )


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """triplet_margin_loss with any distance function of two tensors (default: Euclidean)."""
    if overrides((anchor, positive, negative)):
        return handle(
            triplet_margin_with_distance_loss, (anchor, positive, negative), anchor, positive, negative,
            distance_function=distance_function, margin=margin, swap=swap, reduction=reduction,
        )  # fmt: skip
    code = reduction_code(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    return _triplet(anchor, positive, negative, distance_function or cresset.pairwise_distance, margin, swap, code)


def _triplet(anchor, positive, negative, distance, margin, swap, code):
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = cresset.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), code)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Connectionist temporal classification loss of `log_probs` (T, N, C) or (T, C)."""
    if overrides((log_probs, targets, input_lengths, target_lengths)):
        return handle(
            ctc_loss, (log_probs, targets, input_lengths, target_lengths), log_probs, targets, input_lengths, target_lengths,
            blank=blank, reduction=reduction, zero_infinity=zero_infinity,
        )  # fmt: skip
    return cresset.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, reduction_code(reduction), zero_infinity
    )


def linear_cross_entropy(
    input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None, label_smoothing=0.0,
    options=None,
):  # fmt: skip
    """Cross entropy of the logits linear(input, linear_weight, linear_bias).

    `input` is (in,) or (N, in), `linear_weight` (C, in) or (C, d1, ..., dK, in), which gives K-dimensional logits.
    `options` (nn.LinearCrossEntropyOptions) ask for chunks; the loss is the same and is computed whole.
    """
    relevant = (input, linear_weight, target, linear_bias, weight)
    if overrides(relevant):
        return handle(
            linear_cross_entropy, relevant, input, linear_weight, target, linear_bias=linear_bias, weight=weight,
            reduction=reduction, ignore_index=ignore_index, label_smoothing=label_smoothing, options=options,
        )  # fmt: skip
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    features = linear_weight.size(-1)
    if input.size(-1) != features:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions (in_features), got {input.size(-1)} and {features}, respectively"
        )
    classes, *extra = linear_weight.shape[:-1]
    if extra and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, (N, {features}), "
            f"got unbatched input with shape {tuple(input.shape)}"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *extra):
        raise RuntimeError(f"expected linear_bias shape {(classes, *extra)}, got {tuple(linear_bias.shape)}")
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = _nn.linear(input, linear_weight.reshape(-1, features), bias)
    if extra:
        logits = logits.reshape(-1, classes, *extra)
    return cross_entropy(
        logits, target, weight=weight, reduction=reduction, ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )  # fmt: skip
