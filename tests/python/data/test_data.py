"""Datasets, samplers, batches and loaders; orders of a seed are those of PyTorch."""

import gc
import random
import threading
import time
from collections import OrderedDict, namedtuple

import cresset
import numpy as np
import pytest
from cresset.utils import data as D

TEN = list(range(10))


def lists(loader):
    return [batch.tolist() for batch in loader]


# Orders recorded with PyTorch 2.13 after manual_seed(5).
FIRST = [[8, 3, 0], [5, 9, 1], [6, 2, 4], [7]]
SECOND = [[5, 8, 9], [7, 2, 0], [4, 1, 3], [6]]


def test_shuffled_order_of_a_seed():
    cresset.manual_seed(5)
    loader = D.DataLoader(TEN, 3, shuffle=True)
    assert lists(loader) == FIRST and lists(loader) == SECOND
    assert cresset.rand(1).item() == pytest.approx(0.0333, abs=5e-5)


def test_shuffled_order_of_a_generator():
    cresset.manual_seed(5)
    generator = cresset.Generator().manual_seed(9)
    loader = D.DataLoader(TEN, 3, shuffle=True, generator=generator)
    assert lists(loader) == [[4, 6, 8], [1, 5, 2], [7, 9, 0], [3]]
    assert lists(loader) == [[8, 7, 0], [2, 3, 1], [6, 9, 4], [5]]
    assert cresset.rand(1, generator=generator).item() == pytest.approx(0.9382, abs=5e-5)
    assert cresset.rand(1).item() == pytest.approx(0.8303, abs=5e-5)


def test_a_pass_without_shuffle_takes_one_number():
    cresset.manual_seed(5)
    list(D.DataLoader(TEN, 3))
    assert cresset.rand(1).item() == pytest.approx(0.9075, abs=5e-5)


def test_samplers_of_a_seed():
    cresset.manual_seed(5)
    assert list(D.RandomSampler(range(5), True, 7)) == [2, 4, 4, 4, 1, 3, 2]
    assert list(D.RandomSampler(range(5), num_samples=12)) == [3, 0, 1, 4, 2, 2, 0, 4, 3, 1, 2, 3]
    assert list(D.SubsetRandomSampler([3, 4, 5])) == [5, 4, 3]
    assert list(D.WeightedRandomSampler([0.1, 0.9, 0.5], 6)) == [1, 1, 2, 1, 2, 2]
    assert list(D.RandomSampler(range(5), True, 70))[-5:] == [4, 1, 0, 1, 2]
    assert list(D.SequentialSampler(TEN)) == TEN and len(D.RandomSampler(TEN)) == 10


def test_batch_sampler():
    assert list(D.BatchSampler(D.SequentialSampler(range(5)), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(D.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(D.BatchSampler(range(5), 2, False)) == 3 and len(D.BatchSampler(range(5), 2, True)) == 2


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda: D.DataLoader(TEN, batch_size=0),
            ValueError,
            "batch_size should be a positive integer value, but got batch_size=0",
        ),
        (lambda: D.DataLoader(TEN, num_workers=-1), ValueError, "num_workers option should be non-negative"),
        (lambda: D.DataLoader(TEN, timeout=-1), ValueError, "timeout option should be non-negative"),
        (
            lambda: D.DataLoader(TEN, shuffle=True, sampler=[1]),
            ValueError,
            "sampler option is mutually exclusive with shuffle",
        ),
        (
            lambda: D.DataLoader(TEN, batch_sampler=[[0]], batch_size=2),
            ValueError,
            "batch_sampler option is mutually exclusive",
        ),
        (lambda: D.DataLoader(TEN, batch_size=None, drop_last=True), ValueError, "mutually exclusive with drop_last"),
        (lambda: D.DataLoader(TEN, prefetch_factor=2), ValueError, "prefetch_factor option could only be specified"),
        (
            lambda: D.DataLoader(TEN, persistent_workers=True),
            ValueError,
            "persistent_workers option needs num_workers > 0",
        ),
        (lambda: D.DataLoader(TEN, multiprocessing_context="fork"), ValueError, "multiprocessing_context can only be used with multi-process loading"),
        (lambda: D.DataLoader(TEN, num_workers=1, multiprocessing_context="no"), ValueError, "should specify a valid start method in"),
        (lambda: D.DataLoader(TEN, num_workers=1, multiprocessing_context=3), TypeError, "should be a valid context object or a string"),
        (
            lambda: D.DataLoader(Numbers(3), shuffle=True),
            ValueError,
            "expected unspecified shuffle option, but got shuffle=True",
        ),
        (lambda: D.DataLoader(Numbers(3), sampler=[1]), ValueError, "expected unspecified sampler option"),
        (
            lambda: D.RandomSampler([]),
            ValueError,
            "num_samples should be a positive integer value, but got num_samples=0",
        ),
        (lambda: D.RandomSampler(TEN, replacement=1), TypeError, "replacement should be a boolean value"),
        (lambda: D.WeightedRandomSampler([0.1], 0), ValueError, "num_samples should be a positive integer value"),
        (lambda: D.WeightedRandomSampler(cresset.ones(2, 2), 1), ValueError, "weights should be a 1d sequence"),
        (lambda: D.BatchSampler(TEN, 2, 1), ValueError, "drop_last should be a boolean value"),
        (
            lambda: D.random_split(TEN, [3, 3]),
            ValueError,
            "Sum of input lengths does not equal the length of the input dataset",
        ),
        (lambda: D.random_split(TEN, [0.5, 0.6]), ValueError, "Sum of input lengths"),
        (lambda: D.TensorDataset(cresset.ones(2), cresset.ones(3)), AssertionError, "Size mismatch between tensors"),
        (lambda: list(D.DataLoader([1], timeout=5)), AssertionError, "_SingleProcessDataLoaderIter requires timeout == 0"),
        (
            lambda: list(D.DataLoader([1], num_workers=1, prefetch_factor=0)),
            AssertionError,
            "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter",
        ),
        (lambda: D.default_collate([cresset.tensor(1), 2]), TypeError, "expected Tensor as element 1 in argument 0, but got int"),
        (lambda: D.ConcatDataset([]), AssertionError, "datasets should not be an empty iterable"),
        (lambda: D.ConcatDataset([TEN])[-11], ValueError, "absolute value of index should not exceed dataset length"),
        (lambda: D.ConcatDataset([TEN])[10], IndexError, "index 10 is out of range"),
        (lambda: D.StackDataset(TEN, [1]), ValueError, "Size mismatch between datasets"),
        (lambda: D.StackDataset(), ValueError, "At least one dataset should be passed"),
        (lambda: D.Dataset()[0], NotImplementedError, "Subclasses of Dataset should implement __getitem__"),
        (lambda: D.IterableDataset(), TypeError, "abstract"),
        (
            lambda: D.default_collate([object()]),
            TypeError,
            "batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'object'>",
        ),
        (
            lambda: D.default_collate([[1, 2], [1]]),
            RuntimeError,
            "each element in list of batch should be of equal size",
        ),
        (
            lambda: D.default_collate([cresset.ones(2), cresset.ones(3)]),
            RuntimeError,
            "stack expects each tensor to be equal size",
        ),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_collate():
    collate = D.default_collate
    assert collate([cresset.ones(2), cresset.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    floats = collate([1.0, 2.0])
    assert floats.tolist() == [1.0, 2.0] and floats.dtype == cresset.float64
    assert collate([1, 2]).dtype == cresset.int64 and collate([True, False]).dtype == cresset.bool
    assert collate(["a", "b"]) == ["a", "b"] and collate([b"a"]) == [b"a"]
    assert collate([{"x": 1, "y": "s"}, {"x": 2, "y": "t"}])["x"].tolist() == [1, 2]
    assert [c.tolist() for c in collate([(1, 2), (3, 4)])] == [[1, 3], [2, 4]]
    Point = namedtuple("Point", "x y")
    point = collate([Point(1, 2.0), Point(3, 4.0)])
    assert type(point) is Point and point.x.tolist() == [1, 3]
    nested = collate([{"a": [1, (2,)]}, {"a": [3, (4,)]}])
    assert nested["a"][0].tolist() == [1, 3] and nested["a"][1][0].tolist() == [2, 4]
    assert type(collate([OrderedDict(a=1)])) is OrderedDict


def test_collate_numpy():
    np = pytest.importorskip("numpy")
    assert D.default_collate([np.ones(2), np.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert D.default_collate([np.float32(1.5), np.float32(2.5)]).tolist() == [1.5, 2.5]
    converted = D.default_convert({"a": np.ones(2), "b": [np.zeros(1), "s"]})
    assert converted["a"].tolist() == [1, 1] and converted["b"][1] == "s"
    with pytest.raises(TypeError, match="batch must contain tensors"):
        D.default_collate([np.array(["a"])])


def test_datasets():
    x, y = cresset.arange(10.0).reshape(5, 2), cresset.arange(5)
    ds = D.TensorDataset(x, y)
    assert len(ds) == 5 and ds[3][0].tolist() == [6.0, 7.0] and ds[3][1].item() == 3
    both = ds + ds
    assert isinstance(both, D.ConcatDataset) and len(both) == 10 and both[7][1].item() == 2 and both[-1][1].item() == 4
    sub = D.Subset(TEN, [4, 2, 0])
    assert len(sub) == 3 and sub[1] == 2 and sub.__getitems__([0, 2]) == [4, 0]
    stacked = D.StackDataset(a=TEN, b=TEN[::-1])
    assert stacked[1] == {"a": 1, "b": 8} and len(stacked) == 10 and D.StackDataset(TEN, TEN)[2] == (2, 2)


def test_random_split():
    parts = D.random_split(TEN, [7, 3], generator=cresset.Generator().manual_seed(0))
    assert [len(p) for p in parts] == [7, 3] and sorted([*parts[0], *parts[1]]) == TEN
    assert [len(p) for p in D.random_split(TEN, [0.55, 0.25, 0.2])] == [6, 2, 2]
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        D.random_split([1], [0.9, 0.1])


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_batches(workers):
    assert lists(D.DataLoader(TEN, 4, num_workers=workers)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert lists(D.DataLoader(TEN, 4, drop_last=True, num_workers=workers)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert list(D.DataLoader(TEN, None, num_workers=workers)) == TEN
    assert list(D.DataLoader(TEN, 5, collate_fn=sum, num_workers=workers)) == [10, 35]
    assert lists(D.DataLoader(TEN, batch_sampler=[[1, 2], [3]], num_workers=workers)) == [[1, 2], [3]]
    assert lists(D.DataLoader(TEN, 2, sampler=[9, 0, 5], num_workers=workers)) == [[9, 0], [5]]
    loader = D.DataLoader(TEN, 4, num_workers=workers)
    assert len(loader) == 3 and len(D.DataLoader(TEN, 4, drop_last=True)) == 2 and len(D.DataLoader(TEN, None)) == 10
    assert lists(loader) == lists(loader)


def test_tensor_dataset_batches_equal_stacked_samples():
    x, y = cresset.arange(20.0).reshape(10, 2), cresset.arange(10)
    ds = D.TensorDataset(x, y)
    for dataset in (ds, D.Subset(ds, [5, 1, 8]), D.Subset(D.Subset(ds, TEN[::-1]), [0, 3])):
        for quick, plain in zip(
            D.DataLoader(dataset, 2), D.DataLoader(dataset, 2, collate_fn=lambda b: D.default_collate(b)), strict=True
        ):
            assert type(quick) is list and len(quick) == 2
            assert all(cresset.equal(a, b) and a.dtype == b.dtype for a, b in zip(quick, plain))
    batch = next(iter(D.DataLoader(ds, 2)))[0]
    batch.zero_()
    assert x[0].tolist() == [0.0, 1.0] and x[1].tolist() == [2.0, 3.0]


def test_whole_batches_from_the_dataset():
    class Many(D.Dataset):
        def __len__(self):
            return 4

        def __getitems__(self, indices):
            return [i * 10 for i in indices]

    assert lists(D.DataLoader(Many(), 3)) == [[0, 10, 20], [30]]


class Numbers(D.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = D.get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))

    def __len__(self):
        return self.n


def test_streams():
    assert lists(D.DataLoader(Numbers(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert lists(D.DataLoader(Numbers(7), 3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert list(D.DataLoader(Numbers(4), None)) == [0, 1, 2, 3]
    assert lists(D.DataLoader(Numbers(10), 3, num_workers=2)) == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    assert list(D.DataLoader(Numbers(10), None, num_workers=3)) == TEN
    assert list(Numbers(2) + Numbers(3)) == [0, 1, 0, 1, 2] and len(Numbers(2) + Numbers(3)) == 5
    assert len(D.DataLoader(Numbers(7), 3)) == 3


class Slow(D.Dataset):
    def __init__(self, n=30, fail=None):
        self.n, self.fail = n, fail

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.fail:
            raise LookupError(f"sample {i}")
        time.sleep(0.002 * random.random())
        return i


def test_workers_keep_the_order():
    assert lists(D.DataLoader(Slow(), 4, num_workers=4, multiprocessing_context="thread")) == lists(D.DataLoader(Slow(), 4))
    got = [int(v) for v in D.DataLoader(Slow(), None, num_workers=4, multiprocessing_context="thread", in_order=False)]
    assert sorted(got) == list(range(30))
    cresset.manual_seed(5)
    assert lists(D.DataLoader(TEN, 3, shuffle=True, num_workers=2, multiprocessing_context="thread")) == FIRST


def test_worker_errors_and_timeouts():
    loader = D.DataLoader(Slow(30, fail=17), 4, num_workers=3, multiprocessing_context="thread")
    seen = []
    with pytest.raises(LookupError, match="sample 17"):
        for batch in loader:
            seen.append(batch)
    assert len(seen) == 4

    class Stuck(Slow):
        def __getitem__(self, i):
            time.sleep(0.5)

    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.01 seconds"):
        next(iter(D.DataLoader(Stuck(1), num_workers=1, multiprocessing_context="thread", timeout=0.01)))

    def refuse(worker):
        raise ValueError(f"worker {worker}")

    with pytest.raises(ValueError, match="worker 0"):
        list(D.DataLoader(TEN, num_workers=2, multiprocessing_context="thread", worker_init_fn=refuse))


def test_worker_init_and_info():
    started, infos = [], set()

    class Who(Slow):
        def __getitem__(self, i):
            info = D.get_worker_info()
            infos.add((info.id, info.num_workers, info.dataset is ds))
            return i

    ds = Who(8)
    loader = D.DataLoader(ds, 1, num_workers=2, multiprocessing_context="thread", worker_init_fn=started.append, persistent_workers=True)
    list(loader)
    list(loader)
    assert sorted(started) == [0, 1] and infos == {(0, 2, True), (1, 2, True)} and D.get_worker_info() is None


def test_an_abandoned_iterator_ends_its_threads():
    def workers():
        return [t for t in threading.enumerate() if t.name.startswith("cresset-data-")]

    iterator = iter(D.DataLoader(Slow(1000), 1, num_workers=3, multiprocessing_context="thread"))
    next(iterator)
    assert len(workers()) >= 3
    del iterator
    gc.collect()
    for _ in range(200):
        if not workers():
            break
        time.sleep(0.01)
    assert workers() == []


def test_collate_arrays_without_dimensions():
    got = D.default_collate([np.array(1.0), np.array(2.0)])
    assert got.dtype == cresset.float64 and got.tolist() == [1.0, 2.0]
    assert cresset.tensor([np.array(1), np.array(2)]).tolist() == [1, 2]


def test_samples_of_tensors_by_any_kind_of_index():
    data = D.TensorDataset(cresset.arange(12.0).view(6, 2), cresset.arange(6))
    picks = [3, 1, 4, 1]
    for indices in (picks, cresset.tensor(picks), tuple(picks), np.array(picks)):
        first, second = D.DataLoader(D.Subset(data, indices), batch_size=2)
        assert first[0].tolist() == [[6, 7], [2, 3]] and second[1].tolist() == [4, 1]
    for batches in ([(3, 1)], [[cresset.tensor(3), cresset.tensor(1)]], [cresset.tensor([3, 1])]):
        ((values, numbers),) = D.DataLoader(data, batch_sampler=batches)
        assert numbers.tolist() == [3, 1] and values.shape == (2, 2)
    ((values, _),) = D.DataLoader(data, batch_sampler=[[slice(0, 2), slice(4, 6)]])  # an index of its own makes samples of its own
    assert values.shape == (2, 2, 2)


def test_parts_of_loaders_by_name():
    kinds = cresset.utils.data.dataloader._DatasetKind
    assert kinds.create_fetcher(kinds.Map, [5, 6, 7], True, list, False).fetch([0, 2]) == [5, 7]
    assert kinds.create_fetcher(kinds.Iterable, iter([5, 6, 7]), True, list, False).fetch([None] * 2) == [5, 6]
    assert D.ConcatDataset.cumsum([[1, 2], [3]]) == [2, 3]


def test_types_of_samples_and_an_old_name():
    assert [str(kind[int]).rpartition(".")[2] for kind in (D.Dataset, D.DataLoader, D.Sampler)] == ["Dataset[int]", "DataLoader[int]", "Sampler[int]"]

    class Words(D.Dataset[str]):
        pass

    assert Words.__mro__[1] is D.Dataset
    with pytest.warns(FutureWarning, match="`cummulative_sizes` attribute is renamed to `cumulative_sizes`"):
        assert D.ConcatDataset([[1, 2], [3]]).cummulative_sizes == [2, 3]
