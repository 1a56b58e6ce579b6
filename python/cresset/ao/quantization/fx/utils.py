"""Small questions about nodes of graphs, and attributes of graph modules."""

import dataclasses
from collections import namedtuple
from typing import Any

import cresset

from ..fake_quantize import FakeQuantizeBase, FixedQParamsFakeQuantize
from ..observer import FixedQParamsObserver, _is_activation_post_process
from ..utils import _assert_and_get_unique_device as assert_and_get_unique_device

__all__ = [
    "NON_OBSERVABLE_ARG_DICT", "NON_QUANTIZABLE_WEIGHT_OPS", "NodeInfo", "ObservedGraphModuleAttrs", "all_node_args_have_no_tensors", "assert_and_get_unique_device",
    "create_getattr_from_value", "get_custom_module_class_keys", "get_linear_prepack_op_for_dtype", "get_new_attr_name_with_prefix", "get_non_observable_arg_indexes_and_types",
    "get_qconv_prepack_op", "graph_module_from_producer_nodes", "maybe_get_next_module",
]  # fmt: skip

NodeInfo = namedtuple("NodeInfo", "op target")
NON_QUANTIZABLE_WEIGHT_OPS = {cresset.nn.functional.layer_norm, cresset.nn.functional.group_norm, cresset.nn.functional.instance_norm}


@dataclasses.dataclass
class ObservedGraphModuleAttrs:
    """What conversion needs to know of a graph with observers."""

    node_name_to_qconfig: dict
    node_name_to_scope: dict
    prepare_custom_config: Any
    equalization_node_name_to_qconfig: dict
    qconfig_mapping: Any
    is_qat: bool
    observed_node_names: set
    is_observed_standalone_module: bool = False
    standalone_module_input_quantized_idxs: list | None = None
    standalone_module_output_quantized_idxs: list | None = None


