"""Questions about CUDA devices: none is built in. Accelerators come as registered devices (`device` and `library`).

What asks for a state gives that of a machine without CUDA; what needs a device raises, in PyTorch's words.
"""

import importlib as _importlib

from .._C import OutOfMemoryError
from .._C import device as _device

__all__ = [
    "Event", "OutOfMemoryError", "Stream", "current_device", "current_stream", "default_generators", "default_stream", "device",
    "device_count", "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "init", "ipc_collect", "is_available", "is_bf16_supported", "is_current_stream_capturing", "is_initialized",
    "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "reset_peak_memory_stats", "set_device", "set_rng_state", "set_rng_state_all", "set_stream", "stream",
    "synchronize",
]  # fmt: skip

default_generators = ()


def __getattr__(name):
    if name == "amp":
        return _importlib.import_module(f"{__name__}.amp")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _refuse(*args, **kwargs):
    raise AssertionError("Torch not compiled with CUDA enabled")


current_device = current_stream = default_stream = get_device_capability = get_device_name = get_device_properties = _refuse
get_rng_state = init = ipc_collect = mem_get_info = set_device = set_rng_state = synchronize = _refuse


class Stream:
    """Raises: streams belong to devices (`cresset.Stream`)."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError(f"torch.cuda.{type(self).__name__} requires CUDA support")


class Event(Stream):
    """Raises: events belong to devices (`cresset.Event`)."""


class device:
    """Context in which a CUDA device is the current one: there is none to be. -1 and None change nothing."""

    def __init__(self, device):
        if isinstance(device, (str, _device)):
            wanted = _device(device)
            if wanted.type != "cuda":
                raise ValueError(f"Expected a cuda device, but got: {wanted}")
            device = wanted.index or 0
        self.idx = -1 if device is None else device

    def __enter__(self):
        if self.idx >= 0:
            raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *exception):
        return False


class stream:
    """Context in which a stream is the current one; without CUDA there is none, and the context changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return False


def is_available():
    return False


def is_initialized():
    return False


def is_bf16_supported(including_emulation=True):
    return False


def is_current_stream_capturing():
    return False


def device_count():
    return 0


def memory_allocated(device=None):
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def get_rng_state_all():
    return []


def _nothing(*args, **kwargs):
    """There is no device to do it on."""


empty_cache = manual_seed = manual_seed_all = reset_peak_memory_stats = set_rng_state_all = set_stream = _nothing
