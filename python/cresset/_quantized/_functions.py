"""The functions that make quantized tensors, and their questions."""

import math

import cresset

from .. import _C, _quantized_types
from .._overridable import overridable
from .._recorded import recorded
from ._tensor import KINDS, PerChannel, PerTensor, QuantizedTensor

__all__ = [
    "_empty_affine_quantized", "_empty_per_channel_affine_quantized", "_make_per_channel_quantized_tensor", "_make_per_tensor_quantized_tensor",
    "empty_quantized", "int_repr", "quantized_batch_norm", "quantized_max_pool1d", "quantized_max_pool2d", "quantized_max_pool3d",
    "_choose_qparams_per_tensor", "_saturate_weight_to_fp16", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "q_scale",
    "q_zero_point", "quantize_per_channel", "quantize_per_tensor", "quantize_per_tensor_dynamic",
]  # fmt: skip


def _kind(dtype):
    if dtype not in KINDS:
        if isinstance(dtype, _quantized_types.QuantizedType):
            raise NotImplementedError(f"{dtype}: elements of less than eight bits are not part of Cresset.")
        name = cresset.empty(0, dtype=dtype).type().rpartition(".")[2].removesuffix("Tensor")
        raise RuntimeError(f"ScalarType {name} is not supported in new_qtensor.")
    return KINDS[dtype]


def _check_float(input):
    if input.dtype != cresset.float32:
        name = input.type().rpartition(".")[2].removesuffix("Tensor")
        raise RuntimeError(f"Quantize only works on Float Tensor, got {name}")


def quantized(real, quantizer):
    """A float32 tensor by a PerTensor or PerChannel: rounded to even with the zero point added, and kept within the dtype's range."""
    numbers, low, high, _ = _kind(quantizer.dtype)
    if isinstance(quantizer, PerTensor):
        scale, zero = cresset.tensor(quantizer.scale, dtype=cresset.float32), quantizer.zero_point
    else:
        scale, zero = (quantizer.along(v.to(real.device), real.dim()).float() for v in (quantizer.scales, quantizer.zero_points))
    if isinstance(quantizer, PerTensor) and numbers is not cresset.int32:
        place = (real.double() * (1 / scale).double() + zero).float()  # as PyTorch: product and sum are rounded to float32 once, in the other cases twice
    else:
        place = real * (1 / scale) + zero
    # What is no number becomes what PyTorch's conversion of it gives.
    odd = low if numbers is cresset.int32 else high if isinstance(quantizer, PerTensor) else 0
    whole = cresset.where(place.isnan(), cresset.tensor(float(odd)), place.round())
    return QuantizedTensor(whole.double().clamp(low, high).to(numbers), quantizer)


def _one(dtype, scale, zero_point):
    _, low, high, _ = _kind(dtype)
    scale, zero_point = float(scale), int(zero_point)
    if not low <= zero_point <= high:
        side = "below lower" if zero_point < low else "above upper"
        raise RuntimeError(f"quantize_tensor_per_tensor_affine zero_point {zero_point} is {side} bound.")
    return PerTensor(dtype, scale, zero_point)


@overridable
def quantize_per_tensor(input, scale, zero_point, dtype):
    """round(input / scale) + zero_point in quint8, qint8 or qint32, of a float32 tensor; or for a list of tensors, with tensors of scales and zero
    points, a tuple. RuntimeError for other dtypes and for a zero point outside of the dtype's range."""
    if _C._is_tracing():
        several = isinstance(input, (list, tuple))
        overload = ".tensors" if several else ".tensor_qparams" if isinstance(scale, cresset.Tensor) and isinstance(zero_point, cresset.Tensor) else ""
        made = recorded("quantize_per_tensor" + overload, input, scale, zero_point, dtype)
        return tuple(made) if several else made
    if isinstance(input, (list, tuple)):
        return tuple(quantize_per_tensor(t, s, z, dtype) for t, s, z in zip(input, scale.tolist(), zero_point.tolist()))
    quantizer = _one(dtype, scale, zero_point)
    _check_float(input)
    return quantized(input, quantizer)


