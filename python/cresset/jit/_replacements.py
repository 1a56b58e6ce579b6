"""What is compiled in place of functions, classes and methods of the library that scripts cannot read as they are."""

import inspect
import warnings

import cresset
from cresset import nn

from . import _functional_tensor, _grad_mode, _module_methods

__all__ = ["table", "methods_of", "lists_of"]


def table():
    """{function or class: the function or class that is compiled for it}."""
    out = {warnings.warn: "aten::warn"}
    for name, function in vars(_functional_tensor).items():
        if inspect.isfunction(function) and function.__module__ == _functional_tensor.__name__:
            out[getattr(cresset, name)] = function
    out.update({getattr(cresset, cls.__name__): cls for cls in (_grad_mode.no_grad, _grad_mode.enable_grad)})
    return out


def methods_of(module):
    """{name: function} for a module: the entries of its class and bases, where the class has not its own."""
    out, cls = {}, type(module)
    for base in reversed(cls.__mro__):
        entries = dict(_module_methods.METHODS.get(base, {}))
        if getattr(module, "return_indices", False) is True:
            entries.update(_module_methods.WITH_INDICES.get(base, {}))
        sizes = getattr(module, "output_size", None)
        if isinstance(sizes, tuple) and None in sizes:
            entries.update(_module_methods.KEEPING_SIZES.get(base, {}))
        for name, function in entries.items():
            if getattr(cls, name, None) is getattr(base, name, None):
                out[name] = function
    return out


def lists_of(module):
    """{name: names of attributes}: lists of parameters that Python computes and scripts write out."""
    if not isinstance(module, nn.RNNBase):
        return {}
    names = {id(p): name for name, p in module._parameters.items()}
    return {"_flat_weights": [names[id(p)] for p in module._flat_weights]}
