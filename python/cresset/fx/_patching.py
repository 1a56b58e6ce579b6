"""What a trace changes for its duration: functions that are wrapped, by their names in other modules."""

import builtins
import contextlib
import functools
import inspect
from typing import Any, NamedTuple

from .node import map_aggregate
from .proxy import Proxy

_wrapped_fns_to_patch = {}  # (id of a module's variables, name) -> the variables
_wrapped_methods_to_patch = []  # (class, name)


class _Patch(NamedTuple):
    owner: Any
    name: str
    before: Any
    after: Any
    by_item: bool
    absent: bool

    def patch(self):
        if self.by_item:
            self.owner[self.name] = self.after
        else:
            setattr(self.owner, self.name, self.after)

    def revert(self):
        if self.absent:
            if self.by_item:
                del self.owner[self.name]
            else:
                delattr(self.owner, self.name)
        elif self.by_item:
            self.owner[self.name] = self.before
        else:
            setattr(self.owner, self.name, self.before)


_patchers = []


class _Patcher:
    """Replaces variables and methods for a block, each once."""

    def __init__(self):
        self.patches_made, self.visited = [], set()

    def patch(self, frame_dict, name, new_fn, deduplicate=True):
        """Replace a module's variable."""
        new_fn.__fx_already_patched = deduplicate
        absent = name not in frame_dict
        before = getattr(builtins, name) if absent and hasattr(builtins, name) else frame_dict.get(name)
        if getattr(before, "__fx_already_patched", False):
            return
        self._make(_Patch(frame_dict, name, before, new_fn, True, absent))

    def patch_method(self, cls, name, new_fn, deduplicate=True):
        """Replace a method."""
        new_fn.__fx_already_patched = deduplicate
        before = getattr(cls, name)
        if getattr(before, "__fx_already_patched", False):
            return
        self._make(_Patch(cls, name, before, new_fn, False, name not in vars(cls)))

    def _make(self, patch):
        self.patches_made.append(patch)
        patch.patch()

    def visit_once(self, thing):
        """Is this the first time that thing is visited?"""
        if id(thing) in self.visited:
            return False
        self.visited.add(id(thing))
        return True

    def revert_all_patches(self):
        """Put back everything, for now."""
        for patch in reversed(self.patches_made):
            patch.revert()
        return self.patches_made

    def reapply_all_patches(self):
        """Replace again what revert_all_patches put back."""
        for patch in self.patches_made:
            patch.patch()
        return self.patches_made

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.revert_all_patches()
        self.patches_made, self.visited = [], set()


@contextlib.contextmanager
def _new_patcher():
    with _Patcher() as patcher:
        _patchers.append(patcher)
        try:
            yield patcher
        finally:
            _patchers.remove(patcher)


@contextlib.contextmanager
def _maybe_revert_all_patches():
    """For a block, nothing is replaced by the innermost trace."""
    patcher = _patchers[-1] if _patchers else None
    if patcher is not None:
        patcher.revert_all_patches()
    try:
        yield
    finally:
        if patcher is not None:
            patcher.reapply_all_patches()


def _find_proxy(*values):
    """The first proxy in nested arguments, or None."""
    found = []
    map_aggregate(values, lambda x: found.append(x) if isinstance(x, Proxy) else None)
    return found[0] if found else None


def _create_wrapped_func(orig_fn):
    """orig_fn, recorded as a call when an argument is a proxy."""

    @functools.wraps(orig_fn)
    def wrapped(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls, name):
    """A method, recorded as a call when an argument is a proxy."""
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        return orig_fn(*args, **kwargs) if proxy is None else proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _patch_wrapped_functions(patcher):
    """Replace what `wrap` named."""
    for (_, name), variables in _wrapped_fns_to_patch.copy().items():
        orig_fn = getattr(builtins, name) if name not in variables and hasattr(builtins, name) else variables[name]
        patcher.patch(variables, name, _create_wrapped_func(orig_fn))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher, frame_dict, function_ids):
    """Replace the functions of these ids among a module's variables."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(frame_dict, name, _create_wrapped_func(value))


def wrap(fn_or_name):
    """At the top level of a module: calls of a function of it, or of a builtin, are recorded as such by traces. Usable as a decorator.

    fn_or_name: the function or its name. RuntimeError for anything else, NotImplementedError inside of a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    if callable(fn_or_name):
        assert not isinstance(fn_or_name, str)
        name = fn_or_name.__name__
    else:
        name = fn_or_name
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name
