"""Convolutions of quantized inputs, and of real ones that are quantized as they come.

Packed weights carry the geometry in their numbers: dims, transposed?, groups, then stride, padding, dilation and output padding. Those over one
dimension are packed for two, as PyTorch packs them.
"""

import cresset
from cresset.backends._quantized import require_engine

from .._tensor import PerChannel, QuantizedTensor
from . import _integers
from ._register import operator

_NAMES = ("stride", "padding", "dilation", "output_padding")
_FUNCTIONS = {
    (dims, transposed): getattr(cresset.nn.functional, f"conv{'_transpose' * transposed}{dims}d") for dims in (1, 2, 3) for transposed in (False, True)
}  # fmt: skip


class Geometry:
    """What a convolution does beside its weight: `dims` of its input, and per dimension stride, padding, dilation and output padding."""

    def __init__(self, numbers):
        self.dims, transposed, self.groups, *rest = numbers
        self.transposed = bool(transposed)
        for i, name in enumerate(_NAMES):
            setattr(self, name, rest[i * self.dims : (i + 1) * self.dims])

    def sums(self, x, weight):
        """The convolution of whole numbers, exactly."""
        function = _FUNCTIONS[self.dims, self.transposed]
        last = (self.output_padding, self.groups, self.dilation) if self.transposed else (self.dilation, self.groups)
        depth = weight[0].numel() if not self.transposed else weight.shape[0] * weight[0, 0].numel()
        return _integers.exact(lambda a, b: function(a, b, None, self.stride, self.padding, *last), x, weight, depth)


def _pack(kind, weight, bias, numbers):
    return getattr(cresset.classes.quantized, f"{kind}PackedParamsBase")([weight, bias], numbers)


def _at(x, change):
    """A quantized tensor with a dimension of one row more (unsqueeze), or less (squeeze), behind the channels."""
    return QuantizedTensor(change(x._numbers, 2), x._quantizer)


def _prepack(name, dims, transposed):
    kind = "Conv3d" if dims == 3 else "Conv2d"

    def pack(weight, bias, stride, padding, *rest):
        *output_padding, dilation, groups = rest
        require_engine(f"quantized::{name}")
        if not isinstance(weight, QuantizedTensor):
            raise NotImplementedError(f"Could not run 'quantized::{name}' with arguments from the 'CPU' backend: a quantized weight was required.")
        if weight.dim() != dims + 2:
            raise RuntimeError(f"Weights are expected to have {dims + 2} dimensions; {weight.dim()} were given.")
        if isinstance(weight._quantizer, PerChannel) and weight._quantizer.axis != int(transposed):
            raise RuntimeError(f"quantized::{name}: scales for each index of dimension {int(transposed)} of the weight were required; got dimension {weight._quantizer.axis}.")
        each = [stride, padding, dilation, output_padding[0] if output_padding else [0] * dims]
        for word, values in zip(_NAMES, each):
            if len(values) != dims:
                raise RuntimeError(f"{word} should contain {dims} elements for {dims}D convolution; got {list(values)}.")
        outputs = weight.shape[1] * groups if transposed else weight.shape[0]
        if bias is not None and tuple(bias.shape) != (outputs,):
            raise RuntimeError(f"bias should have K elements: {outputs}; got the shape {list(bias.shape)}.")
        if dims == 1:
            weight, each = _at(weight, cresset.Tensor.unsqueeze), [[first, *values] for first, values in zip((1, 0, 1, 0), each, strict=True)]
        numbers = [max(dims, 2), int(transposed), groups, *(n for values in each for n in values)]
        return _pack(kind, _integers.packed_weight(weight), None if bias is None else bias.detach(), numbers)

    pack.__name__ = name
    return pack


def unpack(packed):
    """(weight, bias) that were packed."""
    return packed.unpack()


def unpack_1d(packed):
    """(weight, bias) that were packed, of a convolution over one dimension."""
    weight, bias = packed.unpack()
    return _at(weight, cresset.Tensor.squeeze), bias


def _output_scales(weight, geometry):
    """The float32 scales by output: of a transposed convolution they repeat for each group."""
    scales = _integers.weight_scales(weight)
    return scales.repeat(geometry.groups) if geometry.transposed and len(scales) > 1 else scales


