"""Memory of CUDA devices: none. Statistics are empty or 0; what allocates raises."""

import collections
import contextlib

from ._absent import absent_class, refusal, refuse

__all__ = [
    "caching_allocator_alloc", "caching_allocator_delete", "caching_allocator_enable", "caching_allocator_disabled", "get_per_process_memory_fraction",
    "set_per_process_memory_fraction", "empty_cache", "memory_stats", "memory_stats_as_nested_dict", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached", "host_memory_stats", "host_memory_stats_as_nested_dict",
    "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats", "memory_allocated", "max_memory_allocated", "memory_reserved",
    "max_memory_reserved", "memory_cached", "max_memory_cached", "memory_snapshot", "memory_summary", "list_gpu_processes", "mem_get_info",
    "get_allocator_backend", "CUDAPluggableAllocator", "change_current_allocator", "MemPool", "use_mem_pool",
]  # fmt: skip

caching_allocator_alloc, caching_allocator_delete, caching_allocator_enable, get_per_process_memory_fraction, set_per_process_memory_fraction = map(
    refusal, ("caching_allocator_alloc", "caching_allocator_delete", "caching_allocator_enable", "get_per_process_memory_fraction", "set_per_process_memory_fraction")
)
_record_memory_history, _snapshot, _dump_snapshot, _set_allocator_settings = map(
    refusal, ("_record_memory_history", "_snapshot", "_dump_snapshot", "_set_allocator_settings")
)
mem_get_info, change_current_allocator = refusal("mem_get_info"), refusal("change_current_allocator")
MemPool = absent_class("MemPool", __name__)
CUDAPluggableAllocator = absent_class("CUDAPluggableAllocator", __name__)


@contextlib.contextmanager
def caching_allocator_disabled(device=None):
    """Raises AssertionError: there is no allocator."""
    refuse()
    yield


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """Raises AssertionError: there is no allocator."""
    refuse()
    yield


def empty_cache():
    """There is no cache."""


def memory_stats(device=None):
    """An empty dictionary."""
    return collections.OrderedDict()


def memory_stats_as_nested_dict(device=None):
    """An empty dictionary."""
    return {}


host_memory_stats, host_memory_stats_as_nested_dict = memory_stats, memory_stats_as_nested_dict


def memory_snapshot(mempool_id=None, include_traces=True):
    """No segments."""
    return []


def memory_summary(device=None, abbreviated=False):
    """A text that says that there is no device."""
    return "No CUDA device: no memory to report."


def list_gpu_processes(device=None):
    """A text: processes on the device, which need NVIDIA's management library to find."""
    return "pynvml module not found, please install nvidia-ml-py"


def memory_allocated(device=None):
    """0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = max_memory_cached = memory_allocated


def reset_peak_memory_stats(device=None):
    """There is nothing to reset."""


reset_accumulated_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
reset_accumulated_host_memory_stats = reset_peak_host_memory_stats = reset_peak_memory_stats


def get_allocator_backend():
    """ "native": what a build with CUDA would use unless told otherwise."""
    return "native"
