"""torch.ops.quantized_decomposed: quantization as operators on plain tensors of whole numbers, which graphs are made of."""

import cresset
from cresset.ao.quantization.utils import determine_qparams, validate_qmin_qmax
from cresset.library import Library

quantized_decomposed_lib = Library("quantized_decomposed", "DEF")
_INTEGERS = (cresset.uint8, cresset.int8, cresset.uint16, cresset.int16, cresset.int32)
_FLOATS = (cresset.float8_e5m2, cresset.float8_e4m3fn)
_RANGES = {cresset.uint16: (0, 2**16 - 1)}  # iinfo knows the others


def _operator(*schemas):
    """Declare the schemas with the function as their kernel, which computes by operators that know meta tensors, too."""

    def declare(function):
        for schema in schemas:
            quantized_decomposed_lib.define(schema)
            quantized_decomposed_lib.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
        return function

    return declare


def _quant_min_max_bounds_check(quant_min, quant_max, dtype):
    if dtype in _FLOATS:
        info = cresset.finfo(dtype)
    elif dtype in _INTEGERS:
        info = cresset.iinfo(dtype)
    else:
        raise ValueError(f"Unsupported dtype: {dtype}")
    low, high = _RANGES.get(dtype, (info.min, info.max))
    if quant_min < low:
        raise AssertionError(f"quant_min out of bounds for dtype, quant_min_lower_bound: {low} quant_min: {quant_min}")
    if quant_max > high:
        raise AssertionError(f"quant_max out of bounds for dtype, quant_max_upper_bound: {high} quant_max: {quant_max}")


def _as_float32(input):
    if input.dtype in (cresset.float16, cresset.bfloat16):
        return input.to(cresset.float32)
    if input.dtype != cresset.float32:
        raise AssertionError(f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
    return input


def _check_quantized(input, dtype):
    if input.dtype != dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got {input.dtype}")


def _one(value, what):
    if value.numel() != 1:
        raise AssertionError(f"Expecting {what} tensor to be one element, but received : {value.numel()}")
    return value


@_operator("quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor")
def quantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype):
    """clamp(round(input / scale) + zero_point, quant_min, quant_max) in the dtype."""
    input = _as_float32(input)
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    return (input * (1.0 / scale)).round().add(zero_point).clamp(quant_min, quant_max).to(dtype)


@_operator("quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor")
def quantize_per_tensor_tensor(input, scale, zero_point, quant_min, quant_max, dtype):
    """The same with tensors of one element."""
    return quantize_per_tensor(input, _one(scale, "scale").item(), _one(zero_point, "zero_point").item(), quant_min, quant_max, dtype)


@_operator("quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype) -> Tensor")
def quantize_per_tensor_tensor2(input, scale, zero_point, quant_min, quant_max, dtype):
    """The same with tensors of one element."""
    return quantize_per_tensor_tensor(input, scale, zero_point, quant_min.item(), quant_max.item(), dtype)


@_operator("dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")
def dequantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
    """(input - zero_point) * scale, float32 unless another dtype is asked for."""
    _check_quantized(input, dtype)
    if dtype not in (*_INTEGERS, *_FLOATS):
        raise ValueError(f"Unsupported dtype in dequantize_per_tensor: {dtype}")
    return (input.to(cresset.float32 if out_dtype is None else out_dtype) - zero_point) * scale


