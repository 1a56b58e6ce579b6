"""Communication between processes is not part of Cresset: what programs ask before they use it, answered with no.

`rpc` and `autograd` below it answer the same way, and `tensor.DTensor` is a type that no tensor has.
"""

import importlib

__all__ = ["ProcessGroup", "is_available", "is_initialized", "is_torchelastic_launched"]


class ProcessGroup:
    """Processes that communicate. There are none: RuntimeError from the constructor."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError("ProcessGroup: communication between processes is not part of Cresset.")


def is_available():
    """False: there is no communication between processes, as in builds of PyTorch without it."""
    return False


def is_initialized():
    """False: there is no process group."""
    return False


def is_torchelastic_launched():
    """False."""
    return False


def __getattr__(name):
    if name in ("rpc", "autograd", "tensor", "elastic", "device_mesh", "nn", "optim"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "DeviceMesh":
        return importlib.import_module(f"{__name__}.device_mesh").DeviceMesh
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"distributed.{name}: communication between processes is not part of Cresset. Ask distributed.is_available() first, which says False."
    )
