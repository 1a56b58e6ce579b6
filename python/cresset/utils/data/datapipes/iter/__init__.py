"""Streams of samples, and the steps between them."""

import collections.abc
import copy
import fnmatch
import os
import random
import sys
import types
import warnings

from ..._utils.collate import default_collate
from ...sampler import SequentialSampler
from ..datapipe import SHARDING_PRIORITIES, DataChunk, IterDataPipe, _Shuffling, functional_datapipe
from ..utils.common import StreamWrapper, _check_unpickable_fn, validate_input_col

__all__ = [
    "Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter", "Forker", "Grouper", "IterableWrapper", "Mapper",
    "Multiplexer", "RoutedDecoder", "Sampler", "ShardingFilter", "Shuffler", "StreamReader", "UnBatcher", "Zipper",
]  # fmt: skip


class IterableWrapper(IterDataPipe):
    """The items of an iterable; of a copy of it in each pass, unless it cannot be copied or `deepcopy` is False."""

    def __init__(self, iterable, deepcopy=True):
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification would affect source data.", stacklevel=2
                )
        yield from source

    def __len__(self):
        return _length(self, self.iterable)


def _unknown_length(pipe):
    return TypeError(f"{type(pipe).__name__} instance doesn't have valid length")


def _length(pipe, source):
    """The length of what a pipe reads from; TypeError, which names the pipe, when that has none."""
    if not hasattr(type(source), "__len__"):
        raise _unknown_length(pipe)
    return len(source)


class _Behind(IterDataPipe):
    """A step behind one pipe; how many samples it gives is not known."""

    def __init__(self, datapipe):
        self.datapipe = datapipe


class _Step(_Behind):
    """A step behind one pipe, as long as that."""

    def __len__(self):
        return _length(self, self.datapipe)


@functional_datapipe("map")
class Mapper(_Step):
    """`fn(sample)`; with `input_col` of these entries of a tuple, list or dictionary, put in the place `output_col` (the first of them)."""

    def __init__(self, datapipe, fn, input_col=None, output_col=None):
        super().__init__(datapipe)
        _check_unpickable_fn(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        validate_input_col(fn, input_col)
        self.fn, self.input_col, self.output_col = fn, input_col, output_col

    def _apply(self, data):
        if self.input_col is None:
            return self.fn(data)
        several = isinstance(self.input_col, (list, tuple))
        result = self.fn(*(data[c] for c in self.input_col)) if several else self.fn(data[self.input_col])
        changed = list(data) if isinstance(data, tuple) else copy.copy(data)
        if self.output_col == -1:
            changed.append(result)
        elif self.output_col is not None:
            changed[self.output_col] = result
        elif several:
            changed[self.input_col[0]] = result
            for c in sorted(self.input_col[1:], reverse=True) if not isinstance(data, dict) else self.input_col[1:]:
                del changed[c]
        else:
            changed[self.input_col] = result
        return tuple(changed) if isinstance(data, tuple) else changed

    def __iter__(self):
        for data in self.datapipe:
            yield self._apply(data)


@functional_datapipe("collate")
class Collator(Mapper):
    """`collate_fn(batch)`; with `conversion`, a dictionary by key or a function, that."""

    def __init__(self, datapipe, conversion=default_collate, collate_fn=None):
        if collate_fn is not None:
            function = collate_fn
        elif isinstance(conversion, collections.abc.Callable):
            function = conversion
        else:
            function = _Convert(conversion)
        super().__init__(datapipe, fn=function)


class _Convert:
    def __init__(self, by_key):
        self.by_key = by_key

    def __call__(self, batch):
        return {key: self.by_key.get(key, default_collate)([item[key] for item in batch]) for key in batch[0]}


@functional_datapipe("filter")
class Filter(_Behind):
    """The samples for which `filter_fn` (of the entry or entries `input_col`) is true."""

    def __init__(self, datapipe, filter_fn, input_col=None):
        super().__init__(datapipe)
        _check_unpickable_fn(filter_fn)
        validate_input_col(filter_fn, input_col)
        self.filter_fn, self.input_col = filter_fn, input_col

    def __iter__(self):
        for data in self.datapipe:
            if self.input_col is None:
                keep = self.filter_fn(data)
            elif isinstance(self.input_col, (list, tuple)):
                keep = self.filter_fn(*(data[c] for c in self.input_col))
            else:
                keep = self.filter_fn(data[self.input_col])
            if not isinstance(keep, bool):
                raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(keep))
            if keep:
                yield data


