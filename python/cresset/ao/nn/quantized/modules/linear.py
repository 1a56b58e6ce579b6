"""Linear layers of whole numbers."""

import cresset
from cresset import nn
from cresset.nn.modules.linear import NonDynamicallyQuantizableLinear

from .utils import WeightedQuantizedModule, _hide_packed_params_repr, check_source, observed_weight, output_qparams, take_numbers

__all__ = ["LinearPackedParams", "Linear"]


class LinearPackedParams(nn.Module):
    """The weight and bias of a linear layer, packed: qint8, or float16."""

    _version = 3  # of its part of state dicts

    def __init__(self, dtype=cresset.qint8):
        super().__init__()
        self.dtype = dtype
        weight = cresset._empty_affine_quantized([1, 1], scale=1.0, zero_point=0, dtype=cresset.qint8) if dtype is cresset.qint8 else cresset.zeros(1, 1)
        self.set_weight_bias(weight, None)

    def set_weight_bias(self, weight, bias):
        """Pack others. RuntimeError for a dtype that is not packed."""
        self._whole = self.dtype is cresset.qint8  # for scripts, which do not know the dtype
        if self._whole:
            self._packed_params = cresset.ops.quantized.linear_prepack(weight, bias)
        elif self.dtype == cresset.float16:
            self._packed_params = cresset.ops.quantized.linear_prepack_fp16(weight, bias)
        else:
            raise RuntimeError(f"Unsupported dtype on dynamic quantized linear! Given: {self.dtype}; qint8 or float16 was required.")

    def _weight_bias(self):
        return self._packed_params.unpack()

    def forward(self, x):
        return x

    # A state dict has the dtype, and weight and bias in one tuple.
    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("version", None)
        older = version is not None and version < 3
        known = ["weight", "bias", "dtype"] if older else ["dtype", "_packed_params"]
        missing_keys += [prefix + name for name in known if prefix + name not in state_dict]
        if prefix + known[-1] in state_dict or older:
            self.dtype = state_dict.get(prefix + "dtype", self.dtype if version != 1 else cresset.qint8)
            weight, bias = (state_dict[prefix + "weight"], state_dict[prefix + "bias"]) if older else state_dict[prefix + "_packed_params"]
            before = tuple(self._weight_bias()[0].shape)
            if before != (1, 1) and tuple(weight.shape) != before:
                error_msgs.append(f"size mismatch for {prefix}_packed_params: weights of {tuple(weight.shape)} do not fit {before}.")
                return
            self.set_weight_bias(weight, bias)
        if strict:
            unexpected_keys += [name for name in state_dict if name.startswith(prefix) and name[len(prefix) :] not in known]

    def __repr__(self):
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule):
    """nn.Linear of whole numbers. `weight()` and `bias()` are methods; `scale` and `zero_point` are those of the output."""

    _version = 3  # of its part of state dicts
    _FLOAT_MODULE = (nn.Linear, NonDynamicallyQuantizableLinear)

    def __init__(self, in_features, out_features, bias_=True, dtype=cresset.qint8):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        bias = cresset.zeros(out_features, dtype=cresset.float) if bias_ else None
        if dtype is cresset.qint8:
            weight = cresset._empty_affine_quantized([out_features, in_features], scale=1, zero_point=0, dtype=cresset.qint8)
        elif dtype == cresset.float16:
            weight = cresset.zeros([out_features, in_features], dtype=cresset.float)
        else:
            raise RuntimeError(f"Unsupported dtype specified for quantized Linear! Given: {dtype}; qint8 or float16 was required.")
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, bias)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self):
        return "QuantizedLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, zero_point={self.zero_point}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def __repr__(self):
        return _hide_packed_params_repr(self, LinearPackedParams)

    def forward(self, x):
        return cresset.ops.quantized.linear(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = cresset.tensor(self.scale)
        destination[prefix + "zero_point"] = cresset.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        rest = dict(state_dict)
        take_numbers(self, rest, prefix)
        if local_metadata.get("version", None) in (None, 1):  # the weight was no module of its own
            weight, bias = rest.pop(prefix + "weight", None), rest.pop(prefix + "bias", None)
            if weight is not None:
                state_dict[prefix + "_packed_params.weight"], state_dict[prefix + "_packed_params.bias"] = weight, bias
        super()._load_from_state_dict(rest, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def weight(self):
        """The weight, quantized."""
        return self._weight_bias()[0]

    def bias(self):
        """The bias, or None."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w, b):
        """Another quantized weight, and another bias."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a float layer whose activations were watched, or that was trained to be quantized."""
        check_source(cls, mod)
        source, weight, bias = observed_weight(mod, use_precomputed_fake_quant)
        made = cls(source.in_features, source.out_features, dtype=cresset.qint8)
        made.set_weight_bias(weight, bias)
        made.scale, made.zero_point = output_qparams(mod) or (1.0, 0)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear, output_scale, output_zero_point):
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


