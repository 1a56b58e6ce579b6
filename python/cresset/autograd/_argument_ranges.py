"""Ranges of the profiler with arguments: they begin and end by calls."""

import cresset

from .. import _C

__all__ = ["_record_function_with_args_enter", "_record_function_with_args_exit"]

_SHOWN = (cresset.Tensor, bool, int, float, complex, type(None))


def _observed(value):
    # Lists, tuples and texts are for observers only: profiles show nothing of them.
    if isinstance(value, (list, tuple)):
        return type(value)(map(_observed, value)) if type(value) in (list, tuple) else None
    return value if isinstance(value, (*_SHOWN, str)) else None


class _Range:
    """A range that is open, until it is given back."""

    def __init__(self, token):
        self._token = token


def _record_function_with_args_enter(name, *args):
    """Begin a range of this name; a profile with shapes shows those of tensors among the arguments, and numbers. What it gives is for
    _record_function_with_args_exit."""
    if not isinstance(name, str):
        raise TypeError(f"_record_function_with_args_enter(): name must be a str, not {type(name).__name__}.")
    return _Range(_C._profiler_begin_function(name, [a if isinstance(a, _SHOWN) else None for a in args], list(map(_observed, args))))


def _record_function_with_args_exit(handle):
    """End a range; one that has ended stays as it is."""
    if not isinstance(handle, _Range):
        raise RuntimeError(f"_record_function_with_args_exit(): what _record_function_with_args_enter gave was required; a {type(handle).__name__} was given.")
    if handle._token is not None:
        _C._profiler_end(handle._token)
        handle._token = None
