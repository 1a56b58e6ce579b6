"""The losses of nn.functional in the subset of Python that scripts are made of (see _functional.py)."""

import math
from typing import List, Optional, Tuple

import cresset
from cresset import Tensor
from cresset._C import _nn

from ._functional import number


def _code(reduction: str, size_average: Optional[bool], reduce: Optional[bool]) -> int:
    if size_average is not None or reduce is not None:
        if reduce is not None and not reduce:
            return 0
        return 1 if size_average is None or size_average else 2
    if reduction == "none":
        return 0
    if reduction == "mean" or reduction == "elementwise_mean":
        return 1
    if reduction != "sum":
        raise ValueError(f"{reduction} is not a valid value for reduction. Use 'none', 'mean' or 'sum'.")
    return 2


def _reduced(loss: Tensor, code: int) -> Tensor:
    if code == 0:
        return loss
    return loss.mean() if code == 1 else loss.sum()


def _pair(input: Tensor, target: Tensor) -> Tuple[Tensor, Tensor]:
    if input.size() == target.size():
        return input, target
    both = cresset.broadcast_tensors([input, target])
    return both[0], both[1]


def _weighted(loss: Tensor, weight: Tensor, code: int) -> Tensor:
    if weight.size() != loss.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if code == 1 else _reduced(loss, code)


def nll_loss(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return _nn.nll_loss_nd(input, target, weight, _code(reduction, size_average, reduce), ignore_index)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100,
    reduce: Optional[bool] = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    return _nn.cross_entropy_loss(input, target, weight, _code(reduction, size_average, reduce), ignore_index, label_smoothing)


def mse_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    code = _code(reduction, size_average, reduce)
    a, b = _pair(input, target)
    return _nn.mse_loss(a, b, code) if weight is None else _weighted(_nn.mse_loss(a, b, 0), weight, code)


def l1_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    code = _code(reduction, size_average, reduce)
    a, b = _pair(input, target)
    return _nn.l1_loss(a, b, code) if weight is None else _weighted(_nn.l1_loss(a, b, 0), weight, code)


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:  # fmt: skip
    code = _code(reduction, size_average, reduce)
    a, b = _pair(input, target)
    return _nn.l1_loss(a, b, code) if beta == 0.0 else _nn.smooth_l1_loss(a, b, code, beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Optional[Tensor] = None) -> Tensor:
    code = _code(reduction, None, None)
    a, b = _pair(input, target)
    return _nn.huber_loss(a, b, code, delta) if weight is None else _weighted(_nn.huber_loss(a, b, 0, delta), weight, code)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. Please ensure they "
            "have the same size."
        )
    if weight is not None:
        weight = cresset.broadcast_tensors([target, weight])[1]
    return _nn.binary_cross_entropy(input, target, weight, _code(reduction, size_average, reduce))


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean", pos_weight: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return cresset.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _code(reduction, size_average, reduce))


def kl_div(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:  # fmt: skip
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = cresset.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() != 0 else total
    return cresset.kl_div(input, target, _code(reduction, size_average, reduce), log_target=log_target)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Optional[bool] = None, eps: float = 1e-8,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return cresset.poisson_nll_loss(input, target, log_input, full, eps, _code(reduction, size_average, reduce))


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    if bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        else:
            if input.dim() != var.dim():
                raise ValueError("var is of incorrect size")
            for i in range(input.dim()):
                if var.size(i) != input.size(i) and var.size(i) != 1:
                    raise ValueError("var is of incorrect size")
    var = var.clone()
    with cresset.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, _code(reduction, None, None))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: number = 0, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()}"
        )
    return _reduced((-target * (input1 - input2) + margin).clamp_min(0), _code(reduction, size_average, reduce))


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: number = 1.0, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    zeros = cresset.zeros_like(input)
    negative = cresset.where(target != 1, (-input + margin).clamp_min(0), zeros)
    positive = cresset.where(target != -1, input, zeros)
    return _reduced(negative + positive, _code(reduction, size_average, reduce))


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: number = 0, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    if target.dim() > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported; got {target.dim()}D")
    if input1.dim() != target.dim() + 1 or input2.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes {input1.size()} and "
            f"{input2.size()}."
        )
    eps = 1e-12
    dot = (input1 * input2).sum(-1)
    cos = dot / (((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)).sqrt()
    zeros = cresset.zeros_like(cos)
    positive = cresset.where(target == 1, 1 - cos, zeros)
    negative = cresset.where(target == -1, (cos - margin).clamp_min(0), zeros)
    return _reduced(positive + negative, _code(reduction, size_average, reduce))


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean"
) -> Tensor:
    return _nn.soft_margin_loss(input, target, _code(reduction, size_average, reduce))


def _samples_and_classes(input: Tensor) -> Tuple[int, int]:
    if input.dim() > 2 or (input.dim() > 0 and input.size(-1) == 0):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {input.size()}")
    samples = input.size(0) if input.dim() == 2 else 1
    classes = input.size(-1) if input.dim() > 0 else 1
    return samples, classes


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean"
) -> Tensor:
    samples, classes = _samples_and_classes(input)
    fits = target.size() == input.size() if input.dim() == 2 else target.dim() <= 1 and target.numel() == classes
    if not fits:
        raise RuntimeError(f"inconsistent target size: {target.size()} for input of size: {input.size()}")
    x, y = input.reshape([samples, classes]), target.reshape([samples, classes])
    valid = (y >= 0).to(x.dtype).cumprod(1)
    y = y.clamp(min=0)
    others = cresset.zeros_like(x).scatter_add(1, y, valid) == 0
    pairs = (1 - x.gather(1, y).unsqueeze(2) + x.unsqueeze(1)).clamp_min(0)
    loss = (pairs * valid.unsqueeze(2) * others.unsqueeze(1)).sum([1, 2]) / classes
    return _reduced(loss if input.dim() == 2 else loss.squeeze(0), _code(reduction, size_average, reduce))


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    loss = -(target * _nn.log_sigmoid(input) + (1 - target) * _nn.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum([input.dim() - 1]) / input.size(input.dim() - 1), _code(reduction, size_average, reduce))


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: number = 1.0, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    samples, classes = _samples_and_classes(input)
    if target.dim() > 1 or target.numel() != samples:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size).")
    x, y = input.reshape([samples, classes]), target.reshape([samples, 1])
    gap = (x - x.gather(1, y) + margin).clamp_min(0)
    if p == 2:
        gap = gap * gap
    if weight is not None:
        gap = gap * weight[y]
    loss = gap.scatter(1, y, 0.0).sum([1]) / classes
    return _reduced(loss.reshape(target.size()), _code(reduction, size_average, reduce))


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: number = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    near, far = cresset.pairwise_distance(anchor, positive, p, eps), cresset.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = cresset.minimum(far, cresset.pairwise_distance(positive, negative, p, eps))
    return _reduced((near - far + margin).clamp_min(0), _code(reduction, size_average, reduce))


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    return cresset.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _code(reduction, None, None), zero_infinity)


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Optional[Tensor] = None, weight: Optional[Tensor] = None,
    reduction: str = "mean", ignore_index: Optional[int] = None, label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    features = linear_weight.size(-1)
    sizes: List[int] = linear_weight.size()[:-1]
    bias = linear_bias.reshape([-1]) if linear_bias is not None else linear_bias
    logits = _nn.linear(input, linear_weight.reshape([-1, features]), bias)
    if len(sizes) > 1:
        logits = logits.reshape([-1] + sizes)
    return cross_entropy(
        logits, target, weight=weight, reduction=reduction, ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )  # fmt: skip
