"""Batch norms of whole numbers."""

import cresset
from cresset import nn

from .utils import output_qparams

__all__ = ["BatchNorm2d", "BatchNorm3d"]


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    _dims = 0
    _letters = ""  # of an input's dimensions
    __constants__ = ["_letters", "_dims"]

    def __init__(self, num_features, eps=1e-5, momentum=0.1, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, True, True, device, dtype)
        self.register_buffer("scale", cresset.tensor(1.0, device=device))
        self.register_buffer("zero_point", cresset.tensor(0, device=device))

    def _check_input_dim(self, input):
        if input.dim() != self._dims + 2:
            raise ValueError("Input shape must be `(" + self._letters + ")`!")

    def _get_name(self):
        return f"QuantizedBatchNorm{self._dims}d"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a batch norm, or of one fused with a ReLU, whose output was watched."""
        source = mod[0] if isinstance(mod, nn.Sequential) else mod
        made = cls(source.num_features, source.eps)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(made, name, getattr(source, name))
        scale, zero = output_qparams(mod) or (1.0, 0)
        made.scale, made.zero_point = cresset.tensor(scale), cresset.tensor(zero)
        return made

    @classmethod
    def from_reference(cls, bn, output_scale, output_zero_point):
        """The same, with the scale and zero point given."""
        made = cls(bn.num_features, bn.eps, device=bn.weight.device, dtype=bn.weight.dtype)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(made, name, getattr(bn, name))
        made.scale, made.zero_point = cresset.tensor(output_scale), cresset.tensor(output_zero_point)
        return made


class BatchNorm2d(_BatchNorm):
    """nn.BatchNorm2d of whole numbers."""

    _dims, _letters = 2, "N, C, H, W"

    def forward(self, input):
        self._check_input_dim(input)
        scale, zero_point = float(self.scale), int(self.zero_point)
        return cresset.ops.quantized.batch_norm2d(input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, scale, zero_point)


class BatchNorm3d(_BatchNorm):
    """nn.BatchNorm3d of whole numbers."""

    _dims, _letters = 3, "N, C, D, H, W"

    def forward(self, input):
        self._check_input_dim(input)
        scale, zero_point = float(self.scale), int(self.zero_point)
        return cresset.ops.quantized.batch_norm3d(input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, scale, zero_point)