@functional_datapipe("batch")
class Batcher(_Step):
    """Lists (`wrapper_class`) of `batch_size` samples."""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        super().__init__(datapipe)
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.batch_size, self.drop_last, self.wrapper_class = batch_size, drop_last, wrapper_class

    def __iter__(self):
        batch = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self):
        n = _length(self, self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcher(_Behind):
    """The items of batches, `unbatch_level` deep; -1 for all levels."""

    def __init__(self, datapipe, unbatch_level=1):
        super().__init__(datapipe)
        self.unbatch_level = unbatch_level

    def __iter__(self):
        for element in self.datapipe:
            yield from self._open(element, self.unbatch_level)

    def _open(self, element, level):
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level == -1 and not isinstance(element, (list, DataChunk))):
            yield element
        elif isinstance(element, (list, DataChunk)):
            for item in element:
                yield from self._open(item, level if level == -1 else level - 1)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class Grouper(_Behind):
    """Lists of samples with the same `group_key_fn(sample)`, of up to `group_size`; with `keep_key` pairs (key, list).

    Up to `buffer_size` samples wait; when they are full the biggest group is given if it has `guaranteed_group_size` samples, else left out with
    `drop_remaining` or RuntimeError.
    """

    def __init__(
        self, datapipe, group_key_fn, *, keep_key=False, buffer_size=10000, group_size=None, guaranteed_group_size=None, drop_remaining=False
    ):  # fmt: skip
        super().__init__(datapipe)
        _check_unpickable_fn(group_key_fn)
        self.group_key_fn, self.keep_key, self.max_buffer_size, self.group_size = group_key_fn, keep_key, buffer_size, group_size
        self.guaranteed_group_size = guaranteed_group_size if guaranteed_group_size is not None else group_size
        if self.guaranteed_group_size is not None and group_size is not None and not 0 < self.guaranteed_group_size <= group_size:
            raise AssertionError("guaranteed_group_size should be > 0 and <= group_size")
        self.drop_remaining = drop_remaining

    def __iter__(self):
        groups, waiting = collections.defaultdict(list), 0
        give = lambda key: (key, DataChunk(groups.pop(key))) if self.keep_key else DataChunk(groups.pop(key))  # noqa: E731
        for x in self.datapipe:
            key = self.group_key_fn(x)
            groups[key].append(x)
            waiting += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                waiting -= len(groups[key])
                yield give(key)
            if waiting == self.max_buffer_size:
                biggest = max(groups, key=lambda k: len(groups[k]))
                n = len(groups[biggest])
                if self.guaranteed_group_size is not None and n < self.guaranteed_group_size and not self.drop_remaining:
                    raise RuntimeError(f"Failed to group items {groups[biggest]!s}")
                waiting -= n
                if self.guaranteed_group_size is None or n >= self.guaranteed_group_size:
                    yield give(biggest)
                else:
                    del groups[biggest]
        for key in list(groups):
            yield give(key)


