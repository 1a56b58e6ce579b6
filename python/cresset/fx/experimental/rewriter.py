"""Trace programs whose source is changed first: assertions become calls that are recorded."""

import ast
import copy
import functools
import inspect
import textwrap
from types import FunctionType

import cresset
from cresset._same_names import own_module

from .._symbolic_trace import Tracer

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):
    """`assert x, "text"` becomes `torch._assert(x, "text")`, `x: T = value` becomes `x = annotate(value, T)`."""

    def rewrite(self, fn):
        """The function with its source changed."""
        tree = ast.fix_missing_locations(self.visit(ast.parse(textwrap.dedent(inspect.getsource(fn)))))
        definition = tree.body[0]
        definition.decorator_list = []
        variables = copy.copy(fn.__globals__)
        before = set(variables)
        exec(compile(tree, "<rewritten>", "exec"), variables)
        (name,) = set(variables) - before if set(variables) - before else {fn.__name__}
        made = variables[name]

        def change(kept):
            for key, value in vars(fn).items():
                setattr(kept, key, value)
            return kept

        return functools.wraps(fn, updated=())(change(FunctionType(made.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)))

    def visit_Assert(self, node):
        """An assertion as a call."""
        call = ast.parse("__import__('cresset')._assert()", mode="eval").body
        message = node.msg if node.msg else ast.Constant(value="")
        call.args = [node.test, message]
        return ast.copy_location(ast.Expr(value=call), node)

    def visit_AnnAssign(self, node):
        """An assignment with a type as a call of annotate."""
        if node.value is None:
            return node
        call = ast.parse("__import__('cresset.fx.annotate', fromlist=['annotate']).annotate()", mode="eval").body
        call.args = [node.value, node.annotation]
        return ast.copy_location(ast.Assign(targets=[node.target], value=call), node)


class RewritingTracer(Tracer):
    """A Tracer for programs that AST_Rewriter changes first."""

    def trace(self, root, concrete_args=None):
        """The graph of the changed program."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn):
    if not isinstance(fn, cresset.nn.Module):
        return AST_Rewriter().rewrite(fn)
    return _rewritten_module(fn)


def _rewritten_module(module):
    class Rewritten(cresset.nn.Module):
        def __init__(self, original):
            super().__init__()
            self.__dict__ = copy.copy(original.__dict__)
            self.__dict__["_modules"] = {k: _child(m) for k, m in original._modules.items()}

    def _child(m):
        return m if m is None or own_module(type(m).__module__).startswith("cresset.") else _rewritten_module(m)

    Rewritten.forward = AST_Rewriter().rewrite(type(module).forward)
    return Rewritten(module)
