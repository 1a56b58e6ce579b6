"""Batch normalisation over the batches of all ranks, with its gradient: one message each way."""

import cresset
from cresset import distributed as dist
from cresset.autograd import Function
from cresset.autograd.function import once_differentiable


def _joined(x, group):
    """(mean, biased variance, values a channel) of all ranks: each tells its own, so that nothing is lost to large means."""
    channels = x.size(1)
    dims = [d for d in range(x.dim()) if d != 1]
    count = x.numel() // channels
    mine = x.new_zeros(2 * channels + 1)
    if count:
        variance, mean = cresset.var_mean(x, dims, correction=0)
        mine = cresset.cat([mean, variance, x.new_full((1,), float(count))])
    everyone = x.new_empty(dist.get_world_size(group), 2 * channels + 1)
    dist.all_gather_into_tensor(everyone, mine, group)
    means, variances, counts = everyone[:, :channels], everyone[:, channels:-1], everyone[:, -1:]
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    return mean, ((variances + (means - mean).square()) * counts).sum(0) / total, total


class SyncBatchNormFunction(Function):
    """normalised(x), from (x, weight, bias, running_mean, running_var, eps, momentum, group); weight and bias may be None."""

    @staticmethod
    def forward(ctx, x, weight, bias, running_mean, running_var, eps, momentum, group):
        wide = x.float() if x.dtype in (cresset.float16, cresset.bfloat16) else x
        mean, variance, total = _joined(wide, group)
        if total.item() <= 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(x.shape)}")
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean.to(running_mean.dtype), alpha=momentum)
        if running_var is not None:
            running_var.mul_(1 - momentum).add_((variance * total / (total - 1)).to(running_var.dtype), alpha=momentum)
        invstd = (variance + eps).rsqrt()
        ctx.shape = [1, -1] + [1] * (x.dim() - 2)
        ctx.group = group
        ctx.save_for_backward(x, weight, bias, mean, invstd, total)
        out = (wide - mean.view(ctx.shape)) * invstd.view(ctx.shape)
        if weight is not None:
            out = out * weight.view(ctx.shape)
        if bias is not None:
            out = out + bias.view(ctx.shape)
        return out.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        x, weight, bias, mean, invstd, total = ctx.saved_tensors
        dims = [d for d in range(x.dim()) if d != 1]
        gradient, normal = gradient.to(mean.dtype), (x.to(mean.dtype) - mean.view(ctx.shape)) * invstd.view(ctx.shape)
        sums = cresset.stack([gradient.sum(dims), (gradient * normal).sum(dims)])
        of_bias, of_weight = sums.clone()
        of_x = None
        if ctx.needs_input_grad[0]:
            dist.all_reduce(sums, group=ctx.group)
            means = sums / total
            scale = invstd if weight is None else invstd * weight
            of_x = (gradient - means[0].view(ctx.shape) - normal * means[1].view(ctx.shape)) * scale.view(ctx.shape)
            of_x = of_x.to(x.dtype)
        return (
            of_x,
            of_weight.to(weight.dtype) if weight is not None and ctx.needs_input_grad[1] else None,
            of_bias.to(bias.dtype) if bias is not None and ctx.needs_input_grad[2] else None,
            None, None, None, None, None,
        )  # fmt: skip
