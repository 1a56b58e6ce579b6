"""Data pipes: lengths, checks of functions, shared streams, graphs and snapshots. Words and numbers are PyTorch 2.13's for the same programs."""

import functools
import gc
import io
import operator
import pickle
import warnings

import cresset
import pytest
from cresset.utils.data import IterDataPipe, MapDataPipe
from cresset.utils.data.datapipes import iter as I
from cresset.utils.data.datapipes import map as M
from cresset.utils.data.datapipes._hook_iterator import _SnapshotState
from cresset.utils.data.datapipes.utils.common import StreamWrapper
from cresset.utils.data.datapipes.utils.decoder import basichandlers, handle_extension
from cresset.utils.data.datapipes.utils.snapshot import _simple_graph_snapshot_restoration as restore
from cresset.utils.data.graph import traverse_dps
from cresset.utils.data.graph_settings import apply_random_seed, apply_sharding, get_all_graph_pipes


class Unsized(IterDataPipe):
    def __iter__(self):
        yield from range(3)


class UnsizedMap(MapDataPipe):
    def __getitem__(self, i):
        return i


class Counting(IterDataPipe):
    """Only `__next__`; starts again when an iterator begins."""

    def __init__(self, n):
        self.n, self.at = n, 0

    def reset(self):
        self.at = 0

    def __next__(self):
        if self.at == self.n:
            raise StopIteration
        self.at += 1
        return self.at - 1

    def __len__(self):
        return self.n


class Failing(IterDataPipe):
    def __iter__(self):
        yield 0
        yield 1
        raise RuntimeError("after two")


def wrap(n=10):
    return I.IterableWrapper(range(n))


def times10(x):
    return 10 * x


LENGTHS = [
    (lambda p: p.map(times10), True), (lambda p: p.collate(), True), (lambda p: p.batch(2), True), (lambda p: p.zip(p), True), (lambda p: p.mux(p), True),
    (lambda p: p.concat(p), True), (lambda p: p.shuffle(), True), (lambda p: p.sharding_filter(), True), (lambda p: p.routed_decode(), True),
    (lambda p: I.IterableWrapper(p), True), (lambda p: p.filter(bool), False), (lambda p: p.unbatch(), False), (lambda p: p.groupby(bool), False),
    (lambda p: p.read_from_stream(), False), (lambda p: p, False), (lambda p: M.Batcher(UnsizedMap(), 2), True), (lambda p: M.Mapper(UnsizedMap()), False),
]  # fmt: skip


@pytest.mark.parametrize(("make", "has_method"), LENGTHS)
def test_lengths_that_are_not_known(make, has_method):
    pipe = make(Unsized())
    with pytest.raises(TypeError, match="instance doesn't have valid length$" if has_method else "has no len"):
        len(pipe)
    if isinstance(pipe, IterDataPipe):
        with pytest.raises(TypeError, match="^Batcher instance doesn't have valid length$" if not has_method else "valid length$"):
            len(pipe.batch(2))


def two(a, b):
    return a + b


def by_name(*, a, b=1):
    return a


def many(a, b, *rest):
    return a


class Adder(cresset.nn.Module):
    def forward(self, x):
        return x + 1


FUNCTIONS = [
    (two, 0, "The function two takes 2 positional parameters, but 1 are required."), (two, [0, 1, 2], "The function two takes 2 parameters, but 3 are required."),
    (two, None, "The function two takes 2 positional parameters, but 1 are required."), (two, [0, 1], None), (many, [0, 1, 2], None),
    (by_name, 0, "The function by_name takes 1 non-default keyword-only parameters, which is not allowed."),
    (functools.partial(two, b=1), 0, None), (functools.partial(two, b=1), [0, 1], "The function two takes 1 positional parameters, but 2 are required."),
    (operator.add, 0, "The function add takes 2 positional parameters, but 1 are required."), (str, 0, None), (int, [0, 1, 2], None), (Adder(), 0, None),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "columns", "words"), FUNCTIONS)
