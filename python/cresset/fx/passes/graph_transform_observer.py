"""Watch what a pass does to a graph."""

from ..traceback import NodeSource, NodeSourceAction

__all__ = ["GraphTransformObserver"]


class GraphTransformObserver:
    """Context manager: notes the names of nodes that are created and erased in gm, and the sources of those that are created."""

    _pass_count = 0

    def __init__(self, gm, passname, subsystem=None, log_url=None):
        self.gm, self.passname, self.subsystem, self.log_url = gm, passname, subsystem, log_url
        GraphTransformObserver._pass_count += 1
        self.erased_nodes, self.created_nodes, self.name_to_node = set(), set(), {}
        self._replacing = None

    @classmethod
    def get_current_pass_count(cls):
        """How many observers there were."""
        return cls._pass_count

    def apply_gm_pass(self, pass_fn):
        """pass_fn(gm), watched."""
        with self:
            return pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn):
        """pass_fn(gm.graph), watched."""
        with self:
            return pass_fn(self.gm.graph)

    def on_node_creation(self, node):
        """Hears of each new node."""
        self.created_nodes.add(node.name)
        self.name_to_node[node.name] = node
        if "from_node" not in node.meta:
            node.meta["from_node"] = [NodeSource(None, self.passname, NodeSourceAction.CREATE)]

    def on_node_erase(self, node):
        """Hears of each erased node."""
        self.erased_nodes.add(node.name)
        self.name_to_node.pop(node.name, None)

    def on_node_replace(self, old, new, user):
        """Hears of each replaced argument."""
        node = self.name_to_node.get(new)
        if node is not None:
            source = NodeSource(old, self.passname, NodeSourceAction.REPLACE)
            node.meta["from_node"] = [s for s in node.meta.get("from_node", []) if s.name] + [source]

    def __enter__(self):
        gm = self.gm
        self._hooks = self.on_node_creation, self.on_node_erase, self.on_node_replace
        gm._register_create_node_hook(self._hooks[0])
        gm._register_erase_node_hook(self._hooks[1])
        gm._register_replace_node_hook(self._hooks[2])
        return self

    def __exit__(self, *exc_info):
        self.gm._unregister_create_node_hook(self._hooks[0])
        self.gm._unregister_erase_node_hook(self._hooks[1])
        self.gm._unregister_replace_node_hook(self._hooks[2])