@functional_datapipe("concat")
class Concater(IterDataPipe):
    """All samples of the first pipe, then of the second, and so on."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(p, IterDataPipe) for p in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self):
        return sum(_length(self, p) for p in self.datapipes)


@functional_datapipe("zip")
class Zipper(IterDataPipe):
    """Tuples of a sample of each pipe, as long as the shortest."""

    def __init__(self, *datapipes):
        if not all(isinstance(p, IterDataPipe) for p in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes = datapipes

    def __iter__(self):
        yield from zip(*self.datapipes)

    def __len__(self):
        return min(_length(self, p) for p in self.datapipes)


@functional_datapipe("mux")
class Multiplexer(IterDataPipe):
    """A sample of each pipe in turn, until the shortest ends."""

    def __init__(self, *datapipes):
        self.datapipes = datapipes

    def __iter__(self):
        for samples in zip(*self.datapipes):
            yield from samples

    def __len__(self):
        return len(self.datapipes) * min(_length(self, p) for p in self.datapipes)


class _Forker(IterDataPipe):
    """A stream that several pipes read: what one has not taken yet waits, up to `buffer_size` samples (BufferError), any number below 0."""

    def __init__(self, datapipe, n, buffer_size, deal, name):
        self.main_datapipe, self.n, self.buffer_size, self.deal, self.name = datapipe, n, buffer_size, deal, name
        self.source, self.waiting, self.started, self.finished, self.epoch = None, None, None, None, None
        if buffer_size < 0:
            warnings.warn(f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random places", stacklevel=4)

    def __getstate__(self):
        return super().__getstate__() | dict.fromkeys(("source", "waiting", "started", "finished", "epoch"))

    def __iter__(self):
        raise TypeError(f"{self.name}: the stream itself is not iterated, its instances are.")

    def __len__(self):
        return _length(self, self.main_datapipe)

    def begin(self, child):
        """The pass that an iterator of a child belongs to: the running one, or a new one when that has an iterator of the child."""
        if self.started is None or child in self.started:
            if self.started is not None and (len(self.finished) < self.n or any(self.waiting)):
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and each child DataPipe will read "
                    "from the start again.", stacklevel=4,
                )  # fmt: skip
            self.source, self.waiting, self.started = iter(self.main_datapipe), [collections.deque() for _ in range(self.n)], set()
            self.finished, self.epoch = set(), object()
        self.started.add(child)
        return self.epoch

    def next_of(self, child):
        """The next sample of a child. BufferError when too many wait for others."""
        while not self.waiting[child]:
            sample = next(self.source)
            for k, value in self.deal(sample):
                self.waiting[k].append(value)
            others = [len(w) for k, w in enumerate(self.waiting) if k != child]
            if 0 <= self.buffer_size < self.deal.held(others):
                raise BufferError(f"{self.name}: buffer overflow, buffer size {self.buffer_size} is insufficient.")
        return self.waiting[child].popleft()


class _ChildDataPipe(IterDataPipe):
    def __init__(self, shared, number, as_long):
        self.main_datapipe, self.instance_id, self._as_long = shared, number, as_long

    def __iter__(self):
        return self._samples(self.main_datapipe.begin(self.instance_id))

    def _samples(self, epoch):
        shared = self.main_datapipe
        while True:
            if shared.epoch is not epoch:
                raise RuntimeError(
                    "This iterator has been invalidated, because a new iterator has been created from one of the ChildDataPipes of "
                    f"{shared.name}({shared.main_datapipe!r})."
                )
            try:
                value = shared.next_of(self.instance_id)
            except StopIteration:
                shared.finished.add(self.instance_id)
                return
            yield value

    def __len__(self):
        if not self._as_long:
            raise _unknown_length(self)
        return len(self.main_datapipe)


class _ToAll:
    def __init__(self, n, how):
        self.n, self.how = n, how

    def __call__(self, sample):
        change = {None: lambda x: x, "shallow": copy.copy, "deep": copy.deepcopy}[self.how]
        return [(k, change(sample)) for k in range(self.n)]

    def held(self, waiting):
        """Samples that are kept for the slowest reader."""
        return max(waiting, default=0)


class _ToOne:
    def __init__(self, n, classifier_fn, drop_none):
        self.n, self.classifier_fn, self.drop_none = n, classifier_fn, drop_none

    def __call__(self, sample):
        k = self.classifier_fn(sample)
        if k is None and self.drop_none:
            return []
        if k is None or not 0 <= k < self.n:
            raise ValueError(f"Output of the classification fn should be between 0 and {self.n - 1}. {k} is returned.")
        return [(k, sample)]

    def held(self, waiting):
        """Samples that are kept for any reader."""
        return sum(waiting)


@functional_datapipe("fork")
class Forker(IterDataPipe):
    """A list of `num_instances` pipes, each with all samples: the same objects, or copies with `copy` "shallow" or "deep"."""

    def __new__(cls, datapipe, num_instances, buffer_size=1000, copy=None):
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        if copy not in (None, "shallow", "deep"):
            raise ValueError(f"Unknown copy method `{copy}`, choose one of `shallow`, `deep` or None")
        if num_instances == 1:
            return [datapipe]
        shared = _Forker(datapipe, num_instances, buffer_size, _ToAll(num_instances, copy), "fork")
        return [_ChildDataPipe(shared, k, True) for k in range(num_instances)]


@functional_datapipe("demux")
class Demultiplexer(IterDataPipe):
    """A list of `num_instances` pipes; a sample goes to the one whose number `classifier_fn` gives, or with `drop_none` for None to none."""

    def __new__(cls, datapipe, num_instances, classifier_fn, drop_none=False, buffer_size=1000):
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        _check_unpickable_fn(classifier_fn)
        shared = _Forker(datapipe, num_instances, buffer_size, _ToOne(num_instances, classifier_fn, drop_none), "demux")
        return [_ChildDataPipe(shared, k, False) for k in range(num_instances)]


@functional_datapipe("sharding_filter")
class ShardingFilter(_Step):
    """Of several workers each gets every n-th sample. With `sharding_group_filter` the shares of that group alone count."""

    def __init__(self, source_datapipe, sharding_group_filter=None):
        super().__init__(source_datapipe)
        self.sharding_group_filter, self.num_of_instances, self.instance_id = sharding_group_filter, 1, 0
        self.groups = {}  # {group: (number of instances, number of this one)}

    def apply_sharding(self, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT):
        """Give the samples instance_id, instance_id + num_of_instances, … from now on; of several groups those of a higher number share what
        falls to one instance of a lower. ValueError for an instance that does not exist, RuntimeError for the default group beside others."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        default = SHARDING_PRIORITIES.DEFAULT
        if any((group == default) != (sharding_group == default) for group in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = num_of_instances, instance_id
        self.num_of_instances, self.instance_id = 1, 0
        for group, (count, number) in sorted(self.groups.items()):
            if self.sharding_group_filter in (None, group):
                self.num_of_instances, self.instance_id = self.num_of_instances * count, self.instance_id * count + number

    def __iter__(self):
        for i, item in enumerate(self.datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self):
        n = _length(self, self.datapipe)
        return n // self.num_of_instances + (self.instance_id < n % self.num_of_instances)


@functional_datapipe("shuffle")
class Shuffler(_Shuffling, _Step):
    """The samples in random order: each is drawn from a buffer of `buffer_size`. With `unbatch_level` batches are opened first."""

    def __init__(self, datapipe, *, buffer_size=10000, unbatch_level=0):
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        super().__init__(datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level))
        self.buffer_size, self._rng, self._waiting = buffer_size, random.Random(), []

    def reset(self):
        """A new seed for each pass."""
        self._waiting = []
        if self._enabled:
            self._seed_pass()

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        waiting = self._waiting
        for x in self.datapipe:
            if len(waiting) == self.buffer_size:
                k = self._rng.randint(0, len(waiting) - 1)
                waiting[k], x = x, waiting[k]
                yield x
            else:
                waiting.append(x)
        while waiting:
            yield waiting.pop(self._rng.randint(0, len(waiting) - 1))