@pytest.mark.parametrize("step", ["map", "filter"])
def test_functions_fit_their_columns(step, fn, columns, words):
    source = I.IterableWrapper([(0, 1, 2)])
    if words is None:
        getattr(source, step)(fn, input_col=columns)
        return
    with pytest.raises(ValueError) as error:
        getattr(source, step)(fn, input_col=columns)
    if not isinstance(fn, functools.partial):
        assert str(error.value) == words


IDENTITY = lambda x: x  # noqa: E731


def test_functions_that_cannot_be_sent_are_warned_of():
    def local(x):
        return x

    for make in (lambda f: wrap().map(f), lambda f: wrap().filter(f), lambda f: wrap().groupby(f), lambda f: wrap().demux(2, f), lambda f: M.SequenceWrapper([1]).map(f)):
        with pytest.warns(UserWarning, match="^Local function is not supported by pickle") as told:
            make(lambda x: x)
        assert told[0].filename == __file__
        with pytest.warns(UserWarning, match="^Local function is not supported by pickle"):
            make(functools.partial(local))
        with pytest.warns(UserWarning, match="^Lambda function is not supported by pickle"):
            make(IDENTITY)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make(times10)


def test_shared_streams_keep_as_much_as_they_may():
    a, b, _ = wrap(9).fork(3, buffer_size=2)
    x, y = iter(a), iter(b)
    assert [next(x), next(x), next(y), next(y)] == [0, 1, 0, 1]
    with pytest.raises(BufferError, match="buffer size 2 is insufficient"):
        next(x)  # the third reader stands at 0
    x = iter(wrap(9).demux(2, lambda v: v % 2, buffer_size=2)[0])
    assert [next(x), next(x)] == [0, 2]
    with pytest.raises(BufferError):
        list(x)
    with pytest.warns(UserWarning, match="Unlimited buffer size is set for `fork`"):
        wrap().fork(2, buffer_size=-1)


def test_a_new_pass_over_a_shared_stream():
    a, b = wrap(4).fork(2)
    assert (list(a), list(b)) == ([0, 1, 2, 3],) * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = iter(a), iter(b)
    with pytest.warns(UserWarning, match="^Some child DataPipes are not exhausted when __iter__ is called"):
        third = iter(a)
    for old in (first, second):
        with pytest.raises(RuntimeError, match="^This iterator has been invalidated"):
            next(old)
    assert (next(third), list(b), list(third)) == (0, [0, 1, 2, 3], [1, 2, 3])


def test_samplers_give_what_they_draw():
    assert list(I.Sampler([10, 20, 30])) == list(I.Sampler(wrap(3))) == [0, 1, 2]
    with pytest.raises(AssertionError, match="requires input datapipe implemented `__len__`"):
        I.Sampler(Unsized())


class Own(IterDataPipe):
    """Reads from a pipe whose function is its own method, and cannot be hashed."""

    def __init__(self, source):
        self.inner = source.map(self.change)

    def change(self, x):
        return x + 1

    def __iter__(self):
        yield from self.inner

    __hash__ = None


def test_graphs_of_pipes():
    source = wrap()
    a, b = source.fork(2)
    mapped = a.map(times10)
    top = mapped.mux(b)
    shared = a.main_datapipe
    below = {id(shared): (shared, {id(source): (source, {})})}
    graph = traverse_dps(top)
    assert graph == {id(top): (top, {id(mapped): (mapped, {id(a): (a, below)}), id(b): (b, below)})}
    assert {id(p) for p in get_all_graph_pipes(graph)} == {id(p) for p in (top, mapped, a, b, shared, source)}
    own = Own(source)
    assert traverse_dps(own) == {id(own): (own, {id(own.inner): (own.inner, {id(source): (source, {})})})}


def test_sharding_by_pipes_that_know_no_groups():
    class Share(IterDataPipe):
        def __init__(self, source):
            self.source = source

        def apply_sharding(self, count, number):
            self.count, self.number = count, number

        def __iter__(self):
            return (x for i, x in enumerate(self.source) if i % self.count == self.number)

    assert list(apply_sharding(Share(wrap()), 3, 1)) == [1, 4, 7]


