"""Node: one operation of a Graph."""

import operator

import cresset

from .. import _C
from . import _names
from .immutable_collections import immutable_dict, immutable_list

__all__ = ["Node", "map_arg", "map_aggregate", "has_side_effect"]

base_types = (
    str, int, float, bool, complex, cresset.dtype, cresset.Tensor, cresset.device, cresset.memory_format, cresset.layout, _C.OpOverload,
)  # fmt: skip
for _symbolic in ("SymInt", "SymBool", "SymFloat"):
    if hasattr(cresset, _symbolic):
        base_types += (getattr(cresset, _symbolic),)
Target = "Target"
Argument = "Argument"
_legal_ops = dict.fromkeys(["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"])

_get_qualified_name = _names.qualified_name
_type_repr = _names.type_text


def _find_module_of_method(orig_method):
    return _names.qualified_name(orig_method).rpartition(".")[0]


def _side_effects():
    found = {operator.setitem}
    for path in ("_assert", "_assert_async", "_C._set_grad_enabled", "amp.autocast_mode._enter_autocast", "amp.autocast_mode._exit_autocast"):
        value = cresset
        for part in path.split("."):
            value = getattr(value, part, None)
        if value is not None:
            found.add(value)
    for name in (
        "aten._assert_async.msg", "aten._assert_scalar.default", "aten._assert_tensor_metadata.default", "aten._linalg_check_errors.default",
        "profiler._record_function_enter.default", "profiler._record_function_enter_new.default", "profiler._record_function_exit._RecordFunction",
    ):  # fmt: skip
        namespace, packet, overload = name.split(".")
        try:
            found.add(getattr(getattr(getattr(cresset.ops, namespace), packet), overload))
        except AttributeError:  # an operator that there is not
            continue
    return found


_side_effectful_functions = _side_effects()
# What other processes wait for.
_SIDE_EFFECTFUL_OPERATORS = ("c10d.", "_c10d_functional.wait_tensor", "_c10d_functional.isend", "_c10d_functional.irecv", "_c10d_functional.batch_p2p_ops")


def has_side_effect(fn):
    """Decorator: calls of fn are kept although nobody uses their results (Graph.eliminate_dead_code)."""
    _side_effectful_functions.add(fn)
    return fn


