"""Helpers for nodes of graphs: finding and replacing them, cutting a graph into submodules at some, putting a submodule back in its place."""

import operator

from cresset.fx.node import map_arg

__all__ = ["node_inline_", "node_replace_", "nodes_count", "nodes_filter", "nodes_first", "nodes_map", "sequential_split"]


def nodes_filter(nodes, node_call_back):
    """The nodes for which the function gives true, a list."""
    return [node for node in nodes if node_call_back(node)]


def nodes_first(nodes, node_call_back=None):
    """The first node for which the function gives true (without one, the first of all); None where there is none."""
    return next((node for node in nodes if node_call_back is None or node_call_back(node)), None)


def nodes_count(nodes, node_call_back):
    """For how many nodes the function gives true."""
    return len(nodes_filter(nodes, node_call_back))


def nodes_map(nodes, node_call_back):
    """The nodes, after the function was called for each of them."""
    for node in list(nodes):  # the function may change the graph
        node_call_back(node)
    return nodes


def node_replace_(old_node, new_node):
    """The new node in all places of the old one, which is erased."""
    old_node.replace_all_uses_with(new_node)
    old_node.users.clear()
    old_node.graph.erase_node(old_node)


def sequential_split(gm, node_call_back):
    """A GraphModule that calls submodules `submod_0`, …; a node for which the function gives true begins the next one. `gm` stays as it is."""
    from cresset.fx.passes.split_module import split_module

    part, parts = 0, {}
    for node in gm.graph.nodes:
        part += bool(node.op not in ("placeholder", "output") and node_call_back(node))
        parts[node] = part
    made = split_module(gm, gm, parts.__getitem__, keep_original_order=True, keep_original_node_name=True)
    made.graph.set_codegen(gm.graph._codegen)
    made.recompile()
    return made


def _adopt_attribute(owner, sub, path):
    """The attribute of the submodule as one of the module around it: under the same path where it is there already, else under a free name."""
    value = operator.attrgetter(path)(sub)
    missing = object()
    try:
        if operator.attrgetter(path)(owner) is value:
            return path
    except AttributeError:
        pass
    base = name = path.replace(".", "_")
    number = 0
    while (known := getattr(owner, name, missing)) is not missing and known is not value:
        number += 1
        name = f"{base}_{number}"
    setattr(owner, name, value)
    return name


def node_inline_(call_mod_node):
    """The nodes of a submodule in the place of the node that calls it; gives the module, whose graph has changed. ValueError for other nodes."""
    if call_mod_node.op != "call_module":
        raise ValueError(f"node_inline_: a call_module node was required; got {call_mod_node.op} of {call_mod_node.target}.")
    graph, owner = call_mod_node.graph, call_mod_node.graph.owning_module
    sub = owner.get_submodule(call_mod_node.target)
    places, given = {}, list(call_mod_node.args)
    result = None
    names = call_mod_node.kwargs
    with graph.inserting_before(call_mod_node):
        for node in sub.graph.nodes:
            if node.op == "placeholder":
                if not given and node.target not in names and not node.args:
                    raise ValueError(f"node_inline_: {call_mod_node.name} gives nothing for {node.target}, which the submodule needs.")
                places[node] = given.pop(0) if given else names.get(node.target, node.args[0] if node.args else None)
            elif node.op == "output":
                result = map_arg(node.args[0], places.__getitem__)
            else:
                new = places[node] = graph.node_copy(node, places.__getitem__)
                if node.op in ("get_attr", "call_module"):
                    new.target = _adopt_attribute(owner, sub, node.target)
    for user in list(call_mod_node.users):
        if user.op == "call_function" and user.target is operator.getitem and isinstance(result, (tuple, list)):
            part = result[user.args[1]]
            for other in list(user.users):
                _exchange(other, user, part)
            graph.erase_node(user)
        else:
            _exchange(user, call_mod_node, result)
    graph.erase_node(call_mod_node)
    owner.delete_all_unused_submodules()
    owner.recompile()
    return owner


def _exchange(user, old, new):
    """`new`, a node or a structure of them, where `user` has `old`."""
    user.args, user.kwargs = (map_arg(held, lambda n: new if n is old else n) for held in (user.args, user.kwargs))
