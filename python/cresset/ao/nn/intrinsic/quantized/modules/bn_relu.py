"""Batch norms of whole numbers with a ReLU."""

from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import quantized as nnq

__all__ = ["BNReLU2d", "BNReLU3d"]


class BNReLU2d(nnq.BatchNorm2d):
    """BatchNorm2d and a ReLU of whole numbers."""

    _FLOAT_MODULE, _relu = nni.BNReLU2d, True

    def _get_name(self):
        return "QuantizedBNReLU2d"

    @classmethod
    def from_reference(cls, bn_relu, output_scale, output_zero_point):
        return super().from_reference(bn_relu[0], output_scale, output_zero_point)


class BNReLU3d(nnq.BatchNorm3d):
    """BatchNorm3d and a ReLU of whole numbers."""

    _FLOAT_MODULE, _relu = nni.BNReLU3d, True

    def _get_name(self):
        return "QuantizedBNReLU3d"

    @classmethod
    def from_reference(cls, bn_relu, output_scale, output_zero_point):
        return super().from_reference(bn_relu[0], output_scale, output_zero_point)
