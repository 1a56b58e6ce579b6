"""Split a graph into submodules."""

import copy
from operator import getitem

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import map_arg

__all__ = ["Partition", "split_module"]


class Partition:
    """A part: names of its nodes, the names that it takes and gives, the parts it needs and those that need it."""

    def __init__(self, name):
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names, self.inputs, self.outputs = [], {}, {}
        self.dependencies, self.dependents = {}, {}
        self.graph = Graph()
        self.environment, self.targets = {}, {}

    def __repr__(self):
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def _get_attr_from_qualname(mod, qualname):
    value = mod
    for part in qualname.split("."):
        if not hasattr(value, part):
            raise AttributeError(f"Node target {qualname} not found!")
        value = getattr(value, part)
    return value


def _assigned(m, split_callback, partition_affix):
    """({name: Partition}, {node: name}) of what the callback says; values of the module stay outside."""
    partitions, owner = {}, {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = str(split_callback(node))
        if partition_affix is not None:
            name = f"{partition_affix}_{name}"
        part = partitions.get(name)
        if part is None:
            part = partitions[name] = Partition(name)
        part.node_names.append(node.name)
        owner[node] = name
        node._fx_partition = name
    return partitions, owner


def _connect(m, partitions, owner):
    """Note which values go from part to part; gives the parts in an order in which they can run. RuntimeError for a cycle."""
    for node in m.graph.nodes:
        here = owner.get(node)

        def use(source, node=node, here=here):
            there = owner.get(source)
            if here == there:
                return
            if there is not None:
                partitions[there].outputs.setdefault(source.name)
            if here is not None:
                partitions[here].inputs.setdefault(source.name)
                if there is not None:
                    partitions[here].dependencies.setdefault(there)
                    partitions[there].dependents.setdefault(here)

        map_arg(node.args, use)
        map_arg(node.kwargs, use)


def _in_order(partitions):
    ready = [name for name, part in partitions.items() if not part.dependencies]
    order, left = [], {name: dict(part.dependencies) for name, part in partitions.items()}
    while ready:
        name = ready.pop()
        order.append(name)
        for dependent in partitions[name].dependents:
            left[dependent].pop(name)
            if not left[dependent]:
                ready.append(dependent)
    if len(order) != len(partitions):
        raise RuntimeError("cycle exists between partitions!")
    return order


def split_module(m, root_m, split_callback, qualname_map=None, keep_original_order=False, keep_original_node_name=False, keep_original_input_name=True,
                 *, partition_affix=None, tuple_return=False):  # fmt: skip
    """A GraphModule that calls submodules `submod_0`, …: split_callback(node) → the number of the part that a node goes to.

    qualname_map: dict that gets {path in the result: path in root_m} of the called modules. keep_original_order: parts are called in the order of
    their first nodes. partition_affix: a word in the names. tuple_return: parts give a tuple even of one value. RuntimeError when parts need
    each other.
    """
    partitions, owner = _assigned(m, split_callback, partition_affix)
    _connect(m, partitions, owner)
    order = _in_order(partitions)
    if keep_original_order:
        order = [name for name in partitions if name in order]
        done = set()
        for name in order:
            if any(d not in done for d in partitions[name].dependencies):
                order = _in_order(partitions)
                break
            done.add(name)
    by_name = {node.name: node for node in m.graph.nodes}
    for part in partitions.values():
        for name in part.inputs:
            source = by_name[name]
            made = part.graph.placeholder(name, type_expr=source.type)
            made.meta = source.meta.copy()
            part.environment[source] = made
    _copy_nodes(m, partitions, owner, qualname_map, keep_original_node_name)
    return _assemble(m, root_m, partitions, owner, order, by_name, tuple_return)


def _copy_nodes(m, partitions, owner, qualname_map, keep_names):
    for node in m.graph.nodes:
        name = owner.get(node)
        if name is None:
            continue
        part = partitions[name]
        args, kwargs = map_arg(node.args, part.environment.__getitem__), map_arg(node.kwargs, part.environment.__getitem__)
        target = node.target
        if node.op == "call_module":
            value = _get_attr_from_qualname(m, node.target)
            target = node.target.replace(".", "_")
            part.targets[target] = value
            if qualname_map is not None:
                qualname_map[f"{part.submod_name}.{target}"] = node.target
        made = part.graph.create_node(node.op, target, args, kwargs, name=node.name if keep_names else None, type_expr=node.type)
        made.meta = node.meta.copy()
        part.environment[node] = made


def _assemble(m, root_m, partitions, owner, order, by_name, tuple_return):
    base, graph = {}, Graph()
    values = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = node.args[0] if node.args else ...
            values[node] = graph.placeholder(node.target, type_expr=node.type, default_value=default)
            values[node].meta = node.meta.copy()
        elif node.op == "get_attr":
            values[node] = graph.get_attr(node.target)
            values[node].meta = node.meta.copy()
            base[node.target] = _get_attr_from_qualname(m, node.target)
    for name in order:
        part = partitions[name]
        outputs = tuple(part.environment[by_name[n]] for n in part.outputs)
        if len(outputs) == 1 and not tuple_return:
            part.graph.output(outputs[0])
        elif outputs or tuple_return:
            part.graph.output(outputs)
        else:
            part.graph.output(())
        base[part.submod_name] = GraphModule(part.targets, part.graph)
        call = graph.call_module(part.submod_name, tuple(values[by_name[n]] for n in part.inputs))
        if len(outputs) > 1 or outputs and tuple_return:
            for at, n in enumerate(part.outputs):
                values[by_name[n]] = graph.call_function(getitem, (call, at))
        elif outputs:
            values[by_name[next(iter(part.outputs))]] = call
    for node in m.graph.nodes:
        if node.op == "output":
            graph.output(map_arg(node.args[0], values.__getitem__), type_expr=node.type)
    graph.set_codegen(copy.copy(m.graph._codegen))  # arguments and results keep their structure
    result = GraphModule(base, graph)
    result.meta.update({k: v for k, v in m.meta.items()})
    return result
