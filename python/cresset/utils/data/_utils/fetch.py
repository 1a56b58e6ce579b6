"""From the entry of an index sampler to a batch."""

import operator

from ..dataset import Subset, TensorDataset
from .collate import default_collate

__all__ = ["_BaseDatasetFetcher", "_IterableDatasetFetcher", "_MapDatasetFetcher"]


class _BaseDatasetFetcher:
    """`fetch(index)` gives a batch; the index is a list of them with auto_collation."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset, self.auto_collation, self.collate_fn, self.drop_last = dataset, auto_collation, collate_fn, drop_last

    def fetch(self, possibly_batched_index):
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes as many samples from a stream as the index has entries; StopIteration at its end."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for _ in possibly_batched_index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(samples)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Takes samples by their indices; whole-batch indexing of tensors gives the same as stacking single samples."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.columns = None
        if auto_collation and collate_fn is default_collate:
            base, picks = dataset, []
            while type(base) is Subset:
                picks.append(base.indices)
                base = base.dataset
            if type(base) is TensorDataset:
                self.columns, self.picks = base.tensors, picks

    def _rows(self, indices):
        """Which rows of the tensors the samples are; None where an index is no number."""
        for pick in self.picks:
            indices = [pick[i] for i in indices]
        try:
            return list(map(operator.index, indices))
        except TypeError:
            return None

    def fetch(self, possibly_batched_index):
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if self.columns is not None and (rows := self._rows(possibly_batched_index)) is not None:
            return [t[rows] for t in self.columns]
        many = getattr(self.dataset, "__getitems__", None)
        samples = [self.dataset[i] for i in possibly_batched_index] if many is None else many(possibly_batched_index)
        return self.collate_fn(samples)
