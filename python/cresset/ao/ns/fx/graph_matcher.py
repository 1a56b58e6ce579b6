"""Pairs of parts of two graphs that compute the same, from a model and another form of it."""

import enum

import cresset
from cresset.ao.quantization.observer import _is_activation_post_process

from .mappings import get_base_name_for_op, get_base_name_to_sets_of_related_ops, get_unmatchable_types_map
from .ns_types import NSSubgraph
from .pattern_utils import _chain, get_reversed_fusions, get_type_a_related_to_b

__all__ = ["GraphMatchingException", "SubgraphTypeRelationship", "get_matching_subgraph_pairs"]


class GraphMatchingException(Exception):
    """Two graphs are not forms of one model."""


class SubgraphTypeRelationship(enum.Enum):
    """How two parts are related."""

    EQUAL = enum.auto()
    EQUAL_BUT_UKNOWN = enum.auto()  # of one kind that is in no set of related ones
    RELATED_BUT_NOT_EQUAL = enum.auto()
    NOT_RELATED = enum.auto()


def _matchable_subgraphs(gm, unmatchable):
    """The parts of a graph that can be matched, from its outputs backwards."""
    fusions, seen = get_reversed_fusions(), set()
    stack = [node for node in gm.graph.nodes if node.op == "output"]
    modules = dict(gm.named_modules(remove_duplicate=False))
    while stack:
        end = stack.pop()
        if end in seen:
            continue
        nodes, position = [end], 0
        for fusion, base in fusions:
            found = _chain(end, fusion, gm, seen)
            if found is not None:
                nodes, position = found, base
                break
        seen.update(nodes)
        stack.extend(node for node in nodes[-1].all_input_nodes)
        base = nodes[-1 - position]
        if _is_matchable(base, modules, unmatchable):
            yield NSSubgraph(nodes[-1], end, base)


def _is_matchable(node, modules, unmatchable):
    if node.op == "call_function":
        return node.target not in unmatchable["funs_unmatchable"]
    if node.op == "call_module":
        module = modules[node.target]
        return type(module) not in unmatchable["mods_unmatchable"] and not _is_activation_post_process(module)
    return node.op == "call_method" and node.target not in unmatchable["meths_unmatchable"]


def _get_node_target_type(node, gm):
    if node.op in ("call_function", "call_method"):
        return node.target
    return type(gm.get_submodule(node.target)) if node.op == "call_module" else None


def _get_subgraph_relationship_type(subgraph_a, subgraph_b, gm_a, gm_b, type_a_related_to_b):
    a, b = _get_node_target_type(subgraph_a.base_op_node, gm_a), _get_node_target_type(subgraph_b.base_op_node, gm_b)
    known = (a, b) in type_a_related_to_b
    if a == b and subgraph_a.base_op_node.op == subgraph_b.base_op_node.op:
        return SubgraphTypeRelationship.EQUAL if known else SubgraphTypeRelationship.EQUAL_BUT_UKNOWN
    return SubgraphTypeRelationship.RELATED_BUT_NOT_EQUAL if known else SubgraphTypeRelationship.NOT_RELATED


def _get_name_for_subgraph(subgraph_a, gm_a, base_name_to_sets_of_related_ops, existing_names):
    """base_op_NAME_0, base_op_NAME_1, …"""
    base = f"base_op_{get_base_name_for_op(base_name_to_sets_of_related_ops, _get_node_target_type(subgraph_a.base_op_node, gm_a))}"
    number = 0
    while f"{base}_{number}" in existing_names:
        number += 1
    return f"{base}_{number}"


def get_matching_subgraph_pairs(gm_a, gm_b, base_name_to_sets_of_related_ops=None, unmatchable_types_map=None):
    """{name: (NSSubgraph of gm_a, NSSubgraph of gm_b)} in the order of the graphs.

    The graphs are walked from their outputs; what both have and no set knows is passed over. GraphMatchingException where one graph has more parts than the
    other, or parts at the same place are not related.
    """
    names = get_base_name_to_sets_of_related_ops() if base_name_to_sets_of_related_ops is None else base_name_to_sets_of_related_ops
    unmatchable = get_unmatchable_types_map() if unmatchable_types_map is None else unmatchable_types_map
    related, found = get_type_a_related_to_b(names), {}
    of_a, of_b = _matchable_subgraphs(gm_a, unmatchable), _matchable_subgraphs(gm_b, unmatchable)
    while True:
        a, b = next(of_a, None), next(of_b, None)
        if a is None and b is None:
            return dict(reversed(found.items()))
        if a is None or b is None:
            raise GraphMatchingException(
                f"get_matching_subgraph_pairs: nothing matches {_described(a or b, gm_a if b is None else gm_b)} of the "
                f"{'first' if b is None else 'second'} model. Both models need the same number of parts."
            )
        relation = _get_subgraph_relationship_type(a, b, gm_a, gm_b, related)
        if relation is SubgraphTypeRelationship.NOT_RELATED:
            raise GraphMatchingException(
                f"get_matching_subgraph_pairs: {_described(a, gm_a)} of the first model and {_described(b, gm_b)} of the second are not related. "
                "Relations can be given (base_name_to_sets_of_related_ops)."
            )
        if relation is not SubgraphTypeRelationship.EQUAL_BUT_UKNOWN:
            found[_get_name_for_subgraph(a, gm_a, names, set(found))] = (a, b)


def _described(subgraph, gm):
    target = _get_node_target_type(subgraph.base_op_node, gm)
    return f"{subgraph.base_op_node.name} ({target if isinstance(target, str) else cresset.typename(target)})"
