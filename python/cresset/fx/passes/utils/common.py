"""Parts of a graph as modules, and comparison of graphs."""

from ....nn import Module
from ..._lazy_graph_module import _make_graph_module
from ...graph import Graph
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "lift_subgraph_as_module", "compare_graphs"]


class HolderModule(Module):
    """A module that only holds the children it is given as a dict."""

    def __init__(self, d):
        super().__init__()
        for name, child in d.items():
            self.add_module(name, child)


def lift_subgraph_as_module(gm, subgraph, comp_name="", class_name="GraphModule"):
    """(GraphModule of a graph with what it names of gm, {path in it: path in gm})"""
    submodule, renamed = HolderModule({}), {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        target = node.target
        assert isinstance(target, str)
        *prefix, field = target.split(".")
        here, there = submodule, gm
        for part in prefix:
            there = getattr(there, part)
            if not hasattr(here, part):
                here.add_module(part, HolderModule({}))
            here = getattr(here, part)
        value = getattr(there, field)
        if not hasattr(here, field):
            setattr(here, field, value)
        renamed[f"{comp_name}.{target}"] = target
    return _make_graph_module(submodule, subgraph, class_name), renamed


def compare_graphs(left: Graph, right: Graph):
    """Do two graphs compute the same, node for node?"""
    return len(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)) > 0
