"""Where classes and functions say that they are: in the public module that gives them, not in the private one that holds their code. Pickles
name them so, and PyTorch finds them there."""

import types

from . import _C

__all__ = ["settle"]


def _private(module):
    return any(part.startswith("_") and part != "_C" for part in module.split(".")[1:])


def _is_elsewhere(value):
    if type(value) is types.BuiltinFunctionType:
        return (value.__module__ or "").endswith("._C")
    return (isinstance(value, (type, types.FunctionType)) or type(value) is _C.overridable) and _private(value.__module__)


def settle(namespace, names=None):
    """What the module with the globals `namespace` gives under its own name (`names`, else its `__all__`) from a private one is its own."""
    for name in namespace["__all__"] if names is None else names:
        value = namespace.get(name)
        if _is_elsewhere(value) and value.__name__ == name:
            value.__module__ = namespace["__name__"]
