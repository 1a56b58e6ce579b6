"""Optimisers that update lists of parameters at once, as they were named before `foreach` was an argument."""

import functools

from cresset import optim

_NAMES = ("SGD", "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop")
__all__ = list(_NAMES)


def _with_lists(cls):
    return type(cls.__name__, (cls,), {"__init__": functools.partialmethod(cls.__init__, foreach=True), "__doc__": cls.__doc__, "__module__": __name__})


globals().update({name: _with_lists(getattr(optim, name)) for name in _NAMES})
