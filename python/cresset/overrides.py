"""Helpers of the __torch_function__ protocol for functions written in Python."""

import functools

import cresset

from . import _C
from ._C import (  # noqa: F401
    _has_torch_function as has_torch_function,
    _has_torch_function_unary as has_torch_function_unary,
    _has_torch_function_variadic as has_torch_function_variadic,
)

__all__ = [
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "wrap_torch_function", "get_default_nowrap_functions", "resolve_name", "is_tensor_method_or_property", "TorchFunctionMode",
]  # fmt: skip


def _overloaded_args(relevant_args):
    """The arguments that override, in the order in which they are asked."""
    overloaded, types = [], set()
    if not _C._is_torch_function_enabled():
        return overloaded
    for arg in relevant_args:
        kind = type(arg)
        if kind in types or not _C._has_torch_function_unary(arg) or kind is cresset.Tensor or not hasattr(kind, "__torch_function__"):
            continue
        types.add(kind)
        at = next((i for i, old in enumerate(overloaded) if issubclass(kind, type(old))), len(overloaded))
        overloaded.insert(at, arg)
    return overloaded


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Ask the modes and the overriding arguments for the result of public_api(*args, **kwargs)."""
    overloaded = _overloaded_args(relevant_args)
    types = tuple(map(type, overloaded))
    if _C._len_torch_function_stack() and not _C._is_torch_function_all_disabled():
        with _pop_mode() as mode:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for arg in overloaded:
        result = arg.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {[type(a) for a in overloaded]}")


def wrap_torch_function(dispatcher):
    """Decorator: the function goes through the protocol; dispatcher(*args, **kwargs) names the relevant arguments."""

    def inner(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def is_tensor_like(obj):
    """Is obj a Tensor, or of a type with __torch_function__?"""
    return type(obj) is cresset.Tensor or hasattr(obj, "__torch_function__")


def get_default_nowrap_functions():
    """Functions whose results Tensor.__torch_function__ leaves as they are."""
    tensor = cresset.Tensor
    return {tensor._base.__get__, tensor.grad.__get__, tensor._grad.__get__}


def is_tensor_method_or_property(func):
    """Is func a method or property access of Tensor?"""
    owner = getattr(func, "__self__", None)
    if func.__name__ in ("__get__", "__set__", "__delete__"):
        return getattr(owner, "__objclass__", None) is cresset.Tensor
    return getattr(func, "__objclass__", None) is cresset.Tensor or getattr(func, "__qualname__", "").startswith("Tensor.")


def resolve_name(f):
    """The public name of a function: "torch.add", "torch.Tensor.add", "torch.Tensor.shape.__get__"."""
    if isinstance(f, (_C.OpOverload,)):
        return str(f)
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    if name in ("__get__", "__set__", "__delete__") and hasattr(getattr(f, "__self__", None), "__name__"):
        return f"torch.Tensor.{f.__self__.__name__}.{name}"
    if is_tensor_method_or_property(f):
        return f"torch.Tensor.{name}"
    module = getattr(f, "__module__", None) or "cresset"
    return f"{module}.{name}".replace("cresset", "torch", 1)


class _pop_mode:
    """Takes the innermost mode off for a block."""

    def __enter__(self):
        self._mode = _C._pop_torch_function_stack()
        return self._mode

    def __exit__(self, *exc_info):
        _C._push_on_torch_function_stack(self._mode)


class TorchFunctionMode:
    """Sees every function of the package while it is active: override __torch_function__(self, func, types, args, kwargs)."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError("TorchFunctionMode: define __torch_function__(self, func, types, args=(), kwargs=None).")

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if isinstance(cls.__dict__.get("__torch_function__"), classmethod):
            raise RuntimeError("TorchFunctionMode's torch_function function should be a normal method not a class method")

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, *exc_info):
        _C._pop_torch_function_stack()

