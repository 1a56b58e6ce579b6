"""Functions and methods declared for several types: `_overload`, `_overload_method`.

Declarations stand in front of the implementation and share its qualified name. The implementation is compiled once for each of them, with the
types and defaults of the declaration; a call takes the first whose parameters fit.
"""

import ast
import inspect
import textwrap
import weakref

from cresset._C import ScriptDefinition
from cresset._same_names import own_module

from . import _definitions

__all__ = ["declare", "overloads_of", "definition_of_overload"]

_declared = {}  # {qualified name: declarations}, until the implementation is met
_known = weakref.WeakKeyDictionary()  # {implementation: declarations}


def _key(function):
    return f"{own_module(function.__module__)}.{function.__qualname__}"


def _check_declares_only(function):
    try:
        text = inspect.getsource(function)
        body = ast.parse(textwrap.dedent(text)).body[0].body
    except (OSError, SyntaxError):  # without its source nothing says what the body is
        return
    empty = len(body) == 1 and (isinstance(body[0], ast.Pass) or isinstance(body[0], ast.Expr) and getattr(body[0].value, "value", None) is ...)
    if not empty:
        raise RuntimeError(f"Only `pass` statement or `...` can be the body of overload declaration:\n{text.rstrip()} <- Expecting `pass` or `...` here!")


def declare(function):
    """Decorator: one more signature of the function or method of this name. RuntimeError when its body is not just `pass` or `...`."""
    _check_declares_only(function)
    _declared.setdefault(_key(function), []).append(function)
    return function


def overloads_of(function):
    """The declarations of an implementation; empty for functions without."""
    if function not in _known:
        _known[function] = tuple(_declared.pop(_key(function), ()))
        if function in _known[function]:
            method = "." in function.__qualname__.rpartition("<locals>.")[2]
            raise RuntimeError(
                f'Implementation for the {"method" if method else "function"} "{_key(function)}" is missing. Please make sure a definition is provided '
                "and defined after all overload declarations."
            )
    return _known[function]


def definition_of_overload(implementation, declaration, name):
    """What the compiler takes: the implementation's text with the declaration's types and defaults."""
    body, signature = _definitions.definition_of(implementation, name), _definitions.definition_of(declaration, name)
    types = {**body.types, **_definitions.types_in_comments(declaration), **signature.types}
    return ScriptDefinition(body.text, body.filename, body.line, body.resolver, {**body.defaults, **signature.defaults}, types, name)
