"""One spelling for each call in a graph: arguments by name, and operators of Python for functions of tensors."""

import operator

import cresset
from cresset.fx import Proxy, Transformer
from cresset.fx.node import Argument, Target, map_aggregate
from cresset.fx.operator_schemas import create_type_hint, normalize_function, normalize_module

__all__ = ["NormalizeArgs", "NormalizeOperators"]


def _type_of(argument):
    return argument.node.meta.get("type") if isinstance(argument, Proxy) and "type" in argument.node.meta else type(argument)


class NormalizeArgs(Transformer):
    """`NormalizeArgs(module).transform()`: the same graph with the arguments of functions and modules by name, defaults filled in; with
    normalize_to_only_use_kwargs=False those by position stay there. Calls whose signature is not known, or fits several, stay as they are.
    Types in the "type" of a node's meta choose between overloads."""

    def __init__(self, module: cresset.fx.GraphModule, normalize_to_only_use_kwargs: bool = True):
        super().__init__(module)
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs
        self.node_map = {}

    def run_node(self, n):
        """The call of a node in the new graph."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op == "call_function":
            out = self.call_function(n.target, args, kwargs, map_aggregate(args, _type_of), {k: map_aggregate(v, _type_of) for k, v in kwargs.items()})
        else:
            out = super().run_node(n)
        if n.op != "output":
            self.node_map[out] = n
            out.node.meta = n.meta
            out.node.type = n.type
        return out

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict, arg_types=None, kwarg_types=None):
        """A function's call by its signature."""
        if not callable(target):
            raise AssertionError(f"Expected callable target, got {type(target)}")
        hints = tuple(create_type_hint(kind) for kind in arg_types) if isinstance(arg_types, tuple) else arg_types
        found = normalize_function(target, args, kwargs, hints, kwarg_types, self.normalize_to_only_use_kwargs)
        if found is None:
            return super().call_function(target, args, kwargs)
        args, kwargs = found
        return self.tracer.create_proxy("call_function", target, tuple(args), dict(kwargs))

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict):
        """A module's call by its forward's signature."""
        if not isinstance(target, str):
            raise AssertionError(f"Expected str target, got {type(target)}")
        found = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        if found is None:
            return super().call_module(target, args, kwargs)
        args, kwargs = found
        return super().call_module(target, tuple(args), dict(kwargs))


class NormalizeOperators(Transformer):
    """`NormalizeOperators(module).transform()`: functions such as torch.add become the operators of Python that do the same (operator.add) where
    nothing but two operands is given."""

    binary_magic_method_remap = {
        cresset.add: operator.add, cresset.mul: operator.mul, cresset.sub: operator.sub, cresset.div: operator.truediv,
        cresset.floor_divide: operator.floordiv, cresset.remainder: operator.mod, cresset.eq: operator.eq, cresset.ne: operator.ne,
        cresset.lt: operator.lt, cresset.le: operator.le, cresset.gt: operator.gt, cresset.ge: operator.ge,
    }  # fmt: skip

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict):
        """A function's call, by an operator where there is one."""
        if not callable(target):
            raise AssertionError(f"Expected callable target, got {type(target)}")
        if target in self.binary_magic_method_remap:
            rest = {name: value for name, value in kwargs.items() if not (name == "alpha" and value == 1)}
            if len(args) == 2 and not rest:
                return super().call_function(self.binary_magic_method_remap[target], args, {})
        return super().call_function(target, args, kwargs)
