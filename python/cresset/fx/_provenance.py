"""Where a node comes from: the nodes it was made of, through passes."""

import copy
import json
from enum import Enum
from typing import NamedTuple

__all__ = ["NodeSource", "NodeSourceAction", "get_graph_provenance_json"]


class NodeSourceAction(Enum):
    """What a pass did with a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """One step: the node a node was made of, by which pass, and that node's own sources in from_node."""

    class NodeInfo(NamedTuple):
        """Name, target and graph of a node."""

        name: str
        target: str
        graph_id: int

    def __init__(self, node, pass_name="", action=None):
        self.pass_name = pass_name
        self.action = [] if action is None else action if isinstance(action, list) else [action]
        if node is None:
            self.node_info, self.from_node = None, []
        else:
            self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph))
            self.from_node = copy.copy(node.meta.get("from_node", []))

    name = property(lambda self: self.node_info.name if self.node_info else "", doc="The node's name.")
    target = property(lambda self: self.node_info.target if self.node_info else "", doc="The node's target.")
    graph_id = property(lambda self: self.node_info.graph_id if self.node_info else -1, doc="The id of the node's graph.")

    def _get_action_string(self):
        return "+".join(a.name.lower() for a in self.action)

    def __repr__(self):
        return self.print_readable()

    def print_readable(self, indent=0):
        """The steps as indented lines."""
        if indent > 9:
            return ""
        text = " " * indent * 4 + f"(name={self.name}, pass_name={self.pass_name}, action={self._get_action_string()}, graph_id={self.graph_id})\n"
        return text + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def to_dict(self):
        """The steps as nested dicts."""
        return {
            "name": self.name, "target": self.target, "graph_id": self.graph_id, "pass_name": self.pass_name, "action": self._get_action_string(),
            "from_node": [source.to_dict() for source in self.from_node],
        }  # fmt: skip

    @classmethod
    def _from_dict(cls, d):
        """The source that to_dict described; None for None."""
        if d is None:
            return None
        made = cls(None, d.get("pass_name", ""), [NodeSourceAction[a.upper()] for a in d.get("action", "").split("+") if a])
        made.node_info = cls.NodeInfo(d.get("name", ""), d.get("target", ""), d.get("graph_id", -1)) if d.get("name") else None
        made.from_node = [cls._from_dict(source) for source in d.get("from_node", [])]
        return made

    def __eq__(self, other):
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self):
        return hash(json.dumps(self.to_dict(), sort_keys=True))


def get_graph_provenance_json(graph):
    """{name of a node: its sources as dicts} for the nodes of a graph that compute."""
    return {
        node.name: [source.to_dict() for source in node.meta.get("from_node", [])]
        for node in graph.nodes
        if node.op not in ("placeholder", "output", "get_attr")
    }
