"""What is asked of nodes where graphs are compared, and distances between results of a model and of its quantized form."""

import enum
import functools
import operator

import cresset
from cresset import nn
from cresset.ao.nn.quantized import dynamic as nnqd
from cresset.ao.quantization.observer import _is_activation_post_process
from cresset.ao.quantization.utils import getattr_from_fqn
from cresset.fx import Node

__all__ = [
    "NodeInputOrOutputType", "compute_cosine_similarity", "compute_normalized_l2_error", "compute_sqnr", "get_arg_indices_of_inputs_to_log",
    "get_node_first_input_and_output_type", "get_node_input_qparams", "get_normalized_nth_input", "get_number_of_non_param_args", "get_target_type_str",
    "maybe_add_missing_fqns", "maybe_dequantize_first_two_tensor_args_and_handle_tuples", "op_type_supports_shadowing", "rekey_logger_info_on_node_name_of_model",
    "return_first_non_observer_node",
]  # fmt: skip

_BINARY = (cresset.add, cresset.mul, operator.add, operator.mul)
_OF_LISTS = (cresset.cat, cresset.stack)


class NodeInputOrOutputType(enum.Enum):
    """The dtype of a value: FP32_OR_INT8 where an operation takes either, and which one is not known."""

    FP32 = enum.auto()
    INT8 = enum.auto()
    FP16 = enum.auto()
    UNKNOWN = enum.auto()
    FP32_OR_INT8 = enum.auto()


def get_normalized_nth_input(node, gm, idx):
    """The nth argument, by position or by name."""
    try:
        found = node.normalized_arguments(gm, normalize_to_only_use_kwargs=True)
    except RuntimeError:  # more than one overload fits
        found = None
    values = [*node.args, *node.kwargs.values()] if found is None else [*found.args, *found.kwargs.values()]
    return values[idx]


def _module_of(node, gm):
    return gm.get_submodule(node.target)


def _is_transparent(module, logger_cls):
    return _is_activation_post_process(module) or (logger_cls is not None and isinstance(module, logger_cls))


def get_node_first_input_and_output_type(node, gm, logger_cls, node_type_to_io_type_map):
    """(NodeInputOrOutputType of the first input, that of the result)"""
    kinds, known = NodeInputOrOutputType, node_type_to_io_type_map
    unknown = (kinds.UNKNOWN, kinds.UNKNOWN)

    def as_it_comes():
        source = get_normalized_nth_input(node, gm, 0)
        while isinstance(source, (list, tuple)):
            source = source[0]
        if not isinstance(source, Node):
            return unknown
        return (get_node_first_input_and_output_type(source, gm, logger_cls, known)[1],) * 2

    if node.op == "call_function":
        for name, kind in (("funs_io_type_fp32", kinds.FP32), ("funs_io_type_fp16", kinds.FP16), ("funs_io_type_int8", kinds.INT8)):
            if node.target in known[name]:
                return kind, kind
        return as_it_comes() if node.target in known["funs_io_type_fp32_or_int8"] else unknown
    if node.op == "call_module":
        module = _module_of(node, gm)
        if _is_transparent(module, logger_cls):
            return as_it_comes()
        for name, kind in (("mods_io_type_fp32", kinds.FP32), ("mods_io_type_int8", kinds.INT8)):
            if type(module) in known[name]:
                return kind, kind
        return as_it_comes() if type(module) in known["mods_io_type_fp32_or_int8"] else unknown
    if node.op != "call_method":
        return unknown
    if node.target == "dequantize":
        return as_it_comes()[1], kinds.FP32
    if node.target == "to" and cresset.float16 in node.args:
        return as_it_comes()[1], kinds.FP16
    return as_it_comes() if node.target in known["meths_io_type_fp32_or_int8"] else unknown


def get_node_input_qparams(node, gm, node_type_to_io_type_map):
    """(scale, zero point) of the quantized value that the node takes, where the graph says them; else None."""
    source = get_normalized_nth_input(node, gm, 0)
    if not isinstance(source, Node):
        return None
    if source.op == "call_function":
        if source.target is cresset.quantize_per_tensor:
            return tuple(_value_of(v, gm) for v in source.args[1:3])
        if source.target in node_type_to_io_type_map["funs_io_type_int8"] or _is_quantized_binary(source):
            return tuple(_value_of(v, gm) for v in _scale_of(source, gm))
        passes = source.target in node_type_to_io_type_map["funs_io_type_fp32_or_int8"]
    elif source.op == "call_module":
        module = _module_of(source, gm)
        if type(module) in node_type_to_io_type_map["mods_io_type_int8"]:
            return module.scale, module.zero_point
        passes = _is_activation_post_process(module) or type(module) in node_type_to_io_type_map["mods_io_type_fp32_or_int8"]
    else:
        passes = source.op == "call_method" and source.target in node_type_to_io_type_map["meths_io_type_fp32_or_int8"]
    return get_node_input_qparams(source, gm, node_type_to_io_type_map) if passes else None


