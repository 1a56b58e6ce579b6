"""The accelerator of this process: devices, streams, memory, and what runs on the CPU for want of a kernel.

Devices come from backends, libraries outside of this package. The accelerator is the first registered kind that has a device.
"""

import contextlib

import cresset

from . import _C
from ._streams import _stream_device

__all__ = [
    "is_available", "current_accelerator", "device_count", "current_device_index", "current_device_idx", "set_device_index",
    "set_device_idx", "device_index", "current_stream", "set_stream", "synchronize", "memory_allocated", "max_memory_allocated", "memory_reserved",
    "max_memory_reserved",
    "empty_host_cache", "host_cache_stats", "get_device_capability", "reset_accumulated_memory_stats",
    "memory_stats", "reset_peak_memory_stats", "get_memory_info", "empty_cache", "load_backend", "registered_backends", "report",
    "set_fallback_mode", "fallback_mode", "fallback_counts", "fallback_report", "reset_fallback_counts",
]  # fmt: skip


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


def memory_allocated(device=None):
    """Bytes of the device that tensors hold."""
    return _C._device_memory(_stream_device(device))[0]


def max_memory_allocated(device=None):
    """The most bytes that tensors held since the start or the last reset."""
    return _C._device_memory(_stream_device(device))[1]


def memory_stats(device=None):
    """Bytes that tensors hold, their peak, allocations so far, blocks alive, bytes that the backend's cache holds and their peak, as a dict."""
    names = ("allocated_bytes", "peak_bytes", "allocations", "live_blocks", "reserved_bytes", "peak_reserved_bytes")
    return dict(zip(names, _C._device_memory(_stream_device(device)), strict=True))


def memory_reserved(device=None):
    """Bytes that the backend's cache holds from the driver; those of tensors where the backend has no cache."""
    return _C._device_memory(_stream_device(device))[4]


def max_memory_reserved(device=None):
    """The most bytes that the cache held since the start or the last reset."""
    return _C._device_memory(_stream_device(device))[5]


def reset_peak_memory_stats(device=None):
    """Start max_memory_allocated and max_memory_reserved anew."""
    _C._device_reset_peak_memory(_stream_device(device))


def get_memory_info(device=None):
    """(free, total) bytes as the backend tells; zeros when it does not."""
    properties = _C._device_properties(_stream_device(device))
    return properties["free_memory"], properties["total_memory"]


def empty_cache():
    """Let the backend give idle memory back."""
    _C._device_empty_cache(_stream_device(None))


def empty_host_cache():
    """Give the system back what the host's allocator keeps for reuse."""
    _C._empty_host_cache()


def host_cache_stats():
    """What the host's allocator keeps of the memory of large tensors, as a dict: `limit` (CRESSET_HOST_CACHE), `idle_bytes`, `used_bytes`,
    `peak_bytes`, allocations `reused` and `taken` from the system, blocks `given_back`."""
    names = ("limit", "idle_bytes", "used_bytes", "peak_bytes", "reused", "taken", "given_back")
    return dict(zip(names, _C._host_cache_stats(), strict=True))


def get_device_capability(device=None):
    """What the device can do, as a dict: `supported_dtypes`, a set of the dtypes that a tensor of one element can have there."""
    device, supported = _stream_device(device), set()
    for dtype in {d for d in vars(cresset).values() if isinstance(d, cresset.dtype)}:
        try:
            cresset.empty(1, dtype=dtype, device=device)
        except (RuntimeError, TypeError, NotImplementedError):
            continue
        supported.add(dtype)
    return {"supported_dtypes": supported}


def reset_accumulated_memory_stats(device=None):
    """Start what memory_stats adds up anew, as reset_peak_memory_stats does with peaks."""
    reset_peak_memory_stats(device)


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
