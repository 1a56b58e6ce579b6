"""Helpers that libraries import under this name."""

import collections
import contextlib
import functools
import sys
import warnings

import cresset

__all__ = ["clone_input", "counters", "disable_cache_limit", "is_compile_supported", "same", "warn_once"]

# Counts of what passes over graphs did, by the pass's group and then by name: those of others add to it.
counters = collections.defaultdict(collections.Counter)


def clone_input(x, *, dtype=None):
    """A leaf with x's values and strides in memory of its own, in another dtype if one is given; it requires gradients where x does."""
    with cresset.no_grad():
        copy = cresset.empty_strided(x.shape, x.stride(), dtype=dtype or x.dtype, device=x.device).copy_(x)
    return copy.requires_grad_(x.requires_grad)


def is_compile_supported(device_type):
    """False: no compiler makes kernels from Python code for any kind of device."""
    return False


def same(ref, res, *args, tol=1e-4, equal_nan=False, exact_dtype=True, **others):
    """Are two trees of results equal, tensors within `tol`? What else PyTorch's function takes changes nothing."""
    from .testing import same

    return same(ref, res, tol=tol, equal_nan=equal_nan, exact_dtype=exact_dtype)


@contextlib.contextmanager
def disable_cache_limit():
    """A block in which a function may be captured any number of times."""
    from . import config

    before, config.recompile_limit = config.recompile_limit, sys.maxsize
    try:
        yield
    finally:
        config.recompile_limit = before


@functools.cache
def warn_once(msg, stacklevel=1):
    """A UserWarning with this text, the first time only; `stacklevel` counts from the caller."""
    warnings.warn(msg, stacklevel=stacklevel + 1)
