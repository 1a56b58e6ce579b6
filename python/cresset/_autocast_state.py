"""Questions for and settings of autocast, as functions of the package."""

import warnings

from . import _C
from ._C import (
    autocast_decrement_nesting, autocast_increment_nesting, clear_autocast_cache, is_autocast_cache_enabled, set_autocast_cache_enabled,
)  # fmt: skip

__all__ = [
    "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "get_autocast_dtype", "is_autocast_cache_enabled",
    "set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled",
    "set_autocast_cpu_enabled", "get_autocast_cpu_dtype", "set_autocast_cpu_dtype", "get_autocast_gpu_dtype", "set_autocast_gpu_dtype",
    "get_autocast_ipu_dtype", "get_autocast_xla_dtype", "is_autocast_ipu_enabled", "is_autocast_xla_enabled", "set_autocast_ipu_dtype",
    "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled",
]  # fmt: skip


def _checked(function, device_type):
    if not isinstance(device_type, str):
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, not {type(device_type).__name__}")
    return device_type


def is_autocast_enabled(device_type=None):
    """Is autocast on for a device type in this thread? Without one: for CUDA, which is never there."""
    return _C.is_autocast_enabled("cuda" if device_type is None else _checked("is_autocast_enabled", device_type))


def set_autocast_enabled(device_type, enabled=None):
    """Switch autocast for a device type in this thread; with one argument, the switch, for CUDA."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _C.set_autocast_enabled(_checked("set_autocast_enabled", device_type), enabled)


def get_autocast_dtype(device_type):
    """The dtype of autocast for a device type in this thread."""
    return _C.get_autocast_dtype(_checked("get_autocast_dtype", device_type))


def set_autocast_dtype(device_type, dtype):
    """Set the dtype of autocast for a device type in this thread."""
    _C.set_autocast_dtype(_checked("set_autocast_dtype", device_type), dtype)


# Older names for kinds of devices, some of which only plug-ins bring.


def _older(call, newer):
    warnings.warn(f"torch.{call} is deprecated. Please use torch.{newer} instead.", DeprecationWarning, stacklevel=3)


def is_autocast_cpu_enabled():
    _older("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return _C.is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled):
    _older("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)



def is_autocast_ipu_enabled():
    _older("is_autocast_ipu_enabled()", "is_autocast_enabled('ipu')")
    return _C.is_autocast_enabled("ipu")


def set_autocast_ipu_enabled(enabled):
    _older("set_autocast_ipu_enabled(enabled)", "set_autocast_enabled('ipu', enabled)")
    set_autocast_enabled("ipu", enabled)



def is_autocast_xla_enabled():
    _older("is_autocast_xla_enabled()", "is_autocast_enabled('xla')")
    return _C.is_autocast_enabled("xla")


def set_autocast_xla_enabled(enabled):
    _older("set_autocast_xla_enabled(enabled)", "set_autocast_enabled('xla', enabled)")
    set_autocast_enabled("xla", enabled)


def get_autocast_cpu_dtype():
    _older("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype):
    _older("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype():
    _older("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype):
    _older("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def get_autocast_ipu_dtype():
    _older("get_autocast_ipu_dtype()", "get_autocast_dtype('ipu')")
    return get_autocast_dtype("ipu")


def set_autocast_ipu_dtype(dtype):
    _older("set_autocast_ipu_dtype(dtype)", "set_autocast_dtype('ipu', dtype)")
    set_autocast_dtype("ipu", dtype)


def get_autocast_xla_dtype():
    _older("get_autocast_xla_dtype()", "get_autocast_dtype('xla')")
    return get_autocast_dtype("xla")


def set_autocast_xla_dtype(dtype):
    _older("set_autocast_xla_dtype(dtype)", "set_autocast_dtype('xla', dtype)")
    set_autocast_dtype("xla", dtype)
