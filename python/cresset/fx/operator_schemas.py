"""Signatures of operators, and arguments in their form."""

import inspect
import numbers
import types
import typing
from typing import Any, NamedTuple

import cresset

from .. import _C

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "get_signature_for_torch_op", "create_type_hint", "type_matches", "normalize_function",
    "normalize_module",
]  # fmt: skip


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call."""

    args: tuple
    kwargs: dict


_manual_overrides = {}


def _schemas_of(op):
    if isinstance(op, _C.OpOverload):
        return [op._schema]
    if type(op).__name__ == "OpOverloadPacket":
        return list(op._schemas.values())
    if type(op) in (_C.builtin_function, _C.builtin_method):
        return [_C._find_overload(*_split(name))._schema for name in op._overloads]
    return []


def _split(qualname):
    base, _, overload = qualname.partition(".")
    return base, overload


def _type_of(text):
    text = str(text)
    if text.endswith("?"):
        return typing.Optional[_type_of(text[:-1])]
    if text.startswith("Optional[") and text.endswith("]"):
        return typing.Optional[_type_of(text[9:-1])]
    if text.endswith("]"):
        inner = text[5:-1] if text.startswith("List[") else text.partition("[")[0]
        return typing.List[_type_of(inner)]
    return {
        "Tensor": cresset.Tensor, "int": int, "SymInt": int, "float": float, "bool": bool, "number": numbers.Number, "Scalar": numbers.Number,
        "str": str, "Device": cresset.device, "ScalarType": int, "Layout": int, "MemoryFormat": int, "complex": complex, "Any": Any,
    }.get(text, Any)  # fmt: skip


def _parts(text):
    """What stands between commas outside of brackets."""
    depth, begin, found = 0, 0, []
    for at, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            found.append(text[begin:at].strip())
            begin = at + 1
    return [*found, text[begin:].strip()]


def _torchscript_type_to_python_type(ts_type):
    """The Python type of a script type: List[int] for `List[int]`, and so on."""
    text = ts_type if isinstance(ts_type, str) else ts_type.annotation_str
    if text.startswith("Tuple["):
        inner = text[6:-1]
        return typing.Tuple[()] if inner == "()" else typing.Tuple[tuple(map(_torchscript_type_to_python_type, _parts(inner)))]
    if text.startswith("Dict["):
        return typing.Dict[tuple(map(_torchscript_type_to_python_type, _parts(text[5:-1])))]
    if text.startswith("List["):
        return typing.List[_torchscript_type_to_python_type(text[5:-1])]
    if text.startswith("Optional["):
        return typing.Optional[_torchscript_type_to_python_type(text[9:-1])]
    return type(None) if text == "NoneType" else cresset.device if text == "torch.device" else _type_of(text)


def _signature_of(schema):
    parameters = []
    for argument in schema.arguments:
        kind = inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
        name = "input" if argument.name == "self" else argument.name
        if name == "from":
            kind, name = inspect.Parameter.POSITIONAL_ONLY, "from_"
            parameters = [p.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for p in parameters]
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=_type_of(argument.type)))
    result = [_type_of(r.type) for r in schema.returns]
    annotation = None if not result else result[0] if len(result) == 1 else tuple(result)
    return inspect.Signature(parameters, return_annotation=annotation)


def get_signature_for_torch_op(op, return_schemas=False):
    """Signatures of the overloads of an operator, or None; with return_schemas the schemas as well."""
    if isinstance(op, _C.OpOverload):
        schemas = [op._schema]
    elif type(op).__name__ == "OpOverloadPacket":
        schemas = list(op._schemas.values())
    else:
        override = _manual_overrides.get(op)
        if override:
            return (override, None) if return_schemas else None
        try:
            schemas = _schemas_of(op)
        except (TypeError, AttributeError):
            schemas = []
    if not schemas:
        return (None, None) if return_schemas else None
    signatures = [_signature_of(s) for s in schemas]
    return (signatures, schemas) if return_schemas else signatures


def check_for_mutable_operation(target, args, kwargs):
    """RuntimeError when every overload of the operator that takes the arguments writes to one of them."""
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    if not signatures or not schemas:
        return
    matched = []
    for signature, schema in zip(signatures, schemas):
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            continue
        matched.append(schema)
    if len(matched) == 1 and matched[0].is_mutable or matched and all(s.is_mutable for s in matched):
        raise RuntimeError(
            f"Tried to trace mutable operation {matched[0]}. FX only supports functional code, so operations that mutate operands in-place "
            "(e.g. via `out` arguments) are not supported"
        )


def create_type_hint(x):
    """List[T] or Tuple[T, ...] of a list or tuple of types, anything else as it is."""
    if isinstance(x, (list, tuple)):
        def made(kind):
            return typing.List[kind] if isinstance(x, list) else typing.Tuple[kind, ...]

        if not x:
            return made(Any)
        base = x[0]
        for kind in x:
            if isinstance(kind, type) and isinstance(base, type) and issubclass(kind, base):
                continue
            if isinstance(kind, type) and isinstance(base, type) and issubclass(base, kind):
                base = kind
            else:
                return made(Any)
        return made(base)
    return x


def type_matches(signature_type, argument_type):
    """Does a parameter of one type take an argument of another?"""
    origin = typing.get_origin(signature_type)
    if signature_type is argument_type or signature_type is Any:
        return True
    if origin in (typing.Union, types.UnionType) and signature_type != argument_type:
        return any(type_matches(kind, argument_type) for kind in typing.get_args(signature_type))
    if origin is list:
        (item,) = typing.get_args(signature_type)
        if argument_type is item:
            return True
        found = typing.get_origin(argument_type)
        if found in (list, tuple):
            return all(type_matches(item, kind) for kind in typing.get_args(argument_type) if kind is not ...)
        return item is int and argument_type is int or argument_type is cresset.Size
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type) or signature_type is float and argument_type is int
    return False


def normalize_function(target, args, kwargs=None, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
    """ArgsKwargsPair with defaults filled in and, if wished, everything by name; None when no overload, or more than one, fits."""
    kwargs = kwargs or {}
    if not isinstance(target, _C.OpOverload) and (inspect.isfunction(target) or isinstance(target, _C.overridable)):
        return _bound(inspect.signature(inspect.unwrap(target)), args, kwargs, normalize_to_only_use_kwargs)
    if not callable(target):
        return None
    signatures = get_signature_for_torch_op(target)
    if not signatures:
        return None
    fitting = []
    for signature in signatures:
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            continue
        fitting.append(signature)
    if len(fitting) > 1:
        if arg_types is None and kwarg_types is None:
            raise RuntimeError(
                f"Tried to normalize arguments to {_path(target)} but the schema match was ambiguous! Please provide argument types to the "
                "normalize_arguments() call. Available schemas:\n" + "\n".join(map(str, fitting))
            )
        fitting = [s for s in fitting if _types_fit(s, arg_types or (), kwarg_types or {})]
    return _bound(fitting[0], args, kwargs, normalize_to_only_use_kwargs) if fitting else None


def _path(target):
    from .node import _get_qualified_name

    return _get_qualified_name(target)


def _types_fit(signature, arg_types, kwarg_types):
    bound = signature.bind(*arg_types, **kwarg_types)
    return all(type_matches(signature.parameters[name].annotation, kind) for name, kind in bound.arguments.items())


def normalize_module(root, target, args, kwargs=None, normalize_to_only_use_kwargs=False):
    """The same for a call of a submodule of the package's own classes; RuntimeError when there is no such submodule."""
    try:
        submodule = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have that target!") from error
    if getattr(cresset.nn, type(submodule).__name__, None) is type(submodule):
        return _bound(inspect.signature(submodule.forward), args, kwargs or {}, normalize_to_only_use_kwargs)
    return None


def _bound(signature, args, kwargs, only_kwargs):
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    by_position, by_name = [], {}
    for at, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return None
        first_only = parameter.kind is parameter.POSITIONAL_ONLY
        if first_only or not only_kwargs and parameter.kind is not parameter.KEYWORD_ONLY and at < len(args):
            by_position.append(bound.arguments[name])
        else:
            by_name[name] = bound.arguments[name]
    return ArgsKwargsPair(tuple(by_position), by_name)
