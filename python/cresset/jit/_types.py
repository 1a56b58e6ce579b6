"""Types of scripts from Python: annotations that are objects (`Optional[int]`), and the types of values."""

import collections
import enum
import inspect
import types
import typing
import warnings

import cresset
from cresset import _C, _legacy
from cresset._awaits import _Await
from cresset._C import AnyType, DictType, FutureType, ListType, NoneType, OptionalType, TensorType, TupleType
from cresset._same_names import own_module

__all__ = ["UnknownModule", "UnknownType", "type_of_annotation", "type_of_value", "is_named_tuple", "unwrap_final"]


class UnknownType(TypeError):
    """A Python type or value that scripts have no type for; the text says which and why."""


class UnknownModule(UnknownType):
    """A class of modules of which no script has one yet."""

    def __init__(self, text, cls):
        super().__init__(text)
        self.cls = cls


_SIMPLE = {
    int: _C.IntType, float: _C.FloatType, complex: _C.ComplexType, bool: _C.BoolType, str: _C.StringType, type(None): NoneType, None: NoneType,
    typing.Any: AnyType, cresset.device: _C.DeviceObjType, cresset.dtype: _C.IntType, cresset.qscheme: _C.IntType, cresset.layout: _C.IntType, cresset.memory_format: _C.IntType,
    cresset.Generator: getattr(_C, "_GeneratorType"), cresset.Tensor: TensorType, enum.Enum: _C.AnyEnumType,
}  # fmt: skip
_NEEDS_ELEMENTS = {list: "list", dict: "dict", tuple: "tuple", typing.List: "List", typing.Dict: "Dict", typing.Tuple: "Tuple", typing.Optional: "Optional", typing.Union: "Union"}


def is_named_tuple(cls):
    """Is this a class made by NamedTuple or collections.namedtuple?"""
    return inspect.isclass(cls) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def missing_contained_type(name):
    """What is said of `List` where `List[int]` was meant."""
    if name in ("Dict", "dict"):
        return f"Attempted to use {name} without contained types. Please add contained type, e.g. {name}[int, int]"
    return f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"


def unwrap_final(annotation):
    """(the type in Final[T], True), (None, True) for a bare Final, (annotation, False) for others."""
    if annotation is typing.Final:
        return None, True
    if typing.get_origin(annotation) is typing.Final:
        return typing.get_args(annotation)[0], True
    return annotation, False


