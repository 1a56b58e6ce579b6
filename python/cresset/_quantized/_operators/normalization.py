"""Normalisations of quantized tensors."""

import cresset
from cresset.nn import functional as F

from .._functions import _one, quantized
from ._register import operator


def _batch_norm(relu):
    def norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
        quantizer = qx._uniform()
        inverse = (var.float() + eps).rsqrt() if weight is None else weight.float() / (var.float() + eps).sqrt()
        offset = -mean * inverse if bias is None else bias - mean * inverse
        shape = [1, -1] + [1] * (qx.dim() - 2)
        scale = cresset.tensor(output_scale, dtype=cresset.float32)
        factor, term = (inverse * quantizer.scale / scale).view(shape), (offset / scale).view(shape)
        whole = (qx._numbers.float() - quantizer.zero_point) * factor + term  # in units of the output
        made = quantized(whole * scale, _one(qx.dtype, output_scale, output_zero_point))
        return made.relu() if relu else made

    return norm


for _dims in ("", "1d", "2d", "3d"):
    for _relu in (False, True):
        _arguments = "(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, float output_scale, int output_zero_point) -> Tensor"
        operator(f"batch_norm{_dims}{'_relu' * _relu}{_arguments}")(_batch_norm(_relu))

_TAIL = "Tensor? weight, Tensor? bias, float eps, float output_scale, int output_zero_point) -> Tensor"


def _normalized(function, input, scale, zero_point):
    return quantized(function(input.dequantize()), _one(input._uniform().dtype, scale, zero_point))


@operator("layer_norm(Tensor input, int[] normalized_shape, " + _TAIL)
def layer_norm(input, normalized_shape, weight, bias, eps, output_scale, output_zero_point):
    """layer_norm with an output scale of its own."""
    return _normalized(lambda x: F.layer_norm(x, normalized_shape, weight, bias, eps), input, output_scale, output_zero_point)


@operator("group_norm(Tensor input, int num_groups, " + _TAIL)
def group_norm(input, num_groups, weight, bias, eps, output_scale, output_zero_point):
    """group_norm with an output scale of its own."""
    return _normalized(lambda x: F.group_norm(x, num_groups, weight, bias, eps), input, output_scale, output_zero_point)


@operator("instance_norm(Tensor input, " + _TAIL)
def instance_norm(input, weight, bias, eps, output_scale, output_zero_point):
    """instance_norm with an output scale of its own."""
    return _normalized(lambda x: F.instance_norm(x, None, None, weight, bias, True, 0.1, eps), input, output_scale, output_zero_point)
