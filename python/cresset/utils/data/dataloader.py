"""DataLoader: batches of a dataset, in the calling thread or prefetched by worker threads."""

import queue
import threading
import warnings

import cresset

from ._utils.collate import default_collate, default_convert
from .dataset import IterableDataset, Subset, TensorDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info"]

_worker = threading.local()


class WorkerInfo:
    """What a worker can know about itself: `id`, `num_workers`, `seed`, `dataset`."""

    def __init__(self, id, num_workers, seed, dataset):
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


def get_worker_info():
    """The WorkerInfo of the calling worker thread, or None outside of one."""
    return getattr(_worker, "info", None)


class _InfiniteSampler:
    # Iterable datasets have no indices.
    def __iter__(self):
        while True:
            yield None


def _pinning_device(name):
    """The device whose pinned memory batches go to: the one named, or the accelerator. None when there is no such memory."""
    kind = name or cresset._C._accelerator_type()
    return kind if kind and cresset._C._has_pinned_memory(cresset.device(kind)) else None


def _pinned(batch, device):
    """A batch with its tensors, and what has a pin_memory method of its own, in pinned memory."""
    if isinstance(batch, cresset.Tensor):
        return batch.pin_memory(device)
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, dict):
        return type(batch)((k, _pinned(v, device)) for k, v in batch.items())
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_pinned(v, device) for v in batch))
    return type(batch)(_pinned(v, device) for v in batch) if isinstance(batch, (list, tuple)) else batch


class DataLoader:
    """Iterates over the batches of `dataset`.

    `batch_size=None` gives single samples. `shuffle` visits in random order; with the same seed (or `generator`) the order is
    the same. `num_workers` threads load ahead, `prefetch_factor` batches each; batches come in order whatever their number.
    """

    def __init__(
        self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None, pin_memory=False,
        drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor=None,
        persistent_workers=False, pin_memory_device="", in_order=True,
    ):  # fmt: skip
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to load in the calling thread."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified with workers. Let num_workers > 0, or leave prefetch_factor None."
            )
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError("prefetch_factor option should be positive")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if multiprocessing_context is not None:
            raise ValueError("DataLoader: multiprocessing_context must be None; workers are threads of this process.")
        self._pins = _pinning_device(pin_memory_device) if pin_memory else None
        if pin_memory and self._pins is None:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
                stacklevel=2,
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._workers_initialised = False
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            if shuffle:
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
        else:
            shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
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
            if self._iterable:
                sampler = _InfiniteSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    def __iter__(self):
        return _ThreadedIterator(self) if self.num_workers else _Iterator(self)

    def __len__(self):
        """Number of batches; of an iterable dataset, from the length it claims."""
        if not self._iterable:
            return len(self.batch_sampler if self._auto_collation else self.sampler)
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else (n + self.batch_size - 1) // self.batch_size


class _End:
    """Stands for the end of an iterable dataset in one worker."""


class _Fetcher:
    """Turns the entry of an index sampler into a batch."""

    def __init__(self, loader):
        self.pins = loader._pins
        self.dataset = loader.dataset
        self.collate = loader.collate_fn
        self.auto = loader._auto_collation
        self.drop_last = loader.drop_last
        self.stream = iter(loader.dataset) if loader._iterable else None
        self.ended = False
        # Whole-batch indexing gives the same tensors as stacking single samples.
        self.columns = None
        if self.auto and self.collate is default_collate and self.stream is None:
            base, picks = self.dataset, []
            while type(base) is Subset:
                picks.append(base.indices)
                base = base.dataset
            if type(base) is TensorDataset:
                self.columns, self.picks = base.tensors, picks

    def __call__(self, index):
        batch = self._batch(index)
        return batch if self.pins is None or batch is _End else _pinned(batch, self.pins)

    def _batch(self, index):
        if self.stream is not None:
            return self._from_stream(index)
        if not self.auto:
            return self.collate(self.dataset[index])
        if self.columns is not None:
            for pick in self.picks:
                index = [pick[i] for i in index]
            return [t[index] for t in self.columns]
        many = getattr(self.dataset, "__getitems__", None)
        return self.collate([self.dataset[i] for i in index] if many is None else many(index))

    def _from_stream(self, index):
        if self.ended:
            return _End
        if not self.auto:
            sample = next(self.stream, _End)
            if sample is _End:
                self.ended = True
                return _End
            return self.collate(sample)
        samples = []
        for _ in index:
            sample = next(self.stream, _End)
            if sample is _End:
                self.ended = True
                break
            samples.append(sample)
        if not samples or (self.drop_last and len(samples) < len(index)):
            return _End
        return self.collate(samples)