class Sampler(_Step):
    """What a sampler gives for a source of known length: most give indices."""

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__(datapipe)
        self.sampler = sampler(*(sampler_args or ()), **{"data_source": datapipe, **(sampler_kwargs or {})})

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return len(self.sampler)


# --- files ----------------------------------------------------------------------------------------------------------------------------


@functional_datapipe("list_files")
class FileLister(IterDataPipe):
    """Paths of files in folders whose names match one of `masks` (all without any), in order; with `recursive` of folders in them, too."""

    def __init__(self, root=".", masks="", *, recursive=False, abspath=False, non_deterministic=False, length=-1):
        root = [root] if isinstance(root, (str, os.PathLike)) else root
        self.datapipe = root if isinstance(root, IterDataPipe) else IterableWrapper(list(root))
        self.masks, self.recursive, self.abspath, self.non_deterministic, self.length = masks, recursive, abspath, non_deterministic, length

    def __iter__(self):
        masks = [self.masks] if isinstance(self.masks, str) else list(self.masks)
        for root in self.datapipe:
            root = os.path.abspath(root) if self.abspath else os.fspath(root)
            if os.path.isfile(root):
                folders = [(os.path.dirname(root) or ".", [], [os.path.basename(root)])]
            else:
                folders = os.walk(root, onerror=lambda error: warnings.warn(str(error), stacklevel=2))
            for folder, inner, files in folders:
                if not self.non_deterministic:
                    inner.sort()
                    files.sort()
                for name in files:
                    if not any(masks) or any(fnmatch.fnmatch(name, m) for m in masks):
                        yield os.path.join(folder, name)
                if not self.recursive:
                    break

    def __len__(self):
        if self.length == -1:
            raise _unknown_length(self)
        return self.length


