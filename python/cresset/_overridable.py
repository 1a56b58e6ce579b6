"""Puts functions that are written in Python under the __torch_function__ protocol, as operators are: `@overridable` at the definition."""

import functools
import types

from . import _C

__all__ = ["overridable", "install_methods", "install_device"]


def overridable(function):
    """Decorator: a call goes to the modes and to the arguments that override, lists of them included, before `function` runs."""
    return functools.update_wrapper(_C.overridable(function), function)


def install_methods(tensor_class):
    """Wrap the methods of Tensor that are written in Python and do not ask for themselves."""
    for name, method in list(vars(tensor_class).items()):
        if not isinstance(method, types.FunctionType) or name in ("__dir__", "__repr__", "__init_subclass__", "reinforce"):
            continue
        asks = {"handle_torch_function", "_has_torch_function", "_has_torch_function_unary"}
        if asks.isdisjoint(method.__code__.co_names):
            setattr(tensor_class, name, overridable(method))


def install_device(device_class):
    """Make device objects context managers and decorators; `utils._device` has what they do and is loaded at the first use."""

    def lazily(name):
        def method(self, *args):
            from .utils import _device

            return getattr(_device, name)(self, *args)

        return method

    device_class.__enter__, device_class.__exit__, device_class.__call__ = lazily("enter"), lazily("leave"), lazily("decorate")
