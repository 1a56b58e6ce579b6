"""Convolutions of whole numbers. What differs by the number of dimensions is read off the class: its operators are `quantized.conv{n}d…`."""

import cresset
from cresset import nn
from cresset.nn.modules.utils import _pair, _single, _triple

from ._conv_forward import FORWARDS
from .utils import WeightedQuantizedModule, check_source, observed_weight, output_qparams, take_numbers

__all__ = [f"Conv{transposed}{n}d" for transposed in ("", "Transpose") for n in (1, 2, 3)]

_SUPPORTED_PADDING = {"zeros", "reflect"}
_LETTERS = {1: "N, C, L", 2: "N, C, H, W", 3: "N, C, D, H, W"}
_TUPLES = {1: _single, 2: _pair, 3: _triple}


def _reverse_repeat_padding(padding):
    """(a, b) → [b, b, a, a]: the order of F.pad."""
    return [n for n in reversed(padding) for _ in range(2)]


class _ConvNd(WeightedQuantizedModule):
    _dims = 0
    _transposed = False
    _letters = ""  # of an input's dimensions
    __constants__ = ["_letters"]

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", device=None, dtype=None):
        super().__init__()
        self._set(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device)

    def _set(self, in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device=None):
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in _SUPPORTED_PADDING or (padding_mode != "zeros" and self._dims == 3):
            known = sorted(_SUPPORTED_PADDING) if self._dims < 3 else ["zeros"]
            raise NotImplementedError(f"'padding_mode' {padding_mode} is not supported by quantized convolution; one of {known} was required.")
        tuples = _TUPLES[self._dims]
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = tuples(kernel_size), tuples(stride)
        self.padding = padding if isinstance(padding, str) else tuples(padding)
        self.dilation, self.transposed, self.output_padding = tuples(dilation), self._transposed, tuples(output_padding)
        self.groups, self.padding_mode = groups, padding_mode
        self._both_sides = _reverse_repeat_padding(self.padding) if padding_mode != "zeros" else [0]
        shape = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        weight = cresset._empty_affine_quantized([*shape, *self.kernel_size], scale=1, zero_point=0, dtype=cresset.qint8)
        self.set_weight_bias(weight, cresset.zeros(out_channels, dtype=cresset.float) if bias else None)
        self.scale, self.zero_point = 1.0, 0

    @classmethod
    def _operator(cls, tail=""):
        return getattr(cresset.ops.quantized, f"conv{'_transpose' * cls._transposed}{cls._dims}d{tail}")

    def set_weight_bias(self, w, b):
        """Another quantized weight, and another bias."""
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._dims
        middle = [self.output_padding] if self.transposed else []
        self._packed_params = self._operator("_prepack")(w, b, self.stride, padding, *middle, self.dilation, self.groups)

    def _weight_bias(self):
        return self._operator("_unpack")(self._packed_params)

    def weight(self):
        """The weight, quantized."""
        return self._weight_bias()[0]

    def bias(self):
        """The bias, or None."""
        return self._weight_bias()[1]

    def _padded(self, x):
        if x.dim() != len(self.kernel_size) + 2:
            raise ValueError("Input shape must be `(" + self._letters + ")`!")
        if self.padding_mode != "zeros":
            x = nn.functional.pad(x, self._both_sides, mode=self.padding_mode)
        return x

    def forward(self, input):
        raise NotImplementedError(f"{type(self).__name__}: a class of one of the six convolutions was required.")

    def _get_name(self):
        return f"QuantizedConv{'Transpose' * self._transposed}{self._dims}d"

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        zeros, ones = (0,) * self._dims, (1,) * self._dims
        for name, usual in (("padding", zeros), ("dilation", ones), ("output_padding", zeros), ("groups", 1)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text if self.bias() is not None else text + ", bias=False"

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"], destination[prefix + "bias"] = self._weight_bias()
        destination[prefix + "scale"] = cresset.tensor(self.scale)
        destination[prefix + "zero_point"] = cresset.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        rest = dict(state_dict)
        names = ("weight", "bias", "scale", "zero_point")
        missing_keys += [prefix + name for name in names if prefix + name not in state_dict and strict]
        if prefix + "weight" in rest:
            self.set_weight_bias(rest.pop(prefix + "weight"), rest.pop(prefix + "bias", None))
        take_numbers(self, rest, prefix)
        super()._load_from_state_dict(rest, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        nn.Module.__init__(made)
        memo[id(self)] = made
        import copy

        for name, value in self.__dict__.items():
            made.__dict__[name] = copy.deepcopy(value, memo)
        return made

    def __copy__(self):
        return self.__deepcopy__({})

    @classmethod
    def _like(cls, source, bias):
        """A layer with the geometry of a float one."""
        middle = [source.output_padding] if cls._transposed else []
        order = [source.groups, bias, source.dilation] if cls._transposed else [source.dilation, source.groups, bias]
        return cls(source.in_channels, source.out_channels, source.kernel_size, source.stride, source.padding, *middle, *order, source.padding_mode)

    @classmethod
    def get_qconv(cls, mod, activation_post_process, weight_post_process=None):
        """The quantized form of a convolution whose weight is watched by the second observer."""
        if weight_post_process is None:
            weight_post_process = mod.qconfig.weight()
        mod.weight_fake_quant = weight_post_process
        return cls.from_float(mod)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a float layer whose activations were watched, or that was trained to be quantized."""
        check_source(cls, mod)
        source, weight, bias = observed_weight(mod, use_precomputed_fake_quant)
        made = cls._like(source, bias is not None)
        made.set_weight_bias(weight, bias)
        made.scale, made.zero_point = output_qparams(mod) or (1.0, 0)
        return made

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        made = cls._like(ref_qconv, ref_qconv.bias is not None)
        made.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class _ConvTransposeNd(_ConvNd):
    _transposed = True

    @classmethod
    def from_reference(cls, ref_qconvt, output_scale, output_zero_point):
        return super().from_reference(ref_qconvt, output_scale, output_zero_point)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros",
                 device=None, dtype=None):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {self.__class__.__name__}')
        nn.Module.__init__(self)
        self._set(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device)

    def _input_padding(self, kernel_size, dilation, padding):
        return [d * (k - 1) - p for k, d, p in zip(kernel_size, dilation, padding)]


def _classes():
    """The six classes, by dimensions and direction."""
    for transposed, base in ((False, _ConvNd), (True, _ConvTransposeNd)):
        for dims in (1, 2, 3):
            name = f"Conv{'Transpose' * transposed}{dims}d"
            doc = f"nn.{name} of whole numbers. `weight()` and `bias()` are methods; `scale` and `zero_point` are those of the output."
            yield name, type(name, (base,), {"__module__": __name__, "__doc__": doc, "_dims": dims, "_FLOAT_MODULE": getattr(nn, name),
                                     "_letters": _LETTERS[dims], "forward": FORWARDS[f"conv{'_transpose' * transposed}{dims}d"]})  # fmt: skip


globals().update(_classes())