def test_samples_are_counted():
    for pipe in (wrap(), Counting(10), wrap().map(times10), wrap().fork(2)[0]):
        assert pipe._number_of_samples_yielded == 0
        assert len(list(pipe)) == pipe._number_of_samples_yielded == 10
        it = iter(pipe)
        for _ in range(4):
            next(it)
        assert pipe._number_of_samples_yielded == 4
    pipe = Failing()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="after two"):
            list(pipe)
        assert pipe._number_of_samples_yielded == 2


def forked(pipe):
    a, b = pipe.fork(2)
    return a.zip(b)


@pytest.mark.parametrize(
    "make", [wrap, lambda: Counting(10), lambda: wrap().map(times10), lambda: wrap().shuffle().batch(2), lambda: wrap().shuffle(buffer_size=3), lambda: forked(wrap().shuffle())]
)  # fmt: skip
def test_a_copy_goes_on_where_the_pipe_stopped(make):
    pipe = make()
    seeds = lambda: cresset.Generator().manual_seed(3)  # noqa: E731
    whole = list(apply_random_seed(pipe, seeds()))
    it = iter(apply_random_seed(pipe, seeds()))
    for _ in range(3):
        next(it)
    copy = pickle.loads(pickle.dumps(pipe))
    assert copy._number_of_samples_yielded == 3
    restore(copy, copy._number_of_samples_yielded, rng=seeds())
    with pytest.raises(RuntimeError, match="^Snapshot restoration cannot be applied"):
        restore(copy, 1)
    again = iter(copy)
    assert next(again) == whole[3] and copy._number_of_samples_yielded == 4
    second = pickle.loads(pickle.dumps(copy))
    restore(second, 4, rng=seeds())
    assert list(second) == list(again) == whole[4:] and list(it) == whole[3:]
    with pytest.raises(RuntimeError, match=f"by {len(whole) + 1} iterations exceeds the number of samples"):
        restore(second, len(whole) + 1)


@pytest.mark.parametrize("buffer_size", [2, 5, 15])
def test_a_shuffler_keeps_its_buffer(buffer_size):
    pipe = wrap().shuffle(buffer_size=buffer_size)
    it = iter(pipe)
    next(it), next(it)
    copy = pickle.loads(pickle.dumps(pipe))
    restore(copy.datapipe, pipe.datapipe._number_of_samples_yielded)
    copy._snapshot_state = _SnapshotState.Restored
    assert list(copy) == list(it)


def test_wrapped_streams():
    class File(io.StringIO):
        def __repr__(self):
            return "File"

    file = File("abc")
    wrapped = StreamWrapper(file)
    assert str(wrapped) == "StreamWrapper<File>" and wrapped.read(1) == "a" and list(wrapped) == ["bc"] and {"read", "close", "seek"} <= set(dir(wrapped))
    del wrapped
    gc.collect()
    assert file.closed
    assert StreamWrapper(pickle.loads(pickle.dumps(StreamWrapper([1, 2]))).file_obj).pop() == 2


DECODED = [("txt", b"ab", "ab"), ("json", b"[1]", [1]), ("cls", b"7", 7), ("pyd", pickle.dumps([2]), [2]), ("png", b"x", None), ("py", b"1", None)]


@pytest.mark.parametrize(("extension", "data", "expected"), DECODED)
def test_decoders(extension, data, expected):
    assert basichandlers(extension, data) == expected


def test_decoding_closes_the_files():
    streams = [("a.seg.raw", io.BytesIO(b"ab")), ("a.txt", io.BytesIO(b"cd"))]
    decoded = I.RoutedDecoder(streams, handle_extension("seg.raw raw", bytes.upper), basichandlers, key_fn=lambda path: path.split(".", 1)[1])
    assert list(decoded) == [("a.seg.raw", b"AB"), ("a.txt", "cd")] and all(stream.closed for _, stream in streams)


def test_a_pipe_without_a_way_to_iterate():
    class Empty(IterDataPipe):
        pass

    with pytest.raises(TypeError, match="iter\\(\\) of 'Empty' needs a method __iter__ or __next__"):
        iter(Empty())
    with pytest.raises(TypeError, match="Expected all inputs to be `MapDataPipe`"):
        M.SequenceWrapper([1]).zip(())
    with pytest.raises(AssertionError, match="buffer_size should be larger than 0"):
        wrap().shuffle(buffer_size=0)
