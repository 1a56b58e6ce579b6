"""What is compiled in place of the few functions, classes and methods of the library that scripts cannot read as they are."""

import importlib
import inspect
import warnings

import cresset
from cresset import nn
from cresset._same_names import own_module

from . import _autocast_class, _grad_mode

__all__ = ["table", "alternatives_of", "lists_of"]


def table():
    """{function, method or class: the function or class that is compiled for it, or the operator's kind}."""
    out = {warnings.warn: "aten::warn", cresset.manual_seed: "aten::manual_seed", cresset.autograd.grad: "aten::grad", cresset.autograd.backward: "aten::backward"}
    texts = importlib.import_module("cresset.jit._second_texts")  # not above: it imports what imports this
    for name, function in vars(texts).items():
        if inspect.isfunction(function) and own_module(function.__module__) == texts.__name__ and not name.startswith("_"):
            out[getattr(cresset, name)] = function
    out.update({getattr(cresset, cls.__name__): cls for cls in (_grad_mode.no_grad, _grad_mode.enable_grad)})
    out[cresset.amp.autocast] = _autocast_class.autocast
    out[cresset.autograd.profiler.record_function] = _grad_mode.record_function
    return out


def alternatives_of(module):
    """{method: ((name, function), ...)}: texts of a method for other types of arguments, tried in order.

    A recurrent layer takes tensors and packed sequences, unless its class has a forward of its own.
    """
    for cls in (nn.LSTM, nn.GRU, nn.RNN):
        if isinstance(module, cls) and type(module).forward is cls.forward:
            return {"forward": (("forward", cls.forward), ("forward__packed", cls._forward_packed))}
    return {}


def lists_of(module):
    """{name: names of attributes}: lists of parameters that Python computes and scripts write out."""
    if not isinstance(module, nn.RNNBase):
        return {}
    names = {id(p): name for name, p in module._parameters.items()}
    return {"_flat_weights": [names[id(p)] for p in module._flat_weights]}
