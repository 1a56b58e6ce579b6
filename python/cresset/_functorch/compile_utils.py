"""Parts of graphs."""

from cresset.utils._pytree import tree_leaves

__all__ = ["get_placeholders", "get_outputs"]


def get_placeholders(graph):
    """The inputs' nodes."""
    return graph.find_nodes(op="placeholder")


def get_outputs(graph):
    """The leaves of the result."""
    return tree_leaves(graph.output_node().args[0])
