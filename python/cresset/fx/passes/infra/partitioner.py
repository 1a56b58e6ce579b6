"""Group the nodes that a backend takes into as few parts as possible."""


from cresset._logging import logger_of

from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions

__all__ = ["Partition", "CapabilityBasedPartitioner"]
logger = logger_of(__name__)


class Partition:
    """A part: its nodes, a dict with the nodes as keys."""

    def __init__(self, id=None, nodes=None):
        self.id = id
        self.nodes = dict.fromkeys(nodes or ())

    def __repr__(self):
        return str(self.nodes)

    def add_node(self, node):
        """Add a node."""
        self.nodes.update({node: None})

    def remove_node(self, node):
        """Take a node out."""
        del self.nodes[node]

    def size(self):
        """How many nodes there are."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """propose_partitions() → parts of a GraphModule's graph whose nodes are supported; fuse_partitions(parts) makes each a submodule.

    allows_single_node_partition: parts of one node that computes count too. non_compute_ops: paths of functions that are no computation.
    allowed_single_node_partition_ops: paths of functions of which one is enough.
    """

    def __init__(self, graph_module, operator_support: OperatorSupportBase, allows_single_node_partition=False, non_compute_ops=None,
                 allowed_single_node_partition_ops=None):  # fmt: skip
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops if non_compute_ops is not None else []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops if allowed_single_node_partition_ops is not None else []

    def _is_node_supported(self, node):
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self):
        """The list of Partition. Merged are parts of which none then needs itself by way of another node."""
        nodes = list(self.graph_module.graph.nodes)
        owner, parts, number = {}, {}, 0
        for node in reversed(nodes):
            if node.op in ("placeholder", "output") or not self._is_node_supported(node):
                continue
            part = Partition(number, [node])
            number += 1
            parts[part.id], owner[node] = part, part
            candidates = list(dict.fromkeys(owner[u] for u in node.users if u in owner))
            candidates += [p for p in parts.values() if p is not part and p not in candidates]
            for other in candidates:
                if other.id in parts and _may_merge(part, other, owner):
                    for moved in other.nodes:
                        part.add_node(moved)
                        owner[moved] = part
                    del parts[other.id]
        order = {node: at for at, node in enumerate(nodes)}
        result = []
        for part in parts.values():
            self._drop_trailing_getitems(part, owner)
            part.nodes = dict.fromkeys(sorted(part.nodes, key=order.__getitem__))
            if part.nodes and (self.allows_single_node_partition or self._computes_enough(part)):
                result.append(part)
        return result

    def _drop_trailing_getitems(self, part, owner):
        """An item of a tuple belongs to the part that makes the tuple."""
        for node in list(part.nodes):
            if getattr(node.target, "__name__", "") == "getitem" and node.args[0] not in part.nodes:
                part.remove_node(node)
                home = owner.get(node.args[0])
                if home is not None:
                    home.add_node(node)

    def _computes_enough(self, part):
        from ...node import _get_qualified_name

        skipped = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        count = 0
        for node in part.nodes:
            if node.op == "call_function":
                path = _get_qualified_name(node.target)
                if path in self.allowed_single_node_partition_ops:
                    return True
                if path not in skipped:
                    count += 1
        return count > 1

    def fuse_partitions(self, partitions, prefix="fused_"):
        """The module with each part as a submodule `fused_0`, …"""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions):
        """Take functions that are no computation off the ends of parts."""
        from ...node import _get_qualified_name

        skipped = set(self.non_compute_ops)

        def idle(node):
            return node.op == "call_function" and _get_qualified_name(node.target) in skipped

        for part in partitions:
            changed = True
            while changed:
                changed = False
                for node in list(part.nodes):
                    first = not any(i in part.nodes for i in node.all_input_nodes)
                    last = not any(u in part.nodes for u in node.users)
                    if idle(node) and (first or last):
                        part.remove_node(node)
                        changed = True

    def partition_and_fuse(self, prefix="fused_"):
        """propose_partitions and fuse_partitions."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)


def _may_merge(a, b, owner):
    """Would the union not need itself by way of nodes outside? Parts count as wholes."""
    inside = {*a.nodes, *b.nodes}
    seen = set()
    queue = [u for n in inside for u in n.users if u not in inside]
    while queue:
        node = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in inside:
            return False
        whole = owner[node].nodes if node in owner else (node,)
        for member in whole:
            seen.add(member)
            for user in member.users:
                if user in inside:
                    return False
                queue.append(user)
    return True
