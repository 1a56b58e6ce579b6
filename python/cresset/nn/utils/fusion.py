"""A layer and the batch normalisation behind it, in evaluation mode, as one layer."""

import copy

import cresset
from cresset.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(weight, bias, mean, var, eps, bn_weight, bn_bias, shape):
    if bias is None:
        bias = cresset.zeros_like(mean)
    if bn_weight is None:
        bn_weight = cresset.ones_like(mean)
    if bn_bias is None:
        bn_bias = cresset.zeros_like(mean)
    scale = bn_weight * cresset.rsqrt(var + eps)
    fused_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    fused_bias = ((bias - mean) * scale + bn_bias).to(bias.dtype)
    return Parameter(fused_weight, weight.requires_grad), Parameter(fused_bias, bias.requires_grad)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """(weight, bias) of the convolution that does both; `transpose` for a transposed convolution."""
    shape = ([1, -1] if transpose else [-1, 1]) + [1] * (conv_w.dim() - 2)
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """(weight, bias) of the linear layer that does both."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _check(layer, bn):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Only support fusing BatchNorm with tracked running stats.")


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of `conv` that does what `conv` and `bn` do one after the other; both must be in evaluation mode."""
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose)
    return fused


def fuse_linear_bn_eval(linear, bn):
    """A copy of `linear` that does what `linear` and `bn` do one after the other; both must be in evaluation mode."""
    _check(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused
