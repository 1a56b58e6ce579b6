"""Order and types of nodes."""

import collections
import heapq

import cresset

from ..graph import Graph
from ..graph_module import GraphModule

__all__ = ["get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph", "stable_topological_sort"]


def get_acc_ops_name(k):
    """A function's module and name."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    return f"{k.__module__.replace('cresset._ops', 'torch.ops')}.{k.__name__}"


def get_node_target(submodules, node):
    """What a node calls, as text: the class of a module, the path of a function, the name of a method."""
    from ..node import _get_qualified_name

    assert node.op in ("call_function", "call_method", "call_module"), f"Expect op types of call_function, call_method or call_module, but found {node.op}"
    if node.op == "call_module":
        return cresset.typename(submodules[node.target])
    return _get_qualified_name(node.target) if node.op == "call_function" else node.target


def is_node_output_tensor(node):
    """Is the value of a node a tensor, by what ShapeProp noted?"""
    kind = node.meta.get("type", None)
    return kind is not None and issubclass(kind, cresset.Tensor)


def _sorted_into(gm, ready_order):
    waiting = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    ready = ready_order([n for n in gm.graph.nodes if not waiting[n]])
    graph, table = Graph(), {}
    while ready:
        node = ready.pop()
        table[node] = graph.node_copy(node, table.__getitem__)
        for user in node.users:
            waiting[user] -= 1
            if not waiting[user]:
                ready.push(user)
    if len(table) != len(gm.graph.nodes):
        raise RuntimeError(f"Input graph has cycles, unable to add {[n for n in waiting if waiting[n]]}")
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


class _Queue:
    def __init__(self, nodes):
        self.nodes = collections.deque(nodes)

    def pop(self):
        return self.nodes.popleft()

    def push(self, node):
        self.nodes.append(node)

    def __bool__(self):
        return bool(self.nodes)


class _Heap(_Queue):
    def __init__(self, nodes):
        self.nodes = [(n._sort_key, n) for n in nodes]
        heapq.heapify(self.nodes)

    def pop(self):
        return heapq.heappop(self.nodes)[1]

    def push(self, node):
        heapq.heappush(self.nodes, (node._sort_key, node))


def legalize_graph(gm: GraphModule):
    """Put the nodes of gm into an order in which they can run, breadth first; RuntimeError for a cycle."""
    return _sorted_into(gm, _Queue)


def stable_topological_sort(gm: GraphModule):
    """Put the nodes of gm into an order in which they can run, keeping what can stay; RuntimeError for a cycle."""
    return _sorted_into(gm, _Heap)
