"""Activations and pools of quantized tensors: of the real numbers, quantized by the scale and zero point given, or by those of the input."""

import cresset
from cresset.nn import functional as F

from .._functions import _one, quantized
from ._register import operator


def _computed(function, qx, scale, zero_point):
    return quantized(function(qx.dequantize()), _one(qx._uniform().dtype, scale, zero_point))


@operator("relu6(Tensor qx, bool inplace=False) -> Tensor")
def relu6(qx, inplace=False):
    """Limited to [0, 6], with the input's scale."""
    made = F.relu6(qx)
    return qx.copy_(made) if inplace else made


@operator("clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor qy")
def clamp(qx, min=None, max=None):
    """Limited, with the input's scale."""
    return cresset.clamp(qx, min, max)


@operator("threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor qy")
def threshold(qx, threshold, value):
    """`value` in place of what is not above the threshold, with the input's scale."""
    return F.threshold(qx, threshold, value)


@operator("leaky_relu(Tensor qx, Scalar negative_slope, bool inplace, float output_scale, int output_zero_point) -> Tensor")
def leaky_relu(qx, negative_slope, inplace, output_scale, output_zero_point):
    """leaky_relu with an output scale of its own; in place it keeps the input's."""
    if inplace:
        return qx.copy_(F.leaky_relu(qx, negative_slope))
    return _computed(lambda x: F.leaky_relu(x, negative_slope), qx, output_scale, output_zero_point)


@operator("elu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor")
def elu(self, output_scale, output_zero_point, alpha=1, scale=1, input_scale=1):
    """elu with an output scale of its own."""
    return _computed(lambda x: cresset.where(x > 0, x * scale, (x * input_scale).expm1() * alpha * scale), self, output_scale, output_zero_point)


@operator("celu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1) -> Tensor")
def celu(self, output_scale, output_zero_point, alpha=1):
    """celu with an output scale of its own."""
    return _computed(lambda x: F.celu(x, float(alpha)), self, output_scale, output_zero_point)


@operator("prelu(Tensor qx, Tensor weight, float output_scale, int output_zero_point) -> Tensor")
def prelu(qx, weight, output_scale, output_zero_point):
    """prelu of a quantized tensor and quantized slopes."""
    return _computed(lambda x: F.prelu(x, weight.dequantize()), qx, output_scale, output_zero_point)


@operator("hardswish(Tensor input, float output_scale, int output_zero_point) -> Tensor")
def hardswish(input, output_scale, output_zero_point):
    """hardswish with an output scale of its own."""
    return _computed(F.hardswish, input, output_scale, output_zero_point)


@operator("sigmoid(Tensor qx, float output_scale, int output_zero_point) -> Tensor")
def sigmoid(qx, output_scale, output_zero_point):
    """sigmoid with an output scale of its own."""
    return _computed(cresset.sigmoid, qx, output_scale, output_zero_point)


@operator("softmax(Tensor qx, int dim, float output_scale, int output_zero_point) -> Tensor")
def softmax(qx, dim, output_scale, output_zero_point):
    """softmax with an output scale of its own."""
    return _computed(lambda x: x.softmax(dim), qx, output_scale, output_zero_point)


@operator("dropout(Tensor self, float output_scale, int output_zero_point, Scalar p=0.5, bool training=False) -> Tensor")
def dropout(self, output_scale, output_zero_point, p=0.5, training=False):
    """dropout with an output scale of its own; without training the input."""
    if not training:
        return self
    return _computed(lambda x: F.dropout(x, float(p), True), self, output_scale, output_zero_point)


@operator("max_pool1d(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> Tensor")
def max_pool1d(qx, kernel_size, stride, padding, dilation, ceil_mode):
    """max_pool1d of a quantized tensor."""
    return F.max_pool1d(qx, kernel_size, stride or None, padding, dilation, ceil_mode)


@operator("max_pool2d(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> Tensor")
def max_pool2d(qx, kernel_size, stride, padding, dilation, ceil_mode):
    """max_pool2d of a quantized tensor."""
    return F.max_pool2d(qx, kernel_size, stride or None, padding, dilation, ceil_mode)
