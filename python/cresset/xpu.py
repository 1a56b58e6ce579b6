"""Questions about Intel's GPUs: none is built in. What asks for a state gives that of a machine without one; what needs a device raises."""

import collections
import contextlib

from ._absent_device import DeviceContext, answer, refusal, seed_taker
from .cuda._absent import absent_class

_ABSENT = AssertionError("Torch not compiled with XPU enabled")
_REFUSE = (
    "can_device_access_peer", "current_device", "current_stream", "get_device_capability", "get_device_name", "get_device_properties",
    "get_per_process_memory_fraction", "get_rng_state", "get_stream_from_external", "init", "initial_seed", "mem_get_info", "set_device",
    "set_per_process_memory_fraction", "synchronize",
)  # fmt: skip
_NOTHING = ("empty_cache", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "seed", "seed_all", "set_rng_state", "set_rng_state_all", "set_stream")
_NONE_USED = ("device_count", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved")
_FALSE = ("is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported")
_SEEDS = ("manual_seed", "manual_seed_all")
_CLASSES = ("Event", "MemPool", "Stream", "XPUGraph")

__all__ = [
    *_CLASSES, "StreamContext", "default_generators", "device", "device_of", "get_arch_list", "get_gencode_flags", "get_rng_state_all",
    "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict", "stream", *_REFUSE, *_NOTHING, *_NONE_USED, *_FALSE, *_SEEDS,
]  # fmt: skip

default_generators = ()
globals().update({name: refusal(name, _ABSENT) for name in _REFUSE})
globals().update({name: answer(name) for name in _NOTHING})
globals().update({name: answer(name, 0) for name in _NONE_USED})
globals().update({name: answer(name, False) for name in _FALSE})
globals().update({name: seed_taker(name) for name in _SEEDS})
globals().update({name: absent_class(name, __name__) for name in _CLASSES})
get_arch_list, get_gencode_flags, get_rng_state_all = answer("get_arch_list", []), answer("get_gencode_flags", ""), answer("get_rng_state_all", [])
memory_snapshot, memory_stats = answer("memory_snapshot", []), answer("memory_stats", collections.OrderedDict())
memory_stats_as_nested_dict = answer("memory_stats_as_nested_dict", {})


class device(DeviceContext):
    """`with device(index):` has nothing to change."""


class device_of(device):
    """`with device_of(tensor):` has nothing to change."""


class StreamContext(contextlib.nullcontext):
    """`with StreamContext(stream):` has nothing to change."""

    def __init__(self, stream):
        super().__init__()
        self.stream = stream


def stream(stream):
    """`with stream(s):` has nothing to change."""
    return StreamContext(stream)
