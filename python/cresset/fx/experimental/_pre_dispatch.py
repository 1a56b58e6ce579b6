"""Operators as a program calls them, above autograd and before composite ones are taken apart: what traces with pre_dispatch see."""

import contextlib

from cresset import _C

__all__ = ["operators_as_called", "below"]

_KEY = _C.DispatchKey.TESTING_ONLY_GenericMode  # the highest key: nothing has changed the operator yet
_KEYS = _C.DispatchKeySet(_KEY)
_functions = []


def below():
    """A block in which operators are not seen."""
    return _C._ExcludeDispatchKeyGuard(_KEYS)


@contextlib.contextmanager
def operators_as_called(function):
    """For a block, function(op, args, kwargs) runs in the place of each operator that this thread calls, those that it calls itself too (below)."""
    library = None
    if not _functions:
        library = _C._Library("IMPL", "_", "", __file__, 0)
        library.fallback(lambda op, *args, **kwargs: _functions[-1](op, args, kwargs), _KEY.name, False)
    _functions.append(function)
    try:
        with _C._IncludeDispatchKeyGuard(_KEYS):
            yield
    finally:
        _functions.pop()
        if library is not None:
            library.reset()