def map_arg(a, fn):
    """A copy of nested tuples, lists, dicts and slices with fn(node) for each Node; AssertionError unless fn is callable."""
    assert callable(fn), "torch.fx.map_arg(a, fn): fn must be a callable"
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a, fn):
    """A copy of nested tuples, lists, dicts and slices with fn(leaf) for each leaf; lists and dicts of it are immutable."""
    if isinstance(a, tuple):
        mapped = [map_aggregate(x, fn) for x in a]
        return type(a)(*mapped) if hasattr(a, "_fields") else tuple(mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def _format_arg(arg, max_list_len=float("inf")):
    """An argument as graphs print it: nodes with a percent sign, strings as they are."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(a) for a in arg[: len(arg) if max_list_len == float("inf") else int(max_list_len)]]
        if len(shown) < len(arg):
            shown.append(f"...[total_len={len(arg)}]")
        if isinstance(arg, list):
            return f"[{', '.join(shown)}]"
        return f"({', '.join(shown)},)" if len(arg) == 1 else f"({', '.join(shown)})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{k}: {_format_arg(v)}' for k, v in arg.items())}}}"
    return f"%{arg}" if isinstance(arg, Node) else _names.shown(arg)


def _between(before, after):
    """A key that sorts after `before` and in front of `after`."""
    for at in range(len(before)):
        key = (*before[:at], before[at] + 1)
        if key < after:
            return key
    return (*before, after[len(before)] - 1) if after[: len(before)] == before else (*before, 0)


class Node:
    """One operation of a Graph, a link of its list.

    op is "placeholder", "get_attr", "call_function", "call_module", "call_method" or "output"; target is what is called or read. args and
    kwargs hold constants and other nodes, nested in tuples, lists, dicts and slices; `users` are the nodes that have this one there.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        assert op in _legal_ops, f"op '{op}' is not in _legal_ops"
        self.graph, self.name, self.op = graph, name, op
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {cresset.typename(target)} but a Callable is expected")
        elif not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {cresset.typename(target)} but a str is expected")
        self.target, self.type = target, return_type
        self._args, self._kwargs, self._input_nodes = (), immutable_dict(), {}
        self.users = {}
        self._prev = self._next = self
        self._erased, self._sort_key, self._repr_fn = False, (), None
        self.meta = {}
        self._update_args_kwargs(args, kwargs)

    def __setattr__(self, name, value):
        if name == "name" and "name" in self.__dict__ and self.graph.owning_module is not None:
            for hook in self.graph.owning_module._replace_hooks:
                for user in self.users:
                    hook(old=self, new=value, user=user)
        object.__setattr__(self, name, value)

    def __getstate__(self):
        return dict(self.__dict__)

    def __setstate__(self, state):
        self.__dict__.update(state)

    # --- the list -------------------------------------------------------------------------------------------------------------

    @property
    def next(self):
        """The node after this one; the root's after the last."""
        return self._next

    @property
    def prev(self):
        """The node in front of this one."""
        return self._prev

    def prepend(self, x):
        """Move node x in front of this one; AssertionError when it is of another graph."""
        if not isinstance(x, Node):
            raise TypeError("_prepend() argument must be a Node")
        assert self.graph is x.graph, "Attempting to move a Node into a different Graph"
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        if self.op == "root":
            x._sort_key = (before._sort_key[0] + 1,) if before.op != "root" else (0,)
        elif before.op == "root":
            x._sort_key = (self._sort_key[0] - 1,)
        else:
            x._sort_key = _between(before._sort_key, self._sort_key)

    def append(self, x):
        """Move node x behind this one."""
        self._next.prepend(x)

    def _remove_from_list(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other):
        return self._sort_key < other._sort_key

    def __gt__(self, other):
        return self._sort_key > other._sort_key

    def __le__(self, other):
        return self is other or self < other

    def __ge__(self, other):
        return self is other or self > other

    # --- arguments ------------------------------------------------------------------------------------------------------------

    @property
    def args(self):
        """Positional arguments. What is assigned is copied; users of the nodes in it follow."""
        return self._args

    @args.setter
    def args(self, value):
        self._update_args_kwargs(value, self._kwargs)

    @property
    def kwargs(self):
        """Arguments by name, like `args`."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value):
        self._update_args_kwargs(self._args, value)

    def _update_args_kwargs(self, args, kwargs):
        for old in self._input_nodes:
            old.users.pop(self, None)
        inputs = {}

        def note(node):
            inputs.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args, self._kwargs, self._input_nodes = map_arg(args, note), map_arg(kwargs, note), inputs

    # The spelling of older programs.
    def __update_args_kwargs(self, args, kwargs):
        self._update_args_kwargs(args, kwargs)

    @property
    def all_input_nodes(self):
        """The nodes in args and kwargs, each once, in order."""
        return list(self._input_nodes)

    def update_arg(self, idx, arg):
        """Replace one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        """Insert a positional argument in front of number idx; AssertionError unless 0 <= idx <= len(args)."""
        assert 0 <= idx <= len(self.args), "insert_args index must be between 0 and len(self.args)"
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key, arg):
        """Set one argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    @property
    def stack_trace(self):
        """Where the traced program did this, as text, or None."""
        return self.meta.get("stack_trace", None)

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    # --- users ----------------------------------------------------------------------------------------------------------------

    def replace_all_uses_with(self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Put another node where this one is an argument; gives the users that changed.

        delete_user_cb(user): shall this user change? propagate_meta: this node's meta goes to replace_with, whose own must be empty.
        """
        if propagate_meta:
            assert not replace_with.meta, "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb is None or delete_user_cb(user):
                self._tell_replaced(replace_with, user)
                user._swap({self: replace_with})
                changed.append(user)
        return changed

    def replace_input_with(self, old_input, new_input):
        """Put new_input where old_input is an argument of this node."""
        self._tell_replaced(new_input, self, old=old_input)
        self._swap({old_input: new_input})

    def _tell_replaced(self, new, user, old=None):
        module = self.graph.owning_module
        if module is not None:
            for hook in getattr(module, "_replace_hooks", ()):
                hook(old=old or self, new=new.name, user=user)

    def _swap(self, table):
        self._update_args_kwargs(map_arg(self.args, lambda n: table.get(n, n)), map_arg(self.kwargs, lambda n: table.get(n, n)))

    def is_impure(self, impure_random=True):
        """Must this node stay even if nobody uses it? Inputs, outputs, writes, assertions, and with impure_random what draws numbers."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self._function_is_impure(impure_random)
        if self.op == "call_module":
            assert self.graph.owning_module is not None, "self.graph.owning_module not set for purity check"
            module = self.graph.owning_module.get_submodule(self.target)
            assert module is not None, f"Did not find expected submodule target {self.target}"
            return getattr(module, "_is_impure", False)
        return False

    def _function_is_impure(self, impure_random):
        target = self.target
        if target in _side_effectful_functions:
            return True
        if str(target).startswith(_SIDE_EFFECTFUL_OPERATORS):
            return True
        schema = getattr(target, "_schema", None)
        if schema is not None and getattr(schema, "is_mutable", False):
            return True
        tags = getattr(target, "tags", ()) if isinstance(target, _C.OpOverload) else ()
        if impure_random and tags and cresset.Tag.nondeterministic_seeded in tags:
            return True
        if target in _random_functions():
            return True
        return False

    def normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """ArgsKwargsPair with the arguments as the called function declares them, or None."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    # --- text -----------------------------------------------------------------------------------------------------------------

    def __repr__(self):
        return self._repr_fn(self) if self._repr_fn else self.name

    _pretty_print_target = staticmethod(_names.pretty_target)

    def _rename(self, candidate):
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)

    def format_node(self, placeholder_names=None, maybe_return_typename=None, *, include_tensor_metadata=False):
        """The line of this node in the text of its graph.

        With placeholder_names a placeholder adds itself to that list and has no line (None). maybe_return_typename: list whose first item becomes
        the annotation of the output.
        """
        kind = f"{_type_repr(self.type)} " if self.type else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={self._pretty_print_target(self.target)}]"
        if self.op == "placeholder":
            if placeholder_names is not None:
                text = f"{self.target} : {_type_repr(self.type)}" if self.type else self.target
                placeholder_names.append(f"{text} [default={self.args[0]}]" if self.args else text)
                return None
            return head + (f"(default={_names.shown(self.args[0])})" if self.args else "")
        if self.op == "get_attr":
            return head
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {_names.shown(self.args[0])}"
        return f"{head}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"


_random = None


def _random_functions():
    """Functions of the package that draw from a generator."""
    global _random
    if _random is None:
        names = "rand randn randint randperm rand_like randn_like randint_like normal".split()
        _random = {getattr(cresset, n) for n in names if hasattr(cresset, n)}
    return _random
