"""A weight that is quantized and made real again."""

import cresset

__all__ = ["ReferenceQuantizedModule"]

# What plain tensors have for the elements of quantized ones.
_WHOLE_NUMBERS = {cresset.qint8: cresset.int8, cresset.quint8: cresset.uint8, cresset.qint32: cresset.int32}
_PER_CHANNEL = (cresset.per_channel_affine, cresset.per_channel_affine_float_qparams)


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
    """The weight, quantized; itself without a scheme, and in float16 for that dtype. ValueError for what is no kind of quantization."""
    if dtype == cresset.float16:
        return weight.to(cresset.float16)
    if qscheme is None:
        return weight
    if qscheme is cresset.per_tensor_affine and dtype in _WHOLE_NUMBERS:
        return cresset.quantize_per_tensor(weight.detach(), float(scale), int(zero_point), dtype)
    if qscheme in _PER_CHANNEL and dtype in _WHOLE_NUMBERS:
        zero = zero_point if qscheme is cresset.per_channel_affine_float_qparams else zero_point.long()
        return cresset.quantize_per_channel(weight.detach(), scale, zero, int(axis), dtype)
    raise ValueError(f"Unsupported dtype and qscheme: {dtype}, {qscheme}")


def real_weight(weight, *facts):
    """The weight as its quantized form stands for it; itself without a scheme, for float16, too."""
    return weight if facts[0] is None else quantized_weight(weight, *facts).dequantize()


_quantize_weight, _quantize_and_dequantize_weight = quantized_weight, real_weight


# --- the same by operators on plain tensors (quantized_decomposed), for graphs that are exported


def _decomposed_call(which, tensor, qscheme, dtype, scale, zero_point, axis, quant_min, quant_max):
    from cresset.ao.quantization.fx import _decomposed  # noqa: F401  (registers the operators)

    whole = _WHOLE_NUMBERS.get(dtype)
    if whole is None or qscheme not in (cresset.per_tensor_affine, *_PER_CHANNEL):
        raise ValueError(f"Unsupported dtype and qscheme: {dtype}, {qscheme}")
    limits = cresset.iinfo(whole)
    quant_min, quant_max = limits.min if quant_min is None else quant_min, limits.max if quant_max is None else quant_max
    ops = cresset.ops.quantized_decomposed
    if qscheme is cresset.per_tensor_affine:
        return getattr(ops, which + "_per_tensor")(tensor, scale, zero_point, quant_min, quant_max, whole)
    return getattr(ops, which + "_per_channel")(tensor, scale, zero_point, axis, quant_min, quant_max, whole)


def _quantize_weight_decomposed(weight, weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis, weight_quant_min, weight_quant_max):
    """The weight as whole numbers, of int8 for qint8 and so on. ValueError for a scheme or dtype that has no such form."""
    facts = (weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis, weight_quant_min, weight_quant_max)
    return _decomposed_call("quantize", weight, *facts)


def _dequantize_weight_decomposed(weight, weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis, weight_quant_min, weight_quant_max):
    """The numbers that whole numbers stand for."""
    facts = (weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis, weight_quant_min, weight_quant_max)
    return _decomposed_call("dequantize", weight, *facts)


def _quantize_and_dequantize_weight_decomposed(
    weight, weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis_int, weight_quant_min, weight_quant_max
):
    """The weight as its whole numbers stand for it; itself for other schemes than the affine ones."""
    facts = (weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis_int, weight_quant_min, weight_quant_max)
    if weight_qscheme not in (cresset.per_tensor_affine, *_PER_CHANNEL):
        return weight
    return _dequantize_weight_decomposed(_quantize_weight_decomposed(weight, *facts), *facts)


class ReferenceQuantizedModule:
    """Mixed into a float layer: its weight is rounded as quantization rounds it, by `weight_qparams`."""

    _IS_REFERENCE = True

    def _init_weight_qparams(self, weight_qparams, device):
        WeightFacts(self, weight_qparams, device, "weight_")

    def get_weight(self):
        """The weight as its quantized form stands for it."""
        facts = facts_of(self)
        if self.is_decomposed:
            return _quantize_and_dequantize_weight_decomposed(self.weight, *facts, self.weight_quant_min, self.weight_quant_max)
        return real_weight(self.weight, *facts)

    def get_quantized_weight(self):
        """The weight, quantized."""
        facts = facts_of(self)
        if self.is_decomposed:
            return _quantize_weight_decomposed(self.weight, *facts, self.weight_quant_min, self.weight_quant_max)
        return quantized_weight(self.weight, *facts)

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
        for name in ("scale", "zero_point", "axis"):
            if getattr(self, "weight_" + name, None) is None and prefix + "weight_" + name in state_dict:
                setattr(self, "weight_" + name, state_dict[prefix + "weight_" + name].clone())
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)
