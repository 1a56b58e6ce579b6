"""Helpers that libraries import under this name."""

import cresset

__all__ = ["clone_input", "is_compile_supported"]


def clone_input(x, *, dtype=None):
    """A leaf with x's values and strides in memory of its own, in another dtype if one is given; it requires gradients where x does."""
    with cresset.no_grad():
        copy = cresset.empty_strided(x.shape, x.stride(), dtype=dtype or x.dtype, device=x.device).copy_(x)
    return copy.requires_grad_(x.requires_grad)


def is_compile_supported(device_type):
    """False: no compiler makes kernels from Python code for any kind of device."""
    return False
