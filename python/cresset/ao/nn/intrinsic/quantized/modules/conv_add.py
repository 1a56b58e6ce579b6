"""Convolutions of whole numbers with a sum."""

import cresset
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import quantized as nnq

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class ConvAdd2d(nnq.Conv2d):
    """Conv2d and the sum with a second input, of whole numbers."""

    _FLOAT_MODULE, _tail = nni.ConvAdd2d, "_add"

    def forward(self, input, extra_input):
        operator = getattr(cresset.ops.quantized, "conv2d" + self._tail)
        return operator(self._padded(input), extra_input, self._packed_params, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedConvAdd2d"

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvAddReLU2d(ConvAdd2d):
    """Conv2d, the sum with a second input and a ReLU, of whole numbers."""

    _FLOAT_MODULE, _tail = nni.ConvAddReLU2d, "_add_relu"

    def _get_name(self):
        return "QuantizedConvAddReLU2d"
