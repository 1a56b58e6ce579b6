"""A weight that is quantized and made real again."""

import cresset

__all__ = ["ReferenceQuantizedModule"]

_DECOMPOSED = (cresset.uint8, cresset.int8, cresset.int32)


class WeightFacts:
    """How a weight is quantized: its scheme, dtype, scale, zero point and axis, which are buffers of the module under `lead` + their names."""

    def __init__(self, module, qparams, device, lead):
        self.module, self.lead = module, lead
        qparams = qparams or {"qscheme": cresset.per_tensor_affine, "dtype": cresset.quint8, "scale": 1.0, "zero_point": 0}
        for name, default in (("qscheme", None), ("dtype", None)):
            setattr(module, lead + name, qparams.get(name, default))
        scheme = qparams["qscheme"]
        module.is_decomposed = qparams.get("is_decomposed", False)
        if scheme in (None, cresset.per_tensor_affine, cresset.per_channel_affine, cresset.per_channel_affine_float_qparams):
            zero_dtype = cresset.int if scheme is not cresset.per_channel_affine_float_qparams else cresset.float
            if scheme is not None:
                for name, dtype in (("scale", cresset.float), ("zero_point", zero_dtype)):
                    value = qparams[name]
                    value = value.detach().clone() if isinstance(value, cresset.Tensor) else cresset.tensor(value, dtype=dtype, device=device)
                    module.register_buffer(lead + name, value)
                module.register_buffer(lead + "axis", cresset.tensor(qparams.get("axis", 0), dtype=cresset.int, device=device))
            for name in ("quant_min", "quant_max"):
                setattr(module, lead + name, qparams.get(name))
        else:
            raise Exception(f"qscheme: {scheme} is not support in reference quantized module")


def facts_of(module, lead="weight_"):
    """(scheme, dtype, scale, zero point, axis)"""
    return tuple(getattr(module, lead + name, None) for name in ("qscheme", "dtype", "scale", "zero_point", "axis"))


def quantized_weight(weight, qscheme, dtype, scale, zero_point, axis):
    """The weight, quantized; itself for other schemes, and in float16 for that dtype."""
    if dtype == cresset.float16:
        return weight.to(cresset.float16)
    if qscheme is cresset.per_tensor_affine and dtype in (cresset.quint8, cresset.qint8, cresset.qint32):
        return cresset.quantize_per_tensor(weight.detach(), float(scale), int(zero_point), dtype)
    if qscheme in (cresset.per_channel_affine, cresset.per_channel_affine_float_qparams) and dtype in (cresset.quint8, cresset.qint8, cresset.qint32):
        zero = zero_point if qscheme is cresset.per_channel_affine_float_qparams else zero_point.long()
        return cresset.quantize_per_channel(weight.detach(), scale, zero, int(axis), dtype)
    return weight


def real_weight(weight, *facts):
    """The weight as its quantized form stands for it."""
    made = quantized_weight(weight, *facts)
    return made.dequantize() if made.is_quantized or made.dtype == cresset.float16 else made


class ReferenceQuantizedModule:
    """Mixed into a float layer: its weight is rounded as quantization rounds it, by `weight_qparams`."""

    _IS_REFERENCE = True

    def _init_weight_qparams(self, weight_qparams, device):
        WeightFacts(self, weight_qparams, device, "weight_")

    def get_weight(self):
        """The weight as its quantized form stands for it."""
        return real_weight(self.weight, *facts_of(self))

    def get_quantized_weight(self):
        """The weight, quantized."""
        return quantized_weight(self.weight, *facts_of(self))

    def _get_name(self):
        return f"QuantizedReference{type(self).__mro__[2].__name__ if not hasattr(self, '_NAME') else self._NAME}"

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("qscheme", "dtype"):
            destination[prefix + "weight_" + name] = getattr(self, "weight_" + name)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        for name in ("qscheme", "dtype"):
            if prefix + "weight_" + name in state_dict:
                setattr(self, "weight_" + name, state_dict.pop(prefix + "weight_" + name))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)
