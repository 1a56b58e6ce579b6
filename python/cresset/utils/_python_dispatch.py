"""Modes and helpers of the __torch_dispatch__ protocol: operators seen below autograd."""

import contextlib

import cresset
from cresset import _C
from cresset._hints import with_hint

__all__ = ["TorchDispatchMode", "BaseTorchDispatchMode", "no_dispatch", "return_and_correct_aliasing", "is_traceable_wrapper_subclass", "transform_subclass"]


def _refuse_classmethod(self, func, types, args=(), kwargs=None):
    raise RuntimeError("Defining your mode's `__torch_dispatch__` as a classmethod is not supported, please make it a plain method")


class TorchDispatchMode:
    """Sees every operator that runs in the block, factory functions and backward included.

    Override `__torch_dispatch__(self, func, types, args=(), kwargs=None)`; func is an overload such as aten.add.Tensor. Inside of it
    the mode is off, and autograd has already done its part.
    """

    def __init__(self, _dispatch_key=None):
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode: modes of a key of their own are not supported; leave _dispatch_key out.")

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if isinstance(cls.__dict__.get("__torch_dispatch__"), classmethod):
            cls.__torch_dispatch__ = _refuse_classmethod

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise with_hint(NotImplementedError(), "TorchDispatchMode: define __torch_dispatch__(self, func, types, args=(), kwargs=None).")

    def __enter__(self):
        _C._push_on_torch_dispatch_stack(self)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        _C._pop_torch_dispatch_stack()

    @classmethod
    def is_infra_mode(cls):
        """Is this a mode of a library's own machinery, which users do not think of as theirs?"""
        return False

    @classmethod
    def push(cls, *args, **kwargs):
        """An instance, for `with Mode.push(…)`."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode():
    """The innermost active mode, or None."""
    count = _C._len_torch_dispatch_stack()
    return _C._get_dispatch_stack_at(count - 1) if count else None


def _get_current_dispatch_mode_stack():
    """Active modes, the innermost last."""
    return [_C._get_dispatch_stack_at(i) for i in range(_C._len_torch_dispatch_stack())]


def is_in_torch_dispatch_mode(include_infra_modes=True):
    """Is any mode active? Modes whose class says `is_infra_mode()` do not count without `include_infra_modes`."""
    return any(include_infra_modes or not mode.is_infra_mode() for mode in _get_current_dispatch_mode_stack())


@contextlib.contextmanager
def _pop_mode_temporarily(k=None):
    """The innermost mode off for a block."""
    mode = _C._pop_torch_dispatch_stack()
    try:
        yield mode
    finally:
        _C._push_on_torch_dispatch_stack(mode)


@contextlib.contextmanager
def _disable_current_modes():
    """All modes off for a block."""
    modes = [_C._pop_torch_dispatch_stack() for _ in range(_C._len_torch_dispatch_stack())]
    try:
        yield modes
    finally:
        for mode in reversed(modes):
            _C._push_on_torch_dispatch_stack(mode)


@contextlib.contextmanager
def no_dispatch():
    """Neither modes nor subclasses see operators in the block."""
    with _C._ExcludeDispatchKeyGuard(_C.DispatchKeySet("Python")):
        yield


def is_traceable_wrapper_subclass(t):
    """Is t an instance of a subclass with __tensor_flatten__ and __tensor_unflatten__?"""
    kind = type(t)
    return isinstance(t, cresset.Tensor) and kind is not cresset.Tensor and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """A wrapper like t whose inner tensors are callback(name, inner)."""
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    result = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if result.shape != cresset.Size(outer_size) or tuple(result.stride()) != tuple(outer_stride):
        raise RuntimeError(
            f"transform_subclass: {type(t).__name__}.__tensor_unflatten__ must give size {tuple(outer_size)} and stride {tuple(outer_stride)}; "
            f"it gave {tuple(result.shape)} and {tuple(result.stride())}."
        )
    return result


def return_and_correct_aliasing(func, args, kwargs, out):
    """The result that `func`'s schema promises: arguments that are written come back as the objects they are, views count with their base.

    For the end of a wrapper subclass's __torch_dispatch__. `out` is the wrapped result of running func on the inner tensors. Wrappers
    have no memory of their own; that one is a view of another is kept by autograd.
    """
    schema = func._schema
    by_name = {a.name: value for a, value in zip(schema.arguments, args)}
    by_name.update(kwargs or {})
    written = {a.alias: by_name.get(a.name) for a in schema.arguments if a.alias and a.is_write}
    read = {a.alias: by_name.get(a.name) for a in schema.arguments if a.alias and not a.is_write}
    for declared, result in zip(schema.returns, out if len(schema.returns) > 1 else (out,)):
        base = read.get(declared.alias)
        for view in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(base, cresset.Tensor) and isinstance(view, cresset.Tensor) and view is not base:
                _C._mark_alias(view, base)
    if not written:
        return out
    if len(schema.returns) == 1 and schema.returns[0].alias in written:
        return written[schema.returns[0].alias]
    if isinstance(out, (tuple, list)):
        return type(out)(written.get(a.alias, o) if a.alias else o for a, o in zip(schema.returns, out))
    return out
