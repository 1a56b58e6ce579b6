"""What the package remembers: compiled functions by Python function, and what stands in for functions that cannot be compiled."""

import importlib
import os
import weakref

__all__ = ["functions", "compiling", "replacement_of", "enable", "disable"]

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


class EnabledProxy:
    """Are functions and modules compiled? True, unless the environment has PYTORCH_JIT=0: then `script` and `trace` give back what they are
    given, and ScriptModules run as they were written."""

    def __init__(self):
        self.enabled = os.environ.get("PYTORCH_JIT", "1") != "0"

    def __bool__(self):
        return self.enabled


_enabled = EnabledProxy()


def enable():
    """From now on functions and modules are compiled."""
    _enabled.enabled = True


def disable():
    """From now on functions and modules are left as they are; those that were compiled stay so."""
    _enabled.enabled = False


def __getattr__(name):
    if name == "_script_classes":  # {class: its type}; libraries empty it
        return importlib.import_module("cresset.jit._classes")._types
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
