"""Expressions of sizes as .pt2 files have them: sympy's notation of constructors."""

import ast
import collections

from ._sizes import SizeExpr, Symbol

__all__ = ["size_of_text"]


def size_of_text(text):
    """The SizeExpr or number of a text such as `Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))`; None for what SizeExpr does not have."""
    try:
        return _made(_value(ast.parse(text, mode="eval").body))
    except (SyntaxError, _Other, RecursionError):
        return None


class _Other(Exception):
    """An expression of another form."""


def _made(value):
    """Of {symbols: coefficient}, or a SizeExpr with a quotient."""
    if isinstance(value, SizeExpr):
        return value
    terms = tuple((c, s) for s, c in value.items() if s and c)
    return SizeExpr(terms, value.get((), 0)) if terms else value.get((), 0)


def _value(node):
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return {(): node.value}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _product({(): -1}, _value(node.operand))
    if isinstance(node, ast.Name):
        return {(Symbol(node.id),): 1}
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return _sum(left, right if isinstance(node.op, ast.Add) else _product({(): -1}, right))
        if isinstance(node.op, ast.Mult):
            return _product(left, right)
        return _quotient(left, right) if isinstance(node.op, ast.FloorDiv) else _refuse()
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise _Other
    name, args = node.func.id, node.args
    if name == "Symbol" and args and isinstance(args[0], ast.Constant):
        return {(Symbol(args[0].value),): 1}
    parts = [_value(a) for a in args]
    if name == "Integer" and len(parts) == 1:
        return parts[0]
    if name in ("Add", "Mul") and parts:
        total = parts[0]
        for part in parts[1:]:
            total = (_sum if name == "Add" else _product)(total, part)
        return total
    if name == "Pow" and len(parts) == 2 and parts[1].keys() == {()} and 1 <= parts[1][()] <= 8:
        total = parts[0]
        for _ in range(parts[1][()] - 1):
            total = _product(total, parts[0])
        return total
    return _quotient(*parts) if name == "FloorDiv" and len(parts) == 2 else _refuse()


def _refuse():
    raise _Other


def _quotient(above, below):
    if isinstance(above, SizeExpr) or isinstance(below, SizeExpr) or below.keys() != {()} or below[()] <= 0:
        raise _Other
    made, by = _made(above), below[()]
    return SizeExpr(made.terms, made.inner, by) if isinstance(made, SizeExpr) else {(): made // by}


def _sum(a, b):
    if isinstance(a, SizeExpr) or isinstance(b, SizeExpr):
        quotient, number = (a, b) if isinstance(a, SizeExpr) else (b, a)
        if isinstance(number, SizeExpr) or number.keys() - {()}:
            raise _Other
        return SizeExpr(quotient.terms, quotient.inner, quotient.divisor, quotient.factor, quotient.outer + number.get((), 0))
    total = collections.Counter(a)
    for symbols, coefficient in b.items():
        total[symbols] += coefficient
    return dict(total)


def _product(a, b):
    if isinstance(a, SizeExpr) or isinstance(b, SizeExpr):
        quotient, number = (a, b) if isinstance(a, SizeExpr) else (b, a)
        if isinstance(number, SizeExpr) or number.keys() - {()}:
            raise _Other
        by = number.get((), 0)
        return SizeExpr(quotient.terms, quotient.inner, quotient.divisor, quotient.factor * by, quotient.outer * by) if by else {(): 0}
    total = collections.Counter()
    for left, m in a.items():
        for right, n in b.items():
            total[tuple(sorted(left + right))] += m * n
    return dict(total)
