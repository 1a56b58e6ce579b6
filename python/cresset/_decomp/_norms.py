"""Normalisations and their gradients."""

import math

import cresset

from ._rules import _LOW, aten, in_float, rule


def _float(tensor):
    return tensor.to(cresset.float32) if tensor is not None and tensor.dtype in _LOW else tensor


def _spread(tensor, rank, before=0):
    """The tensor with dimensions of 1 around its own: `before` in front of it, and behind it until there are `rank`."""
    return tensor.view([1] * before + list(tensor.shape) + [1] * (rank - before - tensor.dim()))


def _statistic(value, input):
    """A mean or 1 / deviation as the operator gives it: on the CPU in the input's type."""
    return value.to(input.dtype) if input.device.type == "cpu" else value


def _normalised(input, dims, eps):
    """(normalised, mean, rstd) over these dimensions, which stay with length 1, as float32 for halves."""
    x = _float(input)
    var, mean = cresset.var_mean(x, dims, correction=0, keepdim=True)
    rstd = cresset.rsqrt(var + eps)
    return (x - mean) * rstd, mean, rstd


@rule("native_layer_norm", core=False)
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    out, mean, rstd = _normalised(input, dims, eps)
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return out.to(input.dtype), _statistic(mean, input), _statistic(rstd, input)


@rule("native_layer_norm_backward")
def native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    dtype, rank = input.dtype, input.dim()
    axis = rank - len(normalized_shape)
    inner, outer = list(range(axis, rank)), list(range(axis))
    n = math.prod(input.shape[axis:])
    if math.prod(input.shape[:axis]) == 0 or n == 0:
        found = (input, weight, bias)
        return tuple(
            t.new_zeros(input.shape if at == 0 else input.shape[axis:]) if wanted and t is not None else None
            for at, (t, wanted) in enumerate(zip(found, output_mask))
        )
    grad, x, weight_ = _float(grad_out), _float(input), _float(weight)
    x_hat = (x - _spread(mean, rank) if mean.dim() < rank else x - mean) * (_spread(rstd, rank) if rstd.dim() < rank else rstd)
    scaled = grad * weight_ if weight is not None else grad
    a = scaled * n
    b = cresset.sum(scaled, inner, True)
    c = x_hat * cresset.sum(scaled * x_hat, inner, True)
    d_input = rstd / n * (a - b - c) if output_mask[0] else None
    d_weight = (cresset.sum(grad * x_hat, outer) if outer else grad * x_hat) if output_mask[1] and weight is not None else None
    d_bias = (cresset.sum(grad, outer) if outer else grad.clone()) if output_mask[2] and bias is not None else None
    return tuple(t if t is None else t.to(dtype) for t in (d_input, d_weight, d_bias))


