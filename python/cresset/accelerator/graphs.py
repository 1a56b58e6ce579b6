"""Work of the accelerator that is recorded once and replayed as a whole."""

import cresset

from .. import _C

__all__ = ["Graph", "graph_pool_handle"]


def graph_pool_handle():
    """The number of a new memory pool, for `pool` of several graphs."""
    return _C._memory_pool_new_id()


class Graph:
    """Work of the current stream that is recorded, and replayed without the host.

    As a context it records; `replay()` puts all of it into the current stream. Recorded work reads and writes the same memory each time:
    change inputs in place (`copy_`), and read results after a replay. What waits for the device (`item()`, copies to the host, operators that
    run on the CPU) cannot be recorded and raises. RuntimeError for backends that record nothing.

    Args:
        keep_graph: the recording is made ready by `instantiate()` or the first `replay()`, not by `capture_end()`.
        pool: the number of a memory pool (`graph.pool()`, `graph_pool_handle()`) that graphs share, which then must not run at the same time;
            None is a pool of its own.
        capture_error_mode: which other calls raise meanwhile: "default" and "thread_local" those of this thread that wait for the device,
            "global" those of all threads, "relaxed" none.

        >>> with cresset.Stream("mychip"), graph:
        ...     y = model(x)
        >>> graph.replay()
    """

    def __init__(self, keep_graph=False, *, pool=None, capture_error_mode="default"):
        kind = _C._accelerator_type()
        if kind is None:
            raise RuntimeError("Cannot access accelerator device when none is available. `cresset doctor` lists the devices that are there.")
        self.keep_graph, self.graph_pool, self.capture_error_mode = keep_graph, pool, capture_error_mode
        self._graph = _C._graph_new(cresset.device(kind), pool, capture_error_mode)
        self._debug = self._ready = False

    def capture_begin(self):
        """Record what is put into the current stream from now on. RuntimeError when the graph holds a recording already."""
        _C._graph_begin(self._graph, self.graph_pool, self.capture_error_mode)

    def capture_end(self):
        """End the recording, with the stream of capture_begin current."""
        _C._graph_end(self._graph)
        self._ready = not self.keep_graph

    def instantiate(self):
        """Make the recording ready for replay. RuntimeError when there is none."""
        if not _C._graph_is_recorded(self._graph):
            raise RuntimeError("Graph.instantiate: a recorded graph was required; call capture_begin() and capture_end() first.")
        self._ready = True

    def replay(self):
        """Put the recorded work into the current stream; the host does not wait."""
        if not self._ready and _C._graph_is_recorded(self._graph):
            self.instantiate()
        _C._graph_replay(self._graph)

    def reset(self):
        """Forget the recording; the graph can record again."""
        self._ready = False
        _C._graph_reset(self._graph)

    def pool(self):
        """The number of the memory pool, for the argument `pool` of other graphs."""
        return _C._graph_pool(self._graph)

    def enable_debug_mode(self):
        """Allow debug_dump."""
        self._debug = True

    def debug_dump(self, path):
        """Write the recorded work as text for Graphviz. RuntimeError without enable_debug_mode()."""
        if not self._debug:
            raise RuntimeError("Graph.debug_dump: call enable_debug_mode() first.")
        _C._graph_dump(self._graph, str(path))

    def __enter__(self):
        self.capture_begin()
        return self

    def __exit__(self, error, *exc_info):
        if error is None:
            self.capture_end()
        else:  # half of the work is no graph
            self.reset()
