"""SubgraphMatcher for patterns that give names to some of their nodes."""

from .matcher_utils import SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _take_names(pattern_gm):
    """Takes {name: node} out of the pattern's output (value, ..., {name: value}); a list that holds all outputs may stand around them."""
    output = next(iter(reversed(pattern_gm.graph.nodes)))
    results = output.args[0]
    if not isinstance(results, (tuple, list)) or not results or not isinstance(results[-1], dict):
        raise AssertionError(f"the pattern must return its outputs and, at the end, a dict of named nodes; it returns {results}.")
    *values, names = results
    output.args = (values[0] if len(values) == 1 else tuple(values),)
    pattern_gm.graph.lint()
    pattern_gm.recompile()
    return names


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds a pattern (a GraphModule) whose last result is {name: node}; each match has in `name_node_map` the graph's nodes by these names.

    The dict is taken out of the pattern's output. The other arguments are those of SubgraphMatcher.
    """

    def __init__(self, pattern_gm, match_output=False, match_placeholder=False, remove_overlapping_matches=True, ignore_literals=False):
        self.name_node_map = _take_names(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph, node_name_match=""):
        """The matches in a graph, with the names of the pattern's nodes."""
        found = super().match(graph, node_name_match)
        for match in found:
            match.name_node_map.update((name, match.nodes_map[node]) for name, node in self.name_node_map.items())
        return found
