"""Rounding to the numbers that an integer type could have, with gradients as if nothing were rounded."""

import cresset

from ._overridable import overridable

__all__ = ["fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine", "fused_moving_avg_obs_fake_quant", "Learnt"]


class _Rounded(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, input, scale, zero_point, low, high):
        near = (input.float() if input.dtype in (cresset.float16, cresset.bfloat16) else input) * (1 / scale)
        whole = (near + zero_point).float().round() if zero_point.is_floating_point() else near.round() + zero_point
        within = (whole >= low) & (whole <= high)
        ctx.save_for_backward(within)
        ctx.mark_non_differentiable(within)
        steps = whole.nan_to_num(low).clamp(low, high) - zero_point
        # As in PyTorch, float64 numbers are rounded to float32 in the end when there is one scale, and not when there is one for each channel.
        return ((steps.to(cresset.promote_types(steps.dtype, input.dtype)) if scale.dim() else steps.float()) * scale).to(input.dtype), within

    @staticmethod
    def backward(ctx, grad, _):
        (within,) = ctx.saved_tensors
        return grad * within, None, None, None, None


def _check(input, zero_point, low, high):
    if not input.is_floating_point():
        raise NotImplementedError(f'"fake_quantize_tensor_cachemask_kernel_type_handling" not implemented for \'{str(input.dtype).rpartition(".")[2].capitalize()}\'')
    if low > high:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    if not zero_point.is_floating_point() and bool(((zero_point < low) | (zero_point > high)).any()):
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


def fake_quantize_per_tensor_affine_cachemask(input, scale, zero_point, quant_min, quant_max):
    """(fake_quantize_per_tensor_affine, True where nothing was clamped)."""
    device = input.device
    scale = scale.float() if isinstance(scale, cresset.Tensor) else cresset.tensor(scale, dtype=cresset.float32, device=device)
    zero_point = zero_point if isinstance(zero_point, cresset.Tensor) else cresset.tensor(zero_point, dtype=cresset.int32, device=device)
    _check(input, zero_point, quant_min, quant_max)
    return _Rounded.apply(input, scale.reshape(()), zero_point.to(cresset.int32).reshape(()), quant_min, quant_max)


