"""Expressions: one method for each kind of node, and the operators of values."""

import ast
import operator

import cresset

from .errors import Unsupported
from .recorder import CONSTANT_TYPES, is_constant
from .values import Closure, Known, Results, Scope, Sizes, SizeVar, TensorVar

__all__ = ["BINARY", "IN_PLACE", "Expressions"]

BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.MatMult: operator.matmul, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
IN_PLACE = {
    ast.Add: operator.iadd, ast.Sub: operator.isub, ast.Mult: operator.imul, ast.Div: operator.itruediv, ast.FloorDiv: operator.ifloordiv, ast.Mod: operator.imod,
    ast.Pow: operator.ipow, ast.MatMult: operator.imatmul, ast.BitAnd: operator.iand, ast.BitOr: operator.ior, ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift, ast.RShift: operator.irshift,
}  # fmt: skip
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
_COMPARE = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne}
_SINGLE = (type(None), bool, type(...), type)


class Expressions:
    """Part of the evaluator."""

    def evaluate(self, node, scope):
        """The value of an expression."""
        method = getattr(self, "_e_" + type(node).__name__, None)
        if method is None:
            raise Unsupported(f"{type(node).__name__} expressions are not captured")
        self.step(node, scope)
        return method(node, scope)

    def _e_Constant(self, node, scope):
        return Known(node.value)

    def _e_Name(self, node, scope):
        return self.variable(scope, node.id)

    def _e_Attribute(self, node, scope):
        return self.attribute(self.evaluate(node.value, scope), node.attr)

    def _e_Tuple(self, node, scope):
        return tuple(self.elements(node.elts, scope))

    def _e_List(self, node, scope):
        return list(self.elements(node.elts, scope))

    def _e_Set(self, node, scope):
        return Known({self.constant(v, "a set") for v in self.elements(node.elts, scope)})

    def _e_Dict(self, node, scope):
        out = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                out.update(self.dictionary(self.evaluate(value, scope)))
            else:
                k = self.key(self.evaluate(key, scope))
                out[k] = self.evaluate(value, scope)
        return out

    def elements(self, nodes, scope):
        """The values of expressions, some of them with a star."""
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from list(self.iterate(self.evaluate(node.value, scope)))
            else:
                yield self.evaluate(node, scope)

    def _e_Slice(self, node, scope):
        return slice(*(Known(None) if n is None else self.evaluate(n, scope) for n in (node.lower, node.upper, node.step)))

    def _e_Subscript(self, node, scope):
        return self.item(self.evaluate(node.value, scope), self.evaluate(node.slice, scope))

    def _e_IfExp(self, node, scope):
        return self.evaluate(node.body if self.truth(self.evaluate(node.test, scope)) else node.orelse, scope)

    def _e_BoolOp(self, node, scope):
        for one in node.values:
            v = self.evaluate(one, scope)
            if one is node.values[-1] or self.truth(v) is isinstance(node.op, ast.Or):
                return v

    def _e_UnaryOp(self, node, scope):
        v = self.evaluate(node.operand, scope)
        if isinstance(node.op, ast.Not):
            return Known(not self.truth(v))
        if isinstance(v, SizeVar) and isinstance(node.op, ast.USub):
            return self.rec.arithmetic(operator.sub, Known(0), v)
        return self.operate(_UNARY[type(node.op)], v)

    def _e_BinOp(self, node, scope):
        return self.binary(BINARY[type(node.op)], self.evaluate(node.left, scope), self.evaluate(node.right, scope))

    def _e_Compare(self, node, scope):
        left = self.evaluate(node.left, scope)
        for op, right_node in zip(node.ops, node.comparators):
            right = self.evaluate(right_node, scope)
            result = self.compare(op, left, right)
            if right_node is node.comparators[-1] or not self.truth(result):
                return result
            left = right

    def _e_NamedExpr(self, node, scope):
        v = self.evaluate(node.value, scope)
        self.assign(node.target, v, scope)
        return v

    def _e_JoinedStr(self, node, scope):
        text = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += part.value
                continue
            v = self.constant(self.evaluate(part.value, scope), "text")
            v = {-1: lambda x: x, 115: str, 114: repr, 97: ascii}[part.conversion](v)
            text += format(v, self.constant(self._e_JoinedStr(part.format_spec, scope), "text") if part.format_spec else "")
        return Known(text)

    def _e_Lambda(self, node, scope):
        return self.closure(node, scope, "<lambda>")

    def closure(self, node, scope, name):
        """A function as a value."""
        defaults = [self.evaluate(d, scope) for d in node.args.defaults]
        kwdefaults = {a.arg: self.evaluate(d, scope) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults) if d is not None}
        return Closure(node, scope, defaults, kwdefaults, name)

    # ---- comprehensions

    def _e_ListComp(self, node, scope):
        out = []
        self._comprehend(node.generators, scope, lambda inner: out.append(self.evaluate(node.elt, inner)))
        return out

    _e_GeneratorExp = _e_ListComp

    def _e_SetComp(self, node, scope):
        return Known({self.constant(v, "a set") for v in self._e_ListComp(node, scope)})

    def _e_DictComp(self, node, scope):
        out = {}
        self._comprehend(node.generators, scope, lambda inner: out.__setitem__(self.key(self.evaluate(node.key, inner)), self.evaluate(node.value, inner)))
        return out

    def _comprehend(self, generators, scope, add, inner=None):
        if inner is None:
            targets = frozenset(n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name))
            inner = Scope(targets, scope, None, None, scope.filename)
            items = self.iterate(self.evaluate(generators[0].iter, scope))
        else:
            items = self.iterate(self.evaluate(generators[0].iter, inner))
        for v in items:
            self.assign(generators[0].target, v, inner)
            if all(self.truth(self.evaluate(c, inner)) for c in generators[0].ifs):
                if len(generators) > 1:
                    self._comprehend(generators[1:], scope, add, inner)
                else:
                    add(inner)

    # ---- constants

    def constant(self, v, what):
        """The Python value of what is known as a whole."""
        if isinstance(v, SizeVar):
            return self.rec.number(v).obj
        if is_constant(v):
            return v.obj
        if isinstance(v, Known):
            if isinstance(v.obj, _SINGLE) or v.path is None:
                return v.obj
            if type(v.obj) in (list, tuple):
                return type(v.obj)(self.constant(i, what) for i in self.iterate(v))
            if v.path is not None and callable(v.obj):
                return v.obj
        elif isinstance(v, Sizes):
            return cresset.Size([self.constant(i, what) for i in v])
        elif isinstance(v, (list, tuple)) and not isinstance(v, Results):
            return type(v)(self.constant(i, what) for i in v)
        elif isinstance(v, dict):
            return {k: self.constant(i, what) for k, i in v.items()}
        elif isinstance(v, slice):
            return slice(*(self.constant(i, what) for i in (v.start, v.stop, v.step)))
        if isinstance(v, TensorVar):
            raise Unsupported(f"{what} is made of a tensor's contents", breaks=True)
        raise Unsupported(f"{what} is made of a {type(v.obj if isinstance(v, Known) else v).__name__}")

    def key(self, v):
        """What a dict holds a value under."""
        k = self.constant(v, "a key")
        hash(k)
        return k

    def truth(self, v):
        """bool(v)"""
        if isinstance(v, TensorVar):
            raise Unsupported("the way depends on a tensor's contents", breaks=True)
        if isinstance(v, SizeVar):
            return self.rec.compare(operator.ne, v, Known(0)).obj
        if isinstance(v, (list, tuple, dict)):
            return len(v) > 0
        if isinstance(v, Known):
            kind = type(v.obj)
            if is_constant(v) or v.path is None:
                return bool(v.obj)
            if kind in (list, tuple, dict, set):
                return self.length(v) > 0
            if not hasattr(kind, "__bool__") and not hasattr(kind, "__len__"):
                return True
            if hasattr(v.obj, "_modules"):
                return len(self.iterate(v)) > 0
            raise Unsupported(f"bool() of a {kind.__name__}")
        return True

    def length(self, v):
        """len() of an object from outside, which later calls must have too."""
        n = len(v.obj)
        if v.path is not None:
            self.rec.guards.check(f"len({v.path}) == {n}", f"{self.name_of(v)} has not {n} parts")
        return n

    # ---- operators

    def operate(self, function, *operands):
        """A Python operator on values none of which is a container."""
        if any(isinstance(v, TensorVar) for v in operands):
            return self.record("call_function", function, operands, trace=self.trace())
        values = [self.constant(v, "a number") for v in operands]
        if not all(type(v) in (*CONSTANT_TYPES, set, frozenset, list, tuple) for v in values):
            raise Unsupported(f"{function.__name__} of {', '.join(type(v).__name__ for v in values)}")
        return Known(function(*values))

    def binary(self, function, a, b):
        """a + b and so on."""
        if isinstance(a, Known) and type(a.obj) in (list, tuple):
            a = type(a.obj)(self.iterate(a))
        if isinstance(b, Known) and type(b.obj) in (list, tuple):
            b = type(b.obj)(self.iterate(b))
        sequences = [v for v in (a, b) if isinstance(v, (list, tuple))]
        if sequences and not any(isinstance(v, TensorVar) for v in (a, b)):
            return self._of_sequences(function, a, b)
        if isinstance(a, SizeVar) or isinstance(b, SizeVar):
            made = self.rec.arithmetic(function, a, b)
            if made is not None:
                return made
        return self.operate(function, a, b)

    def _of_sequences(self, function, a, b):
        if function is operator.add and isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and isinstance(a, list) == isinstance(b, list):
            joined = [*a, *b]
            return joined if isinstance(a, list) else Sizes(joined) if isinstance(a, Sizes) else tuple(joined)
        if function is operator.mul:
            sequence, n = (a, b) if isinstance(a, (list, tuple)) else (b, a)
            return sequence * self.constant(n, "a length") if not isinstance(sequence, Sizes) else Sizes(tuple(sequence) * self.constant(n, "a length"))
        if function is operator.mod and is_constant(a) and isinstance(a.obj, str):
            return Known(a.obj % self.constant(b, "text"))
        raise Unsupported(f"{function.__name__} of {type(a).__name__} and {type(b).__name__}")

    def compare(self, op, a, b):
        """Python's comparison of two values."""
        if isinstance(op, (ast.Is, ast.IsNot)):
            return Known(self._is(a, b) is isinstance(op, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)):
            return Known(self._contains(b, a) is isinstance(op, ast.In))
        function = _COMPARE[type(op)]
        if isinstance(a, TensorVar) or isinstance(b, TensorVar):
            return self.record("call_function", function, (a, b), trace=self.trace())
        if isinstance(a, SizeVar) or isinstance(b, SizeVar):
            made = self.rec.compare(function, a, b)
            if made is not None:
                return made
        if function in (operator.eq, operator.ne) and (isinstance(a, (list, tuple)) or isinstance(b, (list, tuple))):
            return Known(self._equal(a, b) is (function is operator.eq))
        a, b = self.constant(a, "a comparison"), self.constant(b, "a comparison")
        known = (*CONSTANT_TYPES, list, tuple, dict, set, frozenset)
        if not all(type(v) in known or isinstance(v, type) or type(v).__eq__ is object.__eq__ for v in (a, b)):
            raise Unsupported(f"compares {type(a).__name__} and {type(b).__name__}")
        return Known(function(a, b))

    def _equal(self, a, b):
        if isinstance(a, Known) and type(a.obj) in (list, tuple):
            a = type(a.obj)(self.iterate(a))
        if isinstance(b, Known) and type(b.obj) in (list, tuple):
            b = type(b.obj)(self.iterate(b))
        if not (isinstance(a, (list, tuple)) and isinstance(b, (list, tuple))):
            if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
                return False
            return self.truth(self.compare(ast.Eq(), a, b))
        if isinstance(a, list) != isinstance(b, list) or len(a) != len(b):
            return False
        return all(self._equal(x, y) for x, y in zip(a, b))

    def _is(self, a, b):
        for one, other in ((a, b), (b, a)):
            if isinstance(one, Known) and (one.obj is None or one.obj is True or one.obj is False or one.obj is ...):
                return isinstance(other, Known) and other.obj is one.obj
        if isinstance(a, Known) and isinstance(b, Known):
            if type(a.obj) not in (int, float, str, complex, bytes, list, dict, tuple):
                for v in (a, b):
                    if v.path is not None:
                        self.rec.guards.check(f"{v.path} is {self.rec.guards.constant(v.obj)}", f"{self.name_of(v)} is another object")
                return a.obj is b.obj
        if isinstance(a, TensorVar) and isinstance(b, TensorVar) and a is not b and a.path and b.path:
            self.rec.guards.check(f"({a.path} is {b.path}) is {a.value is b.value}", "arguments are not the same tensors")
            return a.value is b.value
        if type(a) is not type(b) or a is b and not isinstance(a, (Known, SizeVar)):
            return a is b
        raise Unsupported("`is` between values whose identity is not fixed")

    def _contains(self, container, v):
        if isinstance(container, Known) and is_constant(container) and isinstance(container.obj, (str, range)):
            return self.constant(v, "a comparison") in container.obj
        if isinstance(container, dict):
            return self.key(v) in container
        if isinstance(container, Known) and isinstance(container.obj, (dict, set, frozenset)) and type(container.obj) in (dict, set, frozenset):
            k = self.key(v)
            found = k in container.obj
            if container.path is not None:
                guards = self.rec.guards
                guards.check(f"({guards.constant(k)} in {container.path}) is {found}", f"{k!r} in {self.name_of(container)} is not {found}")
            return found
        if isinstance(container, TensorVar) or isinstance(v, TensorVar):
            raise Unsupported("`in` looks at a tensor's contents", breaks=True)
        return any(self._equal(v, one) for one in self.iterate(container))

    # ---- subscripts

    def item(self, v, index):
        """v[index]"""
        if isinstance(v, TensorVar) or isinstance(index, TensorVar):
            return self.record("call_function", operator.getitem, (v, index), trace=self.trace())
        if isinstance(v, dict):
            return v[self.key(index)]
        if isinstance(v, (list, tuple)):
            got = v[self.constant(index, "an index")]
            return Sizes(got) if isinstance(v, Sizes) and isinstance(index, slice) else tuple(got) if isinstance(v, Results) and isinstance(index, slice) else got
        if isinstance(v, Known):
            return self._item_of_object(v, index)
        raise Unsupported(f"an index into a {type(v).__name__.lower()}")

    def _item_of_object(self, v, index):
        obj, guards = v.obj, self.rec.guards
        k = self.constant(index, "an index")
        if is_constant(v) or (v.path is None and type(obj) in (list, tuple, dict)):
            return Known(obj[k])
        if v.path is not None and type(obj) in (list, tuple) and isinstance(k, int):
            self.length(v)
            return self.wrap(obj[k], guards.read(f"{v.path}[{k}]"), f"{self.name_of(v)}[{k}]")
        if v.path is not None and type(obj) in (list, tuple) and isinstance(k, slice):
            return type(obj)(list(self.iterate(v))[k])
        if v.path is not None and type(obj) is dict and type(k) in (str, int, bool):
            return self.wrap(obj[k], guards.read(f"{v.path}[{k!r}]"), f"{self.name_of(v)}[{k!r}]")
        if v.path is not None and hasattr(obj, "_modules"):
            return self.part_of_container(v, k)
        raise Unsupported(f"an index into a {type(obj).__name__}")
