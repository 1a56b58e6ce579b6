"""Find a graph in another."""

import copy
from collections import defaultdict
from dataclasses import dataclass, field

import cresset

from ...graph import Graph
from ...node import Node

__all__ = ["SubgraphMatcher", "InternalMatch"]


@dataclass
class InternalMatch:
    """One place: nodes_map is {node of the pattern: node of the graph}, returning_nodes what the pattern's output names there."""

    anchors: list
    nodes_map: dict = field(default_factory=dict)
    placeholder_nodes: list = field(default_factory=list)
    returning_nodes: list = field(default_factory=list)
    name_node_map: dict = field(default_factory=dict)

    def __copy__(self):
        return InternalMatch(
            anchors=self.anchors, nodes_map=self.nodes_map.copy(), placeholder_nodes=self.placeholder_nodes.copy(),
            returning_nodes=self.returning_nodes.copy(),
        )  # fmt: skip


class SubgraphMatcher:
    """Finds where a graph computes what `pattern` does; placeholders of it match anything.

    match_output, match_placeholder: these must be equal as well. remove_overlapping_matches: of matches with common nodes the first counts.
    ignore_literals: constants need not be equal. ValueError for an empty pattern, AssertionError for one whose placeholders nobody uses.
    """

    def __init__(self, pattern, match_output=False, match_placeholder=False, remove_overlapping_matches=True, ignore_literals=False):
        self.pattern: Graph = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output":
                assert len(node.users) > 0, "SubgraphMatcher cannot be initialized with an pattern with dead code"
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes = output.all_input_nodes
        if match_output:
            self.pattern_anchors = [output]
        else:
            self.pattern_anchors = [n for n in output.all_input_nodes if len(n.users) == 1]

    # --- nodes ----------------------------------------------------------------------------------------------------------------

    def _match_attributes(self, pn, gn):
        assert isinstance(pn.target, str) and isinstance(gn.target, str)
        mine, other = _value_of(pn), _value_of(gn)
        if type(mine) is not type(other):
            return False
        if isinstance(mine, cresset.Tensor):
            return isinstance(other, cresset.Tensor)
        raise RuntimeError(f"Unsupported type {mine} when matching attributes")

    def _nodes_are_equal(self, pn, gn, node_name_match=""):
        if node_name_match and node_name_match in pn.name:
            return node_name_match in gn.name
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.target == gn.target

    def _is_contained(self, nodes_map):
        """Is nothing but the results used outside?"""
        inside = {g: p for p, g in nodes_map.items() if p.op != "placeholder"}
        return all(
            pn in self.pattern_returning_nodes or all(user in inside for user in gn.users) for gn, pn in inside.items() if isinstance(gn, Node)
        )

    def _remove_overlapping_matches(self, matches):
        kept, taken = [], set()
        for match in matches:
            nodes = {g for p, g in match.nodes_map.items() if p.op not in ("placeholder", "output") and isinstance(g, Node)}
            if not nodes & taken:
                kept.append(match)
                taken |= nodes
        return kept

    def _match_literals(self, pn, gn, match):
        assert not (isinstance(pn, Node) and isinstance(gn, Node)), "pn and gn cannot both be Node"
        if isinstance(pn, Node) and not isinstance(gn, Node):
            if pn.op != "placeholder":
                return False
            if pn in match.nodes_map:
                return match.nodes_map[pn] == gn
            match.nodes_map[pn] = gn
            return True
        if not isinstance(pn, Node) and isinstance(gn, Node):
            return False
        return self.ignore_literals or type(gn) is type(pn) and gn == pn

    def _match_nodes(self, pn, gn, match, node_name_match=""):
        assert isinstance(pn, Node) and isinstance(gn, Node), f"pn and gn must be Node, pn: {pn}, gn: {gn}"
        if pn in match.nodes_map:
            return match.nodes_map[pn] == gn
        if gn in match.nodes_map.values():
            return False
        if not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        saved = copy.copy(match)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        if self._arguments_match(pn, gn, match):
            return True
        match.nodes_map, match.placeholder_nodes, match.returning_nodes = saved.nodes_map, saved.placeholder_nodes, saved.returning_nodes
        return False

    def _arguments_match(self, pn, gn, match):
        args, kwargs, their_args, their_kwargs = pn.args, pn.kwargs, gn.args, gn.kwargs
        if (len(args) != len(their_args) or list(kwargs) != list(their_kwargs)) and pn.op == "call_function":
            mine, theirs = _by_schema(pn), _by_schema(gn)
            if mine is not None and theirs is not None:
                args, kwargs, their_args, their_kwargs = mine, {}, theirs, {}
        if len(args) != len(their_args) or set(kwargs) != set(their_kwargs):
            return False
        pairs = [*zip(args, their_args), *((kwargs[k], their_kwargs[k]) for k in kwargs)]
        return all(self._match_value(a, b, match) for a, b in pairs)

    def _match_value(self, mine, other, match):
        if isinstance(mine, Node) and isinstance(other, Node):
            return self._match_nodes(mine, other, match)
        if isinstance(mine, (list, tuple)) and isinstance(other, (list, tuple)):
            return len(mine) == len(other) and all(self._match_value(a, b, match) for a, b in zip(mine, other))
        if isinstance(mine, dict) and isinstance(other, dict):
            return set(mine) == set(other) and all(self._match_value(mine[k], other[k], match) for k in mine)
        return self._match_literals(mine, other, match)

    # --- graphs -----------------------------------------------------------------------------------------------------------------

    def match(self, graph, node_name_match=""):
        """The list of InternalMatch in a graph."""
        candidates = defaultdict(list)
        for anchor in self.pattern_anchors:
            for node in graph.nodes:
                if self._nodes_are_equal(anchor, node, node_name_match):
                    candidates[anchor].append(node)
        found = []

        def search(at, match):
            if at == len(self.pattern_anchors):
                match.placeholder_nodes = [match.nodes_map.get(p) for p in self.pattern_placeholder_nodes]
                match.returning_nodes = [match.nodes_map[p] for p in self.pattern_returning_nodes]
                found.append(match)
                return
            anchor = self.pattern_anchors[at]
            saved = copy.copy(match)
            for node in candidates[anchor]:
                if self._match_nodes(anchor, node, match, node_name_match):
                    search(at + 1, match)
                match = copy.copy(saved)

        search(0, InternalMatch(anchors=self.pattern_anchors))
        found = [m for m in found if self._is_contained(m.nodes_map) and _can_run_as_one(m)]
        valid = [m for m in found if all(isinstance(n, Node) for n in m.returning_nodes)]
        return self._remove_overlapping_matches(valid) if self.remove_overlapping_matches else valid


def _can_run_as_one(match):
    """Does no input of the match depend on what the match computes?"""
    from .fuser_utils import validate_partition

    return validate_partition([g for p, g in match.nodes_map.items() if p.op not in ("placeholder", "output") and isinstance(g, Node)])


def _value_of(node):
    value = node.graph.owning_module
    for part in node.target.split("."):
        value = getattr(value, part)
    return value


def _by_schema(node):
    """Arguments in the order of the schema with defaults filled in, or None."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return None
    values, position = [], list(node.args)
    for at, argument in enumerate(schema.arguments):
        if at < len(position):
            values.append(position[at])
        elif argument.name in node.kwargs:
            values.append(node.kwargs[argument.name])
        elif argument.has_default_value():
            values.append(argument.default_value)
        else:
            return None
    return values