@_operator(
    "dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor"
)
def dequantize_per_tensor_tensor(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
    """The same with tensors of one element."""
    return dequantize_per_tensor(input, _one(scale, "scale").item(), _one(zero_point, "zero_point").item(), quant_min, quant_max, dtype, out_dtype=out_dtype)


@_operator(
    "dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype, *, "
    "ScalarType? out_dtype=None) -> Tensor"
)
def dequantize_per_tensor_tensor2(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
    """The same with tensors of one element."""
    return dequantize_per_tensor_tensor(input, scale, zero_point, quant_min.item(), quant_max.item(), dtype, out_dtype=out_dtype)


def _range_of(input, qmin, qmax, eps, dtype, qscheme):
    _as_float32(input)
    if dtype not in (*_INTEGERS, *_FLOATS):
        raise AssertionError(f"Expecting target dtype to be one of {list(_INTEGERS)}, but got dtype: {dtype}")
    validate_qmin_qmax(qmin, qmax)
    low, high = cresset.aminmax(input)
    scale, zero = determine_qparams(low, high, qmin, qmax, dtype, cresset.tensor([eps]), has_customized_qrange=False, qscheme=qscheme)
    return scale.double(), zero.long()


@_operator("choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_tensor(input, qmin, qmax, eps, dtype):
    """(scale, zero point) by which the input's range covers the whole numbers."""
    return _range_of(input, qmin, qmax, eps, dtype, cresset.per_tensor_affine)


@_operator("choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_symmetric_tensor(input, qmin, qmax, eps, dtype):
    """The same with the zero point in the middle."""
    return _range_of(input, qmin, qmax, eps, dtype, cresset.per_tensor_symmetric)


def _along(values, axis, dim):
    return values.view([-1 if d == axis % dim else 1 for d in range(dim)])


@_operator("quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType dtype) -> Tensor")
def quantize_per_channel(input, scales, zero_points, axis, quant_min, quant_max, dtype):
    """quantize_per_tensor with a scale and a zero point for each index of dimension `axis`."""
    input = _as_float32(input)
    if axis >= input.dim():
        raise AssertionError(f"Expecting axis to be < {input.dim()}")
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    scale, zero = (_along(v, axis, input.dim()) for v in (scales, zero_points))
    return ((input * (1.0 / scale)).round() + zero).clamp(quant_min, quant_max).to(dtype)


@_operator(
    "dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, "
    "ScalarType? out_dtype=None) -> Tensor"
)
def dequantize_per_channel(input, scales, zero_points, axis, quant_min, quant_max, dtype, *, out_dtype=None):
    """dequantize_per_tensor with a scale and a zero point for each index of dimension `axis`."""
    _check_quantized(input, dtype)
    if axis >= input.dim():
        raise AssertionError(f"Expecting axis to be < {input.dim()}")
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    centred = input if zero_points is None else input.to(cresset.int32 if dtype in _INTEGERS else cresset.float32) - _along(zero_points, axis, input.dim())
    return (centred * _along(scales, axis, input.dim())).to(cresset.float32 if out_dtype is None else out_dtype)


@_operator("choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_per_token(input, dtype):
    """(scales, zeros) of each row, over the dtype's whole numbers on both sides of 0."""
    if dtype != cresset.int8:
        raise Exception(f"unsupported dtype in choose_qparams_per_token: {dtype}")
    largest = input.abs().amax(dim=-1, keepdim=True)
    largest = largest.float() if largest.dtype == cresset.float16 else largest
    scales = largest.clamp(min=1e-5).div(2**7 - 1)
    return scales, cresset.zeros_like(scales)


@_operator(
    "_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
    "choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
)
def choose_qparams_per_token_asymmetric(input, dtype):
    """(scales, zero points) of each row, over the whole numbers of int8; the end of the range with the lesser error decides."""
    smallest, largest = -128, 127
    low, high = (edge(dim=-1, keepdim=True) for edge in (input.amin, input.amax))
    low, high = low.clamp_max(0), high.clamp_min(0)
    scale = ((high - low) / float(largest - smallest)).clamp(min=cresset.finfo(cresset.float32).eps)
    from_low, from_high = low / scale, high / scale
    zero = cresset.where(smallest + from_low + largest + from_high > 0, smallest - from_low, largest - from_high)
    return scale.to(cresset.float64), zero.clamp(smallest, largest).round().to(cresset.int64)


_choose_qparams_per_token_asymmetric_impl = choose_qparams_per_token_asymmetric


def _per_token_quant_qparam_dim_check(input, scales, zero_points):
    rows = input.shape[:-1].numel() if input.dim() > 1 else 1
    for name, values in (("scale", scales), ("zero_points", zero_points)):
        if values.numel() != rows:
            raise AssertionError(f"num_tokens: {rows} {name}: {values.size()}")


@_operator("quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype) -> Tensor")
def quantize_per_token(input, scales, zero_points, quant_min, quant_max, dtype):
    """quantize_per_tensor with a scale and a zero point for each row."""
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    _per_token_quant_qparam_dim_check(input, scales, zero_points)
    return input.mul(1.0 / scales).add(zero_points).round().clamp(quant_min, quant_max).to(dtype)


@_operator("dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor")
def dequantize_per_token(input, scales, zero_points, quant_min, quant_max, dtype, output_dtype=cresset.float32):
    """dequantize_per_tensor with a scale and a zero point for each row."""
    return ((input - zero_points) * scales).to(output_dtype)


def _check_group(input, group_size, scales):
    if group_size <= 1:
        raise AssertionError("group_size must be > 1")
    if group_size > input.shape[-1] and scales.shape[-1] == 1:
        group_size = input.shape[-1]
    if input.shape[-1] % group_size:
        raise AssertionError(f"input.shape[-1] {input.shape[-1]} must be divisible by group_size {group_size}")
    if input.dim() != 2:
        raise AssertionError(f"input must be 2-dim, got {input.dim()}")
    return group_size


@_operator("quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size) -> Tensor")
def quantize_per_channel_group(input, scales, zero_points, quant_min, quant_max, dtype, group_size=128):
    """quantize_per_tensor with a scale and a zero point for so many neighbours of a row."""
    group_size = _check_group(input, group_size, scales)
    groups = input.reshape(-1, group_size)
    if not bool(groups.isfinite().all()):
        raise AssertionError("input contains NaN or infinities")
    scale, zero = scales.reshape(-1, 1), zero_points.reshape(-1, 1)
    return groups.div(scale).add(zero).round().clamp(quant_min, quant_max).to(dtype).reshape_as(input)


@_operator(
    "dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size, "
    "ScalarType output_dtype) -> Tensor"
)
def dequantize_per_channel_group(w_int8, scales, zero_points, quant_min, quant_max, dtype, group_size=128, output_dtype=cresset.float32):
    """dequantize_per_tensor with a scale and a zero point for so many neighbours of a row."""
    group_size = _check_group(w_int8, group_size, scales)
    scale = scales.reshape(-1, 1)
    zero = cresset.zeros([], dtype=cresset.int32) if zero_points is None else zero_points.reshape(-1, 1)
    return w_int8.reshape(-1, group_size).sub(zero).mul(scale).reshape_as(w_int8).to(output_dtype)


class FakeQuantPerChannel(cresset.autograd.Function):
    """Quantized and made real again by channels, with a gradient where nothing was clamped."""

    @staticmethod
    def forward(ctx, input, scales, zero_points, axis, quant_min, quant_max):
        if scales.dtype != cresset.float32:
            scales = scales.to(cresset.float32)
        if zero_points.dtype != cresset.int32:
            zero_points = zero_points.to(cresset.int32)
        if input.dtype != cresset.float32:
            raise AssertionError(f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
        if axis >= input.dim():
            raise AssertionError(f"Expecting axis to be < {input.dim()}")
        scale, zero = (_along(v, axis, input.dim()) for v in (scales, zero_points))
        whole = (input / scale).round() + zero
        ctx.save_for_backward((whole >= quant_min) & (whole <= quant_max))
        return (whole.clamp(quant_min, quant_max) - zero) * scale

    @staticmethod
    def backward(ctx, gy):
        (within,) = ctx.saved_tensors
        return gy * within, None, None, None, None, None


quantized_decomposed_lib.define("fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max) -> Tensor")


def fake_quant_per_channel(input, scales, zero_points, axis, quant_min, quant_max):
    """FakeQuantPerChannel as an operator."""
    return FakeQuantPerChannel.apply(input, scales, zero_points, axis, quant_min, quant_max)


quantized_decomposed_lib.impl("fake_quant_per_channel", fake_quant_per_channel, "Autograd")
quantized_decomposed_lib.impl("fake_quant_per_channel", fake_quant_per_channel, "CompositeExplicitAutograd")


@_operator("convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor")
def convert_element_type(input, dtype):
    """The input in another dtype, which compilers leave where it is."""
    return input.to(dtype)
