"""Linear layers with a rounded weight."""

from cresset import nn

from .utils import ReferenceQuantizedModule

__all__ = ["Linear"]


class Linear(ReferenceQuantizedModule, nn.Linear):
    """nn.Linear whose weight is rounded as quantization rounds it."""

    _NAME = "Linear"

    def __init__(self, in_features, out_features, bias_=True, device=None, dtype=None, weight_qparams=None):
        nn.Linear.__init__(self, in_features, out_features, bias_, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, x):
        return nn.functional.linear(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_linear, weight_qparams):
        """Of an nn.Linear, with its parameters."""
        made = cls(float_linear.in_features, float_linear.out_features, float_linear.bias is not None, weight_qparams=weight_qparams)
        made.weight = nn.Parameter(float_linear.weight.detach())
        if float_linear.bias is not None:
            made.bias = nn.Parameter(float_linear.bias.detach())
        return made
