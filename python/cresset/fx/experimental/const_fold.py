"""Compute what depends on the module's own values alone once, in front of the calls."""

import re

import cresset

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import map_arg
from .._symbolic_trace import symbolic_trace

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A GraphModule that computes its constant part (const_subgraph_module) at its first call, or in run_folding()."""

    def __init__(self, root, graph, const_subgraph=None, fx_const_folded_attrs_name=None, device_for_folded_attrs="cuda"):
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args, **kwargs):
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self):
        """Compute the constants; they become parameters and buffers."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        assert not self.has_folding_been_run
        self.has_folding_been_run = True
        values = self.const_subgraph_module()

        def parameter(value):
            value = value if not isinstance(value, int) else cresset.tensor([value])
            return cresset.nn.Parameter(value.detach(), requires_grad=value.requires_grad)

        if isinstance(values, tuple):
            holder = cresset.nn.ParameterList([parameter(v) for v in values])
        else:
            holder = parameter(values)
        setattr(self, self.fx_const_folded_attrs_name, holder)


def get_unique_attr_name_in_module(mod_traced, name):
    """The name, with a number behind it where the module has such an attribute."""
    name = re.sub(r"[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        numbered = re.match(r"(.*)_(\d+)$", name)
        name = f"{numbered[1]}_{int(numbered[2]) + 1}" if numbered else f"{name}_1"
    return name


def _inline_module(gm, inline_mod_name, run_dce=True):
    """Put the nodes of a called submodule into gm's graph; gives {node there: node here}."""
    inner = dict(gm.named_modules())[inline_mod_name]
    call = next(n for n in gm.graph.nodes if n.op == "call_module" and n.target == inline_mod_name)
    args, table = list(call.args), {}
    given = iter(args)
    for node in inner.graph.nodes:
        if node.op == "placeholder":
            table[node] = call.kwargs[node.name] if node.name in call.kwargs else next(given)
    with gm.graph.inserting_before(call):
        for node in inner.graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "output":
                outputs = map_arg(node.args[0], table.__getitem__)
                if isinstance(outputs, (tuple, list)):
                    for user in list(call.users):
                        user.replace_all_uses_with(outputs[user.args[1]])
                else:
                    call.replace_all_uses_with(outputs)
                continue
            table[node] = gm.graph.node_copy(node, table.__getitem__)
    for user in list(call.users):
        if not user.users:
            gm.graph.erase_node(user)
    gm.graph.erase_node(call)
    if run_dce:
        gm.graph.eliminate_dead_code()
    return table


def split_const_subgraphs(module, skip_folding_node_fn=None, device_for_folded_attrs="cpu"):
    """A FoldedGraphModule of a module: nodes that depend on attributes alone are computed once.

    skip_folding_node_fn(node): shall this node stay where it is?
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = set()
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "get_attr" and not set(node.all_input_nodes) <= constant:
            continue
        if skip_folding_node_fn and skip_folding_node_fn(node):
            continue
        if node.is_impure():
            continue
        constant.add(node)
    folded = [n for n in constant if n.op != "get_attr"]
    if not folded:
        return FoldedGraphModule(traced, traced.graph)
    return _fold(traced, constant, device_for_folded_attrs)


def _fold(traced, constant, device):
    const_graph, table = Graph(), {}
    for node in traced.graph.nodes:
        if node in constant:
            table[node] = const_graph.node_copy(node, table.__getitem__)
    results = [n for n in traced.graph.nodes if n in constant and n.op != "get_attr" and any(u not in constant for u in n.users)]
    const_graph.output(table[results[0]] if len(results) == 1 else tuple(table[n] for n in results))
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    graph, here = Graph(), {}
    for node in traced.graph.nodes:
        if node in constant and node.op != "get_attr":
            if node in results:
                here[node] = graph.create_node("get_attr", name if len(results) == 1 else f"{name}.{results.index(node)}")
                here[node].meta = node.meta.copy()
            continue
        if node in constant and all(u in constant for u in node.users):
            continue
        here[node] = graph.node_copy(node, here.__getitem__)
    root = GraphModule(traced, traced.graph)
    setattr(root, name, cresset.nn.Parameter(cresset.empty(1)) if len(results) == 1 else cresset.nn.ParameterList([cresset.nn.Parameter(cresset.empty(1)) for _ in results]))
    return FoldedGraphModule(root, graph, const_graph, name, device)


