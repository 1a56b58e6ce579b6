"""The methods that `dataclasses.dataclass` generates, as definitions for the compiler: they have no source text of their own."""

import builtins
import dataclasses
import inspect
import sys

from . import _definitions
from ._source import evaluator
from ._types import type_of_annotation

__all__ = ["is_generated", "init_of", "comparisons_of"]

_COMPARISONS = {"__lt__": ("<", False), "__le__": ("<", True), "__gt__": (">", False), "__ge__": (">", True)}  # {name: (operator, when equal)}


def is_generated(cls, method):
    """Did dataclass write the method?"""
    return dataclasses.is_dataclass(cls) and inspect.unwrap(method).__code__.co_filename == "<string>"


def comparisons_of(cls, type_, names):
    """What `_C._jit_define` takes for each of the generated comparisons. `names` are seen by annotations besides those of the module."""
    compared = [f for f in dataclasses.fields(cls) if f.compare] if dataclasses.is_dataclass(cls) else []
    for name, method in vars(cls).items():
        if (name != "__eq__" and name not in _COMPARISONS) or not is_generated(cls, method):
            continue
        operator, when_equal = _COMPARISONS.get(name, (None, True))
        lines = []
        for i, f in enumerate(compared):
            unequal = f"return bool(self.{f.name} {operator} other.{f.name})" if operator else "return False"
            lines += [f"if not (self.{f.name} == other.{f.name}):", f"    {unequal}"]
            if not _is_optional(cls, f, names):
                continue
            # Values that may be None are compared where both are there.
            unequal = f"return bool(a{i} {operator} b{i})" if operator else "return False"
            one_missing = f"raise TypeError('Cannot compare {cls.__name__} with None')" if operator else "return False"
            lines[-2:] = [
                f"a{i} = self.{f.name}", f"b{i} = other.{f.name}", f"if a{i} is not None and b{i} is not None:", f"    if not (a{i} == b{i}):", f"        {unequal}",
                f"elif (a{i} is None) != (b{i} is None):", f"    {one_missing}",
            ]  # fmt: skip
        yield _definition(name, ["self", "other"], [*lines, f"return {when_equal}"], {}, {"other": type_, "return": type_of_annotation(bool)})


def _is_optional(cls, field, names):
    try:
        return _type_of_field(field.type, _evaluator_of(cls, names)).kind() in ("OptionalType", "UnionType")
    except Exception:  # a type that scripts do not have: whoever compares is told
        return False


def _evaluator_of(cls, names):
    return evaluator({**vars(builtins), **vars(sys.modules[cls.__module__]), **names}.__getitem__)


def init_of(cls, names):
    """The same for the generated `__init__`. `names` are seen by annotations besides those of the module."""
    evaluate = _evaluator_of(cls, names)
    if any(f.default_factory is not dataclasses.MISSING for f in dataclasses.fields(cls)):
        raise NotImplementedError("Default factory initializers are not supported in TorchScript dataclasses")
    if not all(f.init for f in dataclasses.fields(cls)):
        raise NotImplementedError("Fields with init=False are not supported in TorchScript dataclasses")
    own = {f.name for f in dataclasses.fields(cls)}
    members = cls.__dataclass_fields__  # those that are only passed to __post_init__ (InitVar) included
    order = [p.name for p in inspect.signature(cls.__init__).parameters.values()][1:]
    passed_on = [name for name in members if name in order and name not in own]
    parameters = ["self", *order]
    keyword_only = [name for name in order if members[name].kw_only]
    if keyword_only:
        parameters.insert(parameters.index(keyword_only[0]), "*")
    lines = [f"self.{name} = {name}" for name in order if name in own]
    if hasattr(cls, "__post_init__"):
        lines.append(f"self.__post_init__({', '.join(passed_on)})")
    defaults = {name: members[name].default for name in order if members[name].default is not dataclasses.MISSING}
    types = {name: _type_of_field(members[name].type, evaluate) for name in order}
    return _definition("__init__", parameters, lines or ["pass"], defaults, types)


def _type_of_field(annotation, evaluate):
    if isinstance(annotation, str):
        annotation = evaluate(annotation)
    return type_of_annotation(annotation.type if isinstance(annotation, dataclasses.InitVar) else annotation, evaluate)


def _definition(name, parameters, lines, defaults, types):
    text = f"def {name}({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)
    definition = _definitions.definition_of_text(text, {}.__getitem__, name)
    definition.defaults.update(defaults)
    definition.types.update(types)
    return definition
