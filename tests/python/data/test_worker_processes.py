"""DataLoader with worker processes: shares of streams, seeds, errors, killed workers, persistent workers."""

import os
import random
import signal
import subprocess
import sys

import cresset
import cresset.utils.data as D
import pytest
from cresset.utils.data.dataloader import _DatasetKind, _MultiProcessingDataLoaderIter


class Samples(D.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return os.getpid(), i, cresset.rand(2), random.random()


class Stream(D.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = D.get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))

    def __len__(self):
        return self.n


def lists(loader):
    return [b.tolist() for b in loader]


def test_samples_come_from_other_processes():
    pids = cresset.cat([pid for pid, *_ in D.DataLoader(Samples(8), 2, num_workers=2)])
    assert len(set(pids.tolist())) == 2 and os.getpid() not in pids.tolist()
    iterator = iter(D.DataLoader(Samples(8), 2, num_workers=1))
    assert type(iterator) is _MultiProcessingDataLoaderIter and next(iterator)[2].is_shared()
    assert iterator._dataset_kind == _DatasetKind.Map


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_generators_are_seeded(context):
    def draw(seed):
        cresset.manual_seed(seed)
        return [(r.tolist(), p.tolist()) for _, _, r, p in D.DataLoader(Samples(4), 2, num_workers=2, multiprocessing_context=context)]

    first = draw(3)
    assert first == draw(3) and first != draw(4) and first[0] != first[1]


def test_random_numbers_are_pytorchs():
    cresset.manual_seed(0)
    ((_, index, numbers, number),) = D.DataLoader(Samples(1), 1, num_workers=1)
    cresset.manual_seed(0)
    seed = cresset.empty((), dtype=cresset.int64).random_().item()
    cresset.manual_seed(seed)
    assert cresset.equal(numbers[0], cresset.rand(2)) and number.item() == random.Random(seed).random()


def test_streams_are_shared_out():
    assert lists(D.DataLoader(Stream(10), 3, num_workers=2)) == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    assert list(D.DataLoader(Stream(7), None, num_workers=2)) == list(range(7))

    def shorten(worker):  # each worker has a copy of the dataset
        D.get_worker_info().dataset.n = 4 + worker

    stream = Stream(10)
    assert lists(D.DataLoader(stream, 3, num_workers=2, worker_init_fn=shorten)) == [[0, 2], [1, 3]] and stream.n == 10
    with pytest.raises(RuntimeError, match="Cannot assign attributes to WorkerInfo objects"):
        list(D.DataLoader(stream, num_workers=1, worker_init_fn=lambda i: setattr(D.get_worker_info(), "id", 3)))


def test_persistent_workers_stay():
    loader = D.DataLoader(Samples(4), 1, num_workers=2, persistent_workers=True)
    first, second = ([int(pid) for pid, *_ in loader] for _ in range(2))
    assert first == second
    next(iter(loader))  # a pass that is left
    assert [int(i) for _, i, *_ in loader] == [0, 1, 2, 3]
    stream = D.DataLoader(Stream(5), 2, num_workers=2, persistent_workers=True)
    assert lists(stream) == lists(stream) == [[0, 2], [1, 3], [4]]


class Failing(Samples):
    def __getitem__(self, i):
        if i == 3:
            self.fail()
        return i

    def fail(self):
        raise KeyError("three")


def test_errors_tell_where_they_came_from():
    with pytest.raises(KeyError, match=r"Caught KeyError in DataLoader worker process 1.\nOriginal Traceback(.|\n)*KeyError: 'three'"):
        list(D.DataLoader(Failing(7), 2, num_workers=2))


def test_a_batch_that_cannot_be_pickled_is_an_error():
    with pytest.raises((RuntimeError, AttributeError), match="worker process 0(.|\n)*pickle"):
        list(D.DataLoader([0], None, num_workers=1, collate_fn=lambda x: lambda: x))


def test_a_killed_worker_is_an_error():
    class Killed(Failing):
        def fail(self):
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+ \(signal 9\)\) exited unexpectedly"):
        list(D.DataLoader(Killed(7), 2, num_workers=2))


def test_an_abandoned_iterator_ends_its_processes():
    iterator = iter(D.DataLoader(Samples(100), 1, num_workers=2))
    next(iterator)
    workers = list(iterator._workers)
    del iterator
    assert not any(w.is_alive() for w in workers)


def test_fixed_attributes():
    loader = D.DataLoader([1, 2])
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, 1)
    loader.collate_fn = list
    with pytest.warns(UserWarning, match="Our suggested max number of worker"):
        D.DataLoader([1], num_workers=4096)


def test_the_claimed_length_is_checked():
    class Liar(Stream):
        def __len__(self):
            return 2

    loader = D.DataLoader(Liar(3), 1)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2 .when accessing len.dataloader.., but 3 samples have been fetched"):
        list(loader)


def test_distributed_sampler():
    parts = [list(D.DistributedSampler(range(10), 3, rank, shuffle=False)) for rank in range(3)]
    assert parts == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    assert [len(D.DistributedSampler(range(10), 3, 0, drop_last=d)) for d in (False, True)] == [4, 3]
    sampler = D.DistributedSampler(range(10), 2, 1, seed=5)
    before = list(sampler)
    sampler.set_epoch(1)
    order = cresset.randperm(10, generator=cresset.Generator().manual_seed(6)).tolist()
    assert before != list(sampler) == order[1::2]
    with pytest.raises(ValueError, match=r"Invalid rank 3, rank should be in the interval \[0, 2\]"):
        D.DistributedSampler(range(3), 3, 3)
    if not cresset.distributed.is_available():
        with pytest.raises(RuntimeError, match="Requires distributed package to be available"):
            D.DistributedSampler(range(3))


def test_numpy_is_seeded_where_it_is_used():
    numpy = pytest.importorskip("numpy")
    assert "numpy" in sys.modules

    class Numbers(Samples):
        def __getitem__(self, i):
            return numpy.random.rand()

    cresset.manual_seed(0)
    a = list(D.DataLoader(Numbers(2), None, num_workers=2))
    assert len(set(a)) == 2
    cresset.manual_seed(0)
    assert a == list(D.DataLoader(Numbers(2), None, num_workers=2))


class LoaderOfAnotherLibrary:
    """What fastai makes for the iterators: the attributes of PyTorch's DataLoader that they read, and no class of it."""

    _auto_collation, _IterableDataset_len_called, _dataset_kind = True, None, _DatasetKind.Map
    drop_last, in_order, pin_memory, persistent_workers, generator = False, True, False, False, None
    pin_memory_device, timeout, worker_init_fn, multiprocessing_context, prefetch_factor = "", 0, None, None, 2
    collate_fn = staticmethod(cresset.tensor)

    def __init__(self, num_workers):
        self.dataset, self.num_workers, self._index_sampler = range(10), num_workers, [[1, 2], [5]]

    def _get_shared_seed(self):
        pass


@pytest.mark.parametrize("workers", [0, 2])
def test_iterators_of_loaders_of_other_libraries(workers):
    kind = _MultiProcessingDataLoaderIter if workers else D.dataloader._SingleProcessDataLoaderIter
    cresset.manual_seed(0)
    assert lists(kind(LoaderOfAnotherLibrary(workers))) == [[1, 2], [5]]
    after = cresset.rand(1)
    cresset.manual_seed(0)
    list(D.DataLoader(range(3), num_workers=workers))
    assert cresset.equal(after, cresset.rand(1))  # one seed was drawn, as by loaders of this library


KEEPS_ALL = """
import resource
import cresset
from cresset.utils.data import DataLoader, IterableDataset

class Many(IterableDataset):
    def __iter__(self):
        return (cresset.ones(2, 2) for _ in range(200))

resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
kept = []
try:
    for batch in DataLoader(Many(), multiprocessing_context="fork", num_workers=1, persistent_workers=PERSISTENT):
        kept.append(batch)
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("persistent", [False, True])
def test_too_many_open_files(persistent):
    done = subprocess.run([sys.executable, "-c", KEEPS_ALL.replace("PERSISTENT", str(persistent))], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("Too many open files. Communication with the workers is no longer possible. Please increase the limit using `ulimit -n`"), done
    assert "torch.multiprocessing.set_sharing_strategy('file_system')" in done.stdout
