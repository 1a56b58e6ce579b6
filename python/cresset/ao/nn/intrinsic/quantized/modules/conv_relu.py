"""Convolutions of whole numbers with a ReLU."""

from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import quantized as nnq

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]


class _ConvReLU:
    _tail = "_relu"

    def _get_name(self):
        return f"QuantizedConvReLU{self._dims}d"

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvReLU1d(_ConvReLU, nnq.Conv1d):
    """Conv1d and a ReLU of whole numbers."""

    _FLOAT_MODULE = nni.ConvReLU1d


class ConvReLU2d(_ConvReLU, nnq.Conv2d):
    """Conv2d and a ReLU of whole numbers."""

    _FLOAT_MODULE = nni.ConvReLU2d


class ConvReLU3d(_ConvReLU, nnq.Conv3d):
    """Conv3d and a ReLU of whole numbers."""

    _FLOAT_MODULE = nni.ConvReLU3d