@overridable
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale, of input's shape and floating dtype.

    `scale` and `zero_point` (without its fraction) are numbers or tensors of one element. The gradient is passed on where nothing was clamped. RuntimeError for limits
    that do not hold the zero point, NotImplementedError for integers.
    """
    return fake_quantize_per_tensor_affine_cachemask(input, scale, zero_point, quant_min, quant_max)[0]


def _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(input, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
    """fake_quantize_per_tensor_affine_cachemask where `fake_quant_enabled`, one element, is not 0; else (a copy, True everywhere)."""
    if not fake_quant_enabled.item():
        return input.clone(), cresset.ones_like(input, dtype=cresset.bool)
    return fake_quantize_per_tensor_affine_cachemask(input, scale, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine_cachemask(input, scale, zero_point, axis, quant_min, quant_max):
    """(fake_quantize_per_channel_affine, True where nothing was clamped)."""
    for what, tensor, allowed, words in (
        ("Scale", scale, (cresset.float32, cresset.bfloat16), "Float or BFloat16"),
        ("Zero-point", zero_point, (cresset.int32, cresset.float32, cresset.float16), "Int32, Float or Half"),
    ):
        if tensor.dtype not in allowed:
            found = {cresset.float64: "Double", cresset.int64: "Long"}.get(tensor.dtype, str(tensor.dtype).rpartition(".")[2].capitalize())
            raise RuntimeError(f"{what} must be {words}, found {found}")
        if tensor.dim() != 1:
            raise RuntimeError(f"{what.lower()} should be a 1-D tensor")
    if not 0 <= axis < input.dim():
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if not len(scale) == len(zero_point) == input.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    _check(input, zero_point, quant_min, quant_max)
    shape = [-1 if d == axis else 1 for d in range(input.dim())]
    return _Rounded.apply(input, scale.float().view(shape), zero_point.view(shape), quant_min, quant_max)


@overridable
def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """fake_quantize_per_tensor_affine with a scale (float32 or bfloat16) and a zero point (int32, float32 or float16) for each index of dimension
    `axis`. RuntimeError for other dtypes and for lengths that do not fit."""
    return fake_quantize_per_channel_affine_cachemask(input, scale, zero_point, axis, quant_min, quant_max)[0]


def _watch(input, running_min, running_max, constant, axis):
    """Average the ends of the range, of each index of `axis` where it is not None, into the running ones."""
    if axis is None:
        low, high = (v.reshape(running_min.shape) for v in cresset.aminmax(input))
    else:
        low, high = cresset.aminmax(input.transpose(axis, 0).flatten(1), dim=1)
        if running_min.numel() == 0:
            running_min.resize_(low.shape).fill_(float("inf"))
            running_max.resize_(high.shape).fill_(float("-inf"))
    for running, seen in ((running_min, low), (running_max, high)):
        seen = seen.to(running.dtype)
        running.copy_(cresset.where(running.isinf(), seen, running + constant * (seen - running)))


def _choose(low, high, quant_min, quant_max, symmetric):
    """(scale, zero point) of one range."""
    from ._quantized._functions import choose_range

    both = low < 0 < high
    if symmetric and both:
        below, above = -((quant_max - quant_min) // 2 + 1), (quant_max - quant_min) // 2
        step = max(abs(low / below), abs(high / above))
        low, high = below * step, above * step
    scale, zero = choose_range(low, high, quant_min, quant_max)
    return (scale, (quant_min + quant_max + 1) // 2) if symmetric and both else (scale, zero)


@overridable
def fused_moving_avg_obs_fake_quant(input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis,
                                    per_row_fake_quant=False, symmetric_quant=False):  # fmt: skip
    """Average the input's range into running_min and running_max (where `observer_on`); find scale and zero_point of these, and round the input by
    them (where `fake_quant_on`). RuntimeError for a channel axis out of range."""
    if ch_axis >= input.dim():
        raise RuntimeError("Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()")
    if observer_on.item() and input.numel():
        _watch(input.detach(), running_min, running_max, averaging_const, ch_axis if per_row_fake_quant else None)
    if not fake_quant_on.item():
        return input.clone()
    if running_min.numel():  # nothing was seen, and scale and zero_point are as they were given
        pairs = zip(running_min.reshape(-1).tolist(), running_max.reshape(-1).tolist())
        scales, zeros = zip(*(_choose(low, high, quant_min, quant_max, symmetric_quant) for low, high in pairs))
        for kept, values in ((scale, scales), (zero_point, zeros)):
            kept.resize_(len(values)).copy_(cresset.tensor(values, dtype=kept.dtype))
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(input, scale, zero_point, ch_axis, quant_min, quant_max)
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)


class Learnt(cresset.autograd.Function):
    """Rounded by scale and zero point, with gradients of both times a factor."""

    @staticmethod
    def forward(ctx, x, scale, zero_point, shape, low, high, factor):
        if low > high:
            raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
        s, z = scale.view(shape), zero_point.detach().round().clamp(low, high).view(shape)
        whole = (x * (1 / s) + z).round()
        ctx.save_for_backward(x, s, z, whole)
        ctx.facts = (scale.shape, shape, low, high, factor)
        return (whole.clamp(low, high) - z) * s

    @staticmethod
    def backward(ctx, grad):
        x, s, z, whole = ctx.saved_tensors
        size, shape, low, high, factor = ctx.facts
        below, above = whole < low, whole > high
        within = ~(below | above)
        kept = whole.clamp(low, high)
        of_scale = grad * cresset.where(within, kept - z - x / s, kept - z) * factor
        of_zero = grad * cresset.where(within, 0.0, -1.0) * s * factor
        others = [d for d in range(x.dim()) if len(shape) == 0 or shape[d] == 1]
        of_scale, of_zero = (v.sum(others).reshape(size) if others else v.reshape(size) for v in (of_scale, of_zero))
        return grad * within, of_scale, of_zero, None, None, None, None


@overridable
def _fake_quantize_learnable_per_tensor_affine(input, scale, zero_point, quant_min, quant_max, grad_factor=1.0):
    """fake_quantize_per_tensor_affine with gradients of `scale` and `zero_point` (float32, of one element), which are multiplied by `grad_factor`."""
    return Learnt.apply(input, scale, zero_point, [], quant_min, quant_max, grad_factor)


@overridable
def _fake_quantize_learnable_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max, grad_factor=1.0):
    """The same with a scale and a zero point for each index of the dimension `axis`. RuntimeError where their numbers are not that dimension's size."""
    if not 0 <= axis < input.dim():
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if not len(scale) == len(zero_point) == input.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    return Learnt.apply(input, scale, zero_point, [-1 if d == axis else 1 for d in range(input.dim())], quant_min, quant_max, grad_factor)
