"""Convolutions of whole numbers with a sum."""

from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import quantized as nnq
from cresset.ao.nn.quantized.modules._conv_forward import FORWARDS

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class ConvAdd2d(nnq.Conv2d):
    """Conv2d and the sum with a second input, of whole numbers."""

    _FLOAT_MODULE = nni.ConvAdd2d
    forward = FORWARDS["conv2d_add"]

    def _get_name(self):
        return "QuantizedConvAdd2d"

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvAddReLU2d(ConvAdd2d):
    """Conv2d, the sum with a second input and a ReLU, of whole numbers."""

    _FLOAT_MODULE = nni.ConvAddReLU2d
    forward = FORWARDS["conv2d_add_relu"]

    def _get_name(self):
        return "QuantizedConvAddReLU2d"
