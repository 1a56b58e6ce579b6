"""Make submodules of sets of nodes."""

from operator import getitem

from ...graph import Graph
from ...node import Node
from ..tools_common import legalize_graph, stable_topological_sort  # noqa: F401
from .common import lift_subgraph_as_module

__all__ = ["topo_sort", "validate_partition", "fuse_as_graphmodule", "insert_subgm", "erase_nodes", "fuse_by_partitions"]


NodeList = list[Node]


def topo_sort(nodes):
    """Nodes in an order in which they can run."""
    waiting = {n: sum(i in set(nodes) for i in n.all_input_nodes) for n in nodes}
    ready, done = [n for n in nodes if not waiting[n]], []
    while ready:
        node = ready.pop(0)
        done.append(node)
        for user in node.users:
            if user in waiting:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
    assert len(nodes) == len(done), "topological sorted nodes doesn't have same length as input nodes"
    return done


def validate_partition(partition):
    """Can these nodes run as one, none needing another by way of a node outside?"""
    inside = set(partition)
    queue = [u for n in partition for u in n.users if u not in inside]
    seen = set()
    while queue:
        node = queue.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            queue.extend(node.users)
    return True


def fuse_as_graphmodule(gm, nodes, module_name, partition_lookup_table=None, *, always_return_tuple=False):
    """(GraphModule of the nodes, their inputs in gm, their outputs in gm); AssertionError unless they are of gm and can run as one."""
    for node in nodes:
        assert node.graph.owning_module is gm, f"{node} doesn't belong to passed in graph module {gm._get_name()}"
        assert not node._erased, f"{node} has been removed from owning graph"
    assert validate_partition(nodes), "Invalid partition, found dependency cycles"
    inside, graph, inputs, table = set(nodes), Graph(), {}, {}

    def here(value):
        if value in table:
            return table[value]
        made = graph.placeholder(value.name, type_expr=value.type)
        made.meta = value.meta.copy()
        inputs[value] = table[value] = made
        return made

    for node in nodes:
        for argument in node.all_input_nodes:
            if argument not in inside:
                here(argument)
        table[node] = graph.node_copy(node, here)
    outputs = {n: table[n] for n in nodes if any(u not in inside for u in n.users)}
    results = tuple(outputs.values())
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    graph.lint()
    module, _ = lift_subgraph_as_module(gm, graph, comp_name="", class_name=module_name)
    return module, tuple(inputs), tuple(outputs)


def insert_subgm(gm, sub_gm, orig_inputs, orig_outputs):
    """Call the submodule in gm's graph in place of what gave orig_outputs."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    output = next(n for n in sub_gm.graph.nodes if n.op == "output")
    latest = max(orig_outputs, default=None) if orig_outputs else None
    with gm.graph.inserting_after(latest) if latest is not None else gm.graph.inserting_before(gm.graph.output_node()):
        call = gm.graph.call_module(name, args=tuple(orig_inputs), kwargs=None)
    if len(orig_outputs) == 1 and isinstance(output.args[0], Node):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
    else:
        with gm.graph.inserting_after(call):
            for at, old in enumerate(orig_outputs):
                new = gm.graph.call_function(getitem, (call, at))
                old.replace_all_uses_with(new, propagate_meta=True)
        call.meta["val"] = tuple(o.meta.get("val", None) for o in orig_outputs)
    return gm


def erase_nodes(gm, nodes):
    """Erase nodes, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(gm, partitions, prefix="fused_", always_return_tuple=False):
    """gm with a submodule for each set of nodes."""
    for at, nodes in enumerate(partitions):
        ordered = topo_sort(list(nodes))
        name = f"{prefix}{at}"
        module, inputs, outputs = fuse_as_graphmodule(gm, ordered, name, always_return_tuple=always_return_tuple)
        insert_subgm(gm, module, inputs, outputs)
        erase_nodes(gm, ordered)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
