"""The iterators of a DataLoader: in the calling thread, with worker processes, with worker threads."""

import contextlib
import errno
import itertools
import multiprocessing.connection
import os
import pickle
import queue
import sys
import threading
import time
import warnings

import cresset
from cresset._utils import ExceptionWrapper

from ..distributed import _get_distributed_settings
from .pin_memory import pin_memory, pinning_device
from .worker import Setting, WorkerInfo, _End, process_loop, seed_pipes, setter_of_pipes, thread_loop

_SECONDS_TO_END = 5.0


def _is_full_of_files():
    """Has this process nearly as many open files as it may have?"""
    pipes = []
    try:
        for _ in range(4):
            pipes.append(os.pipe())
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    finally:
        for end in itertools.chain.from_iterable(pipes):
            os.close(end)
    return False


class _BaseDataLoaderIter:
    """One pass over a loader's batches. A loader may be an object of another library, which has the attributes of PyTorch's DataLoader alone."""

    def __init__(self, loader):
        self._dataset = loader.dataset
        self._dataset_kind, self._auto_collation, self._drop_last = loader._dataset_kind, loader._auto_collation, loader.drop_last
        self._index_sampler, self._num_workers, self._timeout = loader._index_sampler, loader.num_workers, loader.timeout
        self._collate_fn, self._prefetch_factor, self._in_order = loader.collate_fn, loader.prefetch_factor, loader.in_order
        self._persistent_workers = loader.persistent_workers
        self._pin_memory_device = pinning_device(loader.pin_memory_device) if loader.pin_memory else None
        self._pin_memory = self._pin_memory_device is not None
        self._world_size, self._rank = _get_distributed_settings()
        self._shared_seed = self._seed_pipes(loader)
        self._begin(loader)
        # Drawn with workers or without, so that both leave the generator in the same state; after what a sampler draws when its iterator is made.
        self._base_seed = cresset.empty((), dtype=cresset.int64, device="cpu").random_(generator=loader.generator).item()
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    _pg = None  # the group over which the processes of a distributed program agree on that seed

    def _seed_pipes(self, loader):
        """The seed from which all workers of all processes shuffle data pipes alike; None for other datasets."""
        if loader._dataset_kind != 1 or not hasattr(loader.dataset, "_loader_shuffle"):
            return None
        seed = loader._get_shared_seed()
        if self._world_size > 1:
            self._pg = self._pg or cresset.distributed.new_group(backend="gloo")
            shared = cresset.tensor(seed)
            cresset.distributed.broadcast(shared, 0, group=self._pg)
            seed = shared.item()
        seed_pipes(loader.dataset, seed)
        return seed

    def _begin(self, loader):
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _reset(self, loader, first_iter=False):
        self._shared_seed = self._seed_pipes(loader)
        self._begin(loader)

    def __iter__(self):
        return self

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError

    def __next__(self):
        if not cresset._C._profiler_recording():
            return self._counted()
        with cresset.autograd.profiler.record_function(self._profile_name):
            return self._counted()

    def _counted(self):
        data = self._next_data()
        self._num_yielded += 1
        claimed = self._IterableDataset_len_called
        if self._dataset_kind == 1 and claimed is not None and self._num_yielded > claimed:
            more = (
                "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica at each worker. "
                "Please see https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {claimed} (when accessing len(dataloader)), but "
                f"{self._num_yielded} samples have been fetched. {more if self._num_workers else ''}",
                stacklevel=3,
            )
        return data

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads in the calling thread."""

    def __init__(self, loader):
        super().__init__(loader)
        for name, value in (("timeout", self._timeout), ("num_workers", self._num_workers)):
            if value != 0:
                raise AssertionError(f"_SingleProcessDataLoaderIter requires {name} == 0")
        if make := setter_of_pipes(loader):
            make()(loader.dataset, None)
        self._dataset_fetcher = Setting(loader).fetcher(loader.dataset)

    def _next_data(self):
        data = self._dataset_fetcher.fetch(self._next_index())
        return pin_memory(data, self._pin_memory_device) if self._pin_memory else data


class _Numbered(_BaseDataLoaderIter):
    """Loads ahead: tasks are numbered, dealt to the workers in turn and given out in order."""

    def _start_tasks(self):
        self._send_idx = self._rcvd_idx = self._tasks_outstanding = 0
        self._task_info = {}  # number: [worker, or worker and data]
        self._workers_status = [True] * self._num_workers  # False: its part of a stream has ended
        self._turn = 0
        self._shutdown = False
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _try_put_index(self):
        try:
            index = self._next_index()
        except StopIteration:
            return
        for _ in range(self._num_workers):
            worker = self._turn
            self._turn = (worker + 1) % self._num_workers
            if self._workers_status[worker]:
                break
        else:
            return
        self._put(worker, (self._send_idx, index))
        self._task_info[self._send_idx] = (worker,)
        self._tasks_outstanding += 1
        self._send_idx += 1

    def _next_data(self):
        while True:
            # A number whose worker's part of a stream ended earlier has no data.
            while self._rcvd_idx < self._send_idx:
                info = self._task_info.get(self._rcvd_idx)
                if info is not None and (len(info) == 2 or self._workers_status[info[0]]):
                    break
                self._task_info.pop(self._rcvd_idx, None)
                self._rcvd_idx += 1
            else:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if len(self._task_info[self._rcvd_idx]) == 2:
                worker, data = self._task_info.pop(self._rcvd_idx)
                self._rcvd_idx += 1
                return self._process_data(data)
            number, data = self._get_data()
            self._tasks_outstanding -= 1
            if isinstance(data, _End):
                if self._persistent_workers:
                    self._workers_status[data.worker_id] = False
                else:
                    self._mark_ended(data.worker_id)
                self._task_info.pop(number, None)
                self._try_put_index()
            elif number == self._rcvd_idx or not self._in_order:
                del self._task_info[number]
                self._rcvd_idx += number == self._rcvd_idx
                return self._process_data(data)
            else:
                self._task_info[number] = (*self._task_info[number], data)

    def _mark_ended(self, worker):
        self._workers_status[worker] = False

    def _process_data(self, data):
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return pin_memory(data, self._pin_memory_device) if self._pin_memory else data

    def _timed_out(self):
        self._shutdown_workers()
        raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")

    def __del__(self):
        if "_workers" in self.__dict__:
            self._shutdown_workers()


class _MultiProcessingDataLoaderIter(_Numbered):
    """Worker processes, each with a copy of the dataset and generators seeded by base_seed + id. Tensors come through shared memory.

    Each worker has a pipe of its own for results, so that one that is killed leaves nothing locked: RuntimeError names it.
    """

    def __init__(self, loader):
        super().__init__(loader)
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        context = loader.multiprocessing_context or cresset.multiprocessing.get_context()
        setting = Setting(loader)
        if "numpy" in sys.modules:
            import numpy.random  # noqa: F401  workers seed it, and a forked process cannot always import
        self._shutdown, self._index_queues, self._workers, self._stops, self._results, self._ready = False, [], [], [], [], []
        for i in range(self._num_workers):
            tasks = context.Queue()
            tasks.cancel_join_thread()
            receive, send = context.Pipe(duplex=False)
            stopped, stop = context.Pipe(duplex=False)
            worker = context.Process(target=process_loop, args=(setting, i, self._base_seed, tasks, stopped, send), daemon=True)
            worker.start()
            send.close()
            stopped.close()
            self._stops.append(stop)
            self._index_queues.append(tasks)
            self._workers.append(worker)
            self._results.append(receive)
        if self._shared_seed is not None:
            loader._get_shared_seed()  # PyTorch draws one more here, and what follows should be the same
        self._start_tasks()

    def _reset(self, loader, first_iter=False):
        while self._tasks_outstanding:  # an earlier pass that was left
            self._get_data()
            self._tasks_outstanding -= 1
        super()._reset(loader)
        for tasks in self._index_queues:
            tasks.put((None, self._shared_seed))
        self._start_tasks()

    def _put(self, worker, task):
        self._index_queues[worker].put(task)

    def _get_data(self):
        end = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            if not self._ready:
                left = None if end is None else max(0.0, end - time.monotonic())
                self._ready = multiprocessing.connection.wait(self._results, left)
                if not self._ready:
                    self._timed_out()
            results = self._ready.pop(0)
            try:
                return pickle.loads(results.recv_bytes())
            except (EOFError, ConnectionError, FileNotFoundError) as error:
                self._died(error)
            except (OSError, RuntimeError):  # a descriptor that finds no place in this process is lost on the way
                if _is_full_of_files():
                    raise RuntimeError(
                        "Too many open files. Communication with the workers is no longer possible. Please increase the limit using `ulimit -n` in the shell or change "
                        "the sharing strategy by calling `torch.multiprocessing.set_sharing_strategy('file_system')` at the beginning of your code"
                    ) from None
                raise

    def _died(self, error):
        for worker in self._workers:
            worker.join(0.2)
        dead = [w for w in self._workers if not w.is_alive()]
        signals = [f" (signal {-w.exitcode})" if (w.exitcode or 0) < 0 else "" for w in dead]
        names = ", ".join(f"{w.pid}{s}" for w, s in zip(dead, signals))
        self._shutdown_workers()
        raise RuntimeError(f"DataLoader worker (pid(s) {names}) exited unexpectedly") from error

    def _shutdown_workers(self):
        if self._shutdown:
            return
        self._shutdown = True
        # Not by a task: this may run in the very thread that would have to send it.
        for stop in self._stops:
            with contextlib.suppress(OSError):
                stop.send_bytes(b"end")
            stop.close()
        for results in self._results:  # a worker that is in the middle of a message ends
            results.close()
        end = time.monotonic() + _SECONDS_TO_END
        for tasks, worker in zip(self._index_queues, self._workers):
            worker.join(max(0.0, end - time.monotonic()))
            if worker.is_alive():
                worker.terminate()
                worker.join()
            tasks.close()


class _MultiThreadingDataLoaderIter(_Numbered):
    """Worker threads, which share the dataset and the generators."""

    def __init__(self, loader):
        super().__init__(loader)
        self._shutdown = False
        self._begin_threads(loader)

    def _begin_threads(self, loader):
        start = not (self._persistent_workers and loader._workers_initialised)
        loader._workers_initialised = True
        setting = Setting(loader)
        self._arrived = queue.SimpleQueue()
        self._index_queues = [queue.SimpleQueue() for _ in range(self._num_workers)]
        self._workers = []
        for i in range(self._num_workers):
            info = WorkerInfo(i, self._num_workers, self._base_seed + i, loader.dataset, "threading")
            # The threads must not keep this iterator alive: they get only what they need.
            thread = threading.Thread(
                target=thread_loop, args=(setting, info, self._index_queues[i], self._arrived, start), daemon=True, name=f"cresset-data-{i}"
            )  # fmt: skip
            thread.start()
            self._workers.append(thread)
        self._start_tasks()

    def _reset(self, loader, first_iter=False):
        self._shutdown_workers()
        super()._reset(loader)
        self._begin_threads(loader)

    def _put(self, worker, task):
        self._index_queues[worker].put(task)

    def _get_data(self):
        try:
            return self._arrived.get(timeout=self._timeout or None)
        except queue.Empty:
            self._timed_out()

    def _shutdown_workers(self):
        if not self._shutdown:
            self._shutdown = True
            for tasks in self._index_queues:
                tasks.put(None)