@rule("native_group_norm", core=False)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    x = input.reshape([N, group, C // group * HxW])
    out, mean, rstd = _normalised(x, [2], eps)
    out = out.view(input.shape)
    if weight is not None:
        out = out * _spread(weight, input.dim(), 1)
    if bias is not None:
        out = out + _spread(bias, input.dim(), 1)
    return out.to(input.dtype), mean.squeeze(2).to(input.dtype), rstd.squeeze(2).to(input.dtype)


@rule("native_group_norm_backward")
@in_float
def native_group_norm_backward(grad_output, input, mean, rstd, gamma, N, C, HxW, group, output_mask):
    d = C // group
    d_scale = (grad_output * input).view([N, C, HxW]).sum([2])
    d_shift = grad_output.view([N, C, HxW]).sum([2])
    d_input = d_gamma = d_bias = None
    if output_mask[0]:
        s = 1.0 / (HxW * d)
        scale = d_scale if gamma is None else d_scale * gamma.unsqueeze(0)
        shift = d_shift if gamma is None else d_shift * gamma.unsqueeze(0)
        scale, shift = scale.view([N, group, d]).sum([2]), shift.view([N, group, d]).sum([2])
        weight = cresset.ones((1, group, d), device=rstd.device, dtype=rstd.dtype) if gamma is None else gamma.view([1, group, d])
        c1 = rstd.unsqueeze(-1) * weight
        c2 = (shift * mean - scale) * rstd * rstd * rstd * s
        c3 = -c2 * mean - shift * rstd * s
        c1, c2, c3 = c1.unsqueeze(-1), c2.unsqueeze(-1).unsqueeze(-1), c3.unsqueeze(-1).unsqueeze(-1)
        d_input = grad_output.view([N, group, d, HxW]) * c1 + input.view([N, group, d, HxW]) * c2 + c3
        d_input = d_input.view(input.shape).to(input.dtype)
    if output_mask[1]:
        by_group = d_scale.view([N, group, d]) - d_shift.view([N, group, d]) * mean.unsqueeze(-1)
        d_gamma = (by_group * rstd.unsqueeze(-1)).sum([0]).view([C])
    if output_mask[2]:
        d_bias = d_shift.sum([0])
    return d_input, d_gamma, d_bias


def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """(output, mean, rstd, new running mean, new running variance)."""
    dims = [0, *range(2, input.dim())]
    x, new_mean, new_var = _float(input), running_mean, running_var
    if training:
        out, mean, rstd = _normalised(x, dims, eps)
        save_mean, save_rstd = mean.squeeze(dims), rstd.squeeze(dims)
        kind = input if weight is None else weight
        if running_mean is not None:
            new_mean = save_mean * momentum + running_mean * (1 - momentum)
        if running_var is not None:
            n = input.numel() / input.shape[1]
            var = cresset.var_mean(x, dims, correction=0, keepdim=True)[0].squeeze(dims) * (n / (n - 1))
            new_var = var * momentum + running_var * (1 - momentum)
    else:
        mean, var = _float(running_mean), _float(running_var)
        rstd = cresset.rsqrt(var + eps)
        out = (x - _spread(mean, input.dim(), 1)) * _spread(rstd, input.dim(), 1)
        save_mean = save_rstd = input.new_zeros((0,))
        kind = input
    if weight is not None:
        out = out * _spread(_float(weight.flatten()), input.dim(), 1)
    if bias is not None:
        out = out + _spread(_float(bias.flatten()), input.dim(), 1)
    return out.to(input.dtype), _statistic(save_mean, kind), _statistic(save_rstd, kind), new_mean, new_var


def _writing_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    out, mean, rstd, new_mean, new_var = _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if training:
        for place, new in ((running_mean, new_mean), (running_var, new_var)):
            if place is not None:
                aten.copy_(place, new)
    return out, mean, rstd


@rule("native_batch_norm", core=False)
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    return _writing_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@rule("_native_batch_norm_legit", core=False)
def _native_batch_norm_legit(input, weight, bias, running_mean, running_var, training, momentum, eps):
    return _writing_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@rule("_native_batch_norm_legit.no_stats", core=False)
def _native_batch_norm_legit_no_stats(input, weight, bias, training, momentum, eps):
    return _batch_norm(input, weight, bias, None, None, training, momentum, eps)[:3]


@rule("_native_batch_norm_legit_no_training", core=False)
def _native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    return _batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)[:3]


@rule("native_batch_norm_backward")
def native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask):
    dtype, rank = input.dtype, input.dim()
    dims = [0, *range(2, rank)]
    grad, x, weight_ = _float(grad_out), _float(input), _float(weight)
    mean, rstd = _float(save_mean), _float(save_invstd)
    if not train:
        mean, rstd = _float(running_mean), cresset.rsqrt(_float(running_var) + eps)
    n = input.numel() / input.shape[1]
    mean_, rstd_ = _spread(mean, rank, 1), _spread(rstd, rank, 1)
    sum_, dot = cresset.sum(grad, dims), cresset.sum(grad * (x - mean_), dims)
    scale = rstd_ if weight is None else _spread(rstd * weight_, rank, 1)
    if train:
        slope = _spread(dot * (1.0 / n) * (rstd * rstd), rank, 1)
        d_input = (grad - (x - mean_) * slope - _spread(sum_ * (1.0 / n), rank, 1)) * scale
    else:
        d_input = grad * scale
    d_weight = dot * rstd if output_mask[1] else None
    d_bias = sum_ if output_mask[2] else None
    # Where it is not wanted PyTorch gives the gradient of the weight none, and that of the input always.
    of_weight = dtype if weight is None else weight.dtype
    return d_input.to(dtype), d_weight if d_weight is None else d_weight.to(of_weight), d_bias if d_bias is None else d_bias.to(of_weight)


@rule("_weight_norm_interface")
def _weight_norm_interface(v, g, dim=0):
    kept = [d for d in range(v.dim()) if d != dim]
    norm = v.norm(2, kept, keepdim=True)
    return v * (g / norm.to(g.dtype)), norm


@rule("renorm")
def renorm(self, p, dim, maxnorm):
    if p <= 0:
        raise RuntimeError("renorm: non-positive norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    dims = [d for d in range(self.dim()) if d != dim % self.dim()]
    wide = cresset.float32 if self.dtype in _LOW else None
    norm = cresset.linalg.vector_norm(self, p, dims, keepdim=True, dtype=wide)
    factor = cresset.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return self * (factor if wide is None else factor.to(self.dtype))
