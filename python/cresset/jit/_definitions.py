"""Python functions as definitions for the compiler: source text, names, defaults, and types from annotations."""

import ast
import inspect
import re
import sys
import textwrap
import types
import typing

from cresset import _C
from cresset._C import ListType, ScriptDefinition, ScriptThing
from cresset._quantized_types import script_number
from cresset.nn import common_types

from . import _marks
from ._source import SourceOf, closure_names, evaluator
from ._types import UnknownModule, UnknownType, type_of_annotation

__all__ = ["definition_of", "definition_of_class_method", "definition_of_text", "definitions_of_text", "annotations_of", "evaluator_of_class", "Resolver", "python_signature", "types_in_comments"]

_NUMBERS = ("inf", "nan", "infj", "nanj")
# What comments with types may name although the program does not import it.
_SCRIPT_NAMES = {"Tensor": _C.Tensor} | {name: getattr(typing, name) for name in ("Any", "Dict", "List", "Optional", "Tuple", "Union")}
_UNUSED_TEXT = "This Python function is annotated to be ignored and cannot be run"


def annotations_of(function):
    """{parameter: annotation or None} in order, and "return" when it is annotated."""
    function = inspect.unwrap(function)
    annotations = getattr(function, "__annotations__", {}) or {}
    out = {name: annotations.get(name) for name in inspect.signature(function).parameters}
    if "return" in annotations:
        out["return"] = annotations["return"]
    return out


def evaluator_of_class(cls, method=None):
    """Evaluates annotations that are strings with the names that a class body sees."""
    module = sys.modules.get(cls.__module__)
    names = dict(vars(module)) if module else {}
    lookup = closure_names(method, {cls.__name__: cls}) if method else None

    def find(name):
        if lookup is not None:
            return lookup(name)
        return names[name] if name in names else getattr(__import__("builtins"), name)

    return evaluator(find)


def _types_of(function, lookup):
    """{parameter: type} of the annotations that are objects scripts have a type for. The compiler reads the text of the others."""
    evaluate, out = evaluator(lookup), {}
    for name, annotation in annotations_of(function).items():
        if name == "return" and "return" in function.__annotations__ and annotation is None:
            out[name] = _C.NoneType.get()
        elif annotation is not None and not _size_of_alias(annotation):
            try:
                out[name] = type_of_annotation(annotation, evaluate)
            except UnknownModule as error:
                if typing.get_origin(annotation) in (list, dict):
                    raise ValueError(f"Unknown type annotation: '{error.cls}' at {_first_line(function)}") from None
            except (UnknownType, NameError, AttributeError, SyntaxError):
                pass
            except ValueError as error:
                raise ValueError(f"{error} Issue occurred at {_first_line(function)}") from None
            except RuntimeError as error:  # of a class that is compiled because of the annotation
                class_name = getattr(annotation, "__name__", annotation)
                text = f"{error}'__torch__.{class_name}' is being compiled since it was called from '{function.__name__}'\n{_first_line(function)}"
                raise type(error)(text) from None
    return out


def types_in_comments(function):
    """{parameter: type} of a function whose types stand in a comment, "# type: (int, Tensor) -> Tensor". The compiler reads them itself; this
    is for declarations, of which it does not see the text."""
    source = ast.parse(textwrap.dedent(SourceOf(function).text), type_comments=True).body[0]
    if source.type_comment is None:
        return {}
    arguments = source.type_comment.partition("->")[0].strip()
    if not arguments.startswith("(") and arguments.endswith(")"):
        raise RuntimeError(f"Type annotation should not contain calls, but '{arguments}' does")
    comment = ast.parse(source.type_comment, mode="func_type")
    names = list(inspect.signature(function).parameters)
    evaluate = evaluator(closure_names(function, _SCRIPT_NAMES))
    said = {**dict(zip(names[len(names) - len(comment.argtypes) :], comment.argtypes)), "return": comment.returns}  # self may be left out
    return {name: type_of_annotation(ast.unparse(text), evaluate) for name, text in said.items()}


class Resolver:
    """What the compiler asks for free names: things for values, types for annotations. `native`: names that `lookup` does not know are those
    of a program without Python."""

    __slots__ = ("lookup", "native")

    def __init__(self, lookup, native=False):
        self.lookup, self.native = lookup, native

    def value(self, name):
        from ._names import thing_of

        if name in _NUMBERS:
            return ScriptThing.native(name)  # words of the language, like print
        try:
            found = self.lookup(name)
        except KeyError:
            return ScriptThing.native(name) if self.native else None
        return thing_of(found, name)

    def type(self, path):
        if path in _SIZES:
            return ListType.ofInts()
        head, *rest = path.split(".")
        try:
            found = self.lookup(head)
            for name in rest:
                found = getattr(found, name)
        except (KeyError, AttributeError):
            return None
        try:
            return type_of_annotation(found, evaluator(self.lookup))
        except UnknownType as error:
            return str(error)


# Aliases that scripts read as lists for which a call may give one number where the text has this name, as PyTorch's do. As an object each is a
# Union that programs may write themselves.
_SIZES = {f"_size_{n}_t": getattr(common_types, f"_size_{n}_t") for n in range(1, 7)}


def _alternatives(annotation):
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return (annotation,)
    inner = tuple(t for t in typing.get_args(annotation) if t is not type(None))
    return (annotation, typing.Union[inner]) if inner else (annotation,)


def _size_of_alias(annotation):
    return next((n for n, alias in enumerate(_SIZES.values(), 1) if alias in _alternatives(annotation)), None)


