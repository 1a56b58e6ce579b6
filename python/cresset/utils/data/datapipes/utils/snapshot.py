"""Continue a stream where its copy stopped."""

from ..datapipe import _SnapshotState, apply_random_seed

__all__ = ["_simple_graph_snapshot_restoration"]


def _simple_graph_snapshot_restoration(datapipe, n_iterations, rng=None):
    """Let the next iterator of a pipe begin after `n_iterations` samples, which are read and left out.

    With a generator `rng` the pipes that shuffle are seeded from it first, as for the pass that is continued. RuntimeError for a pipe that was
    restored and not read since, and for more samples than there are.
    """
    if datapipe._snapshot_state == _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph if your graph has not been restored."
        )
    if rng is not None:
        apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(iterator)
        except StopIteration:
            raise RuntimeError(f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples available.") from None
    datapipe._fast_forward_iterator = iterator
    datapipe._snapshot_state = _SnapshotState.Restored
