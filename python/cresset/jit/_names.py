"""What the compiler makes of a Python object that a script names: a `_C.ScriptThing`, whose kinds are its functions (script_values.cpp)."""

import collections
import enum
import functools
import importlib
import inspect
import math
import types
import typing

import cresset
from cresset import _C, _legacy
from cresset._C import ScriptThing
from cresset._quantized_types import script_number
from cresset._same_names import own_module
from cresset._script_operators import ScriptPacket

from . import _classes, _definitions, _marks, _overloads, _state
from ._types import UnknownType, is_named_tuple, type_of_annotation, type_of_value

__all__ = ["thing_of", "attribute_thing", "python_call"]

_BUILTIN_FUNCTION = (_C.builtin_function, _C.builtin_method)
_CONSTANTS = (bool, int, float, complex, str, cresset.dtype, cresset.layout, cresset.memory_format, cresset.device, type(None))
# Words of the language that are Python functions of this package or of typing.
_WORDS = {
    "annotate", "isinstance", "is_scripting", "is_tracing", "fork", "_fork", "wait", "_wait", "unchecked_cast", "_unwrap_optional",
    "_awaitable", "_awaitable_nowait", "_awaitable_wait",
}  # fmt: skip


def _global_value_error(obj):
    return (
        f"python value of type '{type(obj).__name__}' cannot be used as a value. Perhaps it is a closed over global variable? If so, please "
        "consider passing it in as an argument or use a local variable instead."
    )


def thing_of(obj, name="", constant=False):
    """The thing for an object. `constant`: it is the attribute of a module, so plain values are constants."""
    obj = script_number(obj)
    if obj is None:
        return ScriptThing.constant(None, _C.NoneType.get())
    if isinstance(obj, types.ModuleType):
        return ScriptThing.namespace(obj)
    if isinstance(obj, _C.ScriptFunction):
        return ScriptThing.function(obj)
    if isinstance(obj, _BUILTIN_FUNCTION):
        return ScriptThing.operator(obj._overloads[0].partition(".")[0])
    if isinstance(obj, _CONSTANTS):
        if not constant and not isinstance(obj, enum.Enum):
            return ScriptThing.error(_global_value_error(obj))
        return ScriptThing.constant(obj, type_of_value(obj))
    if isinstance(obj, enum.Enum):
        return ScriptThing.constant(obj, type_of_value(obj))
    if isinstance(obj, cresset._ops.OpOverloadPacket):
        return ScriptThing.overloads(obj, obj._qualified_op_name)
    if isinstance(obj, _C.OpOverload):
        return ScriptThing.operator(obj.name().partition(".")[0])
    if isinstance(obj, ScriptPacket):
        return ScriptThing.operator(obj._qualified_op_name)
    if isinstance(getattr(obj, "_opoverload", None), _C.OpOverload):  # made by custom_op
        return ScriptThing.operator(obj._opoverload.name().partition(".")[0])
    if isinstance(obj, cresset._classes._CustomClass):
        return ScriptThing.script_class(_C._jit_custom_class_type(obj._qualified_name), None, {})
    if inspect.isclass(obj):
        return _class_thing(obj, name)
    if getattr(obj, "__module__", None) == "typing" and not typing.get_args(obj):
        return ScriptThing.native(getattr(obj, "_name", None) or name)
    if typing.get_origin(obj) is not None:
        try:
            return ScriptThing.type(type_of_annotation(obj))
        except UnknownType as error:
            return ScriptThing.error(str(error))
    if isinstance(obj, cresset.jit.ScriptModule):
        return ScriptThing.error("Cannot call a ScriptModule that is not a submodule of the caller")
    if isinstance(obj, cresset.nn.Module):  # Python calls it, with its parameters and state
        names, kinds, defaults, returns = _definitions.python_signature(obj.forward, False)
        return ScriptThing.python("<python_value>", obj, names, kinds, defaults, returns, False)
    if inspect.isbuiltin(obj):
        return _builtin_thing(obj)
    if isinstance(obj, functools.partial):
        return _partial_thing(obj)
    if inspect.isroutine(obj):
        return _function_thing(obj)
    call = getattr(type(obj), "__call__", None)
    if inspect.isfunction(call) and _marks.is_ignored(call):
        return python_call(obj.__call__, bound=False)
    if constant and isinstance(obj, tuple):
        return ScriptThing.tuple(tuple(thing_of(v, name, True) for v in obj))
    return ScriptThing.error(_global_value_error(obj))


