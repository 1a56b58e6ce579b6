"""The CPU as a device: there is one, and operators on it are done when they return."""

import contextlib

from ._capabilities import get_capabilities

__all__ = ["is_available", "is_initialized", "device_count", "current_device", "set_device", "synchronize", "current_stream", "stream", "get_capabilities"]


def is_available():
    return True


def is_initialized():
    return True


def device_count():
    return 1


def current_device():
    return "cpu"


def set_device(device):
    """There is only one."""


def synchronize(device=None):
    """Operators are done when they return."""


def current_stream(device=None):
    """The CPU has no streams."""
    return None


def stream(stream):
    """A context that changes nothing."""
    return contextlib.nullcontext()


def __getattr__(name):
    if name == "amp":
        import importlib

        return importlib.import_module(".amp", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
