"""Helpers that libraries import under this name."""

import contextlib
import sys

import cresset

__all__ = ["clone_input", "disable_cache_limit", "is_compile_supported"]


def clone_input(x, *, dtype=None):
    """A leaf with x's values and strides in memory of its own, in another dtype if one is given; it requires gradients where x does."""
    with cresset.no_grad():
        copy = cresset.empty_strided(x.shape, x.stride(), dtype=dtype or x.dtype, device=x.device).copy_(x)
    return copy.requires_grad_(x.requires_grad)


def is_compile_supported(device_type):
    """False: no compiler makes kernels from Python code for any kind of device."""
    return False


@contextlib.contextmanager
def disable_cache_limit():
    """A block in which a function may be captured any number of times."""
    from . import config

    before, config.recompile_limit = config.recompile_limit, sys.maxsize
    try:
        yield
    finally:
        config.recompile_limit = before