def _class_thing(cls, name):
    if cls is collections.OrderedDict:
        return ScriptThing.native("dict")  # dictionaries of scripts keep their order
    if isinstance(cls, _legacy.tensortype):
        return ScriptThing.legacy(cls.dtype)
    if cls.__module__ == "builtins" or cls is _C.Future:
        return ScriptThing.native(cls.__name__)
    if cls in (cresset.Tensor, cresset.device, cresset.Size, cresset.dtype, cresset.Generator):
        return ScriptThing.type(type_of_annotation(cls))
    if issubclass(cls, cresset.nn.Module) and not _marks.is_interface(cls):
        return ScriptThing.statics(cls, f"Cannot instantiate class '{cls.__name__}' in a script function")
    if "_torchscript_modifier" in vars(cls) and _marks.is_ignored(cls):
        return ScriptThing.statics(cls, f"Cannot instantiate class '{cls.__name__}' in a script function")
    if issubclass(cls, BaseException):
        return ScriptThing.constant(f"{cls.__module__}.{cls.__name__}", _C.StringType.get())  # what `raise` records
    replacement = _state.replacement_of(cls)
    if replacement is not None:
        cls = replacement
    try:
        made = type_of_annotation(cls)
    except UnknownType as error:
        return ScriptThing.error(str(error))
    if is_named_tuple(cls):
        return ScriptThing.script_class(made, cls, dict(cls._field_defaults))
    return ScriptThing.script_class(made, cls, {}) if _classes.is_script_class(cls) else ScriptThing.type(made)


def _partial_thing(obj):
    function = obj.func
    if not inspect.isbuiltin(function) and not str(own_module(getattr(function, "__module__", None))).startswith("cresset"):
        return ScriptThing.error("functools.partial objects of Python functions are not supported in scripts; define a function instead.")
    # Python calls it: from tensors to a tensor, which its arguments may decide by then.
    tensor = _C.TensorType.get()
    return ScriptThing.python(function.__name__, obj, ["*args"], [tensor], {}, tensor, False)


def _builtin_thing(obj):
    module = getattr(obj, "__module__", None)
    replacement = _state.replacement_of(obj)
    if replacement is not None:
        return ScriptThing.operator(replacement)
    if module in ("builtins", "math"):
        # math.remainder is not what % does.
        name = "mathremainder" if obj is math.remainder else obj.__name__
        if module == "builtins":
            return ScriptThing.native(name)
        if any(str(s.arguments[0].type) != "Tensor" for s in _C._jit_get_schemas_for_operator(f"aten::{name}") if s.arguments):
            return ScriptThing.operator(f"aten::{name}")  # of numbers
        return ScriptThing.error(f"Python builtin {obj} is currently not supported in Torchscript")
    if module == "cmath":
        name = {"phase": "angle", "rect": "polar"}.get(obj.__name__, obj.__name__)
        return ScriptThing.operator(f"aten::{name}") if _kind_named(name) else ScriptThing.error(f"Python builtin {obj} is currently not supported in Torchscript")
    if obj is _C._get_tracing_state:
        return ScriptThing.native("is_tracing")
    kind = _kind_named(obj.__name__) or _kind_named(obj.__name__.lstrip("_"))
    ours = str(own_module(module)).startswith("cresset")
    if kind and ours:
        return ScriptThing.operator(kind)
    if ours:
        name = f"aten::{obj.__name__}"
        return ScriptThing.error(f"Unknown builtin op: {name}.\nCould not find any similar ops to {name}. This op may not exist or may not be currently supported in TorchScript.\n")
    return ScriptThing.error(f"Python builtin {obj} is currently not supported in Torchscript")


def _kind_named(name):
    """The operator that a function of the library is, when there is one of its name."""
    for kind in (f"aten::{name}", f"prim::{name}"):
        if _C._jit_get_schemas_for_operator(kind):
            return kind
    return None


