"""Memory of the accelerator: how much, by whom, from when, and pools of it."""

import collections
import contextlib
import pickle

import cresset

from .. import _C
from .._streams import _stream_device

__all__ = [
    "empty_cache", "empty_host_cache", "host_cache_stats", "get_memory_info", "memory_allocated", "max_memory_allocated", "memory_reserved",
    "max_memory_reserved", "memory_stats", "reset_peak_memory_stats", "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
    "get_per_process_memory_fraction", "MemPool", "use_mem_pool", "memory_snapshot", "record_memory_history", "memory_page",
]  # fmt: skip


def memory_allocated(device=None):
    """Bytes of the device that tensors hold."""
    return _C._device_memory(_stream_device(device))[0]


def max_memory_allocated(device=None):
    """The most bytes that tensors held since the start or the last reset."""
    return _C._device_memory(_stream_device(device))[1]


def memory_reserved(device=None):
    """Bytes that the backend's cache holds from the driver; those of tensors and pools where the backend has no cache."""
    return _C._device_memory(_stream_device(device))[4]


def max_memory_reserved(device=None):
    """The most bytes that the cache held since the start or the last reset."""
    return _C._device_memory(_stream_device(device))[5]


_SIZES, _NUMBERS = ("all", "large_pool", "small_pool"), ("current", "peak", "allocated", "freed")


def memory_stats(device=None):
    """What the device's memory has done, as an ordered dict from PyTorch's names to numbers.

    `"<what>.<size>.<number>"`: what is `allocation`, `allocated_bytes`, `requested_bytes` (of tensors), `active`, `active_bytes` (with blocks
    that streams still use), `segment`, `reserved_bytes` (with those of pools: all that came from the backend, or what its own cache holds),
    `inactive_split`, `inactive_split_bytes` (always 0: blocks are not split); size is `all`, `large_pool` (from 1 MiB) or `small_pool`;
    number is `current`, `peak`, and the sums `allocated` and `freed`. `allocated` is another name of `allocation`. Beside them
    `num_alloc_retries`, `num_ooms`, `num_sync_all_streams`, `num_device_alloc`, `num_device_free`.
    """
    device = _stream_device(device)
    flat = iter(_C._device_memory_counters(device))
    groups = {}
    for names in (("allocation", "allocated"), ("allocated_bytes", "requested_bytes"), ("active",), ("active_bytes",), ("segment",), ("reserved_bytes",)):
        values = {(size, number): next(flat) for size in _SIZES for number in _NUMBERS}
        for name in names:
            groups[name] = values
    for name in ("inactive_split", "inactive_split_bytes"):
        groups[name] = dict.fromkeys(groups["segment"], 0)
    retries, ooms, waits, device_allocations, device_frees = flat
    reserved, peak = _C._device_memory(device)[4:6]
    groups["reserved_bytes"] = {**groups["reserved_bytes"], ("all", "current"): reserved, ("all", "peak"): peak}
    out = {f"{what}.{size}.{number}": n for what, values in groups.items() for (size, number), n in values.items()}
    out.update(
        num_alloc_retries=retries, num_ooms=ooms, num_sync_all_streams=waits,
        num_device_alloc=device_allocations, num_device_free=device_frees,
    )  # fmt: skip
    return collections.OrderedDict(sorted(out.items()))


def reset_peak_memory_stats(device=None):
    """Start max_memory_allocated, max_memory_reserved and the peaks of memory_stats anew."""
    _C._device_reset_peak_memory(_stream_device(device))


def reset_accumulated_memory_stats(device=None):
    """Start the sums and the counts of memory_stats anew."""
    _C._device_reset_memory(_stream_device(device), True)


def get_memory_info(device=None):
    """(free, total) bytes as the backend tells; zeros when it does not."""
    properties = _C._device_properties(_stream_device(device))
    return properties["free_memory"], properties["total_memory"]


def empty_cache():
    """Let the backend give idle memory back."""
    _C._device_empty_cache(_stream_device(None))


def empty_host_cache():
    """Give the system back what the host's allocator keeps for reuse, but for pieces of blocks of which others are in use."""
    _C._empty_host_cache()


def host_cache_stats():
    """What the host's allocator keeps of the memory of large tensors, as a dict: `limit` (CRESSET_HOST_CACHE), `idle_bytes`, `used_bytes`,
    `peak_bytes`, allocations `reused` and `taken` from the system, blocks `given_back`."""
    names = ("limit", "idle_bytes", "used_bytes", "peak_bytes", "reused", "taken", "given_back")
    return dict(zip(names, _C._host_cache_stats(), strict=True))


