"""What decorators leave on functions and classes for the compiler: export, ignore, unused, and what they mean."""

import enum
import functools
import warnings

__all__ = ["Mark", "drop", "export", "ignore", "unused", "mark_of", "is_ignored", "is_unused", "is_dropped", "is_exported", "is_interface"]


class Mark(enum.Enum):
    """How a function takes part in scripts."""

    DEFAULT = "compiled when something reaches it"
    EXPORT = "compiled with its module"
    IGNORE = "left to Python: scripts call it there"
    UNUSED = "not compiled: raises when a script calls it"
    DROP = "not part of scripts at all"


_MARK = "_torchscript_modifier"  # PyTorch's name, which libraries look for


def export(fn):
    """Method decorator: compile this method with its module although `forward` does not reach it."""
    setattr(fn, _MARK, Mark.EXPORT)
    return fn


def unused(fn):
    """Decorator for methods, functions and properties: not compiled; a script that calls it raises."""
    if isinstance(fn, property):
        for accessor in (fn.fget, fn.fset):
            if accessor is not None:
                setattr(accessor, _MARK, Mark.UNUSED)
        return fn
    setattr(fn, _MARK, Mark.UNUSED)
    return fn


def ignore(drop=False, **kwargs):
    """Decorator: scripts call the function in Python. `drop=True` is `unused`. Modules that reach it cannot be saved."""
    if callable(drop):
        setattr(drop, _MARK, Mark.IGNORE)
        return drop
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    if "drop_on_export" in kwargs:
        warnings.warn("ignore(drop_on_export=True) has been deprecated. Use unused instead.", FutureWarning, stacklevel=2)
        drop = kwargs["drop_on_export"]

    def decorator(fn):
        setattr(fn, _MARK, Mark.UNUSED if drop else Mark.IGNORE)
        return fn

    return decorator


def drop(fn):
    """Method decorator: scripts of the class have no such method, and its annotations may be anything. PyTorch's private `_drop`."""
    setattr(fn, _MARK, Mark.DROP)
    return fn


def is_dropped(fn):
    """Is it no part of scripts?"""
    return mark_of(fn) is Mark.DROP


def mark_of(fn):
    """The mark of a function or method."""
    if isinstance(fn, functools.partial):
        fn = fn.func
    mark = getattr(fn, _MARK, Mark.DEFAULT)
    return mark if isinstance(mark, Mark) else Mark.DEFAULT


def is_ignored(fn):
    """Is it left to Python?"""
    return mark_of(fn) is Mark.IGNORE


def is_unused(fn):
    """Does it raise in scripts?"""
    return mark_of(fn) is Mark.UNUSED


def is_exported(fn):
    """Is it compiled with its module?"""
    return mark_of(fn) is Mark.EXPORT


def is_interface(cls):
    """Is it a class that `interface` decorated?"""
    return "__torch_script_interface__" in vars(cls)
