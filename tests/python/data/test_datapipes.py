"""Data pipes: steps, orders, sharing, workers; what PyTorch 2.13 prints for the same programs."""

import ast
import pickle
import subprocess
import sys

import cresset
import pytest
from cresset.utils.data import DataLoader, IterDataPipe, functional_datapipe, guaranteed_datapipes_determinism, non_deterministic
from cresset.utils.data.datapipes import iter as I
from cresset.utils.data.datapipes import map as M
from cresset.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from cresset.utils.data.graph_settings import apply_sharding


def inc(x):
    return x + 1


def odd(x):
    return x % 2 == 1


def mod3(x):
    return x % 3


def wrap(n=10):
    return I.IterableWrapper(range(n))


def pairs():
    return I.IterableWrapper([(1, 2), (3, 4)])


CASES = [
    (lambda: wrap().map(inc).filter(odd).batch(2), [[1, 3], [5, 7], [9]]),
    (lambda: wrap().batch(3).batch(2).unbatch(-1), list(range(10))),
    (lambda: wrap().batch(3, drop_last=True).unbatch(), list(range(9))),
    (lambda: wrap(3).concat(wrap(2)), [0, 1, 2, 0, 1]),
    (lambda: wrap(3).zip(wrap(2)), [(0, 0), (1, 1)]),
    (lambda: wrap(3).mux(wrap(2)), [0, 0, 1, 1]),
    (lambda: wrap().groupby(mod3), [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]),
    (lambda: wrap().groupby(mod3, group_size=2, keep_key=True), [(0, [0, 3]), (1, [1, 4]), (2, [2, 5]), (0, [6, 9]), (1, [7]), (2, [8])]),
    (lambda: wrap().groupby(mod3, buffer_size=4, group_size=3, guaranteed_group_size=2), [[0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]),
    (lambda: pairs().map(inc, input_col=1), [(1, 3), (3, 5)]),
    (lambda: pairs().map(lambda a, b: a + b, input_col=[0, 1]), [(3,), (7,)]),
    (lambda: pairs().map(inc, input_col=1, output_col=-1), [(1, 2, 3), (3, 4, 5)]),
    (lambda: I.Sampler(list(range(4))), [0, 1, 2, 3]),
    (lambda: wrap().shuffle().set_seed(5), [9, 4, 6, 8, 7, 5, 0, 2, 1, 3]),
    (lambda: wrap().shuffle().set_shuffle(False), list(range(10))),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_steps(make, expected):
    assert list(make()) == expected


def test_shuffles_draw_their_seed_from_the_generator():
    cresset.manual_seed(0)
    assert list(wrap().shuffle(buffer_size=4)) == [1, 2, 0, 6, 5, 7, 3, 9, 8, 4]
    cresset.manual_seed(4)
    assert list(M.SequenceWrapper(range(7)).shuffle()) == [4, 3, 1, 5, 2, 6, 0]


def test_shared_streams():
    assert [list(p) for p in wrap(6).fork(2)] == [list(range(6))] * 2
    assert [list(p) for p in wrap(6).demux(3, mod3)] == [[0, 3], [1, 4], [2, 5]]
    a, b = wrap(6).fork(2, buffer_size=2)
    with pytest.raises(BufferError):
        list(a)
    with pytest.raises(ValueError, match="should be between 0 and 1. 2 is returned"):
        list(wrap(6).demux(2, mod3)[0])


@pytest.mark.parametrize("workers", [0, 2])
def test_in_a_loader(workers):
    """Recorded from PyTorch."""
    expected = {0: [[9, 2], [1, 4], [6, 8], [5, 3], [0, 7]], 2: [[9, 1], [2, 4], [6, 5], [8, 3], [0], [7]]}[workers]
    cresset.manual_seed(1)
    assert [b.tolist() for b in DataLoader(wrap().shuffle().sharding_filter(), batch_size=2, num_workers=workers)] == expected
    assert list(DataLoader(wrap().shuffle().sharding_filter(), None, num_workers=workers, shuffle=False)) == list(range(10))


def test_persistent_workers_shuffle_anew():
    loader = DataLoader(wrap().shuffle().sharding_filter(), None, num_workers=2, persistent_workers=True)
    first, second = list(loader), list(loader)
    assert first != second and sorted(first) == sorted(second) == list(range(10))


def test_only_the_latest_iterator_is_valid():
    pipe = wrap()
    old = iter(pipe)
    next(old)
    next(iter(pipe))
    with pytest.raises(RuntimeError, match="This iterator has been invalidated because another iterator has been created"):
        next(old)


def test_collections():
    source = M.SequenceWrapper(range(7))
    assert list(source.map(inc).batch(3)) == [[1, 2, 3], [4, 5, 6], [7]]
    assert list(source.concat(source.map(inc)))[6:9] == [6, 1, 2] and source.zip(source.map(inc))[2] == (2, 3)


def test_files(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("b.txt", "a.txt", "c.bin", "inner/d.txt"):
        (tmp_path / name).write_text(name)
    listed = I.FileLister(str(tmp_path), "*.txt", recursive=True)
    assert [p.removeprefix(str(tmp_path)) for p in listed] == ["/a.txt", "/b.txt", "/inner/d.txt"]
    assert [text for _, text in listed.open_files().read_from_stream()] == ["a.txt", "b.txt", "inner/d.txt"]
    decoded = listed.open_files("b").routed_decode(lambda ext, data: data.decode().upper() if ext == "txt" else None)
    assert [text for _, text in decoded] == ["A.TXT", "B.TXT", "INNER/D.TXT"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: len(wrap().filter(odd)), TypeError), (lambda: wrap().nothing, AttributeError), (lambda: wrap().fork(0), ValueError),
        (lambda: wrap().map(3), TypeError), (lambda: list(wrap().unbatch()), IndexError), (lambda: list(wrap().filter(inc)), ValueError),
        (lambda: wrap().concat(3), TypeError), (lambda: functional_datapipe("x")(int), TypeError),
        (lambda: functional_datapipe("map")(type("P", (IterDataPipe,), {"__iter__": lambda self: iter(())})), Exception),
    ],
)  # fmt: skip
def test_errors(call, error):
    with pytest.raises(error):
        call()


def test_pipes_are_pickled_and_marked():
    pipe = pickle.loads(pickle.dumps(wrap().map(inc).batch(4)))
    assert list(pipe) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]] and len(pipe) == 3 and repr(pipe) == "Batcher"

    @non_deterministic
    class Noise(IterDataPipe):
        def __iter__(self):
            yield 1

    assert list(Noise()) == [1]
    with guaranteed_datapipes_determinism(), pytest.raises(TypeError, match="non-deterministic"):
        Noise()


class Counting(IterDataPipe):
    """A pipe that is its own iterator."""

    def __init__(self, n):
        self.n, self.at = n, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == self.n:
            self.at = 0
            raise StopIteration
        self.at += 1
        return self.at

    def half(self):
        return self.n / 2


def test_iterators_are_asked_for_what_the_pipe_has():
    class Other(IterDataPipe):
        def __init__(self, pipe):
            self.pipe = pipe

        def __iter__(self):
            return iter(self.pipe)

    pipe = Counting(3)
    for made in (pipe, Other(pipe)):
        first = iter(made)
        assert first.half() == 1.5 and next(first) == 1 and list(first) == [2, 3] and list(made) == [1, 2, 3]
        with pytest.raises(AttributeError):
            first.third()
    first, second = iter(pipe), iter(pipe)
    with pytest.raises(RuntimeError, match="This iterator has been invalidated"):
        next(first)
    assert list(second) == [1, 2, 3]


def test_profiles_name_the_pipes():
    with cresset.autograd.profiler.profile() as profile:
        list(wrap(3).map(inc).batch(2))
    names = [event.name for event in profile.function_events]
    assert names.count("Mapper(datapipe=IterableWrapper, fn=inc, input_col=None, output_col=None)") == 4  # three values and the end
    assert any(name.startswith("Batcher(batch_size=2, datapipe=Mapper, drop_last=False") for name in names)
    assert any(name.startswith("IterableWrapper(deepcopy=True, iterable=") for name in names)


PRIORITIES = SHARDING_PRIORITIES
SHARES = {PRIORITIES.DISTRIBUTED: (2, 1), PRIORITIES.MULTIPROCESSING: (5, 3), 300: (3, 1)}


@pytest.mark.parametrize("order", [[2, 3, 300], [300, 3, 2]])
def test_groups_share_what_an_outer_group_leaves(order):
    pipe = wrap(60).sharding_filter()
    for group in order:
        pipe.apply_sharding(*SHARES[group], sharding_group=group)
    assert list(pipe) == [25, 55] and len(pipe) == 2
    chain = wrap(90)
    for group in SHARES:
        chain = chain.sharding_filter(sharding_group_filter=group)
        for other, share in SHARES.items():
            chain.apply_sharding(*share, sharding_group=other)
    assert list(chain) == [17, 47, 77] and len(chain) == 3


def test_refusals_of_shares():
    for first, second in ((PRIORITIES.DEFAULT, PRIORITIES.DISTRIBUTED), (PRIORITIES.MULTIPROCESSING, PRIORITIES.DEFAULT)):
        pipe = wrap().sharding_filter()
        pipe.apply_sharding(2, 1, sharding_group=first)
        with pytest.raises(RuntimeError, match="ShardingFilter cannot mix DEFAULT and non DEFAULT groups"):
            pipe.apply_sharding(2, 1, sharding_group=second)
    with pytest.raises(ValueError, match="should be smaller than"):
        pipe.apply_sharding(2, 2)
    with pytest.raises(RuntimeError, match="Sharding twice on a single pipeline is likely unintended"):
        apply_sharding(wrap().sharding_filter().map(inc).sharding_filter(), 2, 0)
    pairs = apply_sharding(wrap(6).sharding_filter().zip(wrap(6).sharding_filter()), 2, 1)
    assert list(pairs) == [(1, 1), (3, 3), (5, 5)]


PROCESS = """
import sys
import cresset.distributed as dist
from cresset import manual_seed
from cresset.utils.data import DataLoader
from cresset.utils.data.datapipes.iter import IterableWrapper
rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
manual_seed(rank)
pipe = IterableWrapper(range(12)).shuffle().sharding_filter()
print([[int(x) for x in DataLoader(pipe, batch_size=None, num_workers=workers)] for workers in (0, 2)])
"""


def test_loaders_share_among_processes(tmp_path):
    import cresset.distributed as dist

    if not (dist.is_available() and dist.is_gloo_available()):
        pytest.skip("this build has no distributed part")
    # Each process has a seed of its own, and yet all shuffle alike: with process 0's. Shares go to processes first, then to their workers.
    programs = [subprocess.Popen([sys.executable, "-c", PROCESS, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
    answers = [ast.literal_eval(program.communicate(timeout=120)[0]) for program in programs]
    assert answers == [[[9, 0, 5, 4, 3, 6], [6, 8, 5, 0, 7, 10]], [[11, 10, 7, 1, 8, 2], [11, 1, 3, 2, 4, 9]]]
