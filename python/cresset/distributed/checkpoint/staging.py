"""Copies of state dictionaries, from which a save goes on while the program changes the tensors."""

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import cresset

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


def _copied_tensor(value, old):
    if isinstance(old, cresset.Tensor) and type(old) is cresset.Tensor and (old.shape, old.dtype) == (value.shape, value.dtype):
        return old.copy_(value.detach())
    value = value.detach()
    if type(value) in (cresset.Tensor, cresset.nn.Parameter):
        with cresset.no_grad():
            return value.to("cpu", copy=True)
    return value.clone()


def _copied(value, old=None):
    """A copy with tensors on the CPU, written into the copy `old` where that has a tensor of the same shape."""
    if isinstance(value, cresset.Tensor):
        return _copied_tensor(value, old)
    if hasattr(value, "local_shards"):
        made = copy.copy(value)
        made._local_shards = [copy.copy(shard) for shard in value.local_shards()]
        for shard in made._local_shards:
            shard.tensor = _copied_tensor(shard.tensor, None)
        return made
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        made = copy.copy(value)
        for key, item in value.items():
            made[key] = _copied(item, before.get(key))
        return made
    if type(value) in (list, tuple):
        before = old if isinstance(old, (list, tuple)) and len(old) == len(value) else [None] * len(value)
        return type(value)(_copied(item, was) for item, was in zip(value, before))
    return copy.deepcopy(value)


@runtime_checkable
class AsyncStager(Protocol):
    """Copies the state_dict of an async_save."""

    @property
    def should_synchronize_after_execute(self):
        """Does async_save call synchronize_staging?"""
        return getattr(self, "_synchronize_after_execute", True)

    def stage(self, state_dict):
        """The copy, or a concurrent.futures.Future of it."""
        raise NotImplementedError(f"{type(self).__name__} must implement stage method")

    def synchronize_staging(self):
        """Wait until stage has read all of the state_dict."""

    def close(self):
        """Let go of threads and memory."""


class BlockingAsyncStager(AsyncStager):
    """Copies before async_save returns. `cache_staged_state_dict` keeps the copy's memory for the next one."""

    _synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict=False, type_check=False):
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache = None

    def stage(self, state_dict):
        staged = _copied(state_dict, self.state_dict_cache)
        if self.cache_staged_state_dict:
            self.state_dict_cache = staged
        return staged

    def synchronize_staging(self):
        pass

    def close(self):
        self.state_dict_cache = None


@dataclass
class StagingOptions:
    """How DefaultStager copies. Memory of the CPU is neither pinned nor shared here, so only `use_async_staging` has an effect."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies in a thread with `use_async_staging`: the tensors must not change until async_save's `staging_completion` is done."""

    _synchronize_after_execute = False

    def __init__(self, config=StagingOptions()):  # noqa: B008  read only
        self._config = config
        self._pool = ThreadPoolExecutor(1) if config.use_async_staging else None
        self._last = self._cache = None

    def stage(self, state_dict, **kwargs):
        if self._pool is None:
            return self._stage(state_dict)
        self._last = self._pool.submit(self._stage, state_dict)
        return self._last

    def _stage(self, state_dict):
        self._cache = _copied(state_dict, self._cache)
        return self._cache

    def synchronize_staging(self):
        if self._last is not None:
            self._last.result()

    def close(self):
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        self._cache = None
