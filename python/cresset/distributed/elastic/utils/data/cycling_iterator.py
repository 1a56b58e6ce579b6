"""An iterator over the items of several epochs."""

__all__ = ["CyclingIterator"]


class CyclingIterator:
    """The items of `generator_fn(epoch)` for the epochs from `start_epoch` to `n`, one after the other."""

    def __init__(self, n, generator_fn, start_epoch=0):
        self._items = (item for epoch in range(start_epoch, n) for item in generator_fn(epoch))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._items)
