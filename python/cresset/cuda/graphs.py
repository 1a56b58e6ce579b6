"""CUDA graphs, for isinstance(): there is no device whose work could be recorded."""

from ._absent import absent_class, refusal

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

CUDAGraph = absent_class("CUDAGraph", __name__)
make_graphed_callables = refusal("make_graphed_callables")


def is_current_stream_capturing():
    """False."""
    return False


def graph_pool_handle():
    """Raises RuntimeError: there are no pools."""
    raise RuntimeError("Tried to instantiate dummy base class _graph_pool_handle")


class graph:
    """A context that records work of a device: RuntimeError, since there is none."""

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        raise RuntimeError("torch.cuda.graph requires CUDA support")
