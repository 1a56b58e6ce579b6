"""Functions of quantized tensors, by the names of nn.functional. Each asks for a quantized input."""

import warnings

import cresset
from cresset.nn import functional as F
from cresset.nn.modules.utils import _pair, _single, _triple

from .modules.utils import _pair_from_first

__all__ = [
    "avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "conv1d", "conv2d", "conv3d", "interpolate", "linear", "max_pool1d", "max_pool2d",
    "celu", "leaky_relu", "hardtanh", "hardswish", "threshold", "elu", "hardsigmoid", "clamp", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip


def _asked(name, input):
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    """F.avg_pool2d, with the input's scale."""
    _asked("avg_pool2d", input)
    return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    """F.avg_pool3d, with the input's scale."""
    _asked("avg_pool3d", input)
    return F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input, output_size):
    """F.adaptive_avg_pool2d, with the input's scale."""
    _asked("functional.adaptive_avg_pool2d", input)
    return F.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input, output_size):
    """F.adaptive_avg_pool3d, with the input's scale."""
    _asked("functional.adaptive_avg_pool3d", input)
    return F.adaptive_avg_pool3d(input, output_size)


def _conv(dims, parse):
    def conv(input, weight, bias, stride=1, padding=0, dilation=1, groups=1, padding_mode="zeros", scale=1.0, zero_point=0, dtype=cresset.quint8):
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        if input.dtype is not cresset.quint8:
            raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
        if weight.dtype is not cresset.qint8:
            raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
        if input.dim() != dims + 2:
            raise ValueError(f"Input shape must be `(N, C, {', '.join('DHW'[3 - dims :] if dims > 1 else 'L')})`!")
        packed = getattr(cresset.ops.quantized, f"conv{dims}d_prepack")(weight, bias, parse(stride), parse(padding), parse(dilation), groups)
        operator = getattr(cresset.ops.quantized, f"conv{dims}d")
        return (operator if dims == 1 else operator.new)(input, packed, scale, zero_point)

    conv.__name__ = f"conv{dims}d"
    conv.__doc__ = f"F.conv{dims}d of a quint8 input and a qint8 weight; `scale` and `zero_point` are those of the result."
    return conv


conv1d, conv2d, conv3d = _conv(1, lambda v: _pair_from_first(v)[:1] if isinstance(v, (list, tuple)) else _single(v)), _conv(2, _pair), _conv(3, _triple)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """F.interpolate, with the input's scale."""
    _asked("interpolate", input)
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def linear(input, weight, bias=None, scale=None, zero_point=None):
    """F.linear of a quint8 input and a qint8 weight; `scale` and `zero_point` are those of the result, or the input's."""
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    return cresset.ops.quantized.linear(input, cresset.ops.quantized.linear_prepack(weight, bias), scale, zero_point)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """F.max_pool1d, with the input's scale."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """F.max_pool2d, with the input's scale."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def celu(input, scale, zero_point, alpha=1.0):
    """F.celu; `scale` and `zero_point` are those of the result."""
    _asked("celu", input)
    return cresset.ops.quantized.celu(input, scale, zero_point, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False, scale=None, zero_point=None):
    """F.leaky_relu; `scale` and `zero_point` are those of the result, or the input's."""
    if scale is not None and zero_point is not None:
        if inplace:
            raise AssertionError("Cannot rescale with `inplace`")
        return cresset.ops.quantized.leaky_relu(input, negative_slope, False, scale, zero_point)
    made = F.leaky_relu(input, negative_slope)
    return input.copy_(made) if inplace else made


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """F.hardtanh, with the input's scale; where `min_val` is more than `max_val`, all elements are `max_val`."""
    _asked("hardtanh", input)
    made = cresset._C._nn.hardtanh(input, min_val, max_val)
    return input.copy_(made) if inplace else made


def hardswish(input, scale, zero_point):
    """F.hardswish; `scale` and `zero_point` are those of the result."""
    _asked("hardswish", input)
    return cresset.ops.quantized.hardswish(input, scale, zero_point)


def threshold(input, threshold, value):
    """F.threshold, with the input's scale."""
    _asked("threshold", input)
    if threshold is None:
        raise ValueError("Input to 'threshold' must be specified!")
    if value is None:
        raise ValueError("Input to 'value' must be specified!")
    return cresset.ops.quantized.threshold(input, threshold, value)


def elu(input, scale, zero_point, alpha=1.0):
    """F.elu; `scale` and `zero_point` are those of the result."""
    _asked("elu", input)
    return cresset.ops.quantized.elu(input, scale, zero_point, alpha)


def hardsigmoid(input, inplace=False):
    """F.hardsigmoid, with the scale 1/256."""
    _asked("hardsigmoid", input)
    made = F.hardsigmoid(input)
    return input.copy_(made) if inplace else made


def clamp(input, min_, max_):
    """cresset.clamp, with the input's scale."""
    _asked("clamp", input)
    return cresset.clamp(input, min_, max_)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of interpolate."""
    warnings.warn("nn.quantized.functional.upsample is deprecated. Use nn.quantized.functional.interpolate instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate by straight lines, with the corners in their places."""
    warnings.warn("nn.quantized.functional.upsample_bilinear is deprecated. Use nn.quantized.functional.interpolate instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate by the nearest element."""
    warnings.warn("nn.quantized.functional.upsample_nearest is deprecated. Use nn.quantized.functional.interpolate instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")
