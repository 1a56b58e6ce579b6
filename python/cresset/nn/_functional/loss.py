"""Loss functions. `reduction` is "mean", "sum" or "none"; `size_average` and `reduce` are its old spelling."""

import math
import warnings
from typing import Any, Optional, Tuple, Union

import cresset
from cresset import Tensor
from cresset._C import _nn
from cresset._overridable import overridable

from ._common import number, reduced, reduction_code

__all__ = [
    "nll_loss", "cross_entropy", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "gaussian_nll_loss", "margin_ranking_loss",
    "hinge_embedding_loss", "cosine_embedding_loss", "soft_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "multi_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss", "ctc_loss",
    "linear_cross_entropy",
]  # fmt: skip


def _broadcast_pair(input: Tensor, target: Tensor) -> Tuple[Tensor, Tensor]:
    """The two tensors at one shape, with a warning when they had different ones."""
    if target.size() == input.size():
        if not cresset.jit.is_tracing():  # other examples of a trace may have other shapes
            return input, target
    else:
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely lead to "
            "incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )
    input, target = cresset.broadcast_tensors(input, target)
    return input, target


def _weighted(loss: Tensor, weight: Tensor, input: Tensor, code: int) -> Tensor:
    """An unreduced loss, weighted; its mean is the weighted mean."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if code == 1:
        return loss.sum() / weight.sum()
    return reduced(loss, code)


@overridable
def nll_loss(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Negative log likelihood of the classes `target` under the log-probabilities `input` (N, C, ...) or (C,)."""
    return _nn.nll_loss_nd(input, target, weight, reduction_code(reduction, size_average, reduce), ignore_index)


@overridable
def cross_entropy(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100,
    reduce: Optional[bool] = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Cross entropy of the logits `input` (N, C, ...) or (C,) against class indices, or probabilities of input's shape."""
    code = reduction_code(reduction, size_average, reduce)
    return _nn.cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


@overridable
def mse_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    """Squared difference."""
    code = reduction_code(reduction, size_average, reduce)
    input_, target = _broadcast_pair(input, target)
    if weight is not None:
        return _weighted(_nn.mse_loss(input_, target, 0), weight, input, code)
    return _nn.mse_loss(input_, target, code)


@overridable
def l1_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    """Absolute difference."""
    code = reduction_code(reduction, size_average, reduce)
    input_, target = _broadcast_pair(input, target)
    if weight is not None:
        return _weighted(_nn.l1_loss(input_, target, 0), weight, input, code)
    return _nn.l1_loss(input_, target, code)


@overridable
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """Squared below `beta`, linear above; beta 0 is the absolute difference."""
    code = reduction_code(reduction, size_average, reduce)
    input, target = _broadcast_pair(input, target)
    if beta == 0.0:
        return _nn.l1_loss(input, target, code)
    return _nn.smooth_l1_loss(input, target, code, beta)


@overridable
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Optional[Tensor] = None) -> Tensor:
    """Squared below `delta`, linear above."""
    code = reduction_code(reduction)
    input_, target = _broadcast_pair(input, target)
    if weight is not None:
        return _weighted(_nn.huber_loss(input_, target, 0, delta), weight, input, code)
    return _nn.huber_loss(input_, target, code, delta)


@overridable
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Cross entropy of the probabilities `input` against targets in [0, 1] of the same shape."""
    code = reduction_code(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = cresset.broadcast_tensors(target, weight)[1]
    return _nn.binary_cross_entropy(input, target, weight, code)


@overridable
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean", pos_weight: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    """Binary cross entropy of sigmoid(input), computed stably."""
    code = reduction_code(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return cresset.binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


@overridable
def kl_div(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:  # fmt: skip
    """target (log target - input), where `input` holds log-probabilities; "batchmean" divides the sum by the batch size."""
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = cresset.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() != 0 else total
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by the "
            "batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as 'batchmean' in the next "
            "major release.",
            stacklevel=2,
        )
    return cresset.kl_div(input, target, reduction_code(reduction, size_average, reduce), log_target=log_target)


@overridable
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Optional[bool] = None, eps: float = 1e-8,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Negative log likelihood of counts `target` under Poisson; `input` is the log of the rate unless `log_input=False`."""
    code = reduction_code(reduction, size_average, reduce)
    return cresset.poisson_nll_loss(input, target, log_input, full, eps, code)


