"""Which operator of scripts a function of the library is, under the names by which libraries ask and add to it."""

import inspect

from cresset._same_names import own_module

from . import _names, _state

__all__ = []

_registered = {}  # {function: operator}


def _find_builtin(fn):
    """The operator ("aten::add") that scripts call for this function of the library or of math; None for others, and for those written in Python."""
    if fn in _registered:
        return _registered[fn]
    module, name = getattr(fn, "__module__", None), getattr(fn, "__name__", None)
    if module in ("math", "cmath"):
        return _names._kind_named(name)
    if not inspect.isroutine(fn) or inspect.isfunction(fn) or not own_module(module or "").startswith("cresset"):
        return None
    return _names._kind_named(name) or _names._kind_named(name.lstrip("_"))


def _register_builtin(fn, op):
    """From now on scripts that call `fn` call the operator `op` ("namespace::name")."""
    _state.replacement_of(fn)  # makes the table
    _registered[fn] = _state._replacements[fn] = op
