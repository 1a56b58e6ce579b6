"""Python classes as types of scripts: enums, named tuples, interfaces, and classes that are compiled."""

import contextlib
import dataclasses
import enum
import inspect
import typing
import weakref

import cresset
from cresset import _C
from cresset._same_names import own_module

from . import _dataclasses, _definitions, _marks, _state
from ._types import UnknownModule, UnknownType, is_named_tuple, type_of_annotation

__all__ = ["NO_INHERITANCE", "qualified_name", "type_of_class", "class_of_type", "is_script_class", "script_class", "interface"]

NO_INHERITANCE = "TorchScript classes does not support inheritance yet. Please directly inherit from 'object'."

_types = weakref.WeakKeyDictionary()  # {class: its type}
_own = {}  # {class: its type} of the library's own compiled classes: runs know them by their names, so programs that empty _types get them again
_refused = weakref.WeakSet()  # classes of objects that were tried in vain
_compiling = {}  # {class: its type} while its methods are compiled
_interface_methods = {}  # {qualified name: names of methods} of interfaces
_by_name = weakref.WeakValueDictionary()  # {qualified name: class} of the classes in _types and _compiling that have methods


def qualified_name(obj, name=None):
    """`__torch__.module.Name`; the library's own modules carry PyTorch's names, so that archives are exchanged."""
    name = name or getattr(obj, "__name__", None) or obj.name
    if name == "<lambda>":
        name = "_lambda"
    module = getattr(obj, "__module__", None) or "__main__"
    if module == "__main__":
        return f"__torch__.{name}"
    head, dot, tail = module.partition(".")
    if head == "cresset":
        module = "torch" + dot + tail
    module = ".".join(part if part.isidentifier() else "_" + "".join(c if c.isalnum() else "_" for c in part) for part in module.split("."))
    return f"__torch__.{module}.{name}"


def type_of_class(cls):
    """The type of a class; classes that are none yet are made one. UnknownType for those that cannot."""
    cls = _stand_in(cls) or cls
    known = _types.get(cls) or _compiling.get(cls)
    if known is not None:
        return known
    if issubclass(cls, enum.Enum):
        made = _enum(cls)
    elif is_named_tuple(cls):
        made = _named_tuple(cls)
    elif _marks.is_interface(cls):
        made = _interface(cls)
    elif issubclass(cls, cresset.nn.Module):
        return _type_of_module(cls)  # remembered by the modules that have it
    elif cls.__module__ in ("builtins", "typing") or not hasattr(cls, "__dict__") or issubclass(cls, BaseException):
        raise UnknownType(f"Unknown type name '{cls.__name__}'")
    else:
        return _compiled_class(cls)
    _types[cls] = made
    _C._jit_remember_class(made.qualified_name(), cls)
    return made


def _type_of_module(cls):
    """The type that modules of a class have already: the one that bears the name of the class."""
    name = qualified_name(cls)
    for concrete in _state.concrete_types:
        if concrete.cls is cls and concrete.type is not None and concrete.type.qualified_name() == name:
            return concrete.type
    raise UnknownModule(f"Type '{cls}' cannot be compiled since it inherits from nn.Module, consider passing an instance instead", cls)


def _stand_in(cls):
    """The compiled class that a library names in place of its own one, by `_jit_override_qualname`."""
    name = vars(cls).get("_jit_override_qualname")
    return next((c for c in _types if qualified_name(c) == name), None) if name else None


def is_script_class(cls):
    """Was the class compiled, or is it an enum, named tuple or interface that became a type?"""
    return cls in _types or cls in _compiling or _stand_in(cls) is not None


def can_compile(cls):
    """May a class be tried because a module has an object of it? Not modules, exceptions and containers, nor where a method is not Python's."""
    if cls in _refused or issubclass(cls, (cresset.nn.Module, tuple, list, dict, BaseException)) or cls.__module__ in ("builtins", "typing") or _marks.is_ignored(cls):
        return False
    return all(hasattr(method, "__code__") for method in vars(cls).values() if inspect.isroutine(method) and not isinstance(method, (staticmethod, classmethod)))


def refuse(cls):
    """Do not try the class again for an object of it."""
    _refused.add(cls)


def class_of_type(kind):
    """The Python class that a class type was compiled from, or None."""
    cls = _by_name.get(kind.qualified_name())
    return cls if cls is not None and (_types.get(cls) or _compiling.get(cls)) == kind else None


def _enum(cls):
    members = list(cls)
    if not members:
        raise UnknownType(f"No enumerators are defined for enum '{cls.__name__}'")
    kinds = {type(m.value) for m in members}
    if len(kinds) > 1:
        raise UnknownType(f"Could not unify type list '{', '.join(sorted(k.__name__ for k in kinds))}' of the values of enum '{cls.__name__}'")
    kind = kinds.pop()
    if kind not in (int, float, str):
        raise UnknownType(f"Cannot create Enum with value type '{kind.__name__}', only int, float and string are supported")
    return _C._jit_enum(qualified_name(cls), type_of_annotation(kind), [m.name for m in members], [m.value for m in members])


