"""Which layers and functions are forms of one another, and what dtypes they take: what pairs of graphs are matched by."""

import operator

import cresset
from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import qat as nnqat
from cresset.ao.nn import quantized as nnq
from cresset.ao.nn.intrinsic import qat as nniqat
from cresset.ao.nn.intrinsic import quantized as nniq
from cresset.ao.nn.intrinsic.quantized import dynamic as nniqd
from cresset.ao.nn.qat import dynamic as nnqatd
from cresset.ao.nn.quantized import dynamic as nnqd
from cresset.ao.quantization.backend_config import get_native_backend_config
from cresset.ao.quantization.quantization_mappings import (
    DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS, DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
)  # fmt: skip
from cresset.nn import functional as F
from cresset.nn.modules.linear import NonDynamicallyQuantizableLinear

__all__ = [
    "add_op_to_sets_of_related_ops", "get_base_name_for_op", "get_base_name_to_sets_of_related_ops", "get_node_type_to_io_type_map", "get_unmatchable_types_map",
]  # fmt: skip

toq = cresset.ops.quantized


def _of(source, names):
    return {getattr(source, name) for name in names.split()}


def _seeds():
    """The sets before the forms that backends and converters make are added, in the order of their names."""
    return [
        {nn.Conv1d}, {nn.Conv2d, nni.ConvAdd2d, nni.ConvAddReLU2d}, {nn.Conv3d},
        {F.conv1d, toq.conv1d, toq.conv1d_relu}, {F.conv2d, toq.conv2d, toq.conv2d_relu}, {F.conv3d, toq.conv3d, toq.conv3d_relu},
        {nn.Linear, nni.LinearLeakyReLU, nni.LinearTanh}, {F.linear, toq.linear, toq.linear_relu},
        {nn.AvgPool1d, F.avg_pool1d, cresset.avg_pool1d}, {nn.AvgPool2d, F.avg_pool2d}, {nn.AvgPool3d, F.avg_pool3d},
        {nn.AdaptiveAvgPool1d, F.adaptive_avg_pool1d}, {nn.AdaptiveAvgPool2d, F.adaptive_avg_pool2d}, {nn.AdaptiveAvgPool3d, F.adaptive_avg_pool3d},
        {nn.LSTM}, {cresset.add, operator.add, toq.add, toq.add_relu}, {cresset.cat}, {cresset.mul, operator.mul, toq.mul, toq.mul_relu},
        {nn.ReLU, F.relu, cresset.relu, "relu", "relu_"},
        {nn.MaxPool1d, F.max_pool1d}, {nn.MaxPool2d, F.max_pool2d}, {nn.MaxPool3d, F.max_pool3d},
        {nn.Sigmoid, F.sigmoid, cresset.sigmoid, "sigmoid", "sigmoid_"}, {nn.BatchNorm2d}, {nn.BatchNorm3d},
        {nn.ConvTranspose1d}, {nn.ConvTranspose2d}, {nn.ConvTranspose3d},
        {F.conv_transpose1d, toq.conv_transpose1d}, {F.conv_transpose2d, toq.conv_transpose2d}, {F.conv_transpose3d, toq.conv_transpose3d},
        {nn.ELU}, {nn.Embedding}, {nn.EmbeddingBag}, {nn.GroupNorm}, {nn.Hardswish}, {nn.InstanceNorm1d}, {nn.InstanceNorm2d}, {nn.InstanceNorm3d},
        {nn.LayerNorm}, {nn.LeakyReLU}, {nn.ReLU6, F.relu6}, {F.elu}, {F.hardswish}, {F.group_norm}, {F.instance_norm}, {F.layer_norm}, {F.leaky_relu},
        {nn.SiLU, F.silu}, {nn.Mish, F.mish}, {nn.Tanh, F.tanh, cresset.tanh, "tanh", "tanh_"}, {nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_"},
        {nn.Hardtanh, F.hardtanh, F.hardtanh_}, {operator.floordiv}, {cresset.unsqueeze}, {cresset.stack}, {cresset.squeeze}, {cresset.sort},
        {cresset.repeat_interleave}, {cresset.min}, {cresset.mean}, {cresset.max}, {cresset.transpose}, {cresset.flatten}, {cresset.clamp}, {cresset.chunk},
        {F.interpolate}, {nn.Dropout}, {F.dropout}, {cresset.matmul, toq.matmul}, {nn.Softmax, nnq.Softmax}, {nn.PReLU}, {F.prelu, toq.prelu},
        {nn.PixelShuffle}, {F.pixel_shuffle}, {nn.PixelUnshuffle}, {F.pixel_unshuffle}, {cresset.narrow},
    ]  # fmt: skip


def _pairs_of_forms():
    """(a form, another form of it): of fusion, of training, of references and of conversion."""
    for mapping in (DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS):
        yield from mapping.items()
    for config in get_native_backend_config().configs:
        first = config.pattern[0] if isinstance(config.pattern, tuple) else config.pattern
        for root, made in (
            (first, config.fused_module), (config.pattern, config.qat_module), (config.root_module, config.reference_quantized_module), (first, config.root_module),
        ):  # fmt: skip
            if isinstance(root, type) and made is not None:
                yield root, made


def get_base_name_to_sets_of_related_ops():
    """{"0": {nn.Conv1d, nnq.Conv1d, …}, "1": …}: a new dictionary, to which sets and members may be added."""
    found, pairs = _seeds(), list(_pairs_of_forms())
    for related in found:
        before = -1
        while before != len(related):
            before = len(related)
            for one, other in pairs:
                if one in related or other in related:
                    related |= {one, other}
    return {str(number): related for number, related in enumerate(found)}


def get_base_name_for_op(base_name_to_sets_of_related_ops, op):
    """The name of the set that has the layer, function or method; None where there is none."""
    return next((name for name, related in base_name_to_sets_of_related_ops.items() if op in related), None)


def add_op_to_sets_of_related_ops(base_name_to_sets_of_related_ops, op, related_op):
    """Add `op` to the set of `related_op`, or as a set of its own where that is None. AssertionError where `related_op` is in no set."""
    if related_op is None:
        base_name_to_sets_of_related_ops[str(len(base_name_to_sets_of_related_ops))] = {op}
        return
    name = get_base_name_for_op(base_name_to_sets_of_related_ops, related_op)
    if name is None:
        raise AssertionError(f"{related_op} was not found in base_name_to_sets_of_related_ops")
    base_name_to_sets_of_related_ops[name].add(op)


def get_node_type_to_io_type_map():
    """{"funs_io_type_fp32": {F.linear, …}, …}: what takes and gives real numbers, whole ones, or either as it comes; new sets."""
    reals = _of(
        nn,
        "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d ELU GroupNorm Hardswish InstanceNorm1d InstanceNorm2d "
        "InstanceNorm3d LayerNorm LeakyReLU Linear LSTM Mish PReLU ReLU6 SiLU Softmax Dropout",
    )
    fused = _of(
        nni,
        "BNReLU2d BNReLU3d ConvAdd2d ConvAddReLU2d ConvBn1d ConvBn2d ConvBn3d ConvReLU1d ConvReLU2d ConvReLU3d LinearBn1d LinearLeakyReLU LinearReLU LinearTanh",
    )
    trained = _of(nnqat, "Conv1d Conv2d Conv3d Embedding EmbeddingBag Linear") | _of(
        nniqat, "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearBn1d LinearReLU"
    )
    whole = _of(
        nnq,
        "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d Dropout ELU Embedding EmbeddingBag Hardswish InstanceNorm1d InstanceNorm2d "
        "InstanceNorm3d LayerNorm LeakyReLU Linear PReLU Softmax",
    ) | _of(nniq, "BNReLU2d BNReLU3d ConvAdd2d ConvAddReLU2d ConvReLU1d ConvReLU2d ConvReLU3d LinearLeakyReLU LinearReLU LinearTanh")
    either = {nn.Identity} | _of(
        nn,
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AvgPool1d AvgPool2d AvgPool3d Dropout Hardsigmoid Hardtanh MaxPool1d MaxPool2d MaxPool3d "
        "PixelShuffle PixelUnshuffle ReLU ReLU6 Sigmoid Tanh",
    )
    return {
        "funs_io_type_fp32": {
            F.linear, F.conv1d, F.conv2d, F.conv3d, F.dropout, F.elu, F.hardswish, F.instance_norm, F.layer_norm, F.leaky_relu, F.mish, F.prelu, F.silu,
            cresset.add, cresset.cat, cresset.mul, cresset.sum, operator.add, operator.mul,
        },
        "funs_io_type_fp16": set(),
        "funs_io_type_int8": _of(
            toq,
            "cat conv1d conv1d_relu conv2d conv2d_relu conv3d conv3d_relu dropout elu hardswish instance_norm layer_norm leaky_relu linear linear_relu prelu",
        ),
        "funs_io_type_fp32_or_int8": {
            operator.add, operator.floordiv, cresset.avg_pool1d, cresset.adaptive_avg_pool1d, cresset.sigmoid, cresset.tanh,
            *_of(cresset, "cat chunk clamp flatten max mean min narrow repeat_interleave sort squeeze stack transpose unsqueeze"),
            *_of(F, "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d dropout hardsigmoid hardtanh hardtanh_"),
            *_of(F, "interpolate max_pool1d max_pool2d max_pool3d pixel_shuffle pixel_unshuffle relu relu6 sigmoid tanh"),
        },
        "mods_io_type_fp32": {*reals, NonDynamicallyQuantizableLinear, *fused, *trained, nnqatd.Linear, nnqd.Linear, nnqd.LSTM, nniqd.LinearReLU},
        "mods_io_type_int8": whole,
        "mods_io_type_fp32_or_int8": either,
        "meths_io_type_fp32_or_int8": {"hardsigmoid", "hardsigmoid_", "relu", "relu_", "sigmoid", "sigmoid_", "tanh", "tanh_"},
    }  # fmt: skip


def get_unmatchable_types_map():
    """{"funs_unmatchable": …, "mods_unmatchable": …, "meths_unmatchable": …}: what is passed over where graphs are matched; new sets."""
    return {
        "funs_unmatchable": {cresset.quantize_per_tensor, operator.getitem},
        "mods_unmatchable": {nn.Identity},
        "meths_unmatchable": {
            "chunk", "clamp", "contiguous", "dequantize", "detach", "detach_", "mean", "numel", "permute", "repeat", "repeat_interleave", "reshape", "resize_",
            "shape", "size", "squeeze", "squeeze_", "to", "transpose", "unsqueeze", "unsqueeze_", "view",
        },
    }  # fmt: skip
