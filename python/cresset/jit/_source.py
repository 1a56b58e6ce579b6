"""The source text of Python functions and the names that they see."""

import builtins
import inspect
import sys
import types

__all__ = ["SourceOf", "closure_names", "frame_names", "evaluator"]


class SourceOf:
    """The text of a function or class with its file and the line it begins at."""

    __slots__ = ("text", "filename", "line")

    def __init__(self, obj):
        obj = inspect.unwrap(obj) if not inspect.isclass(obj) else obj
        try:
            lines, self.line = inspect.getsourcelines(obj)
            self.filename = inspect.getsourcefile(obj) or ""
        except (OSError, TypeError) as error:
            raise OSError(
                f"Can't get source for {obj}. TorchScript requires source access in order to carry out compilation, make sure original .py "
                "files are available."
            ) from error
        self.text = "".join(lines)
        self.line = self.line or 1


def _closure_of(function):
    """{name: value} of what the function captured."""
    code, cells = function.__code__, function.__closure__ or ()
    out = {}
    for name, cell in zip(code.co_freevars, cells):
        try:
            out[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            pass
    return out


def closure_names(function, more=None):
    """A lookup `name -> object` (KeyError) through captured variables, `more`, globals and built-in names."""
    function = inspect.unwrap(function)
    if isinstance(function, types.MethodType):
        function = function.__func__
    captured = _closure_of(function)
    scopes = [captured, *([more] if more else []), function.__globals__, vars(builtins)]

    def lookup(name):
        for scope in scopes:
            if name in scope:
                return scope[name]
        raise KeyError(name)

    return lookup


def frame_names(frames_up=0, more=None):
    """A lookup `name -> object` (KeyError) through the variables of a function that is running: the caller of who calls this, or one further
    out, then `more`, globals and built-in names. The lookup sees the variables as they are when it is asked."""
    frame = sys._getframe(2 + frames_up)

    def lookup(name):
        for scope in (frame.f_locals, more or {}, frame.f_globals, vars(builtins)):
            if name in scope:
                return scope[name]
        raise KeyError(name)

    return lookup


class _Names(dict):
    """A mapping for eval that asks a lookup."""

    def __init__(self, lookup):
        super().__init__()
        self._lookup = lookup

    def __missing__(self, name):
        return self._lookup(name)


def evaluator(lookup):
    """A function that evaluates the text of an annotation with the names of `lookup`; NameError for unknown ones."""

    def evaluate(text):
        try:
            return eval(text, {"__builtins__": {}}, _Names(lookup))  # noqa: S307  (the program's own annotation)
        except KeyError as error:
            raise NameError(f"name {error} is not defined") from None

    return evaluate
