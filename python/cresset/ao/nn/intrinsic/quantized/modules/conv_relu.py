"""Convolutions of whole numbers with a ReLU."""

from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import quantized as nnq
from cresset.ao.nn.quantized.modules._conv_forward import FORWARDS

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]


class _ConvReLU:
    def _get_name(self):
        return f"QuantizedConvReLU{self._dims}d"

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvReLU1d(_ConvReLU, nnq.Conv1d):
    """Conv1d and a ReLU of whole numbers."""

    _FLOAT_MODULE = nni.ConvReLU1d
    forward = FORWARDS["conv1d_relu"]


class ConvReLU2d(_ConvReLU, nnq.Conv2d):
    """Conv2d and a ReLU of whole numbers."""

    _FLOAT_MODULE = nni.ConvReLU2d
    forward = FORWARDS["conv2d_relu"]


class ConvReLU3d(_ConvReLU, nnq.Conv3d):
    """Conv3d and a ReLU of whole numbers."""

    _FLOAT_MODULE = nni.ConvReLU3d
    forward = FORWARDS["conv3d_relu"]
