"""Collections of samples by index, and the steps between them."""

import copy
import random
import warnings

from .datapipe import DataChunk, IterDataPipe, MapDataPipe, _Shuffling, functional_datapipe
from .utils.common import _check_unpickable_fn

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapper(MapDataPipe):
    """The items of a sequence or mapping; of a copy of it unless `deepcopy` is False or it cannot be copied."""

    def __init__(self, sequence, deepcopy=True):
        if deepcopy:
            try:
                sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn("The input sequence can not be deepcopied, please be aware of in-place modification would affect source data", stacklevel=2)
        self.sequence = sequence

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


def _same(x):
    return x


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """`fn(sample)`."""

    def __init__(self, datapipe, fn=_same):
        _check_unpickable_fn(fn)
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("batch")
class Batcher(MapDataPipe):
    """Lists (`wrapper_class`) of `batch_size` samples with the indices 0, 1, …"""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        return self.wrapper_class([self.datapipe[i] for i in range(first, min(first + self.batch_size, len(self.datapipe)))])

    def __len__(self):
        if not hasattr(type(self.datapipe), "__len__"):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        n = len(self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("concat")
class Concater(MapDataPipe):
    """The samples of the first pipe, then of the second, and so on."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(p, MapDataPipe) for p in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes

    def __getitem__(self, index):
        at = index
        for pipe in self.datapipes:
            if at < len(pipe):
                return pipe[at]
            at -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self):
        return sum(len(p) for p in self.datapipes)


@functional_datapipe("zip")
class Zipper(MapDataPipe):
    """Tuples of a sample of each pipe."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(p, MapDataPipe) for p in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes

    def __getitem__(self, index):
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self):
        return min(len(p) for p in self.datapipes)


class Shuffler(_Shuffling, IterDataPipe):
    """The samples of a collection as a stream in random order."""

    def __init__(self, datapipe, *, indices=None):
        self.datapipe, self.indices = datapipe, list(range(len(datapipe))) if indices is None else indices
        self._rng, self._left = random.Random(), []

    def reset(self):
        """A new order for each pass."""
        if self._enabled:
            self._seed_pass()
            self._left = self._rng.sample(self.indices, len(self.indices))
        else:
            self._left = self.indices[::-1]

    def __iter__(self):
        while self._left:
            yield self.datapipe[self._left.pop()]

    def __len__(self):
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)
