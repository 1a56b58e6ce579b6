"""Activations of whole numbers that have an output scale of their own."""

import cresset
from cresset import nn

from .utils import _quantize_weight, output_qparams

__all__ = ["ReLU6", "Hardswish", "ELU", "LeakyReLU", "Sigmoid", "Softmax", "MultiheadAttention", "PReLU"]  # noqa: F822


class ReLU6(nn.ReLU):
    """nn.ReLU6 of whole numbers."""

    def __init__(self, inplace=False):
        super().__init__(inplace)
        self.inplace = inplace

    def forward(self, input):
        return cresset.ops.quantized.relu6(input, self.inplace)

    def _get_name(self):
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """The quantized form of an nn.ReLU6."""
        return ReLU6(mod.inplace)


def _of_float(*names, by="scale zero_point"):
    """A class method that makes the layer of a float one: its arguments `names`, with the scale and zero point that were found."""
    keys = by.split()

    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a float layer whose output was watched."""
        scale, zero = output_qparams(mod)
        return cls(**{name: getattr(mod, name) for name in names}, **dict(zip(keys, (scale, zero))))

    def from_reference(cls, mod, scale, zero_point):
        """The same, with the scale and zero point given."""
        return cls(**{name: getattr(mod, name) for name in names}, **dict(zip(keys, (float(scale), int(zero_point)))))

    return classmethod(from_float), classmethod(from_reference)


class Hardswish(nn.Hardswish):
    """nn.Hardswish of whole numbers."""

    def __init__(self, scale, zero_point, device=None, dtype=None):
        super().__init__()
        self.register_buffer("scale", cresset.tensor(scale, device=device))
        self.register_buffer("zero_point", cresset.tensor(zero_point, device=device))

    def forward(self, input):
        return cresset.ops.quantized.hardswish(input, float(self.scale), int(self.zero_point))

    def _get_name(self):
        return "QuantizedHardswish"

    from_float, from_reference = _of_float()


class ELU(nn.ELU):
    """nn.ELU of whole numbers."""

    def __init__(self, scale, zero_point, alpha=1.0):
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input):
        return cresset.ops.quantized.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self):
        return "QuantizedELU"

    from_float, from_reference = _of_float("alpha")


class LeakyReLU(nn.LeakyReLU):
    """nn.LeakyReLU of whole numbers."""

    def __init__(self, scale, zero_point, negative_slope=1e-2, inplace=False, device=None, dtype=None):
        super().__init__(negative_slope, inplace)
        self.register_buffer("scale", cresset.tensor(scale, device=device))
        self.register_buffer("zero_point", cresset.tensor(zero_point, device=device))

    def forward(self, input):
        return cresset.ops.quantized.leaky_relu(input, self.negative_slope, self.inplace, float(self.scale), int(self.zero_point))

    def _get_name(self):
        return "QuantizedLeakyReLU"

    from_float, from_reference = _of_float("negative_slope", "inplace")


class Sigmoid(nn.Sigmoid):
    """nn.Sigmoid of whole numbers."""

    def __init__(self, output_scale, output_zero_point):
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input):
        return cresset.ops.quantized.sigmoid(input, self.output_scale, self.output_zero_point)

    from_float, _ = _of_float(by="output_scale output_zero_point")


class Softmax(nn.Softmax):
    """nn.Softmax of whole numbers."""

    def __init__(self, dim=None, scale=1.0, zero_point=0):
        super().__init__()
        self.dim, self.scale, self.zero_point = dim, scale, zero_point

    def forward(self, input):
        dim = self.dim
        if dim is None:
            dim = 0 if input.dim() in (0, 1, 3) else 1
        return cresset.ops.quantized.softmax(input, dim, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedSoftmax"

    from_float, from_reference = _of_float("dim")


class PReLU(nn.Module):
    """nn.PReLU of whole numbers; its slopes are quantized, too."""

    def __init__(self, output_scale, output_zero_point, num_parameters=1):
        super().__init__()
        self.num_parameters, self.scale, self.zero_point = num_parameters, output_scale, output_zero_point
        self.set_weight(cresset.quantize_per_tensor(cresset.randn(num_parameters), 1.0, 0, cresset.quint8))

    def set_weight(self, w):
        """Other quantized slopes."""
        self.weight = w

    def forward(self, input):
        return cresset.ops.quantized.prelu(input, self.weight, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedPReLU"

    @classmethod
    def _of(cls, mod, scale, zero_point):
        made = cls(float(scale), int(zero_point), mod.num_parameters)
        observer = mod.qconfig.weight()
        observer(mod.weight)
        weight = mod.weight.detach().float()
        if observer.dtype is cresset.qint8:
            made.set_weight(_quantize_weight(weight, observer))
        else:
            slope_scale, slope_zero = observer.calculate_qparams()
            made.set_weight(cresset.quantize_per_tensor(weight, float(slope_scale), int(slope_zero), cresset.quint8))
        return made

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a float layer whose output was watched."""
        return cls._of(mod, *output_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """The same, with the scale and zero point given."""
        return cls._of(mod, scale, zero_point)


def __getattr__(name):
    if name == "MultiheadAttention":
        import importlib

        return importlib.import_module(f"{__package__}._attention").MultiheadAttention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
