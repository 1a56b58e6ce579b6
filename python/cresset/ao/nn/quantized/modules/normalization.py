"""Normalisations of whole numbers."""

import cresset
from cresset import nn

from .utils import output_qparams

__all__ = ["LayerNorm", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _Normalization:
    """The scale and zero point of the output, and the making of a float layer (its arguments are `_takes`)."""

    _takes = ()

    def _set(self, weight, bias, scale, zero_point, device):
        self.weight, self.bias = weight, bias
        self.register_buffer("scale", cresset.tensor(scale, device=device))
        self.register_buffer("zero_point", cresset.tensor(zero_point, device=device))

    def _get_name(self):
        return f"Quantized{type(self).__name__}"

    @property
    def _output(self):
        return float(self.scale), int(self.zero_point)

    @classmethod
    def _of(cls, mod, scale, zero_point):
        first, *rest = cls._takes
        between = [getattr(mod, name) for name in rest if name not in ("eps", "affine", "elementwise_affine")]
        named = {name: getattr(mod, name) for name in rest if name in ("eps", "affine", "elementwise_affine")}
        return cls(getattr(mod, first), *between, mod.weight, mod.bias, float(scale), int(zero_point), **named)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a float layer whose output was watched."""
        return cls._of(mod, *output_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """The same, with the scale and zero point given."""
        return cls._of(mod, scale, zero_point)


class LayerNorm(_Normalization, nn.LayerNorm):
    """nn.LayerNorm of whole numbers."""

    _takes = ("normalized_shape", "eps", "elementwise_affine")

    def __init__(self, normalized_shape, weight, bias, scale, zero_point, eps=1e-5, elementwise_affine=True, device=None, dtype=None):
        nn.LayerNorm.__init__(self, normalized_shape, eps=eps, elementwise_affine=elementwise_affine, device=device, dtype=dtype)
        self._set(weight, bias, scale, zero_point, device)

    def forward(self, input):
        return cresset.ops.quantized.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, *self._output)


class GroupNorm(_Normalization, nn.GroupNorm):
    """nn.GroupNorm of whole numbers."""

    _takes = ("num_groups", "num_channels", "eps", "affine")

    def __init__(self, num_groups, num_channels, weight, bias, scale, zero_point, eps=1e-5, affine=True, device=None, dtype=None):
        nn.GroupNorm.__init__(self, num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self._set(weight, bias, scale, zero_point, device)

    def forward(self, input):
        return cresset.ops.quantized.group_norm(input, self.num_groups, self.weight, self.bias, self.eps, *self._output)


class _InstanceNorm(_Normalization):
    _takes = ("num_features", "eps", "affine")

    def __init__(self, num_features, weight, bias, scale, zero_point, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self._set(weight, bias, scale, zero_point, device)

    def forward(self, input):
        return cresset.ops.quantized.instance_norm(input, self.weight, self.bias, self.eps, *self._output)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """nn.InstanceNorm1d of whole numbers."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """nn.InstanceNorm2d of whole numbers."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """nn.InstanceNorm3d of whole numbers."""