@overridable
def quantize_per_channel(input, scales, zero_points, axis, dtype):
    """quantize_per_tensor with a scale and a zero point for each index of the dimension `axis`; floating zero points are added before rounding.
    RuntimeError where their numbers are not that dimension's size."""
    if _C._is_tracing():
        return recorded("quantize_per_channel", input, scales, zero_points, axis, dtype)
    _kind(dtype)
    _check_float(input)
    if not 0 <= axis < input.dim():
        raise RuntimeError(f"Channel axis out of range in per channel affine quantization. Got: {axis}Expected: [0, {input.dim()})")
    size = input.shape[axis]
    if scales.numel() != size:
        raise RuntimeError(f"length of scales must equal to channel, expected {size} got, {scales.numel()}")
    if zero_points.numel() != size:
        raise RuntimeError(f"length of zero_points must equal to channel expected {size} got, {zero_points.numel()}")
    return quantized(input, _many(dtype, scales, zero_points, axis))


def _many(dtype, scales, zero_points, axis):
    if zero_points.is_floating_point():
        return PerChannel(dtype, scales.detach().float(), zero_points.detach().float(), axis)
    return PerChannel(dtype, scales.detach().double(), zero_points.detach().long(), axis)


def choose_range(low, high, smallest, largest):
    """(scale, zero point) so that [low, high], made to hold 0, covers the whole numbers from smallest to largest."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (largest - smallest)
    if scale == 0.0 or math.isinf(1 / scale):
        scale = 0.1
    if scale < 6.1e-5:  # numbers below are too small for what computes with scales
        before, scale = scale, 6.1e-5
        if low == 0.0:
            high = scale * (largest - smallest)
        elif high == 0.0:
            low = -scale * (largest - smallest)
        else:
            low, high = low * scale / before, high * scale / before
    from_low, from_high = smallest - low / scale, largest - high / scale
    off_low, off_high = abs(smallest) + abs(low / scale), abs(largest) + abs(high / scale)
    zero = from_low if off_low < off_high else from_high
    return scale, min(max(round(zero), smallest), largest)


def _own_range(input, smallest, largest):
    low, high = (input.min().item(), input.max().item()) if input.numel() else (0.0, 0.0)
    return choose_range(low, high, smallest, largest)


@overridable
def quantize_per_tensor_dynamic(input, dtype, reduce_range):
    """quantize_per_tensor with the scale and zero point of the tensor's own range, over half of the whole numbers with `reduce_range`. The dtype is
    quint8 or qint8; for float16 the tensor is given in that dtype."""
    if _C._is_tracing() and isinstance(dtype, _quantized_types.QuantizedType):
        return recorded("quantize_per_tensor_dynamic", input, dtype, reduce_range)
    if dtype == cresset.float16:
        return input.to(dtype)
    if dtype not in (_quantized_types.quint8, _quantized_types.qint8):
        raise RuntimeError(f"dtype {dtype} not supported")
    _check_float(input)
    _, smallest, largest, _ = _kind(dtype)
    if reduce_range:
        smallest, largest = smallest // 2, largest // 2
    return quantized(input, PerTensor(dtype, *_own_range(input, smallest, largest)))


def _choose_qparams_per_tensor(input, reduce_range=False):
    """(scale, zero point) by which quantize_per_tensor_dynamic quantizes to quint8."""
    return _own_range(input, 0, 127 if reduce_range else 255)


def _saturate_weight_to_fp16(weight):
    """The tensor within float16's range."""
    largest = cresset.finfo(cresset.float16).max
    return weight.clamp(-largest, largest)


def _shape(size):
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)


def _empty_affine_quantized(*size, scale=1.0, zero_point=0, dtype=None, device=None, **kwargs):
    """A quantized tensor whose whole numbers are anything."""
    return QuantizedTensor(cresset.empty(_shape(size), dtype=_kind(dtype)[0], device=device), _one(dtype, scale, zero_point))


def _empty_per_channel_affine_quantized(*size, scales, zero_points, axis, dtype=None, device=None, **kwargs):
    """A tensor quantized by `axis` whose whole numbers are anything."""
    return QuantizedTensor(cresset.empty(_shape(size), dtype=_kind(dtype)[0], device=device), _many(dtype, scales, zero_points, axis))


