"""Custom operators as functions of their names: an older interface over `cresset._custom_op`; `cresset.library.custom_op` is the one for new code."""

import inspect

from ._custom_op import impl as _impl
from ._library.fake import get_ctx  # noqa: F401  (also here in PyTorch)

__all__ = ["custom_op", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]


def custom_op(qualname, func_or_schema=None):
    """Make the operator "ns::name": of a schema like "(Tensor x) -> Tensor", or with the signature of a function; without either a decorator.

    ValueError for operators that write to arguments, return views or nothing, or have an argument called self.
    """
    if isinstance(func_or_schema, str):
        _impl.create(qualname, func_or_schema)
        return None

    def make(function):
        _impl.custom_op(qualname)(function)
        return function

    if func_or_schema is None:
        return make
    if not inspect.isfunction(func_or_schema):
        raise ValueError(f"custom_op(..., func_or_schema): a function or a schema was required; got {type(func_or_schema)}.")
    return make(func_or_schema)


def _register(decorator, func):
    return decorator if func is None else decorator(func)


def impl(qualname, *, device_types=("cpu", "cuda"), func=None):
    """The kernel of an operator for device types; a decorator when func is left out. ValueError for other types than cpu and cuda."""
    return _register(_impl.find(qualname, also_check_torch_library=True).impl(device_types), func)


def impl_abstract(qualname, *, func=None):
    """What an operator does on meta and fake tensors; a decorator when func is left out."""
    from cresset.library import register_fake

    return register_fake(qualname, func)


def impl_save_for_backward(qualname, *, func=None):
    """What the gradient needs: func(inputs, output), inputs a namedtuple of the arguments; a decorator when func is left out."""
    return _register(lambda f: _impl.find(qualname, also_check_torch_library=True).impl_save_for_backward()(f), func)


def impl_backward(qualname, output_differentiability=None, *, func=None):
    """The gradient: func(ctx, saved, *grads) returns {argument: gradient}; a decorator when func is left out."""
    return _register(_impl.find(qualname, also_check_torch_library=True).impl_backward(output_differentiability), func)


def _destroy(qualname):
    """Undo an operator."""
    _impl.find(qualname)._destroy()
