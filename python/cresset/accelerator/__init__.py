"""The accelerator of this process: devices, streams, memory, and what runs on the CPU for want of a kernel.

Devices come from backends, libraries outside of this package. The accelerator is the first registered kind that has a device.
"""

import contextlib

import cresset

from .. import _C
from .._streams import _stream_device
from . import graphs, memory
from .graphs import Graph, graph_pool_handle
from .memory import (
    MemPool, empty_cache, empty_host_cache, get_memory_info, get_per_process_memory_fraction, host_cache_stats, max_memory_allocated,
    max_memory_reserved, memory_allocated, memory_page, memory_reserved, memory_snapshot, memory_stats, record_memory_history,
    reset_accumulated_memory_stats, reset_peak_memory_stats, set_per_process_memory_fraction, use_mem_pool,
)  # fmt: skip

__all__ = [
    "is_available", "current_accelerator", "device_count", "current_device_index", "current_device_idx", "set_device_index",
    "set_device_idx", "device_index", "current_stream", "set_stream", "synchronize", "memory_allocated", "max_memory_allocated", "memory_reserved",
    "max_memory_reserved",
    "empty_host_cache", "host_cache_stats", "get_device_capability", "reset_accumulated_memory_stats",
    "Graph", "graph_pool_handle", "MemPool", "use_mem_pool", "set_per_process_memory_fraction", "get_per_process_memory_fraction",
    "memory_snapshot", "record_memory_history", "memory_page", "can_device_access_peer", "graphs", "memory",
    "memory_stats", "reset_peak_memory_stats", "get_memory_info", "empty_cache", "load_backend", "registered_backends", "report",
    "set_fallback_mode", "fallback_mode", "fallback_counts", "fallback_report", "reset_fallback_counts",
]  # fmt: skip


def _get_device_index(device, optional=False):
    """The index of a device, a device string or a number; the current one with `optional` where there is none. ValueError for devices of another kind."""
    kind = _C._accelerator_type()
    if isinstance(device, str):
        device = cresset.device(device)
    if isinstance(device, cresset.device) and kind is not None and device.type != kind:
        raise ValueError(f"{device.type} doesn't match the current accelerator {kind}.")
    return cresset._utils._get_device_index(device, optional)


class AcceleratorError(RuntimeError):
    """An error that a device reports after the call that caused it, with the device's number of it as `error_code`. Backends raise it."""

    def __init__(self, message="", error_code=None):
        super().__init__(message)
        self.error_code = error_code


def is_available():
    """Whether there is an accelerator with a device."""
    return _C._accelerator_type() is not None


def current_accelerator(check_available=False):
    """The accelerator as a device without index, None when there is none."""
    kind = _C._accelerator_type()
    return None if kind is None else cresset.device(kind)


def device_count():
    """How many devices the accelerator has."""
    kind = _C._accelerator_type()
    return 0 if kind is None else _C._device_count(cresset.device(kind))


def current_device_index():
    """Index of this thread's current device."""
    return _stream_device(None).index


def set_device_index(device):
    """Make a device current for this thread: a device, a string or an index."""
    _C._device_set(cresset.device(device))


current_device_idx, set_device_idx = current_device_index, set_device_index


class device_index(contextlib.ContextDecorator):
    """Make the device with this index current inside; None changes nothing. The device before comes back, after exceptions too."""

    def __init__(self, device):
        self._index, self._outer = device, []

    def __enter__(self):
        self._outer.append(None if self._index is None else _C._device_exchange(cresset.device(self._index)))
        return self

    def __exit__(self, *exc_info):
        before = self._outer.pop()
        if before is not None:
            _C._device_restore(before)


def current_stream(device=None):
    """The stream that work on a device goes to."""
    device = _stream_device(device)
    return cresset.Stream(stream_id=_C._stream_current(device), device_index=device.index, device_type=device.type)


def set_stream(stream):
    """Make a stream the current one of its device, and the device current."""
    _C._device_set(stream.device)
    _C._stream_exchange(stream.device, stream.stream_id)


def synchronize(device=None):
    """Wait for all work of a device, by default the current one."""
    _C._device_synchronize(_stream_device(device))


def get_device_capability(device=None):
    """What the device can do, as a dict: `supported_dtypes`, a set of the dtypes that the backend names, or that a tensor of one
    element can have there."""
    device, supported = _stream_device(device), set()
    for dtype in {d for d in vars(cresset).values() if isinstance(d, cresset.dtype)}:
        known = _C._device_supports(device, dtype)
        if known is not None:
            supported.update([dtype] if known else [])
            continue
        try:
            cresset.empty(1, dtype=dtype, device=device)
        except (RuntimeError, TypeError, NotImplementedError):
            continue
        supported.add(dtype)
    return {"supported_dtypes": supported}


def can_device_access_peer(device, peer):
    """Whether a device reads and writes the memory of another of its kind directly. Copies between them work in any case."""
    return _C._can_access_peer(_stream_device(device), _stream_device(peer))


# --- backends --------------------------------------------------------------------------------------------------------------------


def load_backend(path):
    """Load a plug-in library; returns the name of its device. RuntimeError says why it does not load."""
    return _C._load_backend(str(path))


def registered_backends():
    """Names of the devices that backends gave."""
    return _C._registered_backends()


def report(name):
    """What is known of a device name, as a dict: problem, library, table_version, and parts with what each is for."""
    return _C._backend_report(name)


# --- operators without a kernel of the device ---------------------------------------------------------------------------------------


class _FallbackMode(contextlib.ContextDecorator):
    # What set_fallback_mode returns: leaving it as a context puts the old mode back.
    def __init__(self, before):
        self._before = before

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        _C._fallback_set_mode(self._before)


def set_fallback_mode(mode, *, calls=None, bytes=None):
    """What operators without a kernel of the device do: "allow", "warn" (once an operator), "forbid", or "budget".

    A budget allows so many `calls` or `bytes` from now on. For all threads; as a context manager the old mode comes back.
    """
    if mode == "budget" and calls is None and bytes is None:
        raise ValueError("set_fallback_mode: a budget needs calls or bytes.")
    before = _C._fallback_mode()
    _C._fallback_set_mode(mode, calls, bytes)
    return _FallbackMode("allow" if before == "budget" else before)


def fallback_mode():
    """The mode that set_fallback_mode set."""
    return _C._fallback_mode()


def fallback_counts():
    """(operator, calls, bytes moved, nanoseconds) of each operator that ran on the CPU for a device, the costliest first."""
    return _C._fallback_counts()


def fallback_report(lines=10):
    """The costliest operators as text: for these kernels pay first."""
    return _C._fallback_report(lines)


def reset_fallback_counts():
    """Forget what was counted, and warn again."""
    _C._fallback_reset()
