"""Linear with weights in int8 or float16."""

import cresset
from cresset import nn

from ._matrix import Matrix

__all__ = ["Linear"]


class Linear(nn.Module):
    """nn.Linear whose weights are int8 (`dtype=cresset.qint8`) or float16 and whose input is quantized to seven bits for each call.

    `weight()` and `bias()` are methods: the weights as they count, and the bias.
    """

    _FLOAT_MODULE = nn.Linear

    def __init__(self, in_features, out_features, bias_=True, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        dtype = cresset.qint8 if dtype is None else dtype
        bias = cresset.zeros(out_features) if bias_ else None
        self._packed_params = Matrix(cresset.zeros(out_features, in_features), bias, dtype)
        self.scale, self.zero_point = 1.0, 0

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of an nn.Linear, by its `qconfig` where it has one. RuntimeError for dtypes other than qint8 and float16."""
        from cresset.ao.quantization.qconfig import weight_kind

        dtype, per_row = weight_kind(getattr(mod, "qconfig", None))
        made = cls(mod.in_features, mod.out_features, mod.bias is not None, dtype)
        made._packed_params = Matrix(mod.weight, mod.bias, dtype, per_row)
        made.training = mod.training
        return made

    def forward(self, x):
        return self._packed_params(x.float()).to(x.dtype)

    def weight(self):
        """The weights as they count."""
        return self._packed_params.dequantized()

    def bias(self):
        """The bias, or None."""
        return self._packed_params.bias

    def set_weight_bias(self, w, b):
        """Quantize other weights."""
        self._packed_params = Matrix(w, b, self._packed_params.dtype)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self):
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text if self._packed_params.scale is None else text + ", qscheme=torch.per_tensor_affine"
