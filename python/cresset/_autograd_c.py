"""What PyTorch has as torch._C._autograd and torch._C._functions, as far as it exists here: saved values, and nodes that stand alone."""

import cresset

from . import _C
from .autograd.function import Function
from .autograd.profiler_util import DeviceType

__all__ = ["AccumulateGrad", "DelayedError", "DeviceType", "SavedTensor", "UndefinedGrad"]

SavedTensor = _C.SavedTensor
AccumulateGrad = type(cresset.ones(1, requires_grad=True).view(1).grad_fn.next_functions[0][0])


_push_saved_tensors_default_hooks, _pop_saved_tensors_default_hooks = _C._push_saved_tensors_default_hooks, _C._pop_saved_tensors_default_hooks


def _profiler_type():
    """Which profiler runs now, an ActiveProfilerType."""
    return cresset._C._profiler._profiler_type()


def _saved_tensors_hooks_is_enabled():
    """Whether saved_tensors_hooks may be used now."""
    before = _C._disable_saved_tensors_hooks(None)
    _C._disable_saved_tensors_hooks(before)
    return before is None


class _Error(Function):
    @staticmethod
    def forward(ctx, message, *tensors):
        ctx.message = message
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(ctx.message)


class _Undefined(Function):
    @staticmethod
    def forward(ctx, *tensors):
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *gradients):
        return (None,) * len(gradients)


def _as_given(results):
    return results[0] if len(results) == 1 else results


class DelayedError(_C._Node):
    """DelayedError(message, count)(*tensors): the tensors; going backward through them raises RuntimeError."""

    def __new__(cls, message, count):
        return lambda *tensors: _as_given(_Error.apply(message, *tensors))


class UndefinedGrad(_C._Node):
    """UndefinedGrad()(*tensors): the tensors, whose gradients arrive as None."""

    def __new__(cls):
        return lambda *tensors: _as_given(_Undefined.apply(*tensors))
