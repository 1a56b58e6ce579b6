"""A weight that is quantized and made real again."""

import cresset

__all__ = ["ReferenceQuantizedModule"]

_QUANTIZED = (cresset.quint8, cresset.qint8, cresset.qint32)
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
    if qscheme is cresset.per_tensor_affine and dtype in _QUANTIZED:
        return cresset.quantize_per_tensor(weight.detach(), float(scale), int(zero_point), dtype)
    if qscheme in _PER_CHANNEL and dtype in _QUANTIZED:
        zero = zero_point if qscheme is cresset.per_channel_affine_float_qparams else zero_point.long()
        return cresset.quantize_per_channel(weight.detach(), scale, zero, int(axis), dtype)
    raise ValueError(f"Unsupported dtype and qscheme: {dtype}, {qscheme}")


def real_weight(weight, *facts):
    """The weight as its quantized form stands for it."""
    made = quantized_weight(weight, *facts)
    return made.dequantize() if made.is_quantized or made.dtype == cresset.float16 else made


_quantize_weight, _quantize_and_dequantize_weight = quantized_weight, real_weight


def _decomposed(which, tensor, qscheme, dtype, scale, zero_point, axis, quant_min, quant_max):
    """quantize or dequantize, on plain tensors of whole numbers."""
    if qscheme is cresset.per_tensor_affine and dtype in _QUANTIZED:
        middle = (scale, zero_point)
    elif qscheme in _PER_CHANNEL and dtype in _QUANTIZED:
        middle = (scale, zero_point, int(axis))
    else:
        raise ValueError(f"Unsupported dtype and qscheme: {dtype}, {qscheme}")
    from cresset.ao.quantization.utils import to_underlying_dtype  # which is loaded after the layers

    kind, overload = ("per_tensor", "tensor") if len(middle) == 2 else ("per_channel", "default")
    operator = getattr(getattr(cresset.ops.quantized_decomposed, f"{which}_{kind}"), overload)
    return operator(tensor, *middle, quant_min, quant_max, to_underlying_dtype(dtype))


def _quantize_weight_decomposed(weight, weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis, weight_quant_min, weight_quant_max):
    """The weight as a plain tensor of whole numbers; in float16 for that dtype, itself without a scheme."""
    if weight_dtype == cresset.float16:
        return weight.to(cresset.float16)
    if weight_qscheme is None:
        return weight
    return _decomposed("quantize", weight, weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis, weight_quant_min, weight_quant_max)


def _dequantize_weight_decomposed(weight, weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis, weight_quant_min, weight_quant_max):
    """What the plain tensor of whole numbers stands for."""
    if weight_qscheme is None or weight_dtype == cresset.float16:
        return weight
    return _decomposed("dequantize", weight, weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis, weight_quant_min, weight_quant_max)


def _quantize_and_dequantize_weight_decomposed(
    weight, weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis_int, weight_quant_min, weight_quant_max,
):  # fmt: skip
    facts = (weight_qscheme, weight_dtype, weight_scale, weight_zero_point, weight_axis_int, weight_quant_min, weight_quant_max)
    return _dequantize_weight_decomposed(_quantize_weight_decomposed(weight, *facts), *facts)


class ReferenceQuantizedModule:
    """Mixed into a float layer: its weight is rounded as quantization rounds it, by `weight_qparams`."""

    _IS_REFERENCE = True

    def _init_weight_qparams(self, weight_qparams, device):
        WeightFacts(self, weight_qparams, device, "weight_")

    def get_weight(self):
        """The weight as its quantized form stands for it."""
        if self.is_decomposed:
            return _quantize_and_dequantize_weight_decomposed(self.weight, *facts_of(self), self.weight_quant_min, self.weight_quant_max)
        return real_weight(self.weight, *facts_of(self))

    def get_quantized_weight(self):
        """The weight, quantized."""
        if self.is_decomposed:
            return _quantize_weight_decomposed(self.weight, *facts_of(self), self.weight_quant_min, self.weight_quant_max)
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
