"""Puts functions that are written in Python under the __torch_function__ protocol, as operators are: `@overridable` at the definition."""

import functools
import types

from . import _C

__all__ = ["overridable", "install_methods", "install_device"]

_CO_VARIADIC = 0x4 | 0x8  # inspect.CO_VARARGS | inspect.CO_VARKEYWORDS; inspect itself is slow to import


def overridable(function):
    """Decorator: a call goes to the modes and to the arguments that override, lists of them included, before `function` runs."""
    return functools.update_wrapper(_C.overridable(function), function)


def ask(public, function, overriding, args, kwargs):
    """Give a call to those who override it, as PyTorch's functions do: what is required by position, what has a default by keyword."""
    from .overrides import handle_torch_function

    if _C._len_torch_function_stack():  # modes are told of Tensor too
        overriding = [x for value in (*args, *kwargs.values()) for x in (value if isinstance(value, (list, tuple)) else (value,))]
    args, kwargs = _written_out(function, args, kwargs)
    return handle_torch_function(public, overriding, *args, **kwargs)


def _written_out(function, args, kwargs):
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    required = len(names) - len(defaults)
    variadic = code.co_flags & _CO_VARIADIC
    missing, given = names[len(args) : required], names[: len(args)]
    if variadic or len(args) > len(names) or not kwargs.keys() >= set(missing) or not kwargs.keys().isdisjoint(given):
        return args, kwargs  # a wrong call is reported by whoever runs it
    keywords = {**dict(zip(names[required:], defaults)), **(function.__kwdefaults__ or {})}
    keywords |= {**dict(zip(names[required:], args[required:])), **kwargs}
    return args[:required] + tuple(keywords.pop(name) for name in missing), keywords


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
