"""Names for stretches of code."""

from .. import _C
from ..autograd.grad_mode import _Decorator

__all__ = ["record_function"]


class record_function(_Decorator):
    """A name for a block of code, or for the calls of a decorated function. Backends pass it to their profilers."""

    def __init__(self, name, args=None):
        self.name, self.args = name, args

    def __enter__(self):
        if _C._registered_backends():
            _C._profile_push(self.name)
        return self

    def __exit__(self, *exc_info):
        if _C._registered_backends():
            _C._profile_pop()

    def _clone(self):
        return type(self)(self.name, self.args)
