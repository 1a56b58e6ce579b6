"""Which nodes of a graph are what a pattern describes: a class of modules, a function, a method, or from its last part (last, previous, …)."""

import dataclasses

import cresset
from cresset.nn.utils.parametrize import type_before_parametrizations

from ..utils import MatchAllNode

__all__ = []


@dataclasses.dataclass
class Match:
    """What matched: the last node, the nodes of the pattern from its last one, the pattern, and the nodes in the pattern's form."""

    last: cresset.fx.Node
    nodes: list
    pattern: object
    form: object
    root_getter: object = None  # of the backend, for patterns whose innermost part is another

    @property
    def root(self):
        """The node of the innermost part."""
        if self.root_getter is not None:
            return self.root_getter(self.form)
        form = self.form
        while not isinstance(form, cresset.fx.Node):
            form = form[-1]
        return form


def is_one(node, pattern, modules):
    """Is the node what one part of a pattern describes?"""
    if pattern is MatchAllNode:
        return True
    if node.op == "call_module":
        return isinstance(pattern, type) and node.target in modules and type_before_parametrizations(modules[node.target]) is pattern
    if node.op == "call_function":
        if node.target is getattr:
            return isinstance(pattern, str) and node.args[1] == pattern
        return node.target is pattern
    return node.op == "call_method" and node.target == pattern


def match(node, pattern, modules, inner=False):
    """(nodes from the last one, the same in the pattern's form), or None. Inner nodes have no other user."""
    if pattern is MatchAllNode:
        return [], node
    if not isinstance(node, cresset.fx.Node) and not isinstance(pattern, (type, str, tuple)) and not callable(pattern):  # a number
        return ([], node) if node == pattern else None
    if not isinstance(node, cresset.fx.Node) or (inner and len(node.users) > 1):
        return None
    own, *before = pattern if isinstance(pattern, tuple) else (pattern,)
    if not is_one(node, own, modules):
        return None
    if not before:
        return [node], node
    arguments = [a for a in node.args if isinstance(a, cresset.fx.Node)] if len(before) == 1 else list(node.args)
    if len(arguments) < len(before):
        return None
    nodes, form = [node], [node]
    for argument, part in zip(node.args[:1] if len(before) == 1 else arguments, before):
        found = match(argument, part, modules, inner=True)
        if found is None:
            return None
        nodes, form = nodes + found[0], [*form, found[1]]
    return nodes, tuple(form)


def _is_match(modules, node, pattern, max_uses=None):
    """Is the node the last one of what the pattern describes? Inner nodes have no other user."""
    return (max_uses is None or len(node.users) <= max_uses) and match(node, pattern, modules) is not None


def _depth(pattern):
    return sum(_depth(part) for part in pattern) if isinstance(pattern, tuple) else 1


def longest_first(patterns):
    """The patterns, those of more parts before."""
    return sorted(patterns, key=_depth, reverse=True)


def find_matches(graph, modules, patterns, taken=()):
    """{name of a node: Match} from the end of the graph; each node belongs to one."""
    found, ordered = {}, longest_first(patterns)
    for node in reversed(graph.nodes):
        if node.name in found or node.name in taken or node.op not in ("call_module", "call_function", "call_method"):
            continue
        for pattern in ordered:
            matched = match(node, pattern, modules)
            if matched is None or any(n.name in found or n.name in taken for n in matched[0]):
                continue
            one = Match(node, matched[0], pattern, matched[1])
            found |= {n.name: one for n in matched[0]}
            break
    return found
