"""Which quantized layer, or layer for training, takes the place of a float one."""

import copy

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
from cresset.ao.nn.quantized import reference as nnqr
from cresset.ao.nn.sparse import quantized as nnsq
from cresset.nn.modules.linear import NonDynamicallyQuantizableLinear
from cresset.nn.utils.parametrize import type_before_parametrizations

from .fake_quantize import default_fixed_qparams_range_0to1_fake_quant, default_fixed_qparams_range_neg1to1_fake_quant
from .stubs import DeQuantStub, QuantStub
from .utils import get_combined_dict

__all__ = [
    "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS", "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS", "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS", "DEFAULT_MODULE_TO_ACT_POST_PROCESS",
    "DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS", "DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS", "no_observer_set", "get_default_static_quant_module_mappings",
    "get_default_static_quant_reference_module_mappings", "get_embedding_static_quant_module_mappings", "get_default_static_sparse_quant_module_mappings",
    "get_static_quant_module_class", "get_dynamic_quant_module_class", "get_default_qat_module_mappings", "get_embedding_qat_module_mappings",
    "get_default_dynamic_quant_module_mappings", "get_default_dynamic_sparse_quant_module_mappings", "get_default_qconfig_propagation_list",
    "get_default_compare_output_module_list", "get_default_float_to_quantized_operator_mappings", "get_quantized_operator",
]  # fmt: skip


def _same(names, made, source=nn):
    """{source.NAME: made.NAME}"""
    return {getattr(source, name): getattr(made, name) for name in names.split()}


_CONVS = "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"
DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS = {
    QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize, **_same(f"Linear {_CONVS} Embedding EmbeddingBag GRUCell LSTMCell RNNCell LSTM", nnqr),
}  # fmt: skip
DEFAULT_STATIC_QUANT_MODULE_MAPPINGS = {
    QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize,
    **_same(f"BatchNorm2d BatchNorm3d Dropout {_CONVS} ELU Embedding EmbeddingBag GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d", nnq),
    **_same("LayerNorm LeakyReLU Linear ReLU6 PReLU", nnq), NonDynamicallyQuantizableLinear: nnq.Linear, nnq.FloatFunctional: nnq.QFunctional,
    **_same("BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d ConvAdd2d ConvAddReLU2d LinearReLU LinearLeakyReLU LinearTanh", nniq, nni),
    **{getattr(nniqat, f"ConvBn{n}d"): getattr(nnq, f"Conv{n}d") for n in (1, 2, 3)},
    **{getattr(nniqat, f"ConvBnReLU{n}d"): getattr(nniq, f"ConvReLU{n}d") for n in (1, 2, 3)},
    **_same("ConvReLU2d ConvReLU3d LinearReLU", nniq, nniqat), nniqat.LinearBn1d: nnq.Linear, **_same("Linear Conv2d Conv3d", nnq, nnqat),
}  # fmt: skip
DEFAULT_QAT_MODULE_MAPPINGS = {
    **_same("Conv2d Conv3d Linear", nnqat), NonDynamicallyQuantizableLinear: nnqat.Linear,
    **_same("ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU2d ConvReLU3d LinearReLU LinearBn1d", nniqat, nni),
}  # fmt: skip
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS = {
    **_same("GRUCell Linear", nnqd), nnqatd.Linear: nnqd.Linear, NonDynamicallyQuantizableLinear: nnqd.Linear, **_same("LSTM GRU LSTMCell RNNCell", nnqd),
    nni.LinearReLU: nniqd.LinearReLU, **_same("EmbeddingBag Embedding", nnq),
}  # fmt: skip
_INCLUDE_QCONFIG_PROPAGATE_LIST = {nn.Sequential}
DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS = {
    getattr(nn.functional, name): getattr(cresset.ops.quantized, name) for name in ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")
}  # fmt: skip
DEFAULT_MODULE_TO_ACT_POST_PROCESS = {
    **dict.fromkeys((nn.Hardsigmoid, nn.Sigmoid, nn.Softmax), default_fixed_qparams_range_0to1_fake_quant), nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}  # fmt: skip
DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS = {nn.Linear: nnsq.Linear}
DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS = {nn.Linear: nnsq.dynamic.Linear}


def no_observer_set():
    """Layers whose output is not watched, though they are on the list for a qconfig."""
    from cresset.ao.nn import quantizable as nnqa

    return {nnqa.LSTM, nnqa.MultiheadAttention}


def get_default_static_quant_module_mappings():
    """{float layer: quantized layer}"""
    return copy.copy(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings():
    """{float layer: layer that computes with real numbers what quantized ones stand for}"""
    return copy.copy(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings():
    """get_default_static_quant_module_mappings with the embeddings that were trained to be quantized."""
    return {**DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, **_same("EmbeddingBag Embedding", nnq, nnqat)}


def get_default_static_sparse_quant_module_mappings():
    """{float layer: quantized layer with blocks of zeros in its weight}"""
    return copy.copy(DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS)


def get_default_dynamic_sparse_quant_module_mappings():
    """{float layer: layer with blocks of zeros in weights of eight bits}"""
    return copy.copy(DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS)


def _looked_up(cls, mapping, kind):
    found = mapping.get(cls)
    if found is None:
        raise AssertionError(f"Floating point module class {cls} does not have a corresponding {kind} module class")
    return copy.deepcopy(found)


def get_static_quant_module_class(float_module_class, additional_static_quant_mapping=None, is_reference=False):
    """The quantized class of a float one. AssertionError where there is none."""
    mapping = DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS if is_reference else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    return _looked_up(float_module_class, get_combined_dict(mapping, additional_static_quant_mapping), "quantized")


def get_dynamic_quant_module_class(float_module_class, additional_dynamic_quant_mapping=None):
    """The dynamically quantized class of a float one. AssertionError where there is none."""
    return _looked_up(float_module_class, get_combined_dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, additional_dynamic_quant_mapping), "dynamic quantized")


def get_default_qat_module_mappings():
    """{float layer: layer for training}"""
    return copy.copy(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings():
    """get_default_qat_module_mappings with embeddings."""
    return {**DEFAULT_QAT_MODULE_MAPPINGS, **_same("EmbeddingBag Embedding", nnqat)}


def get_default_dynamic_quant_module_mappings():
    """{float layer: dynamically quantized layer}"""
    return copy.copy(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def get_default_qconfig_propagation_list():
    """The classes that get a qconfig."""
    return set(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS) | set(DEFAULT_QAT_MODULE_MAPPINGS) | set(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS) | _INCLUDE_QCONFIG_PROPAGATE_LIST


def get_default_compare_output_module_list():
    """The classes whose outputs are compared by the numeric suite."""
    float_and_trained = set(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS) | set(DEFAULT_QAT_MODULE_MAPPINGS) | set(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)
    made = set(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS.values()) | set(DEFAULT_QAT_MODULE_MAPPINGS.values()) | set(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS.values())
    return (float_and_trained | made) - _INCLUDE_QCONFIG_PROPAGATE_LIST


def get_default_float_to_quantized_operator_mappings():
    """{function: quantized operator}"""
    return copy.copy(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_quantized_operator(float_op):
    """The quantized operator of a function. AssertionError where there is none."""
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def _get_special_act_post_process(module):
    """What watches the output of layers with a fixed range, else None."""
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))


def _has_special_act_post_process(module):
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS
