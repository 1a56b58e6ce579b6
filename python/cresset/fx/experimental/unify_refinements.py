"""Sizes of a graph that was checked, as symbols and expressions of sympy; without sympy as names alone."""

import functools

from cresset import nn
from cresset.fx.tensor_type import TensorType

from .graph_gradual_typechecker import Refine, Var, _pair

__all__ = ["infer_symbolic_types"]


def _is_unknown(size):
    return isinstance(size, Var) or getattr(size, "is_Symbol", False)


def _solved(constraints):
    """{unknown size: what it is}; of two unknown ones the second stands for both."""
    known = {}

    def of(size):
        while size in known:
            size = known[size]
        return size

    for equality in constraints:
        left, right = of(equality.lhs), of(equality.rhs)
        if left == right:
            continue
        if _is_unknown(left):
            known[left] = right
        elif _is_unknown(right):
            known[right] = left
    return {size: of(size) for size in known}


def _mapped(kind, change):
    if isinstance(kind, TensorType):
        return TensorType(tuple(_mapped(size, change) for size in kind.__args__))
    if isinstance(kind, (tuple, list)):
        return type(kind)(_mapped(part, change) for part in kind)
    return change(kind)


def _window(sympy, size, module, which):
    kernel, stride, padding, dilation = (_pair(getattr(module, name))[which] for name in ("kernel_size", "stride", "padding", "dilation"))
    return sympy.floor((size + 2 * padding - dilation * (kernel - 1) - 1) / sympy.Integer(stride) + 1)


def infer_symbolic_types(traced):
    """Names for the unknown sizes of all nodes, the same for the same ones. With sympy they are symbols, and those of convolutions are computed from
    their inputs'."""
    try:
        import sympy
    except ImportError:
        sympy = None
    for _ in range(1 + len(traced.graph.nodes)):  # what one pass finds may tell the next one more
        refined = Refine(traced)
        refined._count = functools.reduce(max, (size.number + 1 for n in traced.graph.nodes for size in _unknown(n.type)), 0)
        refined.refine()
        solution = _solved(refined.constraints)
        if not solution:
            break
        for n in traced.graph.nodes:
            n.type = _mapped(n.type, lambda size: solution.get(size, size) if _is_unknown(size) else size)
    if sympy is not None:
        _as_expressions(sympy, traced)


def _as_expressions(sympy, traced):
    for n in traced.graph.nodes:
        n.type = _mapped(n.type, lambda size: sympy.Symbol(f"~{size.number}") if isinstance(size, Var) else size)
        if n.op == "call_module" and isinstance(module := traced.get_submodule(n.target), nn.Conv2d) and isinstance(n.type, TensorType):
            sizes, given = list(n.type.__args__), n.args[0].type.__args__
            for which in (0, 1):
                size = given[which - 2]
                if getattr(size, "free_symbols", None):
                    sizes[which - 2] = size if module.padding == "same" else _window(sympy, size, module, which)
            n.type = TensorType(tuple(sizes))


def _unknown(kind):
    if isinstance(kind, Var):
        yield kind
    elif isinstance(kind, TensorType):
        yield from (size for size in kind.__args__ if isinstance(size, Var))