def list_size(annotation):
    """Of how many equal numbers one may stand for the whole of a list that is annotated so; None for others."""
    sizes = [c._broadcasts[0] for c in (annotation, *typing.get_args(annotation)) if hasattr(c, "_broadcasts")]
    return sizes[0] if sizes else _size_of_alias(annotation)


_MUTABLE_DEFAULT = (
    "\nMutable default parameters are not supported because Python binds them to the function and they persist across function calls.\n"
    " As a workaround, make the default None and instantiate the default parameter within the body of the function. Found {} on parameter {}:\n"
)


def _is_hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _first_line(function):
    """The line of `def` as errors show it."""
    source = SourceOf(function)
    lines = source.text.splitlines()
    at = next((i for i, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
    text = lines[at] if lines else ""
    indent = len(text) - len(text.lstrip())
    return f'  File "{source.filename}", line {source.line + at}\n{text}\n{" " * indent}{"~" * (len(text) - indent)} <--- HERE\n'


def _defaults_of(function):
    """{parameter: default}; a single number stands for the whole of a broadcasting list."""
    out = {}
    for p in inspect.signature(function).parameters.values():
        if p.default is not inspect.Parameter.empty:
            sizes = getattr(p.annotation, "_broadcasts", None)
            if not sizes and not _is_hashable(p.default):
                raise RuntimeError(_MUTABLE_DEFAULT.format(type(p.default), p.name) + _first_line(function))
            default = script_number(p.default)
            out[p.name] = [default] * sizes[0] if sizes and not isinstance(default, list) else default
    return out


def _check_prefix(text):
    """RuntimeError when a comment of types looks like one but for its beginning."""
    if "# type:" in text:
        return
    lines = [str(i) for i, line in enumerate(text.splitlines()) if re.search(r"#[\t ]*type[\t ]*:(?! ignore)", line)]
    if lines:
        raise RuntimeError(
            f"The annotation prefix in line {', '.join(lines)} is probably invalid.\nIt must be '# type:'\nSee PEP 484 "
            "(https://www.python.org/dev/peps/pep-0484/#suggested-syntax-for-python-2-7-and-straddling-code)\nfor examples"
        )


def definition_of(function, name=None, names=None):
    """The definition of one function. `names` are seen besides its own."""
    unused = _marks.is_unused(function)  # decorators below the mark know nothing of it
    function = inspect.unwrap(function)
    if function.__name__ == "<lambda>":
        raise RuntimeError(f"Expected a single top-level function: {inspect.getsourcefile(function)}:{function.__code__.co_firstlineno}")
    lookup = closure_names(function, names)
    types = _types_of(function, lookup)
    defaults = _defaults_of(function)
    source = SourceOf(function)
    _check_prefix(source.text)
    if unused or _marks.is_unused(function):
        # It is never compiled: what its annotations mean need not be known.
        types = {**types_in_comments(function), **types}
        for parameter, annotation in annotations_of(function).items():
            types.setdefault(parameter, _C.TensorType.get() if annotation is None else _C.AnyType.get())
        types.setdefault("return", _C.TensorType.get())
        return ScriptDefinition(_unused_text(function), source.filename, source.line, Resolver(lookup), defaults, types, name or function.__name__)
    return ScriptDefinition(source.text, source.filename, source.line, Resolver(lookup), defaults, types, name or function.__name__)


def definition_of_class_method(function, name, cls):
    """The same for a class method: no parameter stands for the class, whose name in the text means it."""
    first = next(iter(inspect.signature(function).parameters))
    definition = definition_of(function, name, {first: cls, cls.__name__: cls})
    definition.types[first] = None
    return definition


def _unused_text(function):
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = ", ".join(p.name for p in inspect.signature(function).parameters.values() if p.kind not in several)
    return f'def {function.__name__}({parameters}):\n    raise RuntimeError("{_UNUSED_TEXT}")\n'


def definition_of_text(text, lookup, name):
    """The same for source text."""
    return ScriptDefinition(text, "", 1, Resolver(lookup), {}, {}, name)


def definitions_of_text(text, lookup):
    """{name: the same} of the functions of a source text."""
    text = textwrap.dedent(text)
    lines, resolver, out = text.splitlines(keepends=True), Resolver(lookup, native=True), {}
    for item in ast.parse(text).body:
        if not isinstance(item, ast.FunctionDef):
            raise RuntimeError("define: methods ('def name(self, ...):') were required; the text has something else.")
        own = "".join(lines[item.lineno - 1 : item.end_lineno])
        out[item.name] = ScriptDefinition(own, "<string>", item.lineno, resolver, {}, {}, item.name)
    return out


def _commented_types(function):
    """types_in_comments of a function that has source text, else {}."""
    try:
        return types_in_comments(function)
    except (OSError, TypeError, SyntaxError, UnknownType):
        return {}


def python_signature(function, bound):
    """(names, types, defaults, return type) of a function that stays in Python; `bound` leaves out its first parameter. The last name may be
    "*args"; what is taken by keyword alone behind it keeps its default."""
    function = inspect.unwrap(function)
    types = _types_of(function, closure_names(function)) or _commented_types(function)
    tensor = _C.TensorType.get()
    parameters = list(inspect.signature(function).parameters.values())
    if bound and not parameters:
        raise RuntimeError(f"{function.__qualname__} does not have a self argument")
    parameters = parameters[1 if bound else 0 :]
    several = [i for i, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL]
    if several:
        parameters = parameters[: several[0] + 1]
    names = [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    return names, [types.get(n, tensor) for n in names], defaults, types.get("return", tensor)
