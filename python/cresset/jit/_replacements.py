"""What is compiled in place of functions, classes and methods of the library that scripts cannot read as they are."""

import inspect

import cresset
from cresset import nn
from cresset.nn import functional as F

from . import _functional, _functional_losses, _functional_shapes, _functional_tensor, _grad_mode, _module_methods, _recurrent_packed, _sequences

__all__ = ["table", "methods_of", "alternatives_of", "lists_of"]


def table():
    """{function or class: the function or class that is compiled for it}."""
    out = {}
    for module, library in ((_functional, F), (_functional_losses, F), (_functional_shapes, F), (_functional_tensor, cresset), (_sequences, nn.utils.rnn)):
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_"):
                out[getattr(library, name)] = function
    out.update({getattr(cresset, cls.__name__): cls for cls in (_grad_mode.no_grad, _grad_mode.enable_grad)})
    out[nn.modules.transformer._is_causal] = _functional_shapes._is_causal
    return out


def methods_of(module):
    """{name: function} for a module: the entries of its class and bases, where the class has not its own."""
    out, cls = {}, type(module)
    for base in reversed(cls.__mro__):
        entries = {**_module_methods.METHODS.get(base, {}), **_recurrent_packed.METHODS.get(base, {})}
        if getattr(module, "return_indices", False) is True:
            entries.update(_module_methods.WITH_INDICES.get(base, {}))
        sizes = getattr(module, "output_size", None)
        if isinstance(sizes, tuple) and None in sizes:
            entries.update(_module_methods.KEEPING_SIZES.get(base, {}))
        for name, function in entries.items():
            if getattr(cls, name, None) is getattr(base, name, None):
                out[name] = function
    return out


def alternatives_of(module):
    """{method: ((name, function), ...)}: texts of a method for other types of arguments, tried in order."""
    return _recurrent_packed.alternatives_of(module)


def lists_of(module):
    """{name: names of attributes}: lists of parameters that Python computes and scripts write out."""
    if not isinstance(module, nn.RNNBase):
        return {}
    names = {id(p): name for name, p in module._parameters.items()}
    return {"_flat_weights": [names[id(p)] for p in module._flat_weights]}
