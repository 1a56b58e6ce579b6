"""Parts of graphs, and graphs without what they compute twice."""

import cresset
from cresset.fx import Graph
from cresset.utils import _pytree as pytree

__all__ = ["fx_graph_cse", "get_placeholders", "get_outputs"]


def get_placeholders(graph):
    """The inputs' nodes."""
    return graph.find_nodes(op="placeholder")


def get_outputs(graph):
    """The leaves of the result."""
    return pytree.tree_leaves(graph.output_node().args[0])


def _may_share(node):
    """May two such nodes be one? Not those that draw numbers, write, or have other effects."""
    if node.op != "call_function" or node.is_impure():
        return False
    schema = getattr(node.target, "_schema", None)
    return schema is None or not schema.is_mutable


def _writes(node):
    """May it change a tensor that others hold?"""
    if node.op in ("call_module", "call_method"):
        return True
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and (schema.is_mutable if schema is not None else node.is_impure())


def _key(node, args, kwargs):
    """What equal nodes have in common, or None where that is not known. Numbers of different types are different."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    key = tuple((type(x), x) for x in leaves)
    try:
        hash(key)
    except TypeError:  # a slice, or a value of the caller's
        return None
    return node.target, key, repr(spec)


def fx_graph_cse(fx_g):
    """A copy of a graph in which nodes with the same function and arguments are one. Nodes that draw random numbers or write stay, and those behind a
    write are not those before it."""
    new, env, known = Graph(), {}, {}
    for node in fx_g.nodes:
        args, kwargs = cresset.fx.node.map_arg((node.args, node.kwargs), lambda n: env[n])
        key = _key(node, args, kwargs) if _may_share(node) else None
        if key is not None and key in known:
            env[node] = known[key]
            continue
        env[node] = new.node_copy(node, lambda n: env[n])
        if key is not None:
            known[key] = env[node]
        elif _writes(node):
            known.clear()
    return new