def get_new_attr_name_with_prefix(prefix):
    """A function that gives for a module the first name prefix0, prefix1, … that it does not have."""
    prefix = prefix.replace(".", "_")

    def first_free(module):
        number = 0
        while hasattr(module, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    return first_free


def create_getattr_from_value(module, graph, prefix, value, device=None):
    """A node that gives the value, which becomes a buffer of the module."""
    name = get_new_attr_name_with_prefix(prefix)(module)
    value = value.detach().clone() if isinstance(value, cresset.Tensor) else cresset.tensor(value)
    module.register_buffer(name, value if device is None else value.to(device))
    return graph.create_node("get_attr", name)


def all_node_args_have_no_tensors(node, modules, cache):
    """Is what the node computes, as a shape, made of no tensors?"""
    if node not in cache:
        cache[node] = _no_tensors(node, modules, cache)
    return cache[node]


def _no_tensors(node, modules, cache):
    if node.op in ("placeholder", "get_attr", "call_module"):
        return False
    if (node.op == "call_method" and node.target in ("size", "dim", "numel")) or (node.target is getattr and node.args[1] in ("ndim", "shape")):
        return True
    parts = list(node.all_input_nodes)
    return bool(parts) and all(all_node_args_have_no_tensors(part, modules, cache) for part in parts)


def is_observer_node(node, modules):
    """Is the node a call of an observer?"""
    return isinstance(node, cresset.fx.Node) and node.op == "call_module" and node.target in modules and _is_activation_post_process(modules[node.target])


def nodes_in(values):
    """The nodes in nested lists, tuples and dicts."""
    found = []
    cresset.fx.map_arg(values, found.append)
    return found


def get_custom_module_class_keys(custom_module_mapping):
    """The float classes of a mapping {QuantType: {float class: class}}."""
    return list(dict.fromkeys(kind for classes in custom_module_mapping.values() for kind in classes))


def get_linear_prepack_op_for_dtype(dtype):
    """The operator that packs the weight of a linear layer of a dtype: float16 or qint8."""
    ops = cresset.ops.quantized
    if dtype not in (cresset.float16, cresset.qint8):
        raise Exception(f"get_linear_prepack_op_for_dtype: weights are packed in float16 and qint8; got {dtype}.")
    return ops.linear_prepack_fp16 if dtype == cresset.float16 else ops.linear_prepack


def get_qconv_prepack_op(conv_op):
    """The operator that packs the weight of a convolution, by its function (F.conv2d, …)."""
    names = [f"conv{middle}{n}d" for middle in ("", "_transpose") for n in (1, 2, 3)]
    found = {getattr(cresset.nn.functional, name): getattr(cresset.ops.quantized, name + "_prepack") for name in names}.get(conv_op)
    if found is None:
        raise AssertionError(f"get_qconv_prepack_op: {conv_op} has no packed weights")
    return found


def graph_module_from_producer_nodes(root, producer_nodes):
    """A graph module of nodes from the last one back, whose result is that of the first in the list."""
    if not producer_nodes:
        raise AssertionError("list of producer nodes can not be empty")
    graph, made = cresset.fx.Graph(), {}
    for node in reversed(producer_nodes):
        made[node] = graph.node_copy(node, lambda n: made[n])
    graph.output(made[producer_nodes[0]])
    return cresset.fx.GraphModule(root, graph)


def maybe_get_next_module(node, modules, target_module_type=None, target_functional_type=None):
    """A user of the node that calls a module of the type, or the function; None where there is none."""
    for user in node.users:
        if user.op == "call_module" and target_module_type is not None and isinstance(modules[user.target], target_module_type):
            return user
        if user.op == "call_function" and target_functional_type is not None and user.target == target_functional_type:
            return user
    return None


def _from_second(node):
    return list(range(1, len(node.args)))


# {(op, target): {type: positions of arguments of it, which are not observed}}
NON_OBSERVABLE_ARG_DICT = {
    NodeInfo("call_method", "masked_fill"): {cresset.bool: lambda node: [1], float: lambda node: [2]},
    **{
        NodeInfo(op, target): {int: _from_second}
        for op, targets in (
            ("call_method", ("permute", "repeat", "reshape", "size", "transpose", "unsqueeze", "unsqueeze_", "view")),
            ("call_function", (cresset.transpose, cresset.unsqueeze)),
        )
        for target in targets
    },
}


def get_non_observable_arg_indexes_and_types(node):
    """{type: function of the node that gives the positions of its arguments that are not observed}"""
    return NON_OBSERVABLE_ARG_DICT.get(NodeInfo(node.op, node.target), {})


def inner_observer(watcher):
    """The observer in a fake quantizer, or the observer itself."""
    return watcher.activation_post_process if isinstance(watcher, FakeQuantizeBase) else watcher


def satisfies(constructor, constraints):
    """Does what a QConfig's constructor makes keep to the bounds of a backend's dtype?"""
    watcher = constructor()
    if constraints.dtype is not None and watcher.dtype != constraints.dtype:
        return False
    seen = inner_observer(watcher)
    if constraints.scale_exact_match is not None or constraints.zero_point_exact_match is not None:
        if not isinstance(watcher, (FixedQParamsObserver, FixedQParamsFakeQuantize)):
            return False
        near = abs(float(seen.scale) - constraints.scale_exact_match) <= 1e-8 + 1e-5 * abs(constraints.scale_exact_match)
        return near and int(seen.zero_point) == constraints.zero_point_exact_match
    low, high = (getattr(seen, name, None) for name in ("quant_min", "quant_max"))
    for bound, value, outside in (
        (constraints.quant_min_lower_bound, low, lambda v, b: v < b), (constraints.quant_max_upper_bound, high, lambda v, b: v > b),
        (constraints.scale_min_lower_bound, getattr(seen, "eps", None), lambda v, b: float(v) < b),
    ):  # fmt: skip
        if bound is not None and (value is None or outside(value, bound)):
            return False
    return True
