"""Batches in pinned memory, from where a device copies while the processor goes on."""

from collections.abc import Mapping, Sequence

import cresset

__all__ = ["pin_memory"]


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
