"""Context managers that decorate functions and generators, as libraries derive theirs."""

from cresset.autograd.grad_mode import _Decorator

__all__ = ["context_decorator"]


class _DecoratorContextManager(_Decorator):
    """A base class: subclasses have __enter__ and __exit__, and clone() where their constructor takes arguments."""

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError

    def clone(self):
        """A fresh instance, for each call of a decorated function."""
        return type(self)()

    def _clone(self):
        return self.clone()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same for classes without arguments, which decorate without parentheses too."""

    def __new__(cls, orig_func=None):
        return super().__new__(cls) if orig_func is None else cls()(orig_func)


class _Made(_DecoratorContextManager):
    def __init__(self, make):
        self._make, self._open = make, []

    def __enter__(self):
        self._open.append(self._make())
        return self._open[-1].__enter__()

    def __exit__(self, *error):
        return self._open.pop().__exit__(*error)

    def clone(self):
        return _Made(self._make)


def context_decorator(ctx, func):
    """`func` in a context: `ctx` is a context manager that can be entered again, or a function that makes one for each call."""
    if callable(ctx) and not hasattr(ctx, "__enter__"):
        make = ctx
    elif hasattr(ctx, "__enter__"):
        make = lambda: ctx  # noqa: E731
    else:
        raise AssertionError(f"a context manager, or a function that makes one, was required; given: {ctx!r}")
    return _Made(make)(func)