def type_of_annotation(annotation, evaluate=None):
    """The type that an annotation means; `evaluate` turns strings inside of it into objects. UnknownType for others."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        if evaluate is None:
            raise UnknownType(f"Unknown type name '{annotation}'")
        annotation = evaluate(annotation)
    if isinstance(annotation, _C.Type):
        return annotation
    if isinstance(annotation, typing.Hashable) and annotation in _SIMPLE:
        simple = _SIMPLE[annotation]
        return simple.get()
    if isinstance(annotation, typing.Hashable) and annotation in _NEEDS_ELEMENTS:
        raise UnknownType(missing_contained_type(_NEEDS_ELEMENTS[annotation]))
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is not None:
        return _generic(annotation, origin, arguments, evaluate)
    if inspect.isclass(annotation):
        return _class(annotation)
    qualified_name = getattr(annotation, "_qualified_name", None)  # a C++ class of an extension
    if isinstance(qualified_name, str):
        return _C._jit_custom_class_type(qualified_name)
    raise UnknownType(f"Unknown type name '{_name(annotation)}'")


def _name(annotation):
    return annotation.__name__ if inspect.isclass(annotation) else repr(annotation)


def _generic(annotation, origin, arguments, evaluate):
    def inner(i):
        return type_of_annotation(arguments[i], evaluate)

    if origin is list:
        return ListType(inner(0))
    if origin is dict:
        key = inner(0)
        if str(key) not in ("int", "float", "bool", "str", "Tensor", "complex"):
            raise UnknownType(f"Cannot create dict for key type '{key}', only int, float, complex, Tensor, device and string keys are supported")
        return DictType(key, inner(1))
    if origin is tuple:
        if arguments in ((), ((),)):
            return TupleType([])
        if arguments[-1] is Ellipsis:
            raise UnknownType("Tuples of unknown length are not supported in scripts; use List.")
        return TupleType([inner(i) for i in range(len(arguments))])
    if origin in (typing.Union, types.UnionType):
        members = [type_of_annotation(a, evaluate) for a in arguments]
        if len(members) == 2 and type(None) in arguments:
            return OptionalType(members[0] if arguments[1] is type(None) else members[1])
        return _C._jit_union(members)
    if origin is typing.Final:
        return inner(0)
    if origin is typing.Annotated:
        return inner(0)
    if origin is _Await:
        return _C.AwaitType(inner(0))
    if inspect.isclass(origin) and origin.__name__ == "Future":
        return FutureType(inner(0))
    raise UnknownType(f"Unknown type annotation: '{annotation}'")


def _class(cls):
    from . import _classes

    if isinstance(cls, _legacy.tensortype):
        warnings.warn(
            "TorchScript will treat type annotations of Tensor dtype-specific subtypes as if they are normal Tensors. dtype constraints are not "
            "enforced in compilation either.",
            stacklevel=2,
        )
        return TensorType.get()
    if issubclass(cls, cresset.Tensor):
        return TensorType.get()
    if cls is cresset.Size:
        return ListType.ofInts()
    if hasattr(cls, "_broadcasts"):
        return ListType(type_of_annotation(cls._broadcasts[1]))
    if hasattr(cls, "_script_type"):
        return getattr(_C, cls._script_type).get()
    if cls is _Await:
        return _C.AwaitType(_C.AnyType.get())
    if cls.__name__ == "Future" and own_module(cls.__module__).startswith("cresset"):
        raise UnknownType("Attempted to use Future without a contained type. Please add a contained type, e.g. Future[int]")
    return _classes.type_of_class(cls)


# Values ---------------------------------------------------------------------------------------------------------------


def type_of_value(value, depth=0):
    """The type of a Python value. UnknownType says what in it has none."""
    if depth > 100:
        raise UnknownType("containers may nest 100 deep")
    if value is None:
        return NoneType.get()
    if isinstance(value, cresset.Tensor):
        return TensorType.get()
    cls = type(value)
    if cls in _SIMPLE:
        return _SIMPLE[cls].get()
    if isinstance(value, enum.Enum):
        return type_of_annotation(cls)
    if is_named_tuple(cls):
        for field in value:
            type_of_value(field, depth + 1)  # raises for what scripts cannot hold
        return type_of_annotation(cls)
    if cls is cresset.Size:
        return ListType.ofInts()
    if cls is tuple:
        return TupleType([type_of_value(v, depth + 1) for v in value])
    if cls is list:
        if not value:
            raise UnknownType("List trace inputs must have elements")
        return ListType(_common("List", "element", value, depth))
    if cls in (dict, collections.OrderedDict):
        if not value:
            raise UnknownType("Dictionary inputs must have entries")
        return DictType(_common("Dictionary", "key", value.keys(), depth), _common("Dictionary", "value", value.values(), depth))
    script_type = getattr(value, "_script_type_", None)  # objects of scripts that Python holds
    if isinstance(script_type, _C.Type):
        return script_type
    if isinstance(value, (_C.ScriptModule, cresset.ScriptObject)):
        return value._type()
    if isinstance(value, _C.ScriptFunction):
        return _C.FunctionType(value.qualified_name)
    from . import _classes

    if _classes.is_script_class(cls):
        return type_of_annotation(cls)
    if _classes.can_compile(cls):
        try:
            return _classes.type_of_class(cls)
        except Exception:  # scripts cannot have the class
            _classes.refuse(cls)
    if isinstance(value, cresset.nn.Module):
        raise UnknownType("Cannot infer concrete type of torch.nn.Module")
    raise UnknownType(
        "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of traced functions, "
        f"but instead got value of type {cls.__name__}."
    )


def _common(what, part, values, depth):
    found = None
    for value in values:
        try:
            this = type_of_value(value, depth + 1)
        except UnknownType as error:
            raise UnknownType(f"Could not infer type of list element: {error}" if what == "List" else str(error)) from None
        unified = this if found is None else _C._jit_unify_types(found, this)
        if unified is None:
            raise UnknownType(f"{what} inputs to traced functions must have consistent {part} type. Found {found} and {this}")
        found = unified
    return found
