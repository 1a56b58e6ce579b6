"""Losses and their gradients. reduction: 0 none, 1 mean, 2 sum."""

import cresset

from ._rules import aten, in_float, number, reduced, rule


@rule("mse_loss")
@in_float
def mse_loss(self, target, reduction=1):
    return reduced(aten.pow(self - target, 2), reduction)


@rule("mse_loss_backward")
@in_float
def mse_loss_backward(grad_output, self, target, reduction):
    factor = 2.0 / self.numel() if reduction == 1 else 2.0
    return (self - target) * factor * grad_output


@rule("smooth_l1_loss")
@in_float
def smooth_l1_loss(self, target, reduction=1, beta=1.0):
    loss = cresset.abs(self - target)
    loss = cresset.where(loss < beta, loss**2 * 0.5 / beta, loss - beta * 0.5)
    return reduced(loss, reduction)


@rule("smooth_l1_loss_backward")
@in_float
def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    factor = 1.0 / self.numel() if reduction == 1 else 1.0
    x = self - target
    scaled = grad_output * factor
    if beta == 0:
        return scaled * cresset.sign(x)
    return cresset.where(cresset.abs(x) < beta, scaled * x / beta, scaled * cresset.sign(x))


@rule("huber_loss")
@in_float
def huber_loss(input, target, reduction=1, delta=1.0):
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    z = cresset.abs(input - target)
    return reduced(cresset.where(z < delta, z * 0.5 * z, (z - 0.5 * delta) * delta), reduction)


@rule("huber_loss_backward")
@in_float
def huber_loss_backward(grad_output, self, target, reduction, delta):
    factor = 1.0 / self.numel() if reduction == 1 else 1.0
    x = self - target
    outside = cresset.where(x < -delta, -factor * grad_output * delta, factor * grad_output * delta)
    return cresset.where(cresset.abs(x) <= delta, factor * x * grad_output, outside)


@rule("binary_cross_entropy")
@in_float
def binary_cross_entropy(self, target, weight=None, reduction=1):
    least = number(-100, self)
    loss = (target - 1) * cresset.maximum(cresset.log1p(-self), least) - target * cresset.maximum(cresset.log(self), least)
    return reduced(loss if weight is None else loss * weight, reduction)


@rule("binary_cross_entropy_backward")
@in_float
def binary_cross_entropy_backward(grad_output, self, target, weight=None, reduction=1):
    result = grad_output * (self - target) / cresset.clamp(self * aten.rsub(self, 1), min=1e-12)
    if weight is not None:
        result = result * weight
    return result / self.numel() if reduction == 1 else result


@rule("binary_cross_entropy_with_logits")
@in_float
def binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, reduction=1):
    if pos_weight is None:
        loss = aten.rsub(target, 1) * self - aten.log_sigmoid_forward(self)[0]
    else:
        loss = aten.rsub(target, 1) * self - ((pos_weight - 1) * target + 1) * aten.log_sigmoid_forward(self)[0]
    return reduced(loss if weight is None else loss * weight, reduction)


@rule("soft_margin_loss")
@in_float
def soft_margin_loss(self, target, reduction=1):
    return reduced(cresset.log1p(cresset.exp(-self * target)), reduction)


def _weights(weight, target, rank, ignored):
    """The weight of each sample's class, in front of the dimension of classes."""
    shape = [1] * rank
    shape[min(rank - 1, 1)] = weight.shape[0]
    return weight.view(shape)


def _nll_forward(self, target, weight, reduction, ignore_index):
    rank = self.dim()
    at = 0 if rank < 2 else 1
    if weight is not None:
        shaped = _weights(weight, target, rank, ignore_index)
        self = self * shaped
    kept = target != ignore_index
    safe = cresset.where(kept, target, 0)
    index = cresset.unsqueeze(safe, at)
    result = -cresset.gather(self, at, index).squeeze(at)
    result = cresset.where(kept, result, 0)
    if reduction == 0 and rank > 1:
        return result, self.new_full((), 0.0)
    if weight is not None:
        each = cresset.gather(shaped.expand(self.shape), at, index).squeeze(at)
        total = cresset.where(kept, each, 0).sum()
    else:
        total = kept.sum().to(self.dtype)
    if reduction == 1:
        return result.sum() / total, total
    return (result.sum() if reduction == 2 else result), total


@rule("nll_loss_forward")
@in_float
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    return _nll_forward(self, target, weight, reduction, ignore_index)


@rule("nll_loss2d_forward")
@in_float
def nll_loss2d_forward(self, target, weight, reduction, ignore_index):
    return _nll_forward(self, target, weight, reduction, ignore_index)


def _nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    at = 0 if self.dim() < 2 else 1
    if reduction == 1:
        grad_output = grad_output / total_weight
    target = target.unsqueeze(at)
    safe = cresset.where(target != ignore_index, target, 0)
    result = cresset.scatter(cresset.zeros_like(self), at, safe, -1.0)
    if result.dim() > grad_output.dim() > 0:
        grad_output = grad_output.unsqueeze(at)
    if weight is not None:
        grad_output = grad_output * _weights(weight, target, self.dim(), ignore_index)
    return result * cresset.where(target != ignore_index, grad_output, 0)


@rule("nll_loss_backward")
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    return _nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)


@rule("nll_loss2d_backward")
def nll_loss2d_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    return _nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)


@rule("glu")
@in_float
def glu(self, dim=-1):
    first, second = cresset.tensor_split(self, 2, dim)
    return first * cresset.sigmoid(second)


@rule("glu_backward")
@in_float
def glu_backward(grad_output, self, dim):
    first, second = (self.narrow(dim, at * (self.shape[dim] // 2), self.shape[dim] // 2) for at in (0, 1))
    gate = cresset.sigmoid(second)
    of_first = gate * grad_output
    return cresset.cat([of_first, aten.rsub(gate, 1) * gate * first * grad_output], dim)