@overridable
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Union[Tensor, float], full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """Negative log likelihood of `target` under normal distributions of mean `input` and variance `var` (at least `eps`)."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * cresset.ones_like(input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)  # one variance for all of the last dimension
        elif input.dim() != var.dim() or any(v != n and v != 1 for n, v in zip(input.size(), var.size())):
            raise ValueError("var is of incorrect size")
    code = reduction_code(reduction)
    var = var.clone()
    with cresset.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, code)


@overridable
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: number = 0, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, -target (input1 - input2) + margin), target being 1 or -1."""
    code = reduction_code(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()}"
        )
    return cresset.margin_ranking_loss(input1, input2, target, margin, code)


@overridable
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: number = 1.0, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """`input` where target is 1, max(0, margin - input) where it is -1."""
    code = reduction_code(reduction, size_average, reduce)
    return cresset.hinge_embedding_loss(input, target, margin, code)


@overridable
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: number = 0, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """1 - cos where target is 1, max(0, cos - margin) where it is -1; inputs (N, D) or (D,)."""
    code = reduction_code(reduction, size_average, reduce)
    return cresset.cosine_embedding_loss(input1, input2, target, margin, code)


@overridable
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target input)), target being 1 or -1."""
    return _nn.soft_margin_loss(input, target, reduction_code(reduction, size_average, reduce))


@overridable
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean"
) -> Tensor:
    """Multi-label hinge loss; `target` (N, C) lists class indices, ended by -1."""
    code = reduction_code(reduction, size_average, reduce)
    return _nn.multilabel_margin_loss(input, target, code)


@overridable
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Mean over the classes of the binary cross entropy of sigmoid(input)."""
    code = reduction_code(reduction, size_average, reduce)
    loss = -(target * _nn.log_sigmoid(input) + (1 - target) * _nn.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(input.dim() - 1) / input.size(input.dim() - 1), code)


@overridable
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: number = 1.0, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Multi-class hinge loss: mean over wrong classes of max(0, margin - input[y] + input[i]) ** p, p 1 or 2."""
    code = reduction_code(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _nn.multi_margin_loss(input, target, p, margin, weight, code)


@overridable
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: number = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with p-norm distances."""
    code = reduction_code(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return cresset.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


@overridable
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """triplet_margin_loss with any distance function of two tensors (default: Euclidean)."""
    code = reduction_code(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    distance = distance_function or cresset.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = cresset.minimum(far, distance(positive, negative))
    return _triplet(near, far, margin, code)


def _triplet(near: Tensor, far: Tensor, margin: number, code: int) -> Tensor:
    return reduced((margin + near - far).clamp_min(0), code)


@overridable
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Connectionist temporal classification loss of `log_probs` (T, N, C) or (T, C)."""
    return cresset.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, reduction_code(reduction), zero_infinity
    )


@overridable
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Optional[Tensor] = None, weight: Optional[Tensor] = None,
    reduction: str = "mean", ignore_index: Optional[int] = None, label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """Cross entropy of the logits linear(input, linear_weight, linear_bias).

    `input` is (in,) or (N, in), `linear_weight` (C, in) or (C, d1, ..., dK, in), which gives K-dimensional logits.
    `options` (nn.LinearCrossEntropyOptions) ask for chunks; the loss is the same and is computed whole.
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    features = linear_weight.size(-1)
    if input.size(-1) != features:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions (in_features), got {input.size(-1)} and {features}, respectively"
        )
    sizes = list(linear_weight.shape[:-1])  # of the logits, after the batch
    if len(sizes) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {list(linear_weight.shape)} requires batched input, (N, {features}), "
            f"got unbatched input with shape {list(input.shape)}"
        )
    if linear_bias is not None and list(linear_bias.shape) != sizes:
        raise RuntimeError(f"expected linear_bias shape {sizes}, got {list(linear_bias.shape)}")
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = _nn.linear(input, linear_weight.reshape(-1, features), bias)
    if len(sizes) > 1:
        logits = logits.reshape([-1] + sizes)
    return cross_entropy(
        logits, target, weight=weight, reduction=reduction, ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )  # fmt: skip
