"""Which node of a matched pattern is its root: what backend configs of libraries import."""

from cresset.fx import Node

__all__ = []


def _default_root_node_getter(node_pattern):
    """The last node of a pattern, that of its last part where the parts are patterns: of (relu, (bn, conv)) the convolution. TypeError for what has none."""
    while not isinstance(node_pattern, Node):
        if not isinstance(node_pattern, (tuple, list)) or not node_pattern:
            raise TypeError(f"_default_root_node_getter: a node or a pattern of nodes was required; got {node_pattern!r}.")
        node_pattern = node_pattern[-1]
    return node_pattern
