"""Patterns by families, from which backends choose; each function gives BackendPatternConfigs for the dtypes of a backend."""

import operator

import cresset
from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import qat as nnqat
from cresset.ao.nn.intrinsic import qat as nniqat
from cresset.ao.nn.quantized import reference as nnqr
from cresset.nn import functional as F

from ..fuser_method_mappings import _sequential_wrapper2, fuse_conv_bn, fuse_conv_bn_relu, fuse_convtranspose_bn, fuse_linear_bn
from .backend_config import BackendPatternConfig, DTypeConfig, DTypeWithConstraints, ObservationType

OWN, SHARED = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT, ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
UNOBSERVED = ObservationType.INPUT_OUTPUT_NOT_OBSERVED
_WEIGHT_AND_BIAS = {"weight": 1, "bias": 2}
_FROM_0_TO_1 = {"quant_min_lower_bound": 0, "quant_max_upper_bound": 255, "scale_exact_match": 1.0 / 256.0, "zero_point_exact_match": 0}
_FROM_MINUS_1_TO_1 = {**_FROM_0_TO_1, "scale_exact_match": 2.0 / 256.0, "zero_point_exact_match": 128}


def _config(pattern, dtype_configs, observation=OWN, **parts):
    """A BackendPatternConfig; parts are its attributes by their names."""
    made = BackendPatternConfig(pattern).set_observation_type(observation).set_dtype_configs(dtype_configs)
    for name, value in parts.items():
        setattr(made, name, value)
    return made


def _all(patterns, dtype_configs, observation=OWN):
    return [_config(pattern, dtype_configs, observation) for pattern in patterns]


def _fused_with(root, follower, fused, dtype_configs):
    return _config((root, follower), dtype_configs, fused_module=fused, fuser_method=_sequential_wrapper2(fused))


def _get_linear_configs(dtype_configs):
    """Linear layers and functions, alone, with a ReLU or a batch norm, and in training."""
    of = {"root_module": nn.Linear, "reference_quantized_module": nnqr.Linear}
    return [
        _config(nn.Linear, dtype_configs, qat_module=nnqat.Linear, **of), _config(nnqat.Linear, dtype_configs, **of),
        _config(F.linear, dtype_configs, _input_type_to_index=_WEIGHT_AND_BIAS),
        _fused_with(nn.Linear, nn.ReLU, nni.LinearReLU, dtype_configs), _fused_with(nn.Linear, F.relu, nni.LinearReLU, dtype_configs),
        _config(nni.LinearReLU, dtype_configs, qat_module=nniqat.LinearReLU, **of), _config(nniqat.LinearReLU, dtype_configs, **of),
        _config((F.linear, nn.ReLU), dtype_configs), _config((F.linear, F.relu), dtype_configs),
        _config((nn.Linear, nn.BatchNorm1d), dtype_configs, fused_module=nni.LinearBn1d, fuser_method=fuse_linear_bn),
        _config(nni.LinearBn1d, dtype_configs, qat_module=nniqat.LinearBn1d, **of), _config(nniqat.LinearBn1d, dtype_configs, **of),
    ]  # fmt: skip


def _conv_configs(n, dtype_configs):
    kinds = {name: getattr(home, name + f"{n}d") for home, names in ((nni, "ConvReLU ConvBn ConvBnReLU"), (nn, "Conv BatchNorm")) for name in names.split()}
    trained = {name: getattr(nniqat, f"{name}{n}d") for name in ("ConvReLU", "ConvBn", "ConvBnReLU")}
    conv, bn, function, in_training = kinds["Conv"], kinds["BatchNorm"], getattr(F, f"conv{n}d"), getattr(nnqat, f"Conv{n}d")
    of = {"root_module": conv, "reference_quantized_module": getattr(nnqr, f"Conv{n}d")}
    with_bn_relu = {"fused_module": kinds["ConvBnReLU"], "fuser_method": fuse_conv_bn_relu}
    return [
        _config(conv, dtype_configs, qat_module=in_training, **of), _config(in_training, dtype_configs, **of),
        _config(function, dtype_configs, _input_type_to_index=_WEIGHT_AND_BIAS),
        _fused_with(conv, nn.ReLU, kinds["ConvReLU"], dtype_configs), _fused_with(conv, F.relu, kinds["ConvReLU"], dtype_configs),
        _config(kinds["ConvReLU"], dtype_configs, qat_module=trained["ConvReLU"]), _config(trained["ConvReLU"], dtype_configs, **of),
        _config((function, nn.ReLU), dtype_configs), _config((function, F.relu), dtype_configs),
        _config((conv, bn), dtype_configs, fused_module=kinds["ConvBn"], fuser_method=fuse_conv_bn),
        _config((conv, bn, nn.ReLU), dtype_configs, **with_bn_relu), _config((conv, bn, F.relu), dtype_configs, root_module=conv, **with_bn_relu),
        _config(kinds["ConvBn"], dtype_configs, qat_module=trained["ConvBn"]), _config(kinds["ConvBnReLU"], dtype_configs, qat_module=trained["ConvBnReLU"]),
        _config(trained["ConvBn"], dtype_configs, **of), _config(trained["ConvBnReLU"], dtype_configs, **of),
    ]  # fmt: skip


