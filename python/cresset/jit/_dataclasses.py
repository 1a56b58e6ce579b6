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


def comparisons_of(cls, type_):
    """What `_C._jit_define` takes for each of the generated comparisons."""
    compared = [f.name for f in dataclasses.fields(cls) if f.compare] if dataclasses.is_dataclass(cls) else []
    for name, method in vars(cls).items():
        if name == "__eq__" and is_generated(cls, method):
            lines = [line for f in compared for line in (f"if not (self.{f} == other.{f}):", "    return False")] + ["return True"]
        elif name in _COMPARISONS and is_generated(cls, method):
            operator, when_equal = _COMPARISONS[name]
            unequal = [line for f in compared for line in (f"if not (self.{f} == other.{f}):", f"    return self.{f} {operator} other.{f}")]
            lines = [*unequal, f"return {when_equal}"]
        else:
            continue
        yield _definition(name, ["self", "other"], lines, {}, {"other": type_, "return": type_of_annotation(bool)})


def init_of(cls, names):
    """The same for the generated `__init__`. `names` are seen by annotations besides those of the module."""
    evaluate = evaluator({**vars(builtins), **vars(sys.modules[cls.__module__]), **names}.__getitem__)
    fields = sorted((f for f in dataclasses.fields(cls) if f.init), key=lambda f: f.kw_only)
    if any(f.default_factory is not dataclasses.MISSING for f in dataclasses.fields(cls)):
        raise NotImplementedError("Default factory initializers are not supported in TorchScript dataclasses")
    if len(fields) < len(dataclasses.fields(cls)):
        raise NotImplementedError("Fields with init=False are not supported in TorchScript dataclasses")
    parameters = ["self", *(f.name for f in fields)]
    keyword_only = [f.name for f in fields if f.kw_only]
    if keyword_only:
        parameters.insert(parameters.index(keyword_only[0]), "*")
    lines = [f"self.{f.name} = {f.name}" for f in fields] + ["self.__post_init__()"] * hasattr(cls, "__post_init__")
    defaults = {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}
    return _definition("__init__", parameters, lines or ["pass"], defaults, {f.name: type_of_annotation(f.type, evaluate) for f in fields})


def _definition(name, parameters, lines, defaults, types):
    text = f"def {name}({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)
    definition = _definitions.definition_of_text(text, {}.__getitem__, name)
    definition[4].update(defaults)
    definition[5].update(types)
    return definition
