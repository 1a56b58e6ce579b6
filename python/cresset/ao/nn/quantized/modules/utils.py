"""What layers with quantized weights have in common."""

import abc
import collections
import itertools

import cresset
from cresset import nn
from cresset.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights

__all__ = ["WeightedQuantizedModule"]


class WeightedQuantizedModule(nn.Module, metaclass=abc.ABCMeta):
    """A layer with a quantized weight, which can be made of a reference layer, too."""

    @classmethod
    @abc.abstractmethod
    def from_reference(cls, ref_module, output_scale, output_zero_point):
        """Of a layer that computes with real numbers what quantized ones stand for."""


def _clamp_weights(qweight, observer, scale, zp):
    """The weight within the observer's range, where that is less than the dtype's."""
    low, high = getattr(observer, "quant_min", None), getattr(observer, "quant_max", None)
    if qweight.dtype is not cresset.qint8 or low is None or (low <= -128 and high >= 127):
        return qweight
    numbers = qweight.int_repr().clamp(low, high)
    if qweight.qscheme() is cresset.per_tensor_affine:
        return cresset._make_per_tensor_quantized_tensor(numbers, scale.item(), zp.item())
    return cresset._make_per_channel_quantized_tensor(numbers, scale, zp, axis=qweight.q_per_channel_axis())


def _quantize_weight(float_wt, observer):
    """The weight, quantized by what its observer found. ValueError for an unknown scheme."""
    scale, zero = observer.calculate_qparams()
    if observer.qscheme in (cresset.per_tensor_symmetric, cresset.per_tensor_affine):
        made = cresset.quantize_per_tensor(float_wt, float(scale), int(zero), cresset.qint8)
    elif observer.qscheme in (cresset.per_channel_symmetric, cresset.per_channel_affine):
        made = cresset.quantize_per_channel(float_wt, scale.to(cresset.double), zero.to(cresset.int64), observer.ch_axis, cresset.qint8)
    elif observer.qscheme is cresset.per_channel_affine_float_qparams:
        return cresset.quantize_per_channel(float_wt, scale.to(cresset.float), zero.to(cresset.float), observer.ch_axis, observer.dtype)
    else:
        raise ValueError(f"Unexpected qscheme {observer.qscheme}")
    return _clamp_weights(made, observer, scale, zero)


def observed_weight(mod, use_precomputed_fake_quant=False):
    """(the layer that has the weight, its weight quantized, its bias) of a float layer that has a qconfig: one of its own, the first of a fused
    sequence, or one that was trained with a fake quantizer, whose batch norm goes into the weight."""
    source = mod[0] if isinstance(mod, nn.Sequential) and not hasattr(mod, "weight") else mod
    observer = getattr(mod, "weight_fake_quant", None) or getattr(source, "weight_fake_quant", None)
    weight, bias = source.weight, source.bias
    if observer is None:
        observer = (getattr(mod, "qconfig", None) or source.qconfig).weight()
    elif getattr(mod, "bn", None) is not None:
        bn = mod.bn
        if isinstance(mod, nn.Linear):
            weight, bias = fuse_linear_bn_weights(weight, bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
        else:
            transposed = getattr(mod, "transposed", False)
            weight, bias = fuse_conv_bn_weights(weight, bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transposed)
    if not use_precomputed_fake_quant:
        observer(weight)
    if observer.dtype is not cresset.qint8:
        raise AssertionError(f"Weight observer must have dtype torch.qint8; got {observer.dtype}")
    return source, _quantize_weight(weight.detach().float(), observer), bias


def check_source(cls, mod):
    """AssertionError unless mod is of the classes that cls is made of, and has a qconfig."""
    wanted = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, tuple) else (cls._FLOAT_MODULE,)
    kind = nn.utils.parametrize.type_before_parametrizations(mod)
    if not hasattr(mod, "weight_fake_quant") and kind not in wanted:
        raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {', '.join(w.__name__ for w in wanted)}, but got: {kind}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")


def output_qparams(mod):
    """(scale, zero point) that were found for the output, or None where nothing was watched or it stays real."""
    observer = getattr(mod, "activation_post_process", None)
    if observer is None or observer.dtype == cresset.float:
        return None
    scale, zero = observer.calculate_qparams()
    return float(scale), int(zero)


def take_numbers(module, state_dict, prefix):
    """Read the numbers `scale` and `zero_point` of a state dict, which it then lacks."""
    module.scale = float(state_dict.pop(prefix + "scale", module.scale))
    module.zero_point = int(state_dict.pop(prefix + "zero_point", module.zero_point))


def _ntuple_from_first(n):
    """A function that gives n times the first element, or the number."""

    def parse(x):
        return tuple(itertools.repeat(next(iter(x)) if isinstance(x, collections.abc.Iterable) else x, n))

    return parse


_pair_from_first = _ntuple_from_first(2)


def _hide_packed_params_repr(self, params):
    """The layer's text without the lines of its packed weights, which are of the class `params`."""
    lines = [line for line in self.extra_repr().split("\n") if line]
    children = []
    for name, module in self._modules.items():
        if not isinstance(module, params):
            children.append(f"({name}): " + "\n  ".join(repr(module).split("\n")))
    text = self._get_name() + "("
    if len(lines) == 1 and not children:
        return text + lines[0] + ")"
    return text + "\n  " + "\n  ".join(lines + children) + "\n)" if lines + children else text + ")"
