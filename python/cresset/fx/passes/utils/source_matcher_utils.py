"""Which nodes of an exported graph came from one call of a function or module."""

import dataclasses

from cresset.fx import Graph, Node  # noqa: F401

__all__ = ["SourcePartition", "get_source_partitions", "check_subgraphs_connected"]


@dataclasses.dataclass
class SourcePartition:
    """The nodes of one call, those that it takes from outside, those that others use, and those that are attributes."""

    nodes: list
    source: object
    input_nodes: list = dataclasses.field(default_factory=list)
    output_nodes: list = dataclasses.field(default_factory=list)
    params: list = dataclasses.field(default_factory=list)


def _source(node, wanted):
    """(source, name of the call) of a node, or None: meta["source_fn_stack"], or else the name of meta["torch_fn"]."""
    stack = node.meta.get("source_fn_stack")
    if stack:
        name, source = stack[-1]
        return (source, name) if source in wanted else None
    if node.meta.get("torch_fn"):
        call, function = node.meta["torch_fn"]
        source = function.split(".")[1]
        return (source, call) if source in wanted else None
    return None


def get_source_partitions(graph, wanted_sources, filter_fn=None):
    """{source: [SourcePartition of each call]} of functions, modules' classes or functions' names that a graph was made from.

    filter_fn(node): which nodes count. Sources without a node are left out.
    """
    calls = {}
    for node in graph.nodes:
        found = _source(node, wanted_sources)
        if found is not None:
            calls.setdefault(found, []).append(node)
    partitions = {}
    for (source, _), nodes in calls.items():
        partitions.setdefault(source, []).append(_partition(source, nodes))
    if filter_fn is not None:
        partitions = {s: [p for p in found if all(map(filter_fn, p.nodes))] for s, found in partitions.items()}
        partitions = {s: found for s, found in partitions.items() if found}
    return partitions


def _partition(source, nodes):
    inside, taken, params, given = set(nodes), [], [], []
    for node in nodes:
        for argument in node.all_input_nodes:
            if argument in inside:
                continue
            if argument.op == "get_attr":
                params.append(argument)
            taken.append(argument)
        if node.op == "get_attr":
            params.append(node)
        if any(user not in inside for user in node.users):
            given.append(node)
    return SourcePartition(nodes, source, list(dict.fromkeys(taken)), given, list(dict.fromkeys(params)))


def check_subgraphs_connected(subgraph1, subgraph2):
    """Does the second one use a result of the first?"""
    return any(user in subgraph2.nodes for node in reversed(subgraph1.nodes) for user in node.users)
