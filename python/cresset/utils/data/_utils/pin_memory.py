"""Batches in pinned memory, from where a device copies while the processor goes on."""

import queue
from collections.abc import Mapping, Sequence

import cresset
from cresset._utils import ExceptionWrapper

__all__ = ["pin_memory"]

_SECONDS = 5.0  # after which a waiting thread looks whether it should end


def pinning_device(name):
    """The device whose pinned memory batches go to: the one named, or the accelerator. None when there is no such memory."""
    kind = name or cresset._C._accelerator_type()
    return kind if kind and cresset._C._has_pinned_memory(cresset.device(kind)) else None


def why_not_pinned(name):
    """Why pinning_device has none, for a warning."""
    kind = name or cresset._C._accelerator_type()
    if kind is None:
        return "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used."
    return f"'pin_memory' argument is set as true but the device {kind!r} has no pinned memory (pinned_allocate of its backend): batches stay as they are."


def pin_memory(data, device=None):
    """A batch with its tensors, and what has a pin_memory method of its own, in pinned memory; RuntimeError without an accelerator."""
    if isinstance(data, cresset.Tensor):
        return data.pin_memory(device)
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return type(data)((k, pin_memory(v, device)) for k, v in data.items())
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(v, device) for v in data))
    if isinstance(data, tuple):
        return [pin_memory(v, device) for v in data]
    return type(data)(pin_memory(v, device) for v in data) if isinstance(data, Sequence) else data


def _pin_memory_loop(in_queue, out_queue, device_id, done_event, device):
    """The body of a thread that pins (number, batch) on their way from one queue to another, until done_event is set."""
    cresset.set_num_threads(1)
    while not done_event.is_set():
        try:
            message = in_queue.get(timeout=_SECONDS)
        except queue.Empty:
            continue
        number, data = message
        if not isinstance(data, ExceptionWrapper):
            try:
                data = pin_memory(data, device)
            except Exception:
                data = ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
        while not done_event.is_set():
            try:
                out_queue.put((number, data), timeout=_SECONDS)
                break
            except queue.Full:
                continue
        del message, data
