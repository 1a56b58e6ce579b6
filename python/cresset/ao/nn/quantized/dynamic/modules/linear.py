"""Linear with weights in int8 or float16."""

import cresset
from cresset import nn

from ._matrix import Matrix

__all__ = ["Linear"]


class Linear(nn.Module):
    """nn.Linear whose weights are int8 (`dtype=cresset.qint8`) or float16 and whose input is quantized to seven bits for each call.

    `weight()` and `bias()` are methods: the quantized weights, and the bias.
    """

    _FLOAT_MODULE = nn.Linear
    _version = 4  # of its part of state dicts

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
        """The weights: a quantized tensor of qint8, or the float16 numbers in float32."""
        return self._packed_params.weight()

    def bias(self):
        """The bias, or None."""
        return self._packed_params.bias

    def set_weight_bias(self, w, b):
        """Other weights, quantized already or not, and another bias."""
        if w.is_quantized:
            self._packed_params.take(w, b)
        else:
            self._packed_params = Matrix(w, b, self._packed_params.dtype)

    def _weight_bias(self):
        return self.weight(), self.bias()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = cresset.tensor(self.scale)
        destination[prefix + "zero_point"] = cresset.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        self.scale, self.zero_point = (
            type(now)(state_dict.get(prefix + name, now)) for name, now in (("scale", self.scale), ("zero_point", self.zero_point))
        )
        rest = {name: value for name, value in state_dict.items() if name not in (prefix + "scale", prefix + "zero_point")}
        super()._load_from_state_dict(rest, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self):
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text if self._packed_params.scale is None else text + ", qscheme=torch.per_tensor_affine"
