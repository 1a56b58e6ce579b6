"""Does a pattern, a chain of classes and functions, begin at a node of a graph?"""

from cresset import nn
from cresset.ao.quantization.utils import MatchAllNode
from cresset.nn.utils import parametrize

__all__ = ["apply_match"]


def _match(modules, node, current):
    """Is this node of that kind: a class of modules, a function, the name of a target, or MatchAllNode?"""
    if isinstance(current, type) and issubclass(current, MatchAllNode):
        return True
    if isinstance(current, type) and issubclass(current, nn.Module):
        return node.op == "call_module" and parametrize.type_before_parametrizations(modules[node.target]) == current
    if callable(current):
        return node.op == "call_function" and node.target is current
    return isinstance(current, str) and node.target == current


def apply_match(modules, pattern, node, matched_node_pattern):
    """The nodes that `pattern` matches from `node` on, each the first user of the one before it, or None."""
    first, *rest = pattern if isinstance(pattern, tuple) else (pattern,)
    if not _match(modules, node, first):
        return None
    matched_node_pattern.append(node)
    if not rest:
        return matched_node_pattern
    for user in node.users:
        return apply_match(modules, tuple(rest), user, matched_node_pattern)
    return None
