"""Values that are computed when they are needed first: `jit._awaitable`."""

import typing

from . import _C

__all__ = ["Await"]

_T = typing.TypeVar("_T")


class _Await(typing.Generic[_T]):
    """What a call will give, once it is asked for. Attributes are those of the value: to read one computes it."""

    def __init__(self, fn=None, args=(), *, promised=None):
        self._fn, self._args, self._promised = fn, tuple(args), promised
        self._known = fn is None and promised is None

    def fn(self):
        """The function that will be called. RuntimeError where there is none."""
        if self._fn is None:
            raise RuntimeError("Await: there is no function; its value is known.")
        return self._fn

    def args(self):
        """What it will be called with, or the known value."""
        return self._args

    def is_nowait(self):
        """Was the value known from the beginning?"""
        return self._fn is None and self._promised is None

    def wait(self):
        """The value; the function is called once at most."""
        if not self._known:
            self._value = self._fn(*self._args) if self._promised is None else self._promised.wait()
            self._known = True
        return self._args[0] if self.is_nowait() else self._value

    def __getattr__(self, name):
        if name in ("_fn", "_args", "_promised", "_known", "_value") or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return getattr(self.wait(), name)


Await = _C._Await = _Await


def _awaitable(func, *args, **kwargs):
    """A promise to call `func(*args, **kwargs)` when its value is waited for."""
    if kwargs:
        return _Await(lambda *given: func(*given, **kwargs), args)
    return _Await(func, args)


def _awaitable_nowait(value):
    """A promise that is kept already."""
    return _Await(None, (value,))


def _awaitable_wait(promise):
    """The value of a promise, of Python or of a script."""
    return promise.wait()
