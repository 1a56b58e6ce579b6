"""Questions about Meta's accelerators: none is built in. What asks for a state gives that of a machine without one; what needs a device raises."""

from ._absent_device import DeviceContext, answer, refusal, seed_taker

_ABSENT = AssertionError("Torch not compiled with MTIA enabled")
_LACKS = {  # name -> what PyTorch says cannot be executed
    "synchronize": "getCurrentDevice", "current_device": "getCurrentDevice", "current_stream": "getCurrentDevice", "default_stream": "getCurrentDevice",
    "stream": "getCurrentDevice", "set_rng_state": "getCurrentDevice", "get_device_capability": "getDeviceCapability",
    "get_device_properties": "getDeviceProperties", "snapshot": "memorySnapshot", "empty_cache": "emptyCache", "set_device": "setCurrentDevice",
}  # fmt: skip
_ANSWERS = {
    "is_available": False, "is_initialized": False, "device_count": 0, "memory_stats": {}, "max_memory_allocated": 0, "memory_allocated": 0,
    "reset_peak_memory_stats": None, "record_memory_history": None, "set_stream": None, "set_rng_state_all": None, "get_rng_state_all": [], "seed": None,
    "seed_all": None, "is_bf16_supported": True,
}  # fmt: skip

_REFUSE = ("get_rng_state", "init", "initial_seed")
_SEEDS = ("manual_seed", "manual_seed_all")

__all__ = ["device", *_LACKS, *_ANSWERS, *_REFUSE, *_SEEDS]

globals().update({name: refusal(name, RuntimeError(f"Cannot execute {what}() without MTIA backend.")) for name, what in _LACKS.items()})
globals().update({name: refusal(name, _ABSENT) for name in _REFUSE})
globals().update({name: answer(name, value) for name, value in _ANSWERS.items()})
globals().update({name: seed_taker(name) for name in _SEEDS})


class device(DeviceContext):
    """`with device(index):` has nothing to change."""