def _check(x, geometry, name, dims):
    _integers.check_activation(x, name)
    if x.dim() != dims + 2:
        raise RuntimeError(f"Expected activation data to have {dims + 2} dimensions in quantized::{name}; got {x.dim()}.")
    if geometry.dims != max(dims, 2):
        raise RuntimeError(f"quantized::{name}: weights of a convolution over {dims} dimension{'s' if dims > 1 else ''} were required; got {geometry.dims}.")


def _convolution(name, dims, after=None):
    def run(qx, packed, scale, zero_point, added=None):
        require_engine(f"quantized::{name}")
        (weight, bias), geometry = packed.unpack(), Geometry(packed.numbers())
        _check(qx, geometry, name, dims)
        if dims == 1:  # packed as two, of which the first has one row
            qx = _at(qx, cresset.Tensor.unsqueeze)
        scales = _output_scales(weight, geometry) * qx._uniform().scale
        sums = geometry.sums(_integers.centred(qx), _integers.centred(weight))
        then = after if added is None else (lambda real: (real + added.dequantize()).relu() if after else real + added.dequantize())
        made = _integers.requantized(sums, bias, scales, _integers.check_output(qx.dtype, scale, zero_point), 1, then)
        return _at(made, cresset.Tensor.squeeze) if dims == 1 else made

    run.__name__ = name
    return run


def _with_geometry(run):
    """The older overload, which repeats the geometry of the packed weight."""
    return lambda qx, packed, stride, padding, dilation, groups, scale, zero_point: run(qx, packed, scale, zero_point)


def _dynamic(name, dims):
    convolution = _convolution(name, dims)

    def run(qx, packed_weight, reduce_range=False):
        x = _integers.dynamic(qx.detach().float(), reduce_range)
        return convolution(x, packed_weight, *x._uniform()[1:]).dequantize()  # PyTorch gives the result the input's scale, too

    run.__name__ = name
    return run


def _added(run):
    return lambda qx, qaccum, packed_weight, scale, zero_point: run(qx, packed_weight, scale, zero_point, qaccum)


def _fact(name):
    def read(packed_weights):
        value = getattr(Geometry(packed_weights.numbers()), name)
        return int(value) if isinstance(value, (bool, int)) else list(value)

    return read


def _declare(dims, transposed):
    base = f"conv{'_transpose' * transposed}{dims}d"
    kind = "CONV3D" if dims == 3 else "CONV2D"
    output_padding = "int[] output_padding, " * transposed
    prepack = f"(Tensor weight, Tensor? bias, int[] stride, int[] padding, {output_padding}int[] dilation, int groups) -> {kind}"
    pack = _prepack(f"{base}_prepack", dims, transposed)
    names = [f"{base}_prepack"] + ["conv_prepack"] * (base == "conv2d")
    operator(*(name + prepack for name in names))(pack)
    names = [f"{base}_unpack"] + ["conv_unpack"] * (base == "conv2d")
    operator(*(f"{name}({kind} packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)" for name in names))(unpack_1d if dims == 1 else unpack)
    operator(f"{base}_dynamic(Tensor qx, {kind} packed_weight, bool reduce_range=False) -> Tensor")(_dynamic(f"{base}_dynamic", dims))
    overload = "" if transposed or dims == 1 else ".new"
    for name, after in ((base, None), *(() if transposed else ((f"{base}_relu", _integers.RELU),))):
        run = _convolution(name, dims, after)
        operator(f"{name}{overload}(Tensor qx, {kind} packed_weight, float output_scale, int output_zero_point) -> Tensor")(run)
        if overload:
            old = "int[] stride, int[] padding, int[] dilation, int groups, float output_scale, int output_zero_point"
            operator(f"{name}(Tensor qx, {kind} weight, {old}) -> Tensor")(_with_geometry(run))
        if dims == 2 and not transposed:
            tail = "(Tensor qx, Tensor qaccum, CONV2D packed_weight, float output_scale, int output_zero_point) -> Tensor"
            operator(name.replace("conv2d", "conv2d_add") + tail)(_added(run))
    if dims > 1:
        for name in (*_NAMES, "groups", "transposed"):
            result = "int" if name in ("groups", "transposed") else "int[]"
            operator(f"{base}_{name.replace('transposed', 'transpose')}({kind} packed_weights) -> {result}")(_fact(name))


for _dims in (1, 2, 3):
    for _transposed in (False, True):
        _declare(_dims, _transposed)