class _Base:
    def __init__(self, loader):
        self._loader = loader
        self._indices = iter(loader.batch_sampler if loader._auto_collation else loader.sampler)
        # Drawn in every pass, with workers or without, so that both leave the generator in the same state.
        self._base_seed = cresset.empty((), dtype=cresset.int64).random_(generator=loader.generator).item()
        self._yielded = 0

    def __iter__(self):
        return self

    def __next__(self):
        if not cresset._C._profiler_recording():
            return self._next_batch()
        with cresset.autograd.profiler.record_function(f"enumerate(DataLoader)#{self._profile_name}.__next__"):
            return self._next_batch()

    def __len__(self):
        return len(self._loader.batch_sampler if self._loader._auto_collation else self._loader.sampler)


class _Iterator(_Base):
    """Loads in the calling thread."""

    _profile_name = "_SingleProcessDataLoaderIter"

    def __init__(self, loader):
        super().__init__(loader)
        self._fetch = _Fetcher(loader)

    def _next_batch(self):
        batch = self._fetch(next(self._indices))
        if batch is _End:
            raise StopIteration
        return batch


def _work(loader, info, tasks, results, start):
    """The body of a worker thread: takes (number, index) until it gets None."""
    _worker.info = info
    fetch = None
    try:
        if start and loader.worker_init_fn is not None:
            loader.worker_init_fn(info.id)
        fetch = _Fetcher(loader)
        failure = None
    except Exception as e:
        failure = e
    while (task := tasks.get()) is not None:
        number, index = task
        if failure is not None:
            results.put((number, None, failure))
            continue
        try:
            results.put((number, fetch(index), None))
        except Exception as e:
            results.put((number, None, e))


class _ThreadedIterator(_Base):
    """Loads ahead in worker threads; task k belongs to worker k modulo their number, results are given out in order."""

    _profile_name = "_MultiProcessingDataLoaderIter"  # the name that readers of traces know

    def __init__(self, loader):
        super().__init__(loader)
        n = loader.num_workers
        self._results = queue.SimpleQueue()
        self._tasks = [queue.SimpleQueue() for _ in range(n)]
        self._arrived = {}
        self._sent = 0
        self._next = 0
        self._finished = set()  # workers whose part of an iterable dataset has ended
        self._exhausted = False
        start = not (loader.persistent_workers and loader._workers_initialised)
        loader._workers_initialised = True
        for i in range(n):
            info = WorkerInfo(i, n, self._base_seed + i, loader.dataset)
            # The threads must not keep this iterator alive: they get only what they need.
            threading.Thread(
                target=_work,
                args=(loader, info, self._tasks[i], self._results, start),
                daemon=True,
                name=f"cresset-data-{i}",
            ).start()
        for _ in range(n * loader.prefetch_factor):
            self._send()

    def _send(self):
        if self._exhausted:
            return
        index = next(self._indices, _End)
        if index is _End:
            self._exhausted = True
            return
        self._tasks[self._sent % len(self._tasks)].put((self._sent, index))
        self._sent += 1

    def _next_batch(self):
        while True:
            if self._next == self._sent or len(self._finished) == len(self._tasks):
                self._stop()
                raise StopIteration
            if self._loader.in_order:
                number = self._next
            else:
                number = next(iter(self._arrived), None)
            while number not in self._arrived:
                try:
                    got, batch, error = self._results.get(timeout=self._loader.timeout or None)
                except queue.Empty:
                    self._stop()
                    raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds") from None
                self._arrived[got] = (batch, error)
                if not self._loader.in_order:
                    number = got
            batch, error = self._arrived.pop(number)
            self._next += 1
            self._send()
            if error is not None:
                self._stop()
                raise error
            if batch is _End:
                self._finished.add(number % len(self._tasks))
                continue
            return batch

    def _stop(self):
        self._exhausted = True
        self._next = self._sent
        for tasks in self._tasks:
            tasks.put(None)

    def __del__(self):
        if "_tasks" in self.__dict__:
            self._stop()
