"""Small questions about nodes of graphs, and attributes of graph modules."""

import dataclasses
from collections import namedtuple
from typing import Any

import cresset

from ..fake_quantize import FakeQuantizeBase, FixedQParamsFakeQuantize
from ..observer import FixedQParamsObserver, _is_activation_post_process

__all__ = ["NON_QUANTIZABLE_WEIGHT_OPS", "NodeInfo", "ObservedGraphModuleAttrs", "all_node_args_have_no_tensors", "create_getattr_from_value", "get_new_attr_name_with_prefix"]

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