def _transposed_configs(n, dtype_configs):
    conv = getattr(nn, f"ConvTranspose{n}d")
    of = {"root_module": conv, "reference_quantized_module": getattr(nnqr, f"ConvTranspose{n}d")}
    return [
        _config(conv, dtype_configs, **of), _config((conv, getattr(nn, f"BatchNorm{n}d")), dtype_configs, fuser_method=fuse_convtranspose_bn, **of),
        _config(getattr(F, f"conv_transpose{n}d"), dtype_configs, _input_type_to_index=_WEIGHT_AND_BIAS),
    ]  # fmt: skip


def _get_conv_configs(dtype_configs):
    """Convolutions and transposed ones, alone, with what follows them, and in training."""
    return [config for n in (1, 2, 3) for config in (*_conv_configs(n, dtype_configs), *_transposed_configs(n, dtype_configs))]


def _get_binary_op_configs(dtype_configs, names=("add", "mul")):
    """Sums, products and the like, with a ReLU or without; of a tensor and a number the result has the tensor's observer."""
    counted = {"_num_tensor_args_to_observation_type": {0: OWN, 1: SHARED, 2: OWN}}
    made = []
    for function in [f for name in names for f in (getattr(operator, name), getattr(cresset, name))]:
        made += [_config((function, relu), dtype_configs, **counted) for relu in (nn.ReLU, F.relu, cresset.relu)]
        made.append(_config(function, dtype_configs, **counted))
    return made


def _get_default_op_configs(dtype_configs):
    """Activations and norms whose results have a range of their own."""
    kinds = (nn.ELU, nn.LeakyReLU, nn.Hardswish, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.Dropout, nn.PReLU)
    return [
        *_all((*kinds, F.elu, F.hardswish, F.leaky_relu, F.dropout), dtype_configs),
        _config(F.group_norm, dtype_configs, _input_type_to_index={"weight": 2, "bias": 3}),
        _config(F.instance_norm, dtype_configs, _input_type_to_index={"weight": 3, "bias": 4}),
    ]  # fmt: skip


def _get_ln_configs(dtype_configs):
    """Layer norms, whose weights stay float."""
    return [_config(nn.LayerNorm, dtype_configs), _config(F.layer_norm, dtype_configs, _input_type_to_index={"weight": 2, "bias": 3})]


def _narrowed(config, facts):
    """A copy of the DTypeConfig, in which quint8 without constraints can have the one scale of a fixed range only."""

    def narrow(constrained):
        return DTypeWithConstraints(dtype=constrained.dtype, **facts) if constrained == DTypeWithConstraints(cresset.quint8) else constrained

    activations = (narrow(config.input_dtype_with_constraints), narrow(config.output_dtype_with_constraints))
    return DTypeConfig(*activations, config.weight_dtype_with_constraints, config.bias_dtype, config.is_dynamic)


def _get_fixed_qparams_op_configs(dtype_configs):
    """What has results between 0 and 1, or between -1 and 1: their scales are fixed."""
    zero_to_one = (nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, cresset.sigmoid, "sigmoid", "sigmoid_", nn.Softmax)
    made = []
    for patterns, facts in ((zero_to_one, _FROM_0_TO_1), ((nn.Tanh, cresset.tanh, "tanh", "tanh_"), _FROM_MINUS_1_TO_1)):
        made += [_config(pattern, [_narrowed(config, facts) for config in dtype_configs]) for pattern in patterns]
    return made


