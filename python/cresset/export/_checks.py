"""Checks of a program's inputs against what it was exported for."""

import cresset
from cresset.utils import _pytree as pytree

from .graph_signature import CustomObjArgument

__all__ = ["check_inputs", "reordered"]


def reordered(args, kwargs, in_spec):
    """The inputs with keywords, and the keys of dicts within, in the order of the structure, where they are the same ones."""
    args_spec, kwargs_spec = in_spec.children_specs
    return _in_order(tuple(args), args_spec), _in_order(kwargs, kwargs_spec)


def _in_order(value, spec):
    kind, children = type(value), spec.children_specs
    if kind is not spec.type or kind not in (dict, tuple, list) or len(value) != len(children):
        return value
    if kind is not dict:
        return kind(map(_in_order, value, children))
    names = spec.context
    return {k: _in_order(value[k], child) for k, child in zip(names, children)} if value.keys() == set(names) else value


def _place_of(path):
    """`*args[0]['k']` of the path of a leaf in (args, kwargs)."""
    return ("*args" if path[0].idx == 0 else "**kwargs") + pytree.keystr(path[1:])


def check_inputs(args, kwargs, in_spec, expected, ranges):
    """ValueError for inputs of another structure; RuntimeError for sizes and values that the program does not have.

    expected: [(example, sizes)] of the leaves: sizes are numbers or expressions of the symbols of ranges, None where the example has them.
    """
    leaves, spec = pytree.tree_flatten_with_path((args, kwargs))
    if spec != in_spec:
        raise ValueError(
            f"Trying to flatten user inputs with exported input tree spec: \n{in_spec}\nbut actually got inputs with tree spec of: \n{spec}.\n"
            "Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing."
        )
    known, later = {}, []
    for (path, value), (example, sizes) in zip(leaves, expected):
        place = _place_of(path)
        if isinstance(example, cresset.Tensor):
            _check_tensor(place, value, example, sizes, known, later, ranges)
        elif isinstance(example, CustomObjArgument):
            _check_object(place, value, example)
        elif type(value) is not type(example) or value != example:
            raise RuntimeError(f"Expected input at {place} to be equal to {example!r}, but got {value!r}")
    for place, size, expression in later:
        _solve(place, size, expression, known, ranges)
        if size != expression.value(known):
            raise RuntimeError(f"Expected input at {place} to be equal to {expression} = {expression.value(known)}, but got {size}")


def _check_object(place, value, example):
    given = value._type().qualified_name() if isinstance(value, cresset.ScriptObject) else getattr(value, "script_class_name", type(value))
    if given != example.class_fqn:
        raise RuntimeError(f"Expected input at {place} to be an object of {example.class_fqn}, but got {given}")


def _solve(place, size, expression, known, ranges):
    """Note the symbol of a size `factor * symbol + offset` when no input has it by itself."""
    unknown = expression.symbols() - known.keys()
    if len(unknown) != 1 or len(expression.terms) != 1 or expression.divisor != 1:
        return
    (symbol,), ((factor, _),) = unknown, expression.terms
    value, rest = divmod(size - expression.outer - expression.inner * expression.factor, factor * expression.factor)
    if rest:
        raise RuntimeError(f"Expected input at {place} to be of the form {expression}, but got {size}")
    limits = ranges.get(symbol)
    if limits is not None and not limits.lower <= value <= limits.upper:
        raise RuntimeError(f"Expected input at {place} to be of the form {expression} with {symbol} in [{limits.lower}, {limits.upper}], but got {size}")
    known[symbol] = value


def _check_tensor(place, value, example, sizes, known, later, ranges):
    if not isinstance(value, cresset.Tensor):
        raise RuntimeError(f"Expected input at {place} to be a tensor, but got {type(value)}")
    if value.dim() != example.dim():
        raise RuntimeError(f"Expected input at {place} to have {example.dim()} dimensions, but got {value.dim()}.")
    for d, (size, wanted) in enumerate(zip(value.shape, sizes or example.shape)):
        where = f"{place}.shape[{d}]"
        if isinstance(wanted, int):
            if size != wanted:
                raise RuntimeError(f"Expected input at {where} to be equal to {wanted}, but got {size}")
            continue
        symbol = wanted.symbol
        if symbol is None:
            later.append((where, size, wanted))
            continue
        limits = ranges.get(symbol)
        if limits is not None and not limits.lower <= size <= limits.upper:
            bound = f">= {limits.lower}" if size < limits.lower else f"<= {limits.upper}"
            raise RuntimeError(f"Expected input at {where} to be {bound}, but got {size}")
        if known.setdefault(symbol, size) != size:
            raise RuntimeError(f"Expected input at {where} to be equal to {known[symbol]}, but got {size}")
