"""Convolutions that are trained to be quantized."""

from cresset import nn
from cresset.ao.nn import intrinsic as nni

from ._source import check_source

__all__ = ["Conv1d", "Conv2d", "Conv3d"]

GEOMETRY = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups")


def float_conv(conv, source, weight, bias):
    """A float layer of the class `conv` with the geometry of another and the parameters given."""
    made = conv(*(getattr(source, name) for name in GEOMETRY), bias is not None, source.padding_mode)
    made.weight = nn.Parameter(weight.detach())
    if bias is not None:
        made.bias = nn.Parameter(bias.detach())
    return made


class _ConvNd(nn.modules.conv._ConvNd):
    """Mixed into nn.Conv{n}d: its weight passes through the fake quantizer of its qconfig."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", qconfig=None,
                 device=None, dtype=None):  # fmt: skip
        self._CONV.__init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input):
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The form for training of a float layer that has a qconfig, with its parameters."""
        check_source(cls, mod)
        qconfig = mod.qconfig
        if isinstance(mod, nni._FusedModule):
            mod = mod[0]
        made = cls(*(getattr(mod, name) for name in GEOMETRY), bias=mod.bias is not None, padding_mode=mod.padding_mode, qconfig=qconfig)
        made.weight, made.bias = mod.weight, mod.bias
        return made

    def to_float(self):
        """The float layer, or the float sequence with a ReLU, with the parameters as they are."""
        made = float_conv(self._CONV, self, self.weight, self.bias)
        if issubclass(self._FLOAT_MODULE, nni._FusedModule):
            made = self._FLOAT_MODULE(made, nn.ReLU())
        made.train(self.training)
        return made


class Conv1d(_ConvNd, nn.Conv1d):
    """nn.Conv1d whose weight passes through the fake quantizer of its qconfig."""

    _FLOAT_MODULE = _CONV = nn.Conv1d


class Conv2d(_ConvNd, nn.Conv2d):
    """nn.Conv2d whose weight passes through the fake quantizer of its qconfig."""

    _FLOAT_MODULE = _CONV = nn.Conv2d


class Conv3d(_ConvNd, nn.Conv3d):
    """nn.Conv3d whose weight passes through the fake quantizer of its qconfig."""

    _FLOAT_MODULE = _CONV = nn.Conv3d
