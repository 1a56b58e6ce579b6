"""Parts of graphs that stand for one operation: what is fused, and what is watched behind it."""

import cresset
from cresset.ao.quantization import FakeQuantizeBase, ObserverBase
from cresset.ao.quantization.backend_config import get_native_backend_config
from cresset.ao.quantization.utils import MatchAllNode
from cresset.fx import Node
from cresset.nn import functional as F

from .utils import get_normalized_nth_input

__all__ = ["end_node_matches_reversed_fusion", "get_reversed_fusions", "get_type_a_related_to_b"]


def get_type_a_related_to_b(base_name_to_sets_of_related_ops):
    """{(a, b), …}: all pairs of forms of one operation, in both orders."""
    return {(one, other) for related in base_name_to_sets_of_related_ops.values() for one in related for other in related}


def _flat(pattern):
    """(c, (b, a)) as (c, b, a); None where a part stands for any node, or has more than one input."""
    if not isinstance(pattern, tuple):
        return None if pattern is MatchAllNode else (pattern,)
    if len(pattern) != 2:
        return None
    before = _flat(pattern[1])
    return None if before is None or isinstance(pattern[0], tuple) else (pattern[0], *before)


def get_reversed_fusions():
    """[((last, …, first), position of the operation that the others go with), …], the longer ones before."""
    found = [(parts, 0) for parts in map(_flat, get_native_backend_config()._pattern_complex_format_to_config) if parts is not None]
    half = ("to", cresset.float16)
    found += [((half, F.relu, F.linear, "dequantize"), 1), ((half, F.linear, "dequantize"), 1)]
    watched = [((watcher, *parts), position) for parts, position in found for watcher in (ObserverBase, FakeQuantizeBase)]
    return sorted([*(f for f in found if len(f[0]) > 1), *watched], key=lambda fusion: -len(fusion[0]))


def _is(node, part, gm):
    if node.op == "call_module":
        module = gm.get_submodule(node.target)
        return isinstance(part, type) and (isinstance(module, part) if part in (ObserverBase, FakeQuantizeBase) else type(module) is part)
    if node.op == "call_function":
        return node.target is part
    if node.op != "call_method":
        return False
    return node.target == part if isinstance(part, str) else isinstance(part, tuple) and (node.target, *node.args[1:2]) == part


def end_node_matches_reversed_fusion(end_node, reversed_fusion, gm, seen_nodes):
    """Does the chain of first inputs that ends at the node have these parts, and none of `seen_nodes`?"""
    return _chain(end_node, reversed_fusion, gm, seen_nodes) is not None


def _chain(end_node, reversed_fusion, gm, seen_nodes):
    """The nodes of the chain from its last one, or None. What takes a list of inputs, as cat, is in no chain."""
    nodes, node = [], end_node
    for part in reversed_fusion:
        if not isinstance(node, Node) or node in seen_nodes or not _is(node, part, gm):
            return None
        nodes.append(node)
        node = get_normalized_nth_input(node, gm, 0)
    return nodes if isinstance(node, Node) else None
