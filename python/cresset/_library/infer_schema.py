"""Schema strings from the annotations of a Python function."""

import collections.abc
import inspect
import types
import typing

import cresset

__all__ = ["infer_schema"]

_NUMBER = int | float | bool
_UNKNOWN = "unknown"


def _lists_of(kind):
    return [typing.Sequence[kind], typing.List[kind], collections.abc.Sequence[kind], list[kind]]


def _parameter_types():
    """Annotation → schema type, in the order in which error messages list them."""
    tensor = cresset.Tensor
    table = {tensor: "Tensor", typing.Optional[tensor]: "Tensor?"}
    table.update(dict.fromkeys(_lists_of(tensor), "Tensor[]"))
    table.update(dict.fromkeys(_lists_of(typing.Optional[tensor]), "Tensor?[]"))
    for kind, name in ((int, "SymInt"), (float, "float"), (bool, "bool")):
        table.update({kind: name, typing.Optional[kind]: f"{name}?"})
        table.update(dict.fromkeys(_lists_of(kind), f"{name}[]"))
        table.update({typing.Optional[sequence]: f"{name}[]?" for sequence in _lists_of(kind)})
    table.update({str: "str", typing.Optional[str]: "str?", _NUMBER: "Scalar", typing.Optional[_NUMBER]: "Scalar?"})
    table.update(dict.fromkeys(_lists_of(_NUMBER), "Scalar[]"))
    for kind, name in ((cresset.dtype, "ScalarType"), (cresset.device, "Device")):
        table.update({kind: name, typing.Optional[kind]: f"{name}?"})
    return table


def _return_types():
    tensor = cresset.Tensor
    return {tensor: "Tensor", typing.List[tensor]: "Tensor[]", list[tensor]: "Tensor[]", int: "SymInt", float: "float", bool: "bool", _NUMBER: "Scalar"}


_tables = {}


def _table(name, make):
    if name not in _tables:
        _tables[name] = make()
    return _tables[name]


def __getattr__(name):
    if name == "SUPPORTED_PARAM_TYPES":
        return _table("parameters", _parameter_types)
    if name == "SUPPORTED_RETURN_TYPES":
        return _table("returns", _return_types)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _normal(annotation):
    """`X | None` in the form that typing.Optional gives."""
    if isinstance(annotation, types.UnionType):
        return typing.Union[annotation.__args__]
    return annotation


def _default_text(value, kind):
    if value is None or isinstance(value, (int, float, bool)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, cresset.dtype):
        return str(value).rpartition(".")[2]
    if isinstance(value, cresset.device):
        return f'"{value}"'
    raise TypeError(kind)


def _kind(name, annotation, written, kinds, fail):
    """The schema type of a parameter's annotation; `written` is how it stands in the signature."""
    try:
        kind = kinds.get(annotation)
    except TypeError:  # an unhashable annotation is in no table
        kind = None
    if kind is not None:
        return kind
    hint = ""
    if typing.get_origin(annotation) is tuple:
        elements = [a for a in typing.get_args(annotation) if a is not Ellipsis]
        example = f"For example, list[{elements[0].__name__}]." if len(set(elements)) == 1 and hasattr(elements[0], "__name__") else ""
        hint = f"We do not support Tuple inputs in schema. As a workaround, please try to use List instead. {example}\n\n"
    fail(f"Parameter {name} has unsupported type {written}. {hint}The valid types are: {kinds.keys()}.")


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema of an operator with the signature of `prototype_function`.

    mutates_args: names of the tensor arguments that the operator writes to, or "unknown", which marks every tensor argument.
    Raises ValueError with the signature for annotations that are missing or that have no schema type.

    >>> def foo(x: cresset.Tensor, n: int = 1) -> cresset.Tensor: ...
    >>> infer_schema(foo, mutates_args=())
    '(Tensor x, SymInt n=1) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    scope = getattr(prototype_function, "__globals__", {})

    def fail(what):
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    def resolve(annotation):
        if not isinstance(annotation, str):
            return _normal(annotation)
        try:
            return _normal(eval(annotation, scope))
        except Exception as error:
            fail(
                f"Unsupported type annotation {annotation}. It is not a type. ({error}) Types that annotations name as strings must be "
                "importable at module scope."
            )

    if isinstance(mutates_args, str) and mutates_args != _UNKNOWN:
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the string 'unknown'. "
        )
    kinds = _table("parameters", _parameter_types)
    parameters, seen, keyword_only = [], set(), False
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            fail("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parameters.append("*")
            keyword_only = True
        if parameter.annotation is parameter.empty:
            fail(f"Parameter {name} must have a type annotation.")
        annotation = resolve(parameter.annotation)
        kind = _kind(name, annotation, parameter.annotation, kinds, fail)
        if mutates_args == _UNKNOWN or name in mutates_args:
            if kind.startswith("Tensor"):
                kind = f"Tensor(a{index}!)" + kind[len("Tensor"):]
            elif mutates_args != _UNKNOWN:
                fail(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
        seen.add(name)
        if parameter.default is parameter.empty:
            parameters.append(f"{kind} {name}")
            continue
        try:
            default = _default_text(parameter.default, kind)
        except TypeError:
            fail(f"Parameter {name} has an unsupported default value type {type(parameter.default)}. Please file an issue on GitHub so we can prioritize this.")
        parameters.append(f"{kind} {name}={default}")
    if mutates_args != _UNKNOWN:
        unknown = set(mutates_args) - seen
        if unknown:
            fail(
                f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain the names of all args that "
                "the custom op mutates, or just the string 'unknown' if you don't know."
            )
    if signature.return_annotation is signature.empty:
        fail("No return type annotation was provided. Please add one.")
    returns = _returns(resolve(signature.return_annotation), fail)
    return f"{op_name or ''}({', '.join(parameters)}) -> {returns}"


def _returns(annotation, fail):
    if annotation is None:
        return "()"
    kinds = _table("returns", _return_types)

    def one(kind, whole):
        try:
            if kind in kinds:
                return kinds[kind]
        except TypeError:
            pass
        fail(f"Return has unsupported type {whole}. The valid types are: {kinds}.")

    if typing.get_origin(annotation) is tuple:
        elements = typing.get_args(annotation)
        if len(elements) == 1:
            return one(_normal(elements[0]), annotation)
        return "(" + ", ".join(one(_normal(e), annotation) for e in elements) + ")"
    return one(annotation, annotation)
