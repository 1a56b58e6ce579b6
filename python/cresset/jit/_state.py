"""What the package remembers: compiled functions by Python function, and what stands in for functions that cannot be compiled."""

import importlib
import weakref

__all__ = ["functions", "compiling", "replacement_of"]

functions = weakref.WeakKeyDictionary()  # {Python function: ScriptFunction}
_jit_caching_layer = functions  # PyTorch's name, by which libraries make the package forget
concrete_types = weakref.WeakSet()  # the ConcreteTypes of modules
compiling = []  # Python functions whose compilation is under way, outermost first
_replacements = None


def _clear_class_state():
    """Forgets which types Python classes have, under PyTorch's name for it: a class is compiled anew at its next use."""
    from . import _classes

    _classes._types.clear()
    _classes._by_name.clear()


def __getattr__(name):
    if name == "_python_cu":  # the unit of all functions that were compiled from Python's
        return importlib.import_module("cresset._C")._jit_get_python_unit()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def replacement_of(obj):
    """What is compiled in place of a function or class of the library: another one, an operator's kind, or None."""
    global _replacements
    if _replacements is None:
        _replacements = importlib.import_module("cresset.jit._replacements").table()  # not above: it imports what asks here
    try:
        return _replacements.get(obj)
    except TypeError:  # not hashable
        return None
