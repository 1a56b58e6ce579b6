"""DataLoader: batches of a dataset, in the calling thread or prefetched by workers."""

import multiprocessing
import multiprocessing.context
import os
import types
import warnings
from collections.abc import Callable
from typing import Any

import cresset

from . import _utils
from ._utils.collate import default_collate, default_convert
from ._utils.iterate import (
    _BaseDataLoaderIter,  # noqa: F401
    _MultiProcessingDataLoaderIter,
    _MultiThreadingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)  # fmt: skip
from ._utils.pin_memory import pinning_device, why_not_pinned
from ._utils.worker import WorkerInfo, get_worker_info  # noqa: F401
from .dataset import IterableDataset
from .distributed import _get_distributed_settings  # noqa: F401
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

# Types of what a loader is given, by the names that libraries annotate with.
_collate_fn_t = Callable[[list], Any]
_worker_init_fn_t = Callable[[int], None]

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]


class _DatasetKind:
    """Samples by index, or streams of samples."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        """What fetches batches of this kind: `fetch(index)`."""
        fetcher = _utils.fetch._MapDatasetFetcher if kind == _DatasetKind.Map else _utils.fetch._IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """None without end: iterable datasets have no indices."""

    def __iter__(self):
        while True:
            yield None


def _sharding_worker_init_fn(worker_init_fn, world_size, rank_id, worker_id):
    """What a worker of another library's loader begins with: its share of a data pipe, then the function of the user."""
    from .datapipes.datapipe import _take_share

    info = get_worker_info()
    _take_share(world_size, rank_id, info.dataset, info)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


def _context(given, num_workers):
    """The multiprocessing context, "thread" or None; ValueError and TypeError in PyTorch's words."""
    if given is None:
        return None
    if num_workers == 0:
        raise ValueError(
            f"multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers={num_workers}"
        )
    if isinstance(given, str):
        if given == "thread":
            return given
        valid = multiprocessing.get_all_start_methods()
        if given not in valid:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {valid!r}, but got multiprocessing_context={given!r}"
            )
        return multiprocessing.get_context(given)
    if not isinstance(given, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, but got "
            f"multiprocessing_context={given}"
        )
    return given


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader:
    """Iterates over the batches of `dataset`.

    `batch_size=None` gives single samples. `shuffle` visits in random order; with the same seed (or `generator`) the order is
    the same. `num_workers` processes load ahead, `prefetch_factor` batches each; batches come in order whatever their number, unless
    `in_order` is False. Each has a copy of the dataset and generators of its own, seeded by a number drawn here, and starts by
    `multiprocessing_context` (a start method's name or a context); with "thread" the workers are threads, which share the dataset.
    """

    _DataLoader__initialized = False
    _iterator = None
    _datapipe_worker = None

    def __init__(
        self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None, pin_memory=False,
        drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor=None,
        persistent_workers=False, pin_memory_device="", in_order=True,
    ):  # fmt: skip
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, "
                "otherwise set prefetch_factor to None."
            )
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if pin_memory and pinning_device(pin_memory_device) is None:
            warnings.warn(
                why_not_pinned(pin_memory_device),
                stacklevel=2,
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.in_order = in_order
        self._workers_initialised = False
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        if hasattr(dataset, "_loader_shuffle"):  # a data pipe
            self._datapipe_worker = dataset._loader_shuffle(shuffle)
            shuffle = False if self._dataset_kind == _DatasetKind.Iterable else shuffle
        self._check_order(shuffle, sampler, batch_sampler)
        self._set_order(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._DataLoader__initialized = True
        self._IterableDataset_len_called = None
        self.check_worker_number_rationality()

    def _set_order(self, batch_size, shuffle, sampler, batch_sampler, drop_last):
        """What is visited when, and in which batches."""
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(self.dataset, generator=self.generator)
            else:
                sampler = SequentialSampler(self.dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler

    def _check_order(self, shuffle, sampler, batch_sampler):
        if self._dataset_kind == _DatasetKind.Iterable:
            if shuffle not in (False, None):
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
                )
            if sampler is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}"
                )
            if batch_sampler is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified batch_sampler option, but got batch_sampler={batch_sampler}"
                )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")

    def __setattr__(self, name, value):
        if self._DataLoader__initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    __class_getitem__ = classmethod(types.GenericAlias)  # DataLoader[T] in annotations

    @property
    def multiprocessing_context(self):
        """The context in which workers start; None for the default one, "thread" for threads."""
        return self._DataLoader__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        self._DataLoader__multiprocessing_context = _context(context, self.num_workers)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_shared_seed(self):
        return cresset.empty((), dtype=cresset.int64, device="cpu").random_(generator=self.generator).item()

    def _get_iterator(self):
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return (_MultiThreadingDataLoaderIter if self.multiprocessing_context == "thread" else _MultiProcessingDataLoaderIter)(self)

    def __iter__(self):
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None or self._iterator._shutdown:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self):
        """Number of batches; of an iterable dataset, from the length it claims."""
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        n = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def check_worker_number_rationality(self):
        """Warn when there are more workers than processors."""
        if not self.num_workers or self.multiprocessing_context == "thread":
            return
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if usable is not None and self.num_workers > usable:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker in current system is "
                f"{usable}, which is smaller than what this DataLoader is going to create. Please be aware that excessive worker creation might get "
                "DataLoader running slow or even freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )
