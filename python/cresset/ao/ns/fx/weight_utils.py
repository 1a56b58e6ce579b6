"""The weights of layers and functions in graphs, by kind."""

import cresset
from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import qat as nnqat
from cresset.ao.nn import quantized as nnq
from cresset.ao.nn.intrinsic import qat as nniqat
from cresset.ao.nn.intrinsic import quantized as nniq
from cresset.ao.nn.quantized import dynamic as nnqd
from cresset.ao.quantization.utils import getattr_from_fqn
from cresset.fx import Node
from cresset.nn import functional as F
from cresset.nn.modules.linear import NonDynamicallyQuantizableLinear

from .ns_types import NSSingleResultValuesType
from .utils import get_normalized_nth_input, get_target_type_str, return_first_non_observer_node

__all__ = [
    "extract_weight_from_node", "get_conv_fun_weight", "get_conv_mod_weight", "get_linear_fun_weight", "get_linear_mod_weight", "get_lstm_mod_weights",
    "get_lstm_weight", "get_op_to_type_to_weight_extraction_fn", "get_qconv_fun_weight", "get_qlinear_fun_weight", "get_qlstm_weight", "mod_0_weight_detach",
    "mod_weight_bias_0", "mod_weight_detach",
]  # fmt: skip


def mod_weight_detach(mod):
    """Of a layer."""
    return mod.weight.detach()


def mod_0_weight_detach(mod):
    """Of the first of fused layers."""
    return mod[0].weight.detach()


def mod_weight_bias_0(mod):
    """Of a quantized layer."""
    return mod._weight_bias()[0]


def get_lstm_weight(mod):
    """[those of inputs, those of the state, …]"""
    return [value.detach() for name, value in mod.named_parameters() if name.startswith(("weight_ih_l", "weight_hh_l"))]


def get_qlstm_weight(mod):
    """[those of inputs, those of the state, …] of a dynamically quantized LSTM."""
    weights = mod.get_weight()
    return [weights[name] for name in weights if name.startswith(("weight_ih_l", "weight_hh_l"))]


def get_conv_mod_weight(mod):
    """Of a convolution, fused with ReLU or not, or quantized."""
    return _of_module(mod)


def get_linear_mod_weight(mod):
    """Of a linear layer, fused with ReLU or not, or quantized."""
    return _of_module(mod)


def get_lstm_mod_weights(mod):
    """Of an LSTM, dynamically quantized or not."""
    return _of_module(mod)


def _of_module(mod):
    found = get_op_to_type_to_weight_extraction_fn()["call_module"].get(type(mod))
    if found is None:
        raise AssertionError(f"the weight of {type(mod)} is not known")
    return found(mod)


def constant_value(node, gm):
    """What a node gives that depends on attributes alone. AssertionError for another."""
    if node.op == "get_attr":
        return getattr_from_fqn(gm, node.target)
    if node.op not in ("call_function", "call_method") or not node.all_input_nodes:
        raise AssertionError(f"{node.name} depends on more than attributes")
    args, kwargs = cresset.fx.map_arg((node.args, node.kwargs), lambda n: constant_value(n, gm))
    with cresset.no_grad():
        return getattr(args[0], node.target)(*args[1:], **kwargs) if node.op == "call_method" else node.target(*args, **kwargs)


_CASTS = (cresset.quantize_per_tensor, cresset.quantize_per_channel, "dequantize", "to")


def _float_weight(node, gm):
    """The weight of a function before observers, casts and quantizers."""
    source = get_normalized_nth_input(node, gm, 1)
    while True:
        observed = return_first_non_observer_node(source, gm)
        if observed is source and source.target not in _CASTS:
            return constant_value(source, gm).detach()
        source = observed.args[0] if observed.target in _CASTS else observed


def get_conv_fun_weight(node, gm):
    """Of F.conv1d, F.conv2d or F.conv3d."""
    return _float_weight(node, gm)


def _packed(node, gm):
    """The packed weight of an operator: an attribute, or what the graph packs."""
    return constant_value(get_normalized_nth_input(node, gm, 1), gm)


def get_qconv_fun_weight(node, gm):
    """Of a quantized convolution, whose weight is packed."""
    return _packed(node, gm).weight()


def get_linear_fun_weight(node, gm):
    """Of F.linear; in half precision where the graph casts it."""
    cast = node.args[1] if len(node.args) > 1 else node.kwargs.get("weight")
    halved = isinstance(cast, Node) and cast.op == "call_method" and cast.target == "dequantize" and cast.args[0].target == "to"
    weight = _float_weight(node, gm)
    return weight.to(cresset.float16) if halved else weight


def get_qlinear_fun_weight(node, gm):
    """Of a quantized linear function, whose weight is packed."""
    return _packed(node, gm).unpack()[0]


def get_op_to_type_to_weight_extraction_fn():
    """{"call_module": {class: function of the module}, "call_function": {function: function of node and graph module}}: new dictionaries."""
    modules = {nn.LSTM: get_lstm_weight, nnqd.LSTM: get_qlstm_weight, nnqd.Linear: mod_weight_bias_0, nniqat.LinearBn1d: mod_weight_detach}
    for name in ("Conv1d", "Conv2d", "Conv3d", "Linear"):
        fused = "LinearReLU" if name == "Linear" else name.replace("Conv", "ConvReLU")
        modules |= {
            getattr(nn, name): mod_weight_detach, getattr(nni, fused): mod_0_weight_detach, getattr(nnq, name): mod_weight_bias_0,
            getattr(nnqat, name): mod_weight_detach, getattr(nniqat, fused): mod_weight_detach, getattr(nniq, fused): mod_weight_bias_0,
        }  # fmt: skip
        if name != "Linear":
            modules |= {getattr(nniqat, name.replace("Conv", middle)): mod_weight_detach for middle in ("ConvBn", "ConvBnReLU")}
    modules[NonDynamicallyQuantizableLinear] = mod_weight_detach
    toq = cresset.ops.quantized
    functions = {**dict.fromkeys((F.conv1d, F.conv2d, F.conv3d), get_conv_fun_weight), F.linear: get_linear_fun_weight}
    functions |= dict.fromkeys((toq.conv1d, toq.conv2d, toq.conv3d, toq.conv1d_relu, toq.conv2d_relu, toq.conv3d_relu), get_qconv_fun_weight)
    functions |= dict.fromkeys((toq.linear, toq.linear_relu), get_qlinear_fun_weight)
    return {"call_module": modules, "call_function": functions}


def extract_weight_from_node(node, gm, op_to_type_to_weight_extraction_fn=None):
    """{"type": "weight", "values": [the weight], "fqn": …, …} of a node; None where its kind has no weight, or none that is known."""
    from .graph_passes import _maybe_get_fqn

    known = get_op_to_type_to_weight_extraction_fn() if op_to_type_to_weight_extraction_fn is None else op_to_type_to_weight_extraction_fn
    if node.op == "call_function" and node.target in known["call_function"]:
        weight = known["call_function"][node.target](node, gm)
    elif node.op == "call_module" and type(gm.get_submodule(node.target)) in known["call_module"]:
        module = gm.get_submodule(node.target)
        weight = known["call_module"][type(module)](module)
    else:
        return None
    target = get_target_type_str(node, gm)
    return {
        "type": NSSingleResultValuesType.WEIGHT.value, "values": [weight], "prev_node_name": node.name, "prev_node_target_type": target, "ref_node_name": node.name,
        "ref_node_target_type": target, "index_within_arg": 0, "index_of_arg": 0, "fqn": _maybe_get_fqn(node, gm),
    }  # fmt: skip