def set_per_process_memory_fraction(fraction, device=None):
    """Let tensors and pools of this process have no more than `fraction` (0 to 1) of a device's memory; more is OutOfMemoryError.

    NotImplementedError when the backend does not tell how much memory there is."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    _C._device_set_memory_fraction(_stream_device(device), fraction)


def get_per_process_memory_fraction(device=None):
    """The fraction that set_per_process_memory_fraction set; 1.0 at the start."""
    return _C._device_memory_fraction(_stream_device(device))


# --- pools -------------------------------------------------------------------------------------------------------------------------


class MemPool:
    """Memory of one device for tensors that are made under use_mem_pool: what they free is kept for others of the pool, in the stream it was
    made in, and goes back to the backend when the pool and all of its tensors are gone."""

    def __init__(self, device=None):
        self._device = _stream_device(device)
        self._pool = _C._memory_pool_new(self._device)

    @property
    def id(self):
        """The pair of numbers that names the pool."""
        return _C._memory_pool_id(self._pool)

    def use_count(self):
        """How many tensors, graphs and objects hold the pool."""
        return _C._memory_pool_use_count(self._pool)

    def snapshot(self):
        """memory_snapshot of this pool."""
        return memory_snapshot(self._device, mempool_id=self.id)


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """Inside, this thread and its backward passes take the memory of the pool's device from the pool."""
    if device is not None and _stream_device(device) != pool._device:
        raise ValueError(f"use_mem_pool: a pool of {_stream_device(device)} was required; this one is of {pool._device}.")
    scope = _C._memory_pool_enter(pool._pool)
    try:
        yield
    finally:
        _C._memory_pool_leave(scope)


# --- snapshots ---------------------------------------------------------------------------------------------------------------------

_STATES = ("active_allocated", "active_awaiting_free", "inactive")
_ACTIONS = ("alloc", "free_completed", "segment_alloc", "segment_free", "oom")


def _frames(stack):
    frames = []
    for line in stack.splitlines():
        place, _, name = line.partition("): ")
        file, _, number = place.rpartition("(")
        frames.append({"filename": file, "line": int(number), "name": name})
    return frames


def _segments(device, mempool_id=None):
    segments = []
    for address, size, state, stream, pool, stack in _C._memory_blocks(device):
        if mempool_id is not None and pool != tuple(mempool_id):
            continue
        block = {"address": address, "size": size, "requested_size": size, "state": _STATES[state], "frames": _frames(stack)}
        segments.append({
            "device": device.index, "address": address, "total_size": size, "allocated_size": size if state == 0 else 0,
            "active_size": size if state < 2 else 0, "requested_size": size if state == 0 else 0, "stream": stream, "segment_pool_id": pool,
            "segment_type": "large" if size >= 1 << 20 else "small", "is_expandable": False, "frames": block["frames"], "blocks": [block],
        })  # fmt: skip
    return segments


def memory_snapshot(device=None, mempool_id=None):
    """The blocks that came from the backend, as PyTorch's list of segments, in order of addresses: dicts of `device`, `address`, `total_size`,
    `allocated_size`, `active_size`, `requested_size` (bytes), `stream`, `segment_type`, `segment_pool_id`, `frames` and `blocks`. A segment has
    one block here. Of all devices of the kind when a device without index is given; of one pool with `mempool_id`."""
    return [segment for d in _devices(device) for segment in _segments(d, mempool_id)]


def _devices(device):
    if device is not None and cresset.device(device).index is not None:
        return [cresset.device(device)]
    kind = _stream_device(device).type
    return [cresset.device(kind, i) for i in range(_C._device_count(cresset.device(kind)))]


def record_memory_history(enabled="all", device=None, *, max_entries=100_000, stacks=True):
    """Keep the last `max_entries` events of the memory of every device of a kind, with the Python frames of allocations when `stacks`.

    None or False as `enabled` ends it and forgets. What was kept is in memory_page and `_snapshot()`."""
    _C._memory_record(_stream_device(device), max_entries if enabled else 0, stacks)


def _history(device):
    return [
        {"action": _ACTIONS[action], "addr": address, "size": size, "stream": stream, "time_us": time, "frames": _frames(stack)}
        for action, address, size, stream, time, stack in _C._memory_history(device)
    ]


def _snapshot(device=None):
    """Segments and history of all devices of a kind, as PyTorch's dict of `segments` and `device_traces`."""
    return {"segments": memory_snapshot(device), "device_traces": [_history(d) for d in _devices(device)]}


def _dump_snapshot(filename="dump_snapshot.pickle", device=None):
    """Write `_snapshot()` as a pickle, which PyTorch's viewers of memory read."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(device), file)


def memory_page(path, device=None):
    """Write blocks and history of a device as one page of HTML: bytes over time, the largest blocks and where they were allocated."""
    from ._page import page

    device = _stream_device(device)
    text = page(str(device), memory_stats(device), _segments(device), _history(device))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
