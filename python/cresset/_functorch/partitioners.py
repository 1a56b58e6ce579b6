"""Dividing a graph of results and gradients into one that runs forward and one that runs backward."""

from cresset import fx
from cresset.utils import _pytree as pytree

__all__ = ["default_partition"]


def _module(joint, inputs, nodes, outputs):
    """A GraphModule of some nodes of another."""
    graph, copies = fx.Graph(), {}
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    graph.output(fx.node.map_arg(tuple(outputs), lambda n: copies[n]))
    graph.eliminate_dead_code()
    return fx.GraphModule(joint, graph)


def flattened(module):
    """The same graph as a function of its placeholders, one by one, that gives a tuple."""
    nodes = list(module.graph.nodes)
    inputs = [n for n in nodes if n.op == "placeholder"]
    outputs = pytree.tree_leaves(nodes[-1].args[0], is_leaf=lambda n: n is None)
    return _module(module, inputs, [n for n in nodes if n.op not in ("placeholder", "output")], outputs)


def default_partition(joint_module, _joint_inputs, *, num_fwd_outputs):
    """(forward, backward): whatever does not depend on gradients of results runs forward, and backward gets the values of it that it uses.

    The joint graph's output is the results, then the gradients of the inputs; its inputs named tangents… are the gradients of the results. Forward
    gives the results, then those values; backward takes these, then the gradients of the results.
    """
    graph = joint_module.graph
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    outputs = pytree.tree_leaves(next(n for n in graph.nodes if n.op == "output").args[0], is_leaf=lambda n: n is None)
    results, gradients = outputs[:num_fwd_outputs], outputs[num_fwd_outputs:]
    tangents = [n for n in placeholders if "tangents" in n.target]
    late = set(tangents)
    early_nodes, late_nodes = [], []
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if any(n in late for n in node.all_input_nodes):
            late.add(node)
            late_nodes.append(node)
        else:
            early_nodes.append(node)
    wanted = [n for node in late_nodes for n in node.all_input_nodes] + [n for n in gradients if isinstance(n, fx.Node)]
    saved = [n for n in dict.fromkeys(wanted) if n not in late]
    primals = [n for n in placeholders if n not in tangents]
    forward = _module(joint_module, primals, early_nodes, [*results, *saved])
    backward = _module(joint_module, [*saved, *tangents], late_nodes, list(gradients))
    return forward, backward
