"""Values of all members of a group, and barriers, over a store."""

from contextlib import contextmanager
from datetime import timedelta

from cresset._C_distributed import DistStoreError

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]

_LAST, _COUNT, _TRACE, _GATE = "/last_member", "/num_members", "/TRACE", "/TRACING_GATE"
_ANY = "<val_ignored>"


@contextmanager
def store_timeout(store, timeout):
    """Inside, the store waits `timeout` seconds at most."""
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    yield
    store.set_timeout(before)


def get_all(store, rank, prefix, world_size):
    """The values of `prefix0` to `prefix(n-1)`. The rank 0, whose process may serve the store, waits until all have read."""
    values = store.multi_get([f"{prefix}{i}" for i in range(world_size)])
    last = _come(store, world_size, f"{prefix}/finished")
    if rank == 0:
        store.wait([last])
    return values


def synchronize(store, data, rank, world_size, key_prefix, timeout=300):
    """Give `data` to the others, and get the values of all, in the order of ranks."""
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def _come(store, world_size, key_prefix):
    """Say that this member has come; the key that the last one sets."""
    last = f"{key_prefix}{_LAST}"
    if store.add(f"{key_prefix}{_COUNT}", 1) == world_size:
        store.set(last, _ANY)
    return last


def _find_missing(store, world_size, key_prefix, rank, decoder, trace_timeout):
    """What the error says about who is missing: rank 0 looks, and lets the others go on then."""
    store.set(f"{key_prefix}{rank}{_TRACE}", _ANY)
    if rank != 0:
        try:
            store.wait([f"{key_prefix}{_GATE}"])
            return [f"[<check rank 0 ({decoder(0)}) for missing rank info>]"]
        except DistStoreError:
            return [f"[<check rank 0 ({decoder(0)}) for missing rank info>]"]
    missing = []
    for other in range(1, world_size):
        try:
            store.wait([f"{key_prefix}{other}{_TRACE}"], timedelta(seconds=trace_timeout))
        except DistStoreError:
            missing.append(str(decoder(other)))
    store.set(f"{key_prefix}{_GATE}", _ANY)
    return missing


def barrier(store, world_size, key_prefix, barrier_timeout=300, rank=None, rank_tracing_decoder=None, trace_timeout=10):
    """Wait for all members. DistStoreError after `barrier_timeout` seconds; with a rank it names who is missing, by `rank_tracing_decoder`."""
    with store_timeout(store, barrier_timeout):
        last = _come(store, world_size, key_prefix)
        try:
            store.wait([last])
        except DistStoreError as error:
            if rank is None:
                raise
            decoder = rank_tracing_decoder or str
            missing = _find_missing(store, world_size, key_prefix, rank, decoder, trace_timeout)
            raise DistStoreError(
                f"Timed out waiting on barrier on rank {rank}, for key prefix: {key_prefix} (world_size={world_size}, "
                f"missing_ranks=[{', '.join(m.strip('[]') for m in missing)}], timeout={barrier_timeout})"
            ) from error
