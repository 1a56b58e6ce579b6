"""Ranges for Intel's VTune (Instrumentation and Tracing Technology), which is not part of Cresset: asking works, the rest raises."""

from contextlib import contextmanager

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available():
    """False: there is no such library in Cresset."""
    return False


def _refuse(*args, **kwargs):
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build? profiler.record_function marks ranges for Cresset's profiler.")


range_push = range_pop = mark = _refuse


@contextmanager
def range(msg, *args, **kwargs):
    """A range of this name; RuntimeError."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