def _get_share_qparams_op_configs(dtype_configs):
    """Pools, shapes and choices of elements, whose results have the input's scale."""
    modules = (
        nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.Hardtanh, nn.Identity, nn.MaxPool1d,
        nn.MaxPool2d, nn.MaxPool3d, nn.PixelShuffle, nn.PixelUnshuffle, nn.ReLU, nn.ReLU6,
    )  # fmt: skip
    functions = (
        F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d, F.hardtanh, F.hardtanh_, F.interpolate, F.max_pool1d, F.max_pool2d, F.max_pool3d,
        F.pixel_shuffle, F.pixel_unshuffle, F.relu, F.relu6, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d, cresset.clamp, cresset.flatten, cresset.mean,
        cresset.narrow, cresset.repeat_interleave, cresset.transpose, cresset.squeeze, cresset.stack, cresset.unsqueeze, operator.floordiv,
    )  # fmt: skip
    methods = (
        "contiguous clamp detach detach_ mean permute repeat repeat_interleave reshape resize_ relu relu_ squeeze squeeze_ transpose unsqueeze unsqueeze_ view"
    ).split()
    return _all((*modules, *functions, *methods), dtype_configs, SHARED)


def _get_tensor_info_op_configs(dtype_configs):
    """Questions about a tensor's shape."""
    return _all(("shape", "size"), dtype_configs, UNOBSERVED)


def _get_bn_configs(dtype_configs):
    """Batch norms alone, and with a ReLU."""
    made = []
    for n in (2, 3):
        bn, fused = getattr(nn, f"BatchNorm{n}d"), getattr(nni, f"BNReLU{n}d")
        made += [_fused_with(bn, nn.ReLU, fused, dtype_configs), _fused_with(bn, F.relu, fused, dtype_configs), _config(bn, dtype_configs)]
    return made + _all((nni.BNReLU2d, nni.BNReLU3d), dtype_configs)


def _get_rnn_op_configs(dtype_configs):
    """Recurrent layers and cells."""
    names = ("GRUCell", "LSTMCell", "RNNCell", "LSTM", "GRU")
    return [_config(getattr(nn, n), dtype_configs, root_module=getattr(nn, n), reference_quantized_module=getattr(nnqr, n)) for n in names]


def _get_embedding_op_configs(dtype_configs):
    """Embeddings, whose rows are quantized."""
    made = []
    for name in ("Embedding", "EmbeddingBag"):
        of = {"root_module": getattr(nn, name), "reference_quantized_module": getattr(nnqr, name)}
        made += [_config(of["root_module"], dtype_configs, qat_module=getattr(nnqat, name), **of), _config(getattr(nnqat, name), dtype_configs, **of)]
    return made


_FAMILIES = {  # in the order in which configs name them
    "conv": _get_conv_configs, "linear": _get_linear_configs, "binary": _get_binary_op_configs,
    "matmul": lambda dtype_configs: [_config(cresset.matmul, dtype_configs)], "cat": lambda dtype_configs: [_config(cresset.cat, dtype_configs, SHARED)],
    "default": _get_default_op_configs, "fixed": _get_fixed_qparams_op_configs, "shared": _get_share_qparams_op_configs,
    "info": _get_tensor_info_op_configs, "bn": _get_bn_configs, "ln": _get_ln_configs, "rnn": _get_rnn_op_configs, "embedding": _get_embedding_op_configs,
}  # fmt: skip


def of_families(config, **dtype_configs):
    """The config with the families that have dtypes: conv=[DTypeConfig, …], linear=…; each pattern has a list of its own."""
    unknown = dtype_configs.keys() - _FAMILIES.keys()
    if unknown:
        raise ValueError(f"of_families: families of {sorted(_FAMILIES)} were required; {sorted(unknown)} was given.")
    for name, family in _FAMILIES.items():
        if name in dtype_configs:
            config.set_backend_pattern_configs(family(dtype_configs[name]))
    return config