@functional_datapipe("open_files")
class FileOpener(IterDataPipe):
    """Pairs (path, open file) of paths."""

    def __init__(self, datapipe, mode="r", encoding=None, length=-1):
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        self.datapipe, self.encoding, self.length = datapipe, encoding, length
        self.mode = mode if mode.startswith("r") else "r" + mode
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")

    def __iter__(self):
        for path in self.datapipe:
            yield path, StreamWrapper(open(path, self.mode, encoding=self.encoding))

    def __len__(self):
        if self.length == -1:
            raise _unknown_length(self)
        return self.length


@functional_datapipe("read_from_stream")
class StreamReader(_Behind):
    """Pairs (path, content) of pairs (path, open file): all of it, or `chunk` characters each time. The files are closed."""

    def __init__(self, datapipe, chunk=None):
        super().__init__(datapipe)
        self.chunk = chunk

    def __iter__(self):
        for path, stream in self.datapipe:
            while data := stream.read(self.chunk if self.chunk is not None else -1):
                yield path, data
            stream.close()


@functional_datapipe("routed_decode")
class RoutedDecoder(_Step):
    """Pairs (path, decoded) of pairs (path, open file): the first of the handlers `f(extension, bytes)` that does not give None decodes."""

    def __init__(self, datapipe, *handlers, key_fn=None):
        super().__init__(datapipe)
        self.handlers, self.key_fn = list(handlers), key_fn or extension_extract_fn

    def add_handler(self, *handlers):
        """Ask these after the others."""
        self.handlers.extend(handlers)

    def __iter__(self):
        for path, stream in self.datapipe:
            data = stream
            if not isinstance(stream, (bytes, str)):
                data = stream.read()
                stream.close()
            key = self.key_fn(path)
            decoded = next((r for r in (handler(key, data) for handler in self.handlers) if r is not None), data)
            yield path, decoded


def extension_extract_fn(pathname):
    """The extension of a file's name, without its dot."""
    return os.path.splitext(pathname)[1].removeprefix(".")


def _modules(**names):
    """PyTorch has each few of these in a module of their own, under longer names: `combinatorics.ShufflerIterDataPipe`."""
    for module, classes in names.items():
        place = types.ModuleType(f"{__name__}.{module}")
        place.__all__ = [f"{name}IterDataPipe" for name in classes]
        vars(place).update({f"{name}IterDataPipe": globals()[name] for name in classes})
        sys.modules[place.__name__] = globals()[module] = place


_modules(
    callable=("Collator", "Mapper"), combinatorics=("Sampler", "Shuffler"), combining=("Concater", "Demultiplexer", "Forker", "Multiplexer", "Zipper"),
    filelister=("FileLister",), fileopener=("FileOpener",), grouping=("Batcher", "Grouper", "UnBatcher"), routeddecoder=("RoutedDecoder",),
    selecting=("Filter",), streamreader=("StreamReader",), utils=("IterableWrapper",),
)  # fmt: skip
