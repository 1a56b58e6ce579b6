"""The engine onednn: sums and further activations are computed with what comes before them."""

import operator

import cresset
from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn.quantized import reference as nnqr
from cresset.nn import functional as F

from ..fuser_method_mappings import fuse_conv_bn, fuse_linear_bn
from ..utils import MatchAllNode
from . import _dtypes as dtypes
from ._common_operator_config_utils import _config, _fused_with, _get_conv_configs, _get_linear_configs, of_families
from .backend_config import BackendConfig, DTypeConfig

__all__ = ["get_onednn_backend_config"]


def _sum_patterns(side, with_norm, add, relu):
    """(what matches from its last part, how deep the sum's first operand is)"""
    conv = (nn.BatchNorm2d, nn.Conv2d) if with_norm else nn.Conv2d
    operands = (conv, MatchAllNode) if side == "left" else (MatchAllNode, conv)
    return (relu, (add, *operands)) if relu else (add, *operands)


def _take_apart(pattern, side, with_norm, with_relu):
    """(relu, sum, batch norm, convolution, other operand) of what a pattern of that kind matched."""
    relu, pattern = pattern if with_relu else (None, pattern)
    add, *operands = pattern
    conv, other = operands if side == "left" else reversed(operands)
    norm, conv = conv if with_norm else (None, conv)
    return relu, add, norm, conv, other


def _fuser(side, with_norm, with_relu):
    def fuse(is_qat, *pattern):
        relu, add, norm, conv, _ = _take_apart(pattern, side, with_norm, with_relu)
        if norm is not None:
            if is_qat:
                raise NotImplementedError(f"Cannot fuse train modules: {(conv, norm, add)}")
            conv = fuse_conv_bn(is_qat, conv, norm)
        return nni.ConvAddReLU2d(conv, add, relu) if with_relu else nni.ConvAdd2d(conv, add)

    return fuse


def _sum_configs(dtype_configs, with_relu):
    """A convolution, with or without a batch norm, whose result is added to another tensor."""
    fused, made = nni.ConvAddReLU2d if with_relu else nni.ConvAdd2d, []
    for side in ("left", "right"):
        for with_norm in (True, False):
            facts = (side, with_norm, with_relu)
            for add in (cresset.add, operator.add):
                config = _config(None, dtype_configs, fused_module=fused, fuser_method=_fuser(*facts))
                config._set_pattern_complex_format(_sum_patterns(side, with_norm, add, nn.ReLU if with_relu else None))
                config._set_root_node_getter(lambda pattern, facts=facts: _take_apart(pattern, *facts)[3])
                config._set_extra_inputs_getter(lambda pattern, facts=facts: [_take_apart(pattern, *facts)[4]])
                made.append(config)
    return [*made, _config(fused, dtype_configs, root_module=nn.Conv2d, reference_quantized_module=nnqr.Conv2d)]


def _fuse_linear_bn_leaky_relu(is_qat, linear, bn, leaky_relu):
    if is_qat:
        raise NotImplementedError(f"Cannot fuse train modules: {(linear, bn, leaky_relu)}")
    return nni.LinearLeakyReLU(fuse_linear_bn(is_qat, linear, bn), leaky_relu)


def _activation_configs(dtype_configs, module, function, fused):
    """A linear layer with an activation behind it."""
    made = [
        _fused_with(nn.Linear, module, fused, dtype_configs), _fused_with(nn.Linear, function, fused, dtype_configs),
        _config(fused, dtype_configs, root_module=nn.Linear, reference_quantized_module=nnqr.Linear),
        _config((F.linear, module), dtype_configs), _config((F.linear, function), dtype_configs),
    ]  # fmt: skip
    if fused is nni.LinearLeakyReLU:
        made.append(_config((nn.Linear, nn.BatchNorm1d, module), dtype_configs, fused_module=fused, fuser_method=_fuse_linear_bn_leaky_relu))
    return made


def get_onednn_backend_config():
    """The config of the engine onednn."""
    weighted, dynamic, plain = [dtypes.weighted_int8()], [dtypes.dynamic_int8()], [dtypes.op_quint8()]
    made = BackendConfig("onednn").set_backend_pattern_configs(_get_conv_configs(weighted))
    made.set_backend_pattern_configs(_sum_configs(weighted, False)).set_backend_pattern_configs(_sum_configs(weighted, True))
    made.set_backend_pattern_configs(_get_linear_configs([*weighted, *dynamic]))
    for module, function, fused in ((nn.LeakyReLU, F.leaky_relu, nni.LinearLeakyReLU), (nn.Tanh, cresset.tanh, nni.LinearTanh)):
        made.set_backend_pattern_configs(_activation_configs([*weighted, *dynamic], module, function, fused))
    return of_families(
        made, ln=[dtypes.float_weight_quint8()], rnn=dynamic, embedding=[DTypeConfig(cresset.float, cresset.float, cresset.qint8)],
        **dict.fromkeys(("binary", "matmul", "cat", "default", "fixed", "shared", "bn"), plain),
    )  # fmt: skip
