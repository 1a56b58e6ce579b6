"""Settings of all pipes that a pipe reads from."""

from .datapipes.datapipe import apply_random_seed, apply_sharding, apply_shuffle_settings

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_settings", "get_all_graph_pipes"]


def get_all_graph_pipes(graph):
    """The pipes of what `graph.traverse_dps` gives, each once."""
    found = {}

    def visit(graph):
        for key, (pipe, below) in graph.items():
            found[key] = pipe
            visit(below)

    visit(graph)
    return list(found.values())
