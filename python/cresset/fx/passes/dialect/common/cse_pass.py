"""Compute the same thing once."""

import cresset

from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ...infra.pass_base import PassBase, PassResult
from .....utils import _pytree as pytree

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_RANDOM = (
    "dropout", "_fused_dropout", "_standard_gamma", "bernoulli", "multinomial", "native_dropout", "normal", "poisson", "binomial", "rrelu", "rand_like",
    "rand", "randint", "randn", "randperm", "randn_like", "randint_like",
)  # fmt: skip
_IN_PLACE = ("add_", "sub_", "mul_", "div_", "pow_", "lt_", "gt_", "le_", "ge_", "eq_", "ne_", "normal_", "bernoulli_", "uniform_", "exponential_")


def get_CSE_banned_ops():
    """Operators that may not be merged: those that draw or write."""
    names = (*_RANDOM, *_IN_PLACE)
    return {getattr(cresset.ops.aten, n) for n in names if hasattr(cresset.ops.aten, n)}


def _draws_or_writes(target, banned):
    if target in banned or getattr(target, "overloadpacket", None) in banned:
        return True
    schema = getattr(target, "_schema", None)
    return schema is not None and (schema.is_mutable or cresset.Tag.nondeterministic_seeded in target.tags)


class CSEPass(PassBase):
    """Merges nodes of a graph of operators that compute the same. banned_ops: those that stay apart."""

    def __init__(self, banned_ops=None):
        self.banned_ops = banned_ops if banned_ops is not None else set()
        super().__init__()

    def call(self, graph_module):
        """The module with the merged graph."""

        def same_module_types(value):
            return (type(value), value)

        graph, table, seen, modified = Graph(), {}, {}, False
        for node in graph_module.graph.nodes:
            banned = node.op in ("placeholder", "output", "get_attr") or node.op != "call_function" or _draws_or_writes(node.target, self.banned_ops)
            if banned:
                table[node] = graph.node_copy(node, table.__getitem__)
                continue
            leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
            key = (node.target, str(spec), tuple(same_module_types(table[v]) if isinstance(v, Node) else same_module_types(v) for v in leaves))
            try:
                found = seen.get(key)
            except TypeError:
                found, key = None, None
            if found is not None:
                modified = True
                table[node] = found
                continue
            table[node] = graph.node_copy(node, table.__getitem__)
            if key is not None:
                seen[key] = table[node]
        return PassResult(GraphModule(graph_module, graph), modified)
