"""What archives of scripts call for quantized tensors: they hold numbers, scales and zero points."""

import cresset

from .._functions import _many, _one
from .._tensor import KINDS, PerTensor, QuantizedTensor
from ._register import operator

__all__ = []


@operator("parts(Tensor x) -> (Tensor, Tensor, Tensor, int)", namespace="_quantized")
def parts(x):
    """(numbers, scales, zero points, axis); the axis is -1 for one scale and zero point, and -2 for a tensor that is not quantized."""
    if not isinstance(x, QuantizedTensor):
        return x, x, x, -2
    q = x._quantizer
    if isinstance(q, PerTensor):
        return x._numbers, cresset.tensor([q.scale], dtype=cresset.float64), cresset.tensor([q.zero_point]), -1
    return x._numbers, q.scales, q.zero_points, q.axis


@operator("of_parts(Tensor numbers, Tensor scales, Tensor zero_points, int axis) -> Tensor", namespace="_quantized")
def of_parts(numbers, scales, zero_points, axis):
    """The tensor of its parts. RuntimeError where they do not fit."""
    dtype = next((dtype for dtype, facts in KINDS.items() if facts[0] is numbers.dtype), None)
    if dtype is None:
        raise RuntimeError(f"_quantized::of_parts: numbers of uint8, int8 or int32 were required; got {numbers.dtype}.")
    if axis == -1:
        return QuantizedTensor(numbers, _one(dtype, scales, zero_points))
    if not 0 <= axis < numbers.dim():
        raise RuntimeError(f"_quantized::of_parts: an axis from 0 to {numbers.dim() - 1} was required; got {axis}.")
    for what, values in (("scales", scales), ("zero points", zero_points)):
        if values.shape != (numbers.shape[axis],):
            raise RuntimeError(f"_quantized::of_parts: {numbers.shape[axis]} {what} were required; got a tensor of size {list(values.shape)}.")
    return QuantizedTensor(numbers, _many(dtype, scales, zero_points, axis))
