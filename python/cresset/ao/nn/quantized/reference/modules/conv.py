"""Convolutions with a rounded weight."""

from cresset import nn

from .utils import ReferenceQuantizedModule

__all__ = [f"Conv{transposed}{n}d" for transposed in ("", "Transpose") for n in (1, 2, 3)]


class _ConvNd(ReferenceQuantizedModule):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", device=None, dtype=None,
                 weight_qparams=None):  # fmt: skip
        self._CONV.__init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, x):
        return self._conv_forward(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_conv, weight_qparams):
        """Of a float convolution, with its parameters."""
        names = ["in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"]
        if float_conv.transposed:
            names.append("output_padding")
        made = cls(**{name: getattr(float_conv, name) for name in names}, bias=float_conv.bias is not None, weight_qparams=weight_qparams)
        made.weight = nn.Parameter(float_conv.weight.detach())
        if float_conv.bias is not None:
            made.bias = nn.Parameter(float_conv.bias.detach())
        return made


class _ConvTransposeNd(_ConvNd):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros",
                 device=None, dtype=None, weight_qparams=None):  # fmt: skip
        self._CONV.__init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, x, output_size=None):
        dims, padding = self.weight.dim() - 2, self._output_padding(x, output_size)
        function = getattr(nn.functional, f"conv_transpose{dims}d")
        return function(x, self.get_weight(), self.bias, self.stride, self.padding, padding, self.groups, self.dilation)


def _classes():
    for name in __all__:
        body = {"__module__": __name__, "__doc__": f"nn.{name} whose weight is rounded as quantization rounds it.", "_CONV": getattr(nn, name), "_NAME": name}
        yield name, type(name, (_ConvTransposeNd if "Transpose" in name else _ConvNd, getattr(nn, name)), body)


globals().update(_classes())
