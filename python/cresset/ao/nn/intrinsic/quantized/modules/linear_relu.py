"""Linear layers of whole numbers with an activation."""

import cresset
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import quantized as nnq

__all__ = ["LinearReLU", "LinearLeakyReLU", "LinearTanh"]


class LinearReLU(nnq.Linear):
    """A linear layer and a ReLU of whole numbers."""

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features, out_features, bias=True, dtype=cresset.qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x):
        return cresset.ops.quantized.linear_relu(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_linear_relu, output_scale, output_zero_point):
        return super().from_reference(ref_linear_relu[0], output_scale, output_zero_point)


class LinearLeakyReLU(nnq.Linear):
    """A linear layer and a leaky ReLU of whole numbers."""

    _FLOAT_MODULE = nni.LinearLeakyReLU

    def __init__(self, in_features, out_features, negative_slope=0.01, bias=True, dtype=cresset.qint8):
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def forward(self, x):
        return cresset.ops.quantized.linear_leaky_relu(x, self._packed_params._packed_params, self.scale, self.zero_point, self.negative_slope)

    def _get_name(self):
        return "QuantizedLinearLeakyReLU"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        made = super().from_float(mod, use_precomputed_fake_quant)
        made.negative_slope = mod[1].negative_slope
        return made

    @classmethod
    def from_reference(cls, ref_mod, output_scale, output_zero_point):
        made = super().from_reference(ref_mod[0], output_scale, output_zero_point)
        made.negative_slope = ref_mod[1].negative_slope
        return made


class LinearTanh(nnq.Linear):
    """A linear layer and a tanh of whole numbers."""

    _FLOAT_MODULE = nni.LinearTanh

    def __init__(self, in_features, out_features, bias=True, dtype=cresset.qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x):
        return cresset.ops.quantized.linear_tanh(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedLinearTanh"

    @classmethod
    def from_reference(cls, ref_mod, output_scale, output_zero_point):
        return super().from_reference(ref_mod[0], output_scale, output_zero_point)
