"""Translations of operators: their registry, and how their arguments are read."""

import functools
import inspect
import re

from .errors import OnnxExporterError, SymbolicValueError

__all__ = ["find", "parse_args", "register", "unregister"]

_NAME = re.compile(r"^[a-zA-Z][\w.-]*::[a-zA-Z_]\w*$")
_translations = {}


def register(name, function, version):
    if not _NAME.match(name):
        raise OnnxExporterError(
            f"Failed to register operator {name}. The symbolic name must match the format domain::name, and should start with a letter and contain only alphanumeric characters"
        )
    _translations.setdefault(name, {})[version] = function


def unregister(name, version):
    _translations.get(name, {}).pop(version, None)


def find(name, version):
    """The translation of the operator `name` in this version of the operator set: that of the newest version up to it, or None."""
    known = [v for v in _translations.get(name, {}) if v <= version]
    return _translations[name][max(known)] if known else None


def _constant(value):
    """The number or list that a node of the graph holds, or what is a number or list itself."""
    node = getattr(value, "node", None)
    if not callable(node):
        return value
    node = node()
    if node.kind() not in ("prim::Constant", "onnx::Constant"):
        raise SymbolicValueError("ONNX symbolic expected a constant value in the trace", value)
    return value.toIValue()


_READ = {
    "v": lambda value: value,
    "i": lambda value: int(_constant(value)), "f": lambda value: float(_constant(value)), "b": lambda value: bool(_constant(value)),
    "s": lambda value: str(_constant(value)), "t": _constant,
    "is": lambda value: [int(v) for v in _constant(value)], "fs": lambda value: [float(v) for v in _constant(value)],
}  # fmt: skip


def _read(value, kind):
    if kind == "none":
        if value is not None and _constant(value) is not None:
            raise SymbolicValueError("ONNX symbolic expected None", value)
        return None
    if kind not in _READ:
        raise OnnxExporterError(f"ONNX symbolic does not know the argument kind {kind!r}")
    return None if value is None else _READ[kind](value)


def parse_args(*kinds):
    """A decorator for translations: arguments behind the graph become values ("v"), integers ("i"), floats ("f"), bools ("b"), texts ("s"),
    tensors ("t"), lists ("is", "fs") or "none"; those that are missing keep their defaults."""

    def decorator(function):
        names = list(inspect.signature(function).parameters)[1:]

        @functools.wraps(function)
        def wrapper(graph, *args, **kwargs):
            if len(args) > len(kinds):
                raise OnnxExporterError(f"{function.__name__} has {len(kinds)} arguments in parse_args, {len(args)} were given")
            args = [_read(value, kind) for value, kind in zip(args, kinds)]
            kwargs = {name: _read(value, kinds[names.index(name)]) if name in names[: len(kinds)] else value for name, value in kwargs.items()}
            return function(graph, *args, **kwargs)

        return wrapper

    return decorator
