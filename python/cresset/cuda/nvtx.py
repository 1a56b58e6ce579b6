"""Marks for NVIDIA's profilers: not part of this build, so each call says so. `cresset.profiler.record_function` marks ranges."""

import contextlib

__all__ = ["range_push", "range_pop", "range_start", "range_end", "mark", "range"]


def _fail(*args, **kwargs):
    """Raises RuntimeError: NVTX is not part of this build."""
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


range_push = range_pop = range_start = range_end = mark = _fail


@contextlib.contextmanager
def range(msg, *args, **kwargs):
    """A range of the profiler: RuntimeError."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
