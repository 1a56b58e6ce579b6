"""What comparisons of graphs are made of: parts of graphs, and kinds of values."""

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from cresset.fx import Node

__all__ = ["NSNodeTargetType", "NSResultsType", "NSSingleResultType", "NSSingleResultValuesType", "NSSubgraph"]


class NSSingleResultValuesType(str, enum.Enum):
    """What is compared of a node."""

    WEIGHT = "weight"
    NODE_OUTPUT = "node_output"
    NODE_INPUT = "node_input"


class NSSubgraph(NamedTuple):
    """Nodes from `start_node` to `end_node`; `base_op_node` is the one that the others go with, such as the linear of linear and relu."""

    start_node: Node
    end_node: Node
    base_op_node: Node


NSSingleResultType = dict[str, Any]  # of one node of one model
NSResultsType = dict[str, dict[str, dict[str, list[NSSingleResultType]]]]  # by layer, kind of values and model
NSNodeTargetType = Callable | str
