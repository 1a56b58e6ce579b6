"""`script`: functions, modules and classes as scripts."""

import enum
import functools
import inspect
import pickle
import types
import weakref

from cresset import _C
from cresset.nn import Module

from . import _classes, _definitions, _marks, _overloads, _source, _state
from ._containers import script_container
from ._recursive import RecursiveScriptModule, ScriptModule, script_module, wrap_module  # noqa: F401
from ._types import is_named_tuple

__all__ = ["script", "script_function", "script_method", "script_if_tracing", "CompilationUnit"]


def _refuse_pickling(self):
    raise pickle.PickleError("ScriptFunction cannot be pickled")


_C.ScriptFunction.__reduce__ = _refuse_pickling

_overloaded = weakref.WeakKeyDictionary()  # {function: its compiled forms, one for each of its overloads}
_class_functions = weakref.WeakKeyDictionary()  # {class: {name of a class method: its compiled form}}


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Compile a function, a module (an object) or a class; or put a list or dict on the side of scripts.

    Functions give a ScriptFunction, modules a ScriptModule with the same parameters, lists and dicts a ScriptList or ScriptDict, classes
    are given back. The same function, module or class gives the same result again. `example_inputs` is accepted; types come from annotations.
    """
    if obj is None or not _state._enabled:
        return obj
    if isinstance(obj, (ScriptModule, _C.ScriptFunction, _C._ScriptContainer)):
        return obj
    if isinstance(obj, Module):
        return script_module(obj)
    if inspect.isclass(obj):
        return _script_class(obj)
    prepare = getattr(obj, "__prepare_scriptable__", None)
    if prepare is not None:
        return script(prepare())
    if inspect.isroutine(obj) or hasattr(obj, "__script_if_tracing_wrapper"):
        return script_function(obj)
    if type(obj) in (list, dict):
        return script_container(obj)
    if obj.__class__.__module__ == "builtins":
        raise TypeError(f"{type(obj)} is a built-in class")
    if isinstance(obj, functools.partial):
        raise RuntimeError("functools.partial objects are not supported; define a function instead.")
    return _script_object(obj)


def _script_object(obj):
    """An object of a class that is compiled, on the side of scripts: what they change in it is seen in Python, and the other way round."""
    cls = type(obj)
    if getattr(cls, "__module__", None) is None or not hasattr(cls, "__dict__"):
        raise TypeError(f"script: a function, an nn.Module, a class or an object of one was required; an object of class '{cls.__name__}' was given.")
    kind = _classes.type_of_class(cls)
    c = _C._jit_object(kind)
    for name, _, _, _ in c._attributes():
        c.setattr(name, getattr(obj, name))
    return RecursiveScriptClass(c)


class RecursiveScriptClass:
    """An object of a compiled class as scripts have it: attributes, methods and properties are those of the object itself, which functions that
    are given it see and change."""

    def __init__(self, c):
        self.__dict__["_c"] = c

    def __getattr__(self, name):
        c = self._c
        methods = c._method_names()
        if name in methods:
            return c._get_method(name)
        if f"__get_{name}" in methods:
            return c._get_method(f"__get_{name}")()
        return c.getattr(name)

    def __setattr__(self, name, value):
        if f"__set_{name}" in self._c._method_names():
            self._c._get_method(f"__set_{name}")(value)
        else:
            self._c.setattr(name, value)

    def __repr__(self):
        return f"RecursiveScriptClass(original_name={self._c._type().name().rpartition('.')[2]})"


def _script_class(cls):
    if issubclass(cls, Module):
        raise RuntimeError(f"Type '{cls}' cannot be compiled since it inherits from nn.Module, consider passing an instance instead")
    if cls.__module__ == "builtins":
        raise TypeError(f"{cls} is a built-in class")
    if issubclass(cls, enum.Enum) or is_named_tuple(cls) or _marks.is_interface(cls):
        _classes.type_of_class(cls)
        return cls
    names = {}
    frame = inspect.currentframe().f_back.f_back
    while frame is not None and not names:
        if frame.f_globals.get("__name__", "").partition(".")[0] != "cresset":
            names = dict(frame.f_locals)
        frame = frame.f_back
    _classes.script_class(cls, names)
    return cls


def script_function(function):
    """The compiled form of a Python function."""
    text = _state.replacement_of(function)
    if isinstance(function, types.MethodType):
        function = function.__func__
    known = _state.functions.get(function)
    if known is not None:
        return known
    if not inspect.isfunction(function) and not isinstance(function, _C.overridable):
        raise RuntimeError(f"Python builtin {function} is currently not supported in Torchscript")
    compiled = _compile(function, lambda own: _definitions.definition_of(text or function, own))
    _allow_single_values(compiled, text or function)
    compiled.__doc__ = function.__doc__
    _state.functions[function] = compiled
    return compiled


def overloaded_functions(function):
    """The compiled forms of a function that has overloads, in the order of their declaration."""
    known = _overloaded.get(function)
    if known is None:
        declarations = _overloads.overloads_of(function)
        known = [_compile(function, lambda own, d=d: _overloads.definition_of_overload(function, d, own)) for d in declarations]
        for compiled, declaration in zip(known, declarations, strict=True):
            _allow_single_values(compiled, declaration)
        _overloaded[function] = known
    return known


def class_function(cls, name, function):
    """The compiled form of a class method: a function that knows its class, so that the class and its objects have it alike."""
    known = _class_functions.setdefault(cls, {})
    if name not in known:
        known[name] = _compile(function, lambda own: _definitions.definition_of_class_method(function, own, cls))
    return known[name]


def _compile(function, definition):
    """Compile what `definition` gives for a name that is still free."""
    if function in _state.compiling:
        raise RuntimeError(f"function '{function.__name__}' is called recursively. Recursive calls are not supported")
    prefix, _, own = _C._jit_mangled(_classes.qualified_name(function)).rpartition(".")
    _state.compiling.append(function)
    try:
        return _C._jit_define(prefix, [definition(own)], None, None)[0]
    finally:
        _state.compiling.pop()


def _allow_single_values(compiled, function):
    """Parameters annotated as broadcasting lists take one number for the whole list."""
    for name, annotation in _definitions.annotations_of(function).items():
        size = _definitions.list_size(annotation)
        if size and name != "return":
            compiled._set_list_size(name, size)


def script_method(fn):
    """Method decorator of the older style: compiled when the ScriptModule is made."""
    return _marks.export(fn)


def script_if_tracing(fn):
    """Decorator: the function is compiled when it is first called while a trace runs, so that its control flow is kept."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        from . import is_tracing

        return script(fn)(*args, **kwargs) if is_tracing() else fn(*args, **kwargs)

    wrapper.__original_fn = fn
    wrapper.__script_if_tracing_wrapper = True
    return wrapper


class CompilationUnit:
    """Functions compiled from source text: `CompilationUnit("def f(x): return x + 1").f(tensor)`. Names that the text does not define are
    those of the function that calls this, then those of a program without Python: torch, math, List, …"""

    def __init__(self, lang=None, _frames_up=0):
        self._unit = _C.CompilationUnit()
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang, rcb=None, _frames_up=0):
        """Add the functions of a source text. `rcb(name)` finds the objects of names in place of the caller's variables."""
        lookup = _source.frame_names(_frames_up) if rcb is None else _lookup_of(rcb)
        self._unit.define(lang, "<string>", _definitions.Resolver(lookup))

    def find_function(self, name):
        """The function of this name, or None."""
        return self._unit.find_function(name)

    def __getattr__(self, name):
        if name == "_unit":
            raise AttributeError(name)
        found = self._unit.find_function(name)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return found


def _lookup_of(rcb):
    def lookup(name):
        found = rcb(name)
        if found is None:
            raise KeyError(name)
        return found

    return lookup


def unpackage_script_module(importer, script_module_id):
    """The compiled module that a package holds under a number."""
    return importer._load_script(script_module_id)
