"""Dropout of quantized tensors."""

from cresset import nn

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """nn.Dropout for inference: gives its input."""

    def forward(self, input):
        return input

    def _get_name(self):
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of an nn.Dropout."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """The same; the scale and zero point are the input's."""
        return cls(mod.p, mod.inplace)
