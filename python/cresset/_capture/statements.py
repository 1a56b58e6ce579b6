"""Statements: one method for each kind of node."""

import ast
import operator

from .errors import Unsupported
from .expressions import BINARY, IN_PLACE
from .recorder import is_constant
from .values import Known, TensorVar

__all__ = ["Returned", "Statements"]


_PLAIN = {IN_PLACE[kind]: BINARY[kind] for kind in IN_PLACE}


class Returned(Exception):
    """return"""

    def __init__(self, value):
        super().__init__()
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Statements:
    """Part of the evaluator."""

    def block(self, nodes, scope):
        """Runs statements."""
        for node in nodes:
            method = getattr(self, "_s_" + type(node).__name__, None)
            self.step(node, scope)
            if method is None:
                raise Unsupported(f"{type(node).__name__} statements are not captured", breaks=isinstance(node, (ast.Raise, ast.Try)))
            method(node, scope)

    def _s_Expr(self, node, scope):
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value, scope)

    def _s_Pass(self, node, scope):
        pass

    def _s_Return(self, node, scope):
        raise Returned(Known(None) if node.value is None else self.evaluate(node.value, scope))

    def _s_Break(self, node, scope):
        raise _Break

    def _s_Continue(self, node, scope):
        raise _Continue

    def _s_If(self, node, scope):
        self.block(node.body if self.truth(self.evaluate(node.test, scope)) else node.orelse, scope)

    def _s_Assert(self, node, scope):
        if __debug__ and not self.truth(self.evaluate(node.test, scope)):
            raise Unsupported("an assertion fails", breaks=True)

    def _s_For(self, node, scope):
        try:
            for v in self.iterate(self.evaluate(node.iter, scope)):
                self.assign(node.target, v, scope)
                try:
                    self.block(node.body, scope)
                except _Continue:
                    continue
        except _Break:
            return
        self.block(node.orelse, scope)

    def _s_While(self, node, scope):
        try:
            while self.truth(self.evaluate(node.test, scope)):
                try:
                    self.block(node.body, scope)
                except _Continue:
                    continue
        except _Break:
            return
        self.block(node.orelse, scope)

    def _s_FunctionDef(self, node, scope):
        if node.decorator_list:
            raise Unsupported(f"{node.name} is decorated inside of a function")
        scope.names[node.name] = self.closure(node, scope, node.name)

    def _s_With(self, node, scope):
        leave = [self.enter(one, scope) for one in node.items]
        try:
            self.block(node.body, scope)
        finally:
            for one in reversed(leave):
                one()

    # ---- assignment

    def _s_Assign(self, node, scope):
        v = self.evaluate(node.value, scope)
        for target in node.targets:
            self.assign(target, v, scope)

    def _s_AnnAssign(self, node, scope):
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value, scope), scope)

    def _s_AugAssign(self, node, scope):
        target = node.target
        function = IN_PLACE[type(node.op)]
        if isinstance(target, ast.Subscript):
            owner, index = self.evaluate(target.value, scope), self.evaluate(target.slice, scope)
            before = self.item(owner, index)
            self.set_item(owner, index, self.in_place(function, before, self.evaluate(node.value, scope)))
        elif isinstance(target, ast.Name):
            before = self.variable(scope, target.id)
            self.assign(target, self.in_place(function, before, self.evaluate(node.value, scope)), scope)
        else:
            raise Unsupported(f"sets .{target.attr}, which others see")

    def in_place(self, function, a, b):
        """a += b and so on: the new value of a."""
        if isinstance(a, TensorVar):
            return self.record("call_function", function, (a, b), trace=self.trace())
        if isinstance(a, list):
            if function is IN_PLACE[ast.Add]:
                a.extend(self.iterate(b))
                return a
            raise Unsupported("changes a list in place")
        if isinstance(a, dict) or (isinstance(a, Known) and not is_constant(a) and not isinstance(a.obj, tuple)):
            raise Unsupported("changes an object in place")
        return self.binary(_PLAIN[function], a, b)

    def assign(self, target, v, scope):
        """target = v"""
        if isinstance(target, ast.Name):
            scope_of = scope
            while target.id not in scope_of.local and scope_of.parent is not None and scope_of.function is None and scope_of.path is None:
                scope_of = scope_of.parent
            scope_of.names[target.id] = v
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, v, scope)
        elif isinstance(target, ast.Subscript):
            self.set_item(self.evaluate(target.value, scope), self.evaluate(target.slice, scope), v)
        elif isinstance(target, ast.Attribute):
            raise Unsupported(f"sets .{target.attr}, which others see")
        else:
            raise Unsupported(f"assigns to {type(target).__name__}")

    def _unpack(self, targets, v, scope):
        items = list(self.iterate(v))
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        if star is None:
            if len(items) != len(targets):
                raise Unsupported(f"{len(items)} values are unpacked to {len(targets)} names")
            pairs = list(zip(targets, items))
        else:
            behind = len(targets) - star - 1
            if len(items) < star + behind:
                raise Unsupported(f"{len(items)} values are unpacked to {len(targets)} names")
            end = len(items) - behind
            pairs = [*zip(targets[:star], items), (targets[star].value, items[star:end]), *zip(targets[star + 1 :], items[end:])]
        for target, one in pairs:
            self.assign(target, one, scope)

    def set_item(self, owner, index, v):
        """owner[index] = v"""
        if isinstance(owner, TensorVar):
            self.record("call_function", operator.setitem, (owner, index, v), trace=self.trace())
        elif isinstance(owner, dict):
            owner[self.key(index)] = v
        elif isinstance(owner, list):
            owner[self.constant(index, "an index")] = v
        else:
            raise Unsupported("sets a part of an object that others see")

    def _s_Delete(self, node, scope):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in scope.names:
                del scope.names[target.id]
            elif isinstance(target, ast.Subscript):
                owner = self.evaluate(target.value, scope)
                if not isinstance(owner, (list, dict)):
                    raise Unsupported("deletes a part of an object")
                del owner[self.constant(self.evaluate(target.slice, scope), "an index")]
            else:
                raise Unsupported("deletes an attribute")