@overridable
def empty_quantized(size, qtensor, **kwargs):
    """A tensor of another size, quantized as another one, whose whole numbers are anything."""
    if _C._is_tracing():
        return recorded("empty_quantized", list(size), qtensor, **kwargs)
    return QuantizedTensor(cresset.empty(tuple(size), dtype=_kind(qtensor.dtype)[0]), qtensor._quantizer)


def _of_numbers(numbers):
    for dtype, (plain, *_) in KINDS.items():
        if numbers.dtype == plain:
            return dtype
    raise RuntimeError("whole numbers in uint8, int8 or int32 are required")


def _make_per_tensor_quantized_tensor(input, scale, zero_point):
    """The quantized tensor of whole numbers in uint8, int8 or int32, which are copied."""
    if _C._is_tracing():
        return recorded("_make_per_tensor_quantized_tensor", input, scale, zero_point)
    return QuantizedTensor(input.clone(), PerTensor(_of_numbers(input), float(scale), int(zero_point)))


def _make_per_channel_quantized_tensor(input, scale, zero_point, axis):
    """The quantized tensor of whole numbers in uint8, int8 or int32 with a scale for each index of `axis`."""
    if _C._is_tracing():
        return recorded("_make_per_channel_quantized_tensor", input, scale, zero_point, axis)
    return QuantizedTensor(input.clone(), _many(_of_numbers(input), scale, zero_point, axis))


def _question(name):
    @overridable
    def ask(input):
        return getattr(input, name)()

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"Tensor.{name} of a quantized tensor."
    return ask


int_repr, q_scale, q_zero_point = map(_question, ("int_repr", "q_scale", "q_zero_point"))
q_per_channel_scales, q_per_channel_zero_points, q_per_channel_axis = map(
    _question, ("q_per_channel_scales", "q_per_channel_zero_points", "q_per_channel_axis")
)


def rebuild(storage, offset, size, stride, facts, requires_grad=False, backward_hooks=None):
    """A quantized tensor of a file."""
    scheme, *rest = facts
    dtype = storage.dtype
    numbers = cresset.storage.tensor_of_storage(storage.untyped(), _kind(dtype)[0], offset, size, stride)
    if scheme in (_quantized_types.per_channel_affine, _quantized_types.per_channel_affine_float_qparams):
        return QuantizedTensor(numbers, PerChannel(dtype, *rest))
    if scheme is not _quantized_types.per_tensor_affine:
        raise RuntimeError(f"Can't deserialize quantized tensor with qscheme {scheme}")
    return QuantizedTensor(numbers, PerTensor(dtype, *rest))


def _check_quantized(input, name):
    if not input.is_quantized:
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{input.device.type.upper()}' backend: a quantized tensor was required.")


def _max_pool(name, dims):
    @overridable
    def pool(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        _check_quantized(input, name)
        function = getattr(cresset.nn.functional, f"max_pool{dims}d")
        return function(input, kernel_size, stride or None, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"max_pool{dims}d of a quantized tensor; NotImplementedError for another."
    return pool


quantized_max_pool1d, quantized_max_pool2d, quantized_max_pool3d = (_max_pool(f"quantized_max_pool{n}d", n) for n in (1, 2, 3))


@overridable
def quantized_batch_norm(input, weight, bias, mean, var, eps, output_scale, output_zero_point):
    """batch_norm of a tensor quantized by one scale, with given means and variances, quantized by another scale. RuntimeError without a weight or bias,
    NotImplementedError for a tensor that is not quantized."""
    if _C._is_tracing():
        return recorded("quantized_batch_norm", input, weight, bias, mean, var, eps, output_scale, output_zero_point)
    _check_quantized(input, "quantized_batch_norm")
    for name, value in (("Weight", weight), ("Bias", bias)):
        if value is None:
            raise RuntimeError(f"{name} must be provided")
    shape = [1, -1] + [1] * (input.dim() - 2)
    factor = weight / (var + eps).sqrt()
    real = input.dequantize() * factor.view(shape) + (bias - mean * factor).view(shape)
    return quantized(real, _one(input.dtype, output_scale, output_zero_point))
