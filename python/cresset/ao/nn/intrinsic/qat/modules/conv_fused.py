"""Convolutions with batch norms and ReLUs that are trained to be quantized."""

import cresset
from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import qat as nnqat
from cresset.ao.nn.qat.modules._source import check_source
from cresset.ao.nn.qat.modules.conv import GEOMETRY, float_conv
from cresset.nn.utils.fusion import fuse_conv_bn_weights

from ._batch_norm import WithBatchNorm

__all__ = [*(f"Conv{what}{n}d" for n in (1, 2, 3) for what in ("Bn", "BnReLU", "ReLU")), "update_bn_stats", "freeze_bn_stats"]


class _ConvBnNd(WithBatchNorm):
    _version = 2  # of its part of state dicts
    _relu = False

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=None, padding_mode="zeros", eps=1e-05,
                 momentum=0.1, freeze_bn=False, qconfig=None):  # fmt: skip
        self._CONV.__init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        bn = getattr(nn, f"BatchNorm{self.weight.dim() - 2}d")(out_channels, eps, momentum, True, True)
        if bias:
            self.bias = nn.Parameter(cresset.empty(out_channels))
        self._enable_slow_path_for_better_numerical_stability = False
        self._set_batch_norm(bn, freeze_bn, qconfig)
        if self.bias is not None:
            nn.init.uniform_(self.bias, *(s / (self.weight[0].numel() ** 0.5) for s in (-1, 1)))

    def _products(self, input, weight):
        return self._conv_forward(input, weight, None)

    def forward(self, input):
        result = self._forward(input)
        return nn.functional.relu(result) if self._relu else result

    def extra_repr(self):
        return self._CONV.extra_repr(self)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("version", None)
        if version is None or version == 1:  # the batch norm was no module of its own
            for new, old in (("weight", "gamma"), ("bias", "beta"), *((n, n) for n in ("running_mean", "running_var", "num_batches_tracked"))):
                if prefix + old in state_dict:
                    state_dict[f"{prefix}bn.{new}"] = state_dict.pop(prefix + old)
                elif f"{prefix}bn.{new}" in state_dict:
                    pass
                elif strict:
                    missing_keys.append(prefix + old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The form for training of a float sequence that has a qconfig, with its parameters and running numbers."""
        check_source(cls, mod)
        conv, bn = mod[0], mod[1]
        made = cls(*(getattr(conv, name) for name in GEOMETRY), conv.bias is not None, conv.padding_mode, bn.eps, bn.momentum, False, mod.qconfig)
        made.weight, made.bias = conv.weight, conv.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(made.bn, name, getattr(bn, name))
        return made

    def to_float(self):
        """The float convolution with the batch norm in its weight, or the sequence of it and a ReLU."""
        bn = self.bn
        weight, bias = fuse_conv_bn_weights(self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
        made = float_conv(self._CONV, self, weight, bias)
        if self._relu:
            made = getattr(nni, f"ConvReLU{self.weight.dim() - 2}d")(made, nn.ReLU())
        made.train(self.training)
        return made


class _ConvReLUNd:
    """A convolution whose weight passes through the fake quantizer of its qconfig, and a ReLU."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", qconfig=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, qconfig)

    def forward(self, input):
        return nn.functional.relu(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))


def _classes():
    """The nine classes, by dimensions."""
    for n in (1, 2, 3):
        conv = getattr(nn, f"Conv{n}d")
        for relu in (False, True):
            name = f"ConvBn{'ReLU' * relu}{n}d"
            body = {
                "__module__": __name__, "_CONV": conv, "_FLOAT_MODULE": getattr(nni, name), "_relu": relu, "_FLOAT_CONV_MODULE": conv,
                "_FLOAT_BN_MODULE": getattr(nn, f"BatchNorm{n}d"), "_FLOAT_RELU_MODULE": nn.ReLU if relu else None, "_FUSED_FLOAT_MODULE": getattr(nni, f"ConvReLU{n}d") if relu else None,
                "__doc__": f"Conv{n}d and its batch norm{' and a ReLU' * relu}, trained as they will be quantized.",
            }  # fmt: skip
            yield name, type(name, (_ConvBnNd, conv, nni._FusedModule), body)
        name = f"ConvReLU{n}d"
        body = {"__module__": __name__, "_FLOAT_MODULE": getattr(nni, name), "__doc__": f"Conv{n}d and a ReLU, trained as they will be quantized."}
        yield name, type(name, (_ConvReLUNd, getattr(nnqat, f"Conv{n}d"), nni._FusedModule), body)


globals().update(_classes())


def update_bn_stats(mod):
    """The batch norm of a fused layer learns its running numbers from now on; nothing for other modules. For `Module.apply`."""
    if isinstance(mod, WithBatchNorm):
        mod.update_bn_stats()


def freeze_bn_stats(mod):
    """The batch norm of a fused layer keeps its running numbers from now on; nothing for other modules. For `Module.apply`."""
    if isinstance(mod, WithBatchNorm):
        mod.freeze_bn_stats()
