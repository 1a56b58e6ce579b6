"""Batch norms of whole numbers with a ReLU."""

import cresset
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import quantized as nnq

__all__ = ["BNReLU2d", "BNReLU3d"]


class BNReLU2d(nnq.BatchNorm2d):
    """BatchNorm2d and a ReLU of whole numbers."""

    _FLOAT_MODULE = nni.BNReLU2d

    def forward(self, input):
        self._check_input_dim(input)
        scale, zero_point = float(self.scale), int(self.zero_point)
        return cresset.ops.quantized.batch_norm2d_relu(input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, scale, zero_point)

    def _get_name(self):
        return "QuantizedBNReLU2d"

    @classmethod
    def from_reference(cls, bn_relu, output_scale, output_zero_point):
        return super().from_reference(bn_relu[0], output_scale, output_zero_point)


class BNReLU3d(nnq.BatchNorm3d):
    """BatchNorm3d and a ReLU of whole numbers."""

    _FLOAT_MODULE = nni.BNReLU3d

    def forward(self, input):
        self._check_input_dim(input)
        scale, zero_point = float(self.scale), int(self.zero_point)
        return cresset.ops.quantized.batch_norm3d_relu(input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, scale, zero_point)

    def _get_name(self):
        return "QuantizedBNReLU3d"

    @classmethod
    def from_reference(cls, bn_relu, output_scale, output_zero_point):
        return super().from_reference(bn_relu[0], output_scale, output_zero_point)
