"""Functions of Python that make or take apart tensors of classes of their own (quantized, sparse): what records calls takes the operator of `aten` that has their
name, because what they compute inside cannot say which tensor of the trace it came from."""

import functools
import sys

import cresset

from . import _C

__all__ = ["in_traces", "is_fake", "recorded", "recorders", "recording"]

recorders = []  # of operators as they are called (fx.experimental.proxy_tensor, export), innermost last


def is_fake(tensor):
    """Has it a shape and no memory (FakeTensorMode)?"""
    loaded = sys.modules.get("cresset._subclasses.fake_tensor")
    return loaded is not None and isinstance(tensor, loaded.FakeTensor)


def recording():
    """Are calls of this thread recorded, by a trace or as a program is exported?"""
    return _C._is_tracing() or bool(recorders and recorders[-1].records())


def recorded(name, *args, **kwargs):
    """The operator `aten::name`, or the overload `name.overload`, on the arguments of a function; types of quantized elements go as scripts number them."""
    from ._quantized_types import script_number

    function = functools.reduce(getattr, name.split("."), cresset.ops.aten)
    return function(*map(script_number, args), **{key: script_number(value) for key, value in kwargs.items()})


def in_traces(function):
    """The method as the operator of its name, while calls are recorded."""
    name = function.__name__

    @functools.wraps(function)
    def call(*args, **kwargs):
        return recorded(name, *args, **kwargs) if recording() else function(*args, **kwargs)

    return call
