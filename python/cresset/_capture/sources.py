"""The tree of a function: found in its file, and used only where compiling the file gives the very code that runs."""

import ast
import functools
import linecache
import types

from .errors import Unsupported

__all__ = ["assigned_names", "tree_of"]

_FUNCTIONS = (ast.FunctionDef, ast.Lambda)
_GENERATOR_FLAGS = 0x20 | 0x80 | 0x200  # generators, coroutines, asynchronous generators


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


@functools.lru_cache(maxsize=256)
def _parsed(text, filename):
    """(function nodes by first line, code objects) of a file's text."""
    tree = ast.parse(text, filename)
    nodes = {}
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            nodes.setdefault(first, []).append(node)
    return nodes, set(_codes(compile(text, filename, "exec", dont_inherit=True)))


def _holds(node, code):
    """Is a lambda's body where the code's instructions are?"""
    body = node.body
    places = {(line, column) for line, end, column, _ in code.co_positions() if line is not None and column is not None}
    last = (body.end_lineno, body.end_col_offset)
    return all((body.lineno, body.col_offset) <= place < last for place in places if place[1] or place[0] != code.co_firstlineno)


def tree_of(function):
    """The FunctionDef or Lambda of a function. Unsupported for generators, and where the source is not there or is not what runs."""
    code = function.__code__
    name = code.co_name
    if code.co_flags & _GENERATOR_FLAGS:
        raise Unsupported(f"{name} is a generator or coroutine")
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text:
        raise Unsupported(f"the source of {name} is not there")
    try:
        nodes, codes = _parsed(text, code.co_filename)
    except SyntaxError as error:
        raise Unsupported(f"the source of {name} is not what runs") from error
    if code not in codes:
        raise Unsupported(f"the source of {name} is not what runs: its file has changed, or something rewrote the function when it was loaded")
    found = [node for node in nodes.get(code.co_firstlineno, ()) if getattr(node, "name", "<lambda>") == name]
    if len(found) > 1:
        found = [node for node in found if isinstance(node, ast.Lambda) and _holds(node, code)]
    if len(found) != 1:
        raise Unsupported(f"several functions begin in the line of {name}")
    return found[0]


@functools.lru_cache(maxsize=1024)
def assigned_names(node):
    """Names that are local to a function: its parameters and what it assigns."""
    names = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg) if a}
    todo = list(node.body) if isinstance(node.body, list) else [node.body]
    while todo:
        one = todo.pop()
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(one.name)
            continue
        if isinstance(one, ast.Lambda):
            continue
        if isinstance(one, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            names.update(n.target.id for n in ast.walk(one) if isinstance(n, ast.NamedExpr))
            todo.append(one.generators[0].iter)
            continue
        if isinstance(one, ast.Name) and isinstance(one.ctx, (ast.Store, ast.Del)):
            names.add(one.id)
        if isinstance(one, ast.ExceptHandler) and one.name:
            names.add(one.name)
        if isinstance(one, ast.alias):
            names.add((one.asname or one.name).partition(".")[0])
        todo.extend(ast.iter_child_nodes(one))
    return frozenset(names)
