"""Questions about Apple's GPUs: none is built in. What asks for a state gives that of a machine without one; what needs a device raises."""

from ._absent_device import answer, refusal, seed_taker

_LACKS = {  # name -> what PyTorch says cannot be executed
    "get_rng_state": "getDefaultGenerator", "seed": "getDefaultGenerator", "set_rng_state": "getDefaultGenerator", "synchronize": "deviceSynchronize",
    "empty_cache": "emptyCache", "set_per_process_memory_fraction": "setMemoryFraction", "current_allocated_memory": "getCurrentAllocatedMemory",
    "driver_allocated_memory": "getDriverAllocatedMemory", "recommended_max_memory": "getRecommendedMaxMemory",
}  # fmt: skip

_NOT_AVAILABLE = ("compile_shader", "load_metallib")

__all__ = ["Event", "device_count", "is_available", "manual_seed", *_LACKS, *_NOT_AVAILABLE]

globals().update({name: refusal(name, RuntimeError(f"Cannot execute {what}() without MPS backend.")) for name, what in _LACKS.items()})
globals().update({name: refusal(name, RuntimeError("MPS is not available")) for name in _NOT_AVAILABLE})
device_count, is_available, manual_seed = answer("device_count", 0), answer("is_available", False), seed_taker("manual_seed")


class Event:
    """A mark in the device's work: RuntimeError, since none is built in."""

    def __init__(self, enable_timing=False):
        raise RuntimeError("Cannot execute acquireEvent() without MPS backend.")
