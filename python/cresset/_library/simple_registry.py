"""What is registered for an operator besides kernels, found by its name."""

from types import SimpleNamespace

from .fake import fake_impls

__all__ = ["singleton"]


class _Registry:
    def find(self, qualname):
        """An object whose `fake_impl.kernel` is the fake implementation, as `func` and `source` ("file:line"), or None."""
        function = fake_impls.get(qualname)
        owner = getattr(function, "__self__", None)  # of a custom_op
        function = getattr(owner, "_abstract_fn", None) if owner is not None else getattr(function, "__wrapped__", function)
        kernel = None
        if function is not None:
            code = getattr(function, "__code__", None)
            source = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
            kernel = SimpleNamespace(func=function, source=source)
        return SimpleNamespace(qualname=qualname, fake_impl=SimpleNamespace(kernel=kernel))


singleton = _Registry()