def _function_thing(obj):
    module = own_module(getattr(obj, "__module__", "") or "")
    if module.startswith(("cresset.jit", "cresset._awaits")) and obj.__name__ in _WORDS:
        return ScriptThing.native(obj.__name__)
    if isinstance(obj, types.MethodType) and isinstance(obj.__self__, cresset.nn.Module):
        return python_call(obj, bound=False)
    if _marks.is_ignored(obj):
        return python_call(obj, bound=False)
    if hasattr(obj, "_script_refusal"):
        return ScriptThing.refusal(obj._script_refusal)
    if hasattr(obj, "_script_operator"):
        return ScriptThing.operator(obj._script_operator)
    if hasattr(obj, "_script_attributes"):
        return ScriptThing.attributes(obj._script_attributes)
    if hasattr(obj, "_script_form"):
        return _function_thing(getattr(importlib.import_module("cresset.jit._tuples"), obj._script_form))
    if hasattr(obj, "_script_choice"):
        name, if_true, if_false = obj._script_choice
        return ScriptThing.choice(name, list(inspect.signature(obj).parameters).index(name), _function_thing(if_true), _function_thing(if_false))
    replacement = _state.replacement_of(obj)
    if hasattr(replacement, "_script_choice"):
        return _function_thing(replacement)
    if hasattr(replacement, "_script_otherwise"):
        return ScriptThing.operator_else(f"aten::{obj.__name__}", _function_thing(replacement))
    if replacement is None and (module == "cresset" or module.startswith("cresset._")):
        kind = _kind_named(obj.__name__)
        if kind is not None:
            return ScriptThing.operator(kind)
    if isinstance(replacement, str):
        return ScriptThing.operator(replacement)
    if obj in _state.compiling:
        return ScriptThing.error(f"function '{obj.__name__}' is called recursively. Recursive calls are not supported")
    from ._script import overloaded_functions, script_function

    if inspect.isfunction(obj) and _overloads.overloads_of(obj):
        return ScriptThing.functions(tuple(overloaded_functions(obj)))
    return ScriptThing.function(script_function(obj))


def python_call(function, bound):
    """The thing of a function that stays in Python; `bound`: its first argument is the module."""
    names, kinds, defaults, returns = _definitions.python_signature(function, bound)
    return ScriptThing.python(function.__name__, function, names, kinds, defaults, returns, bound)


def attribute_thing(namespace, name):
    """The thing of a module's attribute, or None when there is none."""
    try:
        found = getattr(namespace, name)
    except AttributeError:
        return None
    return thing_of(found, name, constant=True)


def static_thing(cls, name):
    """The thing of a class's static or class method or of a plain value in the class, or None."""
    found = inspect.getattr_static(cls, name, None)
    if isinstance(found, staticmethod):
        return _function_thing(found.__func__)
    if isinstance(found, classmethod):
        from ._script import class_function

        return ScriptThing.function(class_function(cls, name, found.__func__))
    if isinstance(found, _CONSTANTS) and found is not None:
        return thing_of(found, name, constant=True)
    return None


def module_types(cls):
    """The types of compiled modules that are objects of this class; None for a class that is none of modules."""
    if not issubclass(cls, cresset.nn.Module):
        return None
    return [concrete.type for concrete in _state.concrete_types if concrete.type is not None and issubclass(concrete.cls, cls)]


def object_thing(kind, name):
    """The thing of what objects of a compiled class have in Python beside attributes and methods, or None."""
    cls = _classes.class_of_type(kind)
    found = inspect.getattr_static(cls, name, None) if cls is not None else None
    if isinstance(found, (staticmethod, classmethod)):
        return static_thing(cls, name)
    missing = f"'{kind.annotation_str}' object has no attribute or method '{name}'. "
    if inspect.isfunction(found):
        if name not in vars(cls):
            return ScriptThing.error(f"{missing}It is inherited: {_classes.NO_INHERITANCE}")
        return python_call(found, bound=True) if _marks.is_ignored(found) else None
    if isinstance(found, _CONSTANTS) and found is not None:
        return ScriptThing.error(
            f"{missing}'{name}' is defined as a class attribute which currently is not supported. Consider converting this to an instance attribute."
        )
    return None


