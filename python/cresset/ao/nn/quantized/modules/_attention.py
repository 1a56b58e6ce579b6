"""Attention whose projections are of whole numbers."""

import cresset
from cresset.ao.nn import quantizable as nnqa

__all__ = ["MultiheadAttention"]


class MultiheadAttention(nnqa.MultiheadAttention):
    """A quantizable.MultiheadAttention whose parts are quantized."""

    _FLOAT_MODULE = nnqa.MultiheadAttention

    def _get_name(self):
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other):
        """Raises NotImplementedError: it is made of an observed quantizable.MultiheadAttention."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed MHA module. Please, see the examples on quantizable MHAs."
        )

    @classmethod
    def from_observed(cls, other):
        """The quantized form of an observed quantizable.MultiheadAttention."""
        made = super().from_observed(other)
        for name in ("bias_k", "bias_v"):
            value = made._parameters.pop(name, None)
            if value is not None:
                value = cresset.quantize_per_tensor_dynamic(value.detach(), cresset.quint8, False)
            made.__dict__[name] = value
        for name in ("in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            made._parameters.pop(name, None)
        return made


MultiheadAttention.__module__ = f"{__package__}.activation"
