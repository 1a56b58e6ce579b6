"""Questions about CUDA devices: none is built in. Accelerators come as registered devices (`device` and `library`).

What asks for a state gives that of a machine without CUDA; what needs a device raises, in PyTorch's words.
"""

import importlib as _importlib

from .._C import OutOfMemoryError
from .._C import device as _device
from .._dtype_info import DTYPE_WORDS as _DTYPE_WORDS
from ..accelerator import AcceleratorError
from . import graphs, memory, nvtx, random, streams
from ._absent import MESSAGE as _ABSENT
from ._absent import absent_class as _absent_class
from ._absent import absent_management as _absent_management
from ._absent import no_storage as _no_storage
from ._absent import refusal as _refusal
from ._absent import refuse as _refuse
from .graphs import *  # noqa: F403
from .memory import *  # noqa: F403
from .random import *  # noqa: F403
from .streams import *  # noqa: F403

_STORAGES = ("BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat", "Double", "Float", "Half", "Int", "Long", "Short")
_TENSORS = tuple(name for name in _STORAGES if not name.startswith("Complex"))

__all__ = [
    "AcceleratorError", "CudaError", "DeferredCudaCallError", "GreenContext", "OutOfMemoryError", "StreamContext", "can_device_access_peer", "check_error",
    "clock_rate", "cudaStatus", "cudart", "current_blas_handle", "current_device", "current_solver_handle", "current_stream", "default_generators",
    "default_stream", "device", "device_count", "device_memory_used", "device_of", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_gencode_flags", "get_stream_from_external", "get_sync_debug_mode", "has_half", "has_magma", "init", "ipc_collect",
    "is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported", "memory_usage", "power_draw", "set_device", "set_stream",
    "set_sync_debug_mode", "stream", "synchronize", "temperature", "utilization",
    *graphs.__all__, *memory.__all__, *random.__all__, *streams.__all__, *(f"{n}Storage" for n in _STORAGES), *(f"{n}Tensor" for n in _TENSORS),
]  # fmt: skip

default_generators = ()
_initialized = False
has_half, has_magma = True, False
_SUBMODULES = ("amp", "comm", "jiterator", "nccl", "profiler", "sparse", "tunable")


def __getattr__(name):
    if name in _SUBMODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


current_device = current_stream = default_stream = get_device_capability = get_device_name = get_device_properties = _refuse
init = ipc_collect = synchronize = cudart = current_blas_handle = current_solver_handle = get_sync_debug_mode = set_sync_debug_mode = _refuse
can_device_access_peer, get_stream_from_external = _refusal("can_device_access_peer"), _refusal("get_stream_from_external")
utilization, temperature, clock_rate, power_draw, memory_usage, device_memory_used = map(
    _absent_management, ("utilization", "temperature", "clock_rate", "power_draw", "memory_usage", "device_memory_used")
)
_lazy_init, _sleep = _refuse, _refusal("_sleep")


def _lazy_call(callable, **kwargs):
    """`callable` would be called when the first CUDA device is used; none is built in, so it never is."""


GreenContext = _absent_class("GreenContext", __name__)


class cudaStatus:
    """Numbers of results of the CUDA runtime."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


class CudaError(RuntimeError):
    """An error of the CUDA runtime, by its number."""

    def __init__(self, code):
        super().__init__(f"CUDA error ({code})")


class DeferredCudaCallError(Exception):
    """What was called before a device was there failed at its first use."""


def check_error(res):
    """CudaError unless `res` is cudaStatus.SUCCESS."""
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


def _index(device):
    """The index that a device, its name or a number means; -1 for none. ValueError for another kind of device."""
    if isinstance(device, (str, _device)):
        wanted = _device(device)
        if wanted.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {wanted}")
        return wanted.index or 0
    return -1 if device is None else device


class device:
    """Context in which a CUDA device is the current one: there is none to be. -1 and None change nothing."""

    def __init__(self, device):
        self.idx = _index(device)

    def __enter__(self):
        if self.idx >= 0:
            raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *exception):
        return False


class device_of(device):
    """The context of the device that a tensor is on; for one that is on no CUDA device it changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if getattr(obj, "is_cuda", False) else -1)


def set_device(device):
    """Raises AssertionError unless the index is negative; ValueError for another kind of device."""
    if _index(device) >= 0:
        _refuse()


class stream:
    """Context in which a stream is the current one; without CUDA there is none, and the context changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return False


StreamContext = stream


def set_stream(stream):
    """There is no stream to be the current one."""


def is_available():
    return False


def is_initialized():
    return False


def is_bf16_supported(including_emulation=True):
    return False


def is_tf32_supported():
    return False


def device_count():
    return 0


def get_arch_list():
    """No architectures: an empty list."""
    return []


def get_gencode_flags():
    """An empty text."""
    return ""


# For isinstance() and pickles: no object of these types can be made.
_NO_TENSORS = TypeError("type torch.cuda.{} not available. Torch not compiled with CUDA enabled.")
for _name in _TENSORS:
    globals()[f"{_name}Tensor"] = _absent_class(f"{_name}Tensor", __name__, error=_NO_TENSORS)
    globals()[f"{_name}Tensor"].dtype = next(dtype for dtype, word in _DTYPE_WORDS.items() if word == _name)
for _name in _STORAGES:
    globals()[f"{_name}Storage"] = _absent_class(f"{_name}Storage", __name__, error=AssertionError(_ABSENT))
    for _way in ("from_buffer", "_new_with_weak_ptr", "_new_shared_filename"):
        setattr(globals()[f"{_name}Storage"], _way, staticmethod(_no_storage(_way)))
