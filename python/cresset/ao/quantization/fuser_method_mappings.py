"""How layers that follow each other become one."""

from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from .utils import MatchAllNode, Pattern, get_combined_dict

__all__ = ["fuse_conv_bn", "fuse_conv_bn_relu", "fuse_linear_bn", "fuse_convtranspose_bn", "get_fuser_method", "get_fuser_method_new"]


def _check_modes(*layers, words="Conv and BN both must be in the same mode (train or eval)."):
    if len({layer.training for layer in layers}) > 1:
        raise AssertionError(words)


def _check_batch_norm(conv, bn):
    if bn.num_features != conv.out_channels:
        raise AssertionError("Output channel of Conv2d must match num_features of BatchNorm2d")
    if not bn.affine:
        raise AssertionError("Only support fusing BatchNorm2d with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm2d with tracking_running_stats set to True")


def _fused_class(prefix, conv, layers, mode):
    for n in (1, 2, 3):
        if type(conv) is getattr(nn, f"Conv{n}d"):
            return getattr(nni, f"{prefix}{n}d")
    raise NotImplementedError(f"Cannot fuse {mode} modules: {layers}")


def fuse_conv_bn(is_qat, conv, bn):
    """The sequence for training, or the convolution with the batch norm in its weight."""
    _check_modes(conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _check_batch_norm(conv, bn)
    return _fused_class("ConvBn", conv, (conv, bn), "train")(conv, bn)


def fuse_conv_bn_relu(is_qat, conv, bn, relu):
    """The sequence for training, or that of the convolution with the batch norm in its weight and the ReLU."""
    _check_modes(conv, bn, relu, words="Conv and BN both must be in the same mode (train or eval).")
    if not is_qat:
        return _fused_class("ConvReLU", conv, (conv, bn, relu), "eval")(fuse_conv_bn_eval(conv, bn), relu)
    _check_batch_norm(conv, bn)
    return _fused_class("ConvBnReLU", conv, (conv, bn, relu), "train")(conv, bn, relu)


def fuse_linear_bn(is_qat, linear, bn):
    """The sequence for training, or the linear layer with the batch norm in its weight."""
    _check_modes(linear, bn, words="Linear and BN both must be in the same mode (train or eval).")
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    if bn.num_features != linear.out_features:
        raise AssertionError("Output features of Linear must match num_features of BatchNorm1d")
    if not bn.affine:
        raise AssertionError("Only support fusing BatchNorm1d with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm1d with tracking_running_stats set to True")
    return nni.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat, convt, bn):
    """The transposed convolution with the batch norm in its weight."""
    _check_modes(convt, bn, words="ConvTranspose and BN both must be in the same mode (train or eval).")
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _sequential_wrapper2(sequential):
    """A function that fuses two layers as a sequence of the class."""

    def fuse(is_qat, m1, m2):
        return sequential(m1, m2)

    return fuse


def _reverse2(f):
    """The fuser of a pattern from its last part: f(is_qat, a, b) as reversed(is_qat, b, a)."""

    def reversed(is_qat, x, y):
        return f(is_qat, y, x)

    return reversed


def _reverse3(f):
    """The fuser of a pattern from its last part: f(is_qat, a, b, c) as reversed(is_qat, c, (b, a))."""

    def reversed(is_qat, x, w):
        y, z = w
        return f(is_qat, z, y, x)

    return reversed


_DEFAULT_OP_LIST_TO_FUSER_METHOD = {}
for _n in (1, 2, 3):
    _conv, _bn = getattr(nn, f"Conv{_n}d"), getattr(nn, f"BatchNorm{_n}d")
    _DEFAULT_OP_LIST_TO_FUSER_METHOD |= {
        (_conv, _bn): fuse_conv_bn, (_conv, _bn, nn.ReLU): fuse_conv_bn_relu, (_conv, nn.ReLU): _sequential_wrapper2(getattr(nni, f"ConvReLU{_n}d")),
        (getattr(nn, f"ConvTranspose{_n}d"), _bn): fuse_convtranspose_bn,
    }  # fmt: skip
_DEFAULT_OP_LIST_TO_FUSER_METHOD |= {
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn, (nn.Linear, nn.ReLU): _sequential_wrapper2(nni.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _sequential_wrapper2(nni.BNReLU2d), (nn.BatchNorm3d, nn.ReLU): _sequential_wrapper2(nni.BNReLU3d),
}  # fmt: skip


def get_fuser_method(op_list, additional_fuser_method_mapping=None):
    """The function that fuses layers of these classes. AssertionError where there is none."""
    found = get_combined_dict(_DEFAULT_OP_LIST_TO_FUSER_METHOD, additional_fuser_method_mapping).get(op_list)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return found


def _get_valid_patterns(op_pattern):
    """The pattern, and those in which parts of it match anything."""
    if isinstance(op_pattern, (tuple, list)):
        combined = [()]
        for part in op_pattern:
            combined = [(*lead, choice) for lead in combined for choice in _get_valid_patterns(part)]
        return [tuple(c) for c in combined]
    return [op_pattern, MatchAllNode]


def get_fuser_method_new(op_pattern: Pattern, fuser_method_mapping):
    """The function that fuses what matches the pattern. AssertionError where there is none."""
    for pattern in _get_valid_patterns(op_pattern):
        if pattern in fuser_method_mapping:
            return fuser_method_mapping[pattern]
    raise AssertionError(f"did not find fuser method for: {op_pattern} ")
