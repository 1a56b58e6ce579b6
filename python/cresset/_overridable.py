"""Puts functions that are written in Python under the __torch_function__ protocol, as operators are: `@overridable` at the definition.

Methods of Tensor have `@tensor_method` there, which makes them overridable too; one `install_methods` puts all of them into the class.
"""

import functools

from . import _C

__all__ = ["overridable", "asks", "tensor_method", "tensor_attribute", "install_methods"]

_CO_VARIADIC = 0x4 | 0x8  # inspect.CO_VARARGS | inspect.CO_VARKEYWORDS; inspect itself is slow to import


def overridable(function):
    """Decorator: a call goes to the modes and to the arguments that override, lists of them included, before `function` runs."""
    return functools.update_wrapper(_C.overridable(function), function)


def asks(function):
    """Decorator: a function that goes to those who override it by itself, after it has looked at its arguments."""
    function._asks = True
    return function


def ask(public, function, args, kwargs):
    """Give a call to those who override it, as PyTorch's functions do: what is required by position, what has a default by keyword."""
    from .overrides import handle_torch_function

    # Those who are asked are told of Tensor too.
    overriding = [x for value in (*args, *kwargs.values()) for x in (value if isinstance(value, (list, tuple)) else (value,))]
    args, kwargs = _written_out(function, args, kwargs)
    return handle_torch_function(public, overriding, *args, **kwargs)


def _written_out(function, args, kwargs):
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    required = 0 if hasattr(function, "_by_keyword") else len(names) - len(defaults)
    variadic = code.co_flags & _CO_VARIADIC
    missing, given = names[len(args) : required], names[: len(args)]
    if variadic or len(args) > len(names) or not kwargs.keys() >= set(missing) or not kwargs.keys().isdisjoint(given):
        return args, kwargs  # a wrong call is reported by whoever runs it
    keywords = {**dict(zip(names[len(names) - len(defaults) :], defaults)), **(function.__kwdefaults__ or {})}
    keywords |= {**dict(zip(names[required:], args[required:])), **kwargs}
    return args[:required] + tuple(keywords.pop(name) for name in missing), keywords


_attributes = {}  # of Tensor, until they are installed: name → (value, only where the class has none)


def tensor_attribute(name, value, *, missing=False):
    """Give Tensor an attribute; `missing`: unless it has one of that name. RuntimeError for a name that has been given before."""
    if name in _attributes:
        raise RuntimeError(f"Tensor.{name} is defined twice.")
    _attributes[name] = value, missing


def tensor_method(function=None, *, name=None, asks=False, missing=False):
    """Decorator: a method of Tensor. A function that `asks` goes to those who override it by itself, or nobody is asked."""

    def add(function):
        function.__name__ = name or function.__name__
        function.__qualname__ = f"Tensor.{function.__name__}"
        tensor_attribute(function.__name__, function if asks else overridable(function), missing=missing)
        return function

    return add if function is None else add(function)


def install_methods(tensor_class):
    """Put what has been defined into the class, in whatever order it was."""
    for name, (value, missing) in sorted(_attributes.items(), key=lambda item: item[1][1]):
        if not (missing and hasattr(tensor_class, name)):
            setattr(tensor_class, name, value)
    _attributes.clear()