def _named_tuple(cls):
    annotations = {}
    for base in reversed(cls.__mro__):  # the fields may be a base's
        annotations.update(inspect.get_annotations(base))
    evaluate = _definitions.evaluator_of_class(cls)
    fields = [_type_of_field(cls, annotations[f], evaluate) if f in annotations else _C.TensorType.get() for f in cls._fields]
    return _C._jit_named_tuple(qualified_name(cls), list(cls._fields), fields)


def _type_of_field(cls, annotation, evaluate):
    try:
        return type_of_annotation(annotation, evaluate)
    except (NameError, AttributeError) as error:
        if not isinstance(annotation, (str, typing.ForwardRef)):
            raise
        raise ValueError(
            f"Unknown type annotation: '{annotation!r}' in NamedTuple {cls.__name__}. Likely due to partial support for ForwardRef parameters in NamedTuples, see #95858."
        ) from error


def interface(cls):
    """Class decorator: the methods that a class or module must have to be used under this type. Only their signatures count."""
    if not inspect.isclass(cls):
        raise RuntimeError("interface must be applied to a class")
    is_module = issubclass(cls, cresset.nn.Module)
    bases = [b for b in cls.__mro__[1:] if b is not object]
    if (not is_module and bases) or (is_module and bases[:1] != [cresset.nn.Module]):
        raise RuntimeError("TorchScript interface does not support inheritance yet. Please directly inherit from 'object' or 'nn.Module'.")
    cls.__torch_script_interface__ = is_module
    return cls


def _interface(cls):
    methods = {}
    for name, method in vars(cls).items():
        if not inspect.isfunction(method):
            continue
        evaluate = _definitions.evaluator_of_class(cls, method)
        names, kinds, returns = [], [], None
        for i, (parameter, annotation) in enumerate(_definitions.annotations_of(method).items()):
            if parameter == "return":
                returns = type_of_annotation(annotation, evaluate)
            elif i > 0:
                names.append(parameter)
                kinds.append(_C.TensorType.get() if annotation is None else type_of_annotation(annotation, evaluate))
        methods[name] = names, kinds, returns or _C.TensorType.get()
    made = _C._jit_interface(qualified_name(cls), cls.__torch_script_interface__)
    for name, signature in methods.items():
        _C._jit_interface_method(made, name, *signature)
    _interface_methods[made.qualified_name()] = tuple(methods)
    return made


def methods_of_interface(kind):
    """The names of an interface's methods."""
    return _interface_methods.get(kind.qualified_name(), ())


def script_class(cls, frame_names=None):
    """Compile a class: its methods become a type of scripts, and objects may be passed to and from them."""
    if issubclass(cls, cresset.nn.Module):
        raise RuntimeError(f"Type '{cls}' cannot be compiled since it inherits from nn.Module, consider passing an instance instead")
    if cls.__bases__ != (object,):
        raise RuntimeError(NO_INHERITANCE)
    return _types.get(cls) or _compiled_class(cls, frame_names)


def _compiled_class(cls, frame_names=None):
    """A class that a script mentions is compiled too when it has bases, but they give it nothing: only what it defines itself counts."""
    if cls in _own:
        _types[cls] = _own[cls]
        _by_name[_own[cls].qualified_name()] = cls
        return _own[cls]
    type_ = _C._jit_class(qualified_name(cls), False)
    _compiling[cls] = type_
    _by_name[type_.qualified_name()] = cls
    names = {cls.__name__: cls, **(frame_names or {})}
    try:
        definitions = [_definitions.definition_of(method, name, names) for name, method in _methods_of(cls)]
        if dataclasses.is_dataclass(cls) and _dataclasses.is_generated(cls, cls.__init__):
            definitions.insert(0, _dataclasses.init_of(cls, names))
        _C._jit_define(type_.qualified_name(), definitions, type_, None)
        for comparison in _dataclasses.comparisons_of(cls, type_, names):
            with contextlib.suppress(RuntimeError):  # of fields that scripts cannot compare: an error for who compares
                _C._jit_define(type_.qualified_name(), [comparison], type_, None)
    except BaseException:
        del _by_name[type_.qualified_name()]
        raise
    finally:
        del _compiling[cls]
    _types[cls] = type_
    if own_module(cls.__module__).partition(".")[0] == "cresset":
        _own[cls] = type_
    _C._jit_remember_class(type_.qualified_name(), cls)
    return type_


def _methods_of(cls):
    """(name, function) of the methods and accessors of properties to compile; __init__, which gives the attributes, first."""
    methods = {}
    unused = getattr(cls, "__jit_unused_properties__", ())
    for name, item in vars(cls).items():
        if isinstance(item, property) and name not in unused:
            for accessor, prefix in ((item.fget, "__get_"), (item.fset, "__set_")):
                if accessor is not None and not _marks.is_unused(accessor) and not _marks.is_ignored(accessor):
                    methods[prefix + name] = accessor
        elif inspect.isfunction(item) and not _marks.is_ignored(item) and not _marks.is_dropped(item) and not _dataclasses.is_generated(cls, item):
            methods[name] = item
    return sorted(methods.items(), key=lambda m: m[0] != "__init__")
