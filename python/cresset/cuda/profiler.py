"""Start and stop of NVIDIA's profilers: AssertionError, since no CUDA device is built in. `cresset.profiler` profiles."""

import contextlib

from ._absent import refusal as _refusal
from ._absent import refuse as cudart  # noqa: F401  where PyTorch has it

__all__ = ["start", "stop", "profile"]

start, stop = _refusal("start"), _refusal("stop")


@contextlib.contextmanager
def profile():
    """A block that the profiler records: AssertionError."""
    start()
    try:
        yield
    finally:
        stop()