def _is_quantized_binary(node):
    toq = cresset.ops.quantized
    return node.target in (toq.add, toq.add_relu, toq.mul, toq.mul_relu, toq.matmul)


def _scale_of(node, gm):
    """The last two arguments that are numbers or nodes that give attributes: the scale and the zero point of the result."""
    return [v for v in (*node.args, *node.kwargs.values()) if not isinstance(v, (list, tuple, bool))][-2:]


def _value_of(value, gm):
    return getattr_from_fqn(gm, value.target) if isinstance(value, Node) else value


def return_first_non_observer_node(node, gm):
    """What the node observes, through observers of observers; the node itself where it is none."""
    while node.op == "call_module" and _is_activation_post_process(_module_of(node, gm)):
        node = node.args[0]
    return node


def get_number_of_non_param_args(node, gm):
    """How many inputs are not weights: of an LSTM two, else one."""
    return 2 if node.op == "call_module" and isinstance(_module_of(node, gm), (nn.LSTM, nnqd.LSTM)) and len(node.args) > 1 else 1


def get_arg_indices_of_inputs_to_log(node):
    """The positions of the inputs that a logger keeps: those of sums and products that are nodes, else the first one."""
    if not node.args:
        return []
    toq = cresset.ops.quantized
    if node.op == "call_function" and node.target in (*_BINARY, toq.add, toq.mul):
        return [index for index in (0, 1) if isinstance(node.args[index], Node)]
    return [0]


def get_target_type_str(node, gm):
    """The name of what a node calls; "str" for methods, "" for what calls nothing."""
    if node.op in ("call_function", "call_method"):
        return cresset.typename(node.target)
    return cresset.typename(_module_of(node, gm)) if node.op == "call_module" else ""


def rekey_logger_info_on_node_name_of_model(results, model_name):
    """The results by names of nodes of one model, in place of names of matched parts."""
    made = {}
    for old, of_kinds in results.items():
        entries = next((models[model_name] for models in of_kinds.values() if model_name in models), None)
        made[old if entries is None else entries[0]["ref_node_name"]] = of_kinds
    return made


def maybe_add_missing_fqns(results):
    """Names of modules of one model, from that which knows them: names of quantized models are those of the float ones."""
    for of_kinds in results.values():
        for models in of_kinds.values():
            for entries in zip(*models.values()):
                known = next((entry["fqn"] for entry in entries if entry["fqn"] is not None), None)
                for entry in entries:
                    entry["fqn"] = known if entry["fqn"] is None else entry["fqn"]


def maybe_dequantize_first_two_tensor_args_and_handle_tuples(f):
    """The function on real numbers, also of two lists, tuples or dicts of tensors with the same places; None where their kinds or shapes differ."""

    @functools.wraps(f)
    def measured(x, y, *args, **kwargs):
        if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
            return [measured(a, b, *args, **kwargs) for a, b in zip(x, y)] if len(x) == len(y) else None
        x, y = (v.dequantize() if isinstance(v, cresset.Tensor) and (v.is_quantized or v.dtype is cresset.float16) else v for v in (x, y))
        return None if x.shape != y.shape else f(x, y, *args, **kwargs)

    return measured


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_sqnr(x, y):
    """Signal to noise in decibels: 20 log10(|x| / |x - y|)."""
    return 20 * cresset.log10(cresset.norm(x) / cresset.norm(x - y))


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_normalized_l2_error(x, y):
    """|x - y| / |x|, each as a root of sums of squares."""
    return cresset.sqrt(((x - y) ** 2).sum() / (x**2).sum())


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_cosine_similarity(x, y):
    """Of both as rows, one number in a tensor of one element."""
    return cresset.nn.functional.cosine_similarity(x.reshape(1, -1), y.reshape(1, -1))


def op_type_supports_shadowing(node):
    """Can another form of the operation run beside it? Not of sums, products and what takes a list."""
    toq = cresset.ops.quantized
    return node.op != "call_function" or node.target not in (*_BINARY, *_OF_LISTS, toq.add, toq.add_relu, toq.mul, toq.mul_relu, toq.cat)

