"""What a worker of a DataLoader does, in a process of its own or in a thread."""

import multiprocessing.connection
import os
import random
import sys
import threading
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler

import cresset
from cresset._utils import ExceptionWrapper

from . import fetch

__all__ = ["WorkerInfo", "get_worker_info"]

_local = threading.local()  # `info` of a worker thread
_worker_info = None  # of a worker process


class WorkerInfo:
    """What a worker can know about itself: `id`, `num_workers`, `seed`, `dataset`; `worker_method` is "multiprocessing" or "threading"."""

    def __init__(self, id, num_workers, seed, dataset, worker_method="multiprocessing"):
        self.__dict__.update(id=id, num_workers=num_workers, seed=seed, dataset=dataset, worker_method=worker_method)

    def __setattr__(self, name, value):
        raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")

    def __repr__(self):
        return f"WorkerInfo({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def get_worker_info():
    """The WorkerInfo of the calling worker, or None outside of one."""
    return getattr(_local, "info", None) or _worker_info


class _End:
    """What a worker sends when its part of a stream has ended."""

    def __init__(self, worker_id):
        self.worker_id = worker_id


_IterableDatasetStopIteration = _End


@dataclass(frozen=True)
class _ResumeIteration:
    """What a loader of another library sends to persistent workers when another pass begins."""

    seed: int | None = None


class ManagerWatchdog:
    """In a worker: does the process that started it still live?"""

    def __init__(self):
        self.manager_pid, self.manager_dead = os.getppid(), False

    def is_alive(self):
        """False once the parent is another one."""
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


def setter_of_pipes(loader):
    """What makes the function that prepares a worker's data pipe; None for other datasets, and for loaders of other libraries."""
    return getattr(loader, "_datapipe_worker", None)


class Setting:
    """What workers need of a loader, and nothing that keeps the loader alive."""

    def __init__(self, loader):
        self.dataset, self.iterable = loader.dataset, loader._dataset_kind == 1
        self.auto_collation, self.collate_fn, self.drop_last = loader._auto_collation, loader.collate_fn, loader.drop_last
        self.init, self.num_workers = loader.worker_init_fn, loader.num_workers
        make = setter_of_pipes(loader)
        self.in_datapipes = make and make()

    def fetcher(self, dataset):
        kind = fetch._IterableDatasetFetcher if self.iterable else fetch._MapDatasetFetcher
        return kind(dataset, self.auto_collation, self.collate_fn, self.drop_last)


class _Worker:
    """One worker: `answer(index)` is a batch, an _End or an ExceptionWrapper."""

    def __init__(self, setting, info, start=True):
        self.setting, self.info, self._fetcher, self._failure = setting, info, None, None
        try:
            if setting.in_datapipes is not None:
                setting.in_datapipes(info.dataset, info)
            if start and setting.init is not None:
                setting.init(info.id)
            self._fetcher = setting.fetcher(info.dataset)
        except Exception:
            self._failure = self._caught()

    def _caught(self):
        kind = "process" if self.info.worker_method == "multiprocessing" else "thread"
        return ExceptionWrapper(where=f"in DataLoader worker {kind} {self.info.id}")

    def answer(self, index):
        if self._failure is not None:
            failure, self._failure = self._failure, None
            return failure
        if self._fetcher is None:
            return _End(self.info.id)
        try:
            return self._fetcher.fetch(index)
        except StopIteration as error:
            if self.setting.iterable:
                return _End(self.info.id)
            return ExceptionWrapper(sys.exc_info(), where=f"in DataLoader worker {self.info.id}") if error else None
        except Exception:
            return self._caught()


def _generate_state(base_seed, worker_id):
    """Four words for NumPy's generator, which differ for each worker."""
    import numpy

    return numpy.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4).tolist()


def _seed(base_seed, worker_id):
    random.seed(base_seed + worker_id)
    cresset.manual_seed(base_seed + worker_id)
    if "numpy" in sys.modules:
        import numpy.random

        numpy.random.seed(_generate_state(base_seed, worker_id))


def seed_pipes(dataset, seed):
    """Let the data pipes of a dataset draw their seeds from this one."""
    from ..datapipes.datapipe import apply_random_seed

    apply_random_seed(dataset, cresset.Generator().manual_seed(seed))


def process_loop(setting, worker_id, base_seed, tasks, stop, results):
    """The body of a worker process: takes (number, index) until there is a message in `stop`, or until its parent is gone."""
    global _worker_info
    cresset.set_num_threads(1)
    _seed(base_seed, worker_id)
    parent = os.getppid()
    _worker_info = info = WorkerInfo(worker_id, setting.num_workers, base_seed + worker_id, setting.dataset)
    worker = _Worker(setting, info)
    try:
        while True:
            ready = multiprocessing.connection.wait([tasks._reader, stop], 5.0)
            if stop in ready or (not ready and os.getppid() != parent):
                return
            if not ready:
                continue
            number, index = tasks.get()
            if number is None:  # another pass by the same workers
                if index is not None:
                    seed_pipes(setting.dataset, index)
                worker = _Worker(setting, info, start=False)
                continue
            answer = worker.answer(index)
            try:
                message = ForkingPickler.dumps((number, answer))
            except Exception:
                message = ForkingPickler.dumps((number, worker._caught()))
            results.send_bytes(message)
            del answer, message
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        return


def thread_loop(setting, info, tasks, results, start):
    """The body of a worker thread: takes (number, index) until it gets None."""
    _local.info = info
    _local.generator = cresset.Generator()
    _local.generator.manual_seed(info.seed)
    worker = _Worker(setting, info, start)
    while (task := tasks.get()) is not None:
        results.put((task[0], worker.answer(task[1])))
