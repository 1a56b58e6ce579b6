"""Find a pattern in a graph and put something else in its place."""

import copy
from dataclasses import dataclass
from typing import NamedTuple

import cresset

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node

__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters", "ReplacedPatterns"]


class Match(NamedTuple):
    """anchor: the last node that matched; nodes_map: {node of the pattern: node of the graph}."""

    anchor: Node
    nodes_map: dict


@dataclass
class ReplacedPatterns:
    """A match and the nodes that took its place."""

    anchor: Node
    nodes_map: dict
    replacements: list


def _replace_attributes(gm, replacement):
    """Take over what the replacement's graph names and gm lacks."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()

    def found(module, path):
        owner, _, name = path.rpartition(".")
        try:
            value = getattr(module.get_submodule(owner), name, None)
        except AttributeError:
            return False, None
        return value is not None, value

    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        if found(gm, node.target)[0]:
            continue
        there, value = found(replacement, node.target)
        if not there:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the referenced attribute does not exist '
                "in the replacement GraphModule"
            )
        if isinstance(value, cresset.nn.Module):
            gm.add_submodule(node.target, copy.deepcopy(value))
        else:
            owner, _, name = node.target.rpartition(".")
            if owner and not found(gm, owner)[0]:
                gm.add_submodule(owner, cresset.nn.Module())
            setattr(gm.get_submodule(owner), name, value)
    gm.graph.lint()


def replace_pattern(gm, pattern, replacement):
    """Replace every part of gm's graph that computes what pattern does by what replacement does; gives the list of Match.

    pattern and replacement are functions, modules or GraphModules with the same parameters and as many results. Matches that overlap are not
    replaced, nor those of which something besides the results is used outside. gm is recompiled.
    """
    found = _replace_pattern(gm, pattern, replacement)
    return [Match(anchor=m.anchor, nodes_map=m.nodes_map) for m in found]


def replace_pattern_with_filters(
    gm, pattern, replacement=None, match_filters=None, ignore_literals=False, replacement_callback=None, node_name_match=""
):
    """replace_pattern for the matches for which every filter(match, original graph, pattern graph) is true; gives the list of ReplacedPatterns.

    ignore_literals: constants need not be equal. replacement_callback(match, original graph, pattern graph) → the graph of the replacement.
    """
    return _replace_pattern(gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match)


def _graph_of(program):
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _replace_pattern(gm, pattern, replacement=None, match_filters=None, ignore_literals=False, replacement_callback=None, node_name_match=""):
    from .passes.utils.matcher_utils import SubgraphMatcher

    filters = match_filters or []
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, match_output=False, match_placeholder=False, remove_overlapping_matches=True, ignore_literals=ignore_literals)
    matches = [m for m in matcher.match(graph, node_name_match=node_name_match) if all(f(m, graph, pattern_graph) for f in filters)]
    common = None
    if replacement is not None:
        common = _graph_of(replacement)
    elif replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    done, replaced_by = [], {}
    for match in matches:
        new_graph = common if replacement_callback is None else replacement_callback(match, graph, pattern_graph)
        inputs = [n for n in new_graph.nodes if n.op == "placeholder"]
        assert len(match.placeholder_nodes) == len(inputs)
        val_map = {}
        for there, here in zip(inputs, match.placeholder_nodes):
            if isinstance(here, Node):
                here = replaced_by.get(here, here)
                if here not in match.placeholder_nodes:
                    match.placeholder_nodes[match.placeholder_nodes.index(next(n for n in match.placeholder_nodes if replaced_by.get(n) is here))] = here
            val_map[there] = here
        done.append(_replace_match(graph, pattern_graph, match, new_graph, val_map, replaced_by))
    gm.recompile()
    if isinstance(replacement, cresset.nn.Module):
        _replace_attributes(gm, replacement)
    return done


def _replace_match(graph, pattern_graph, match, new_graph, val_map, replaced_by):
    users = {user for node in match.returning_nodes for user in node.users}
    first = None
    if len(users) == 1:
        (first,) = users
    else:
        first = next((n for n in graph.nodes if n in users), None)
    if first is None:  # nobody uses it
        first = match.returning_nodes[0].next if match.returning_nodes else None
    # Behind every input of the replacement.
    given = [n for n in val_map.values() if isinstance(n, Node)]
    latest = max(given, default=None)
    if first is not None and latest is not None and first <= latest:
        first = latest.next
    with graph.inserting_before(first):
        copied = graph.graph_copy(new_graph, val_map)
    results = (copied,) if isinstance(copied, Node) else tuple(copied)
    replacements = [v for k, v in val_map.items() if v not in match.placeholder_nodes and isinstance(v, Node)]
    assert len(match.returning_nodes) == len(results)
    for old, new in zip(match.returning_nodes, results):
        old.replace_all_uses_with(new)
        replaced_by[old] = new
    for node in reversed(pattern_graph.nodes):
        if node.op not in ("placeholder", "output"):
            gone = match.nodes_map[node]
            if not gone.users and not gone._erased:
                graph.erase_node(gone)
    return ReplacedPatterns(anchor=match.anchors[0], nodes_map=match.nodes_map, replacements=replacements)
