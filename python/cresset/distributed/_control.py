"""Collectives of a control plane: small values of a few ranks, over a store. No connections, no tensors."""

from datetime import timedelta

from cresset._C_distributed import DistStoreError

__all__ = ["_ControlCollectives", "_StoreCollectives"]

_FIVE_MINUTES = timedelta(minutes=5)


class _ControlCollectives:
    """What ranks can do together on values; each call has a key, which is good for one call."""

    def barrier(self, key, timeout=_FIVE_MINUTES, block=True):
        """Wait for all ranks; without `block` only say that this one has come."""
        raise NotImplementedError("barrier")

    def broadcast_send(self, key, data, timeout=_FIVE_MINUTES):
        """Give `data` to all ranks."""
        raise NotImplementedError("broadcast_send")

    def broadcast_recv(self, key, timeout=_FIVE_MINUTES):
        """The bytes that one rank sends to all."""
        raise NotImplementedError("broadcast_recv")

    def gather_send(self, key, data, timeout=_FIVE_MINUTES):
        """Give `data` to the rank that collects."""
        raise NotImplementedError("gather_send")

    def gather_recv(self, key, data, timeout=_FIVE_MINUTES):
        """The bytes of all ranks, `data` being this one's."""
        raise NotImplementedError("gather_recv")

    def scatter_send(self, key, data, timeout=_FIVE_MINUTES):
        """Give each rank its value of the list `data`; this rank's value."""
        raise NotImplementedError("scatter_send")

    def scatter_recv(self, key, timeout=_FIVE_MINUTES):
        """The value that one rank has for this one."""
        raise NotImplementedError("scatter_recv")

    def all_gather(self, key, data, timeout=_FIVE_MINUTES):
        """The bytes of all ranks, on all ranks."""
        raise NotImplementedError("all_gather")

    def all_sum(self, key, data, timeout=_FIVE_MINUTES):
        """The sum of all ranks' integers, on all ranks."""
        raise NotImplementedError("all_sum")


class _StoreCollectives(_ControlCollectives):
    """Control collectives of `world_size` ranks over a store."""

    def __init__(self, store, rank, world_size):
        self._store, self._rank, self._size, self._used = store, rank, world_size, set()

    def _begin(self, key):
        if key in self._used:
            raise DistStoreError(f"Key {key} has already been used")
        self._used.add(key)

    def _value(self, key, timeout):
        try:
            self._store.wait([key], timeout)
        except DistStoreError as error:
            raise DistStoreError(f"Wait timeout: {error}") from error
        return self._store.get(key)

    def _wait_for_ranks(self, what, keys, timeout):
        """All of the keys, one a rank; DistStoreError that names the ranks which are missing."""
        try:
            self._store.wait(keys, timeout)
        except DistStoreError as error:
            missing = [str(rank) for rank, key in enumerate(keys) if not self._store.check([key])]
            if missing:
                raise DistStoreError(f"{what} failed -- missing ranks: {', '.join(missing)}") from error

    def _keys(self, key):
        return [f"{key}:{rank}" for rank in range(self._size)]

    def barrier(self, key, timeout=_FIVE_MINUTES, block=True):
        """See _ControlCollectives."""
        self._begin(key)
        self._barrier(key, timeout, block)

    def _barrier(self, key, timeout, block=True):
        keys = self._keys(f"{key}:barrier")
        self._store.set(keys[self._rank], "1")
        if block:
            self._wait_for_ranks("barrier", keys, timeout)

    def broadcast_send(self, key, data, timeout=_FIVE_MINUTES):
        """See _ControlCollectives."""
        self._begin(key)
        self._store.set(key, data)

    def broadcast_recv(self, key, timeout=_FIVE_MINUTES):
        """See _ControlCollectives."""
        self._begin(key)
        return self._value(key, timeout)

    def gather_send(self, key, data, timeout=_FIVE_MINUTES):
        """See _ControlCollectives."""
        self._begin(key)
        self._store.set(self._keys(key)[self._rank], data)

    def gather_recv(self, key, data, timeout=_FIVE_MINUTES):
        """See _ControlCollectives."""
        return self._gather("gather", key, data, timeout)

    def _gather(self, what, key, data, timeout):
        self._begin(key)
        keys = self._keys(key)
        self._store.set(keys[self._rank], data)
        self._wait_for_ranks(what, keys, timeout)
        return [self._store.get(k) for k in keys]

    def scatter_send(self, key, data, timeout=_FIVE_MINUTES):
        """See _ControlCollectives."""
        self._begin(key)
        if len(data) != self._size:
            raise ValueError(f"scatter_send: a value for each of {self._size} ranks was required; {len(data)} were given.")
        for k, value in zip(self._keys(key), data):
            self._store.set(k, value)
        return data[self._rank] if isinstance(data[self._rank], bytes) else data[self._rank].encode()

    def scatter_recv(self, key, timeout=_FIVE_MINUTES):
        """See _ControlCollectives."""
        self._begin(key)
        return self._value(self._keys(key)[self._rank], timeout)

    def all_gather(self, key, data, timeout=_FIVE_MINUTES):
        """See _ControlCollectives."""
        return self._gather("all_gather", key, data, timeout)

    def all_sum(self, key, data, timeout=_FIVE_MINUTES):
        """See _ControlCollectives."""
        self._begin(key)
        self._store.add(f"{key}:sum", data)
        self._barrier(key, timeout)
        return self._store.add(f"{key}:sum", 0)
