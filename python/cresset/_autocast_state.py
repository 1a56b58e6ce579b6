"""Questions for and settings of autocast, as functions of the package."""

from . import _C
from ._C import (
    autocast_decrement_nesting, autocast_increment_nesting, clear_autocast_cache, get_autocast_dtype, is_autocast_cache_enabled,
    set_autocast_cache_enabled, set_autocast_dtype, set_autocast_enabled,
)  # fmt: skip

__all__ = [
    "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "get_autocast_dtype", "is_autocast_cache_enabled",
    "set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled",
    "set_autocast_cpu_enabled", "get_autocast_cpu_dtype", "set_autocast_cpu_dtype", "get_autocast_gpu_dtype", "set_autocast_gpu_dtype",
]  # fmt: skip


def is_autocast_enabled(device_type=None):
    """Is autocast on for a device type in this thread? Without one: for CUDA, which is never there."""
    return _C.is_autocast_enabled("cuda" if device_type is None else device_type)


def is_autocast_cpu_enabled():
    return _C.is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled):
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype):
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype():
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype):
    set_autocast_dtype("cuda", dtype)
