"""The arithmetic of whole numbers that linear operators and convolutions share.

Sums of products are exact. They become results in float32, as FBGEMM computes them: the sum, plus the bias in its units, times
scale(input) * scale(weight) / scale(output), rounded to even, plus the zero point, kept within the dtype's range.
"""

import cresset

from .._functions import _choose_qparams_per_tensor, _one, quantized
from .._tensor import KINDS, PerTensor, QuantizedTensor

_EXACT = 1 << 24  # whole numbers up to here are exact in float32

RELU = "relu"


def check_activation(x, operation):
    """RuntimeError unless x is quantized by one scale."""
    if not isinstance(x, QuantizedTensor):
        raise NotImplementedError(f"Could not run 'quantized::{operation}' with arguments from the '{x.device.type.upper()}' backend: a quantized tensor was required.")
    x._uniform()


def check_output(dtype, scale, zero_point):
    """The quantizer of a result."""
    return _one(dtype, scale, zero_point)


def weight_scales(weight, axis=0):
    """The float32 scales of a quantized weight: one, or one for each index of its axis."""
    q = weight._quantizer
    return cresset.tensor([q.scale], dtype=cresset.float32) if isinstance(q, PerTensor) else q.scales.float()


def packed_weight(weight):
    """The weight as packing keeps it: with scales of float32."""
    q = weight._quantizer
    if isinstance(q, PerTensor):
        return QuantizedTensor(weight._numbers, q._replace(scale=cresset.tensor(q.scale, dtype=cresset.float32).item()))
    return QuantizedTensor(weight._numbers, q._replace(scales=q.scales.float().to(q.scales.dtype)))


def centred(t):
    """The whole numbers of a quantized tensor without its zero point, in float64, which holds all sums of their products."""
    q = t._quantizer
    zero = q.zero_point if isinstance(q, PerTensor) else q.along(q.zero_points, t.dim())
    return t._numbers.double() - zero


def exact(product, x, weight, depth):
    """product(x, weight) of two tensors of whole numbers in float64, each sum over `depth` products; in float32 where that is exact, too."""
    if depth * 255 * 128 < _EXACT:
        x, weight = x.float(), weight.float()
    return product(x, weight).float()


def requantized(sums, bias, product_scales, quantizer, dim, after=None):
    """A quantized tensor of the sums of products, whose dimension `dim` is that of bias and scales. `after`: "relu", or a function of real numbers."""
    shape = [1] * sums.dim()
    shape[dim] = -1
    scales = product_scales.view(shape)
    if bias is not None:
        sums = sums + (bias.detach().float() / product_scales).view(shape)
    if callable(after):
        return quantized(after(sums * scales), quantizer)
    scale = cresset.tensor(quantizer.scale, dtype=cresset.float32)
    numbers, low, high, _ = KINDS[quantizer.dtype]
    whole = (sums * (scales / scale)).round().double() + quantizer.zero_point
    return QuantizedTensor(whole.clamp(quantizer.zero_point if after == RELU else low, high).to(numbers), quantizer)


def dynamic(x, reduce_range):
    """x quantized to quint8 by its own range; over seven bits with `reduce_range`."""
    return quantized(x, PerTensor(cresset.quint8, *_choose_qparams_per_tensor(x, reduce_range)))
