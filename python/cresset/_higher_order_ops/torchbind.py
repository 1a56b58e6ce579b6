"""Calls of methods of objects of C++ classes, as nodes of graphs."""

import contextlib

from cresset._higher_order import HigherOrderOperator
from cresset._library.fake_class_registry import FakeScriptObject
from cresset._subclasses.functional_tensor import call_on_values, has_functional
from cresset.fx.experimental.proxy_tensor import get_proxy_mode, recorder_of_calls
from cresset.fx.node import has_side_effect

__all__ = ["call_torchbind", "enable_torchbind_tracing"]


class CallTorchBind(HigherOrderOperator):
    """call_torchbind(obj, method, …): what the object's method gives; that of its fake class where the object is a fake."""

    def __init__(self):
        super().__init__("call_torchbind")

    def __call__(self, obj, method, *args, **kwargs):
        if isinstance(obj, FakeScriptObject):
            if has_functional(args, kwargs):
                return call_on_values(self, obj, method, *args, **kwargs)
            mode = recorder_of_calls() or get_proxy_mode()
            if mode is not None and mode.records():
                return mode.record_higher_order(self, obj, method, *args, **kwargs)
            obj = obj.wrapped_obj
        return getattr(obj, method)(*args, **kwargs)


call_torchbind = has_side_effect(CallTorchBind())


@contextlib.contextmanager
def enable_torchbind_tracing():
    """Nothing: calls of methods of fakes are always nodes."""
    yield
