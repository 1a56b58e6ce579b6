"""A barrier over a store: for groups that have no connections yet, or none at all."""

import time
from datetime import timedelta

from cresset._C_distributed import DistStoreError
from cresset._logging import logger_of

__all__ = []

STORE_BASED_BARRIER_PREFIX = "store_based_barrier_key"

_log = logger_of("torch.distributed.distributed_c10d")


def _store_based_barrier(rank, store, group_name, rendezvous_count, timeout, logging_interval=timedelta(seconds=10)):
    """Wait until `rendezvous_count` ranks have come here. DistStoreError after `timeout`, with how many did."""
    key = f"{STORE_BASED_BARRIER_PREFIX}:{group_name}"
    last = f"{key}:last_worker"
    if store.add(key, 1) == rendezvous_count:
        store.set(last, "1")
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        left = timedelta(seconds=max(0.001, deadline - time.monotonic()))
        try:
            store.wait([last], min(left, max(logging_interval, timedelta(milliseconds=1))))
            return
        except RuntimeError as error:
            if isinstance(error, NotImplementedError):
                raise
            joined = store.add(key, 0)
            if time.monotonic() < deadline:
                _log.debug("rank %s waits in the barrier %s: %s of %s ranks are there", rank, key, joined, rendezvous_count)
                continue
            raise DistStoreError(
                f"Timed out initializing process group in store based barrier on rank {rank}, for key: {key} (world_size={rendezvous_count}, "
                f"num_workers_joined={joined}, timeout={timeout} error={error})"
            ) from error
