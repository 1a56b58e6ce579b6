"""Kernels that `OpOverload.py_impl` keeps for keys that have a kernel already: they answer only where these blocks say so."""

import contextlib

from cresset._C import DispatchKey
from cresset.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

__all__ = ["enable_crossref_functionalize", "enable_python_dispatcher", "no_python_dispatcher"]

# Keys below autograd, in the order in which an operator meets them.
_KEYS = (DispatchKey.BackendSelect, DispatchKey.CPU, DispatchKey.Meta, DispatchKey.CompositeExplicitAutograd)


class _Kernels(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for key in _KEYS:
            if (kernel := func.py_kernels.get(key)) is not None and (key != DispatchKey.Meta or _on_meta(args)):
                return kernel(*args, **kwargs)
        return func(*args, **kwargs)


def _on_meta(args):
    return any(getattr(a, "is_meta", False) for a in args)


def enable_python_dispatcher():
    """A context in which operators run the kernels of py_impl for BackendSelect, CPU, Meta or CompositeExplicitAutograd in place of their own.
    Inside of such a kernel the operators are their own again."""
    return _Kernels()


@contextlib.contextmanager
def no_python_dispatcher():
    """A context in which operators run their own kernels."""
    with _disable_current_modes():
        yield


def enable_crossref_functionalize():
    """A context in which operators on functional tensors run a second time on meta tensors: RuntimeError where sizes or types of the results differ."""
    from cresset._subclasses.functional_tensor import _crossref

    return _crossref()
