"""Graph: a program as a list of nodes."""

import contextlib
import copy
import warnings

import cresset
from cresset._homes import settle

from . import _names
from ._codegen import (  # noqa: F401
    CodeGen, PythonCode, _custom_builtins, _CustomBuiltin, _format_target, _Namespace, _PyTreeCodeGen, _PyTreeInfo, _register_custom_builtin,
    inplace_methods, magic_methods, nodes_named_in,
)  # fmt: skip
from .node import Node, map_arg

__all__ = ["PythonCode", "CodeGen", "Graph"]


def _snake_case(name):
    """`AddBmm` → `add_bmm`."""
    return "".join(("_" if c.isupper() and i and name[i - 1].islower() else "") + c.lower() for i, c in enumerate(name))


def _is_magic(name):
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def _is_from_torch(obj):
    return _names.is_from_torch(obj)


class _InsertPoint:
    def __init__(self, graph, new_insert):
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self):
        pass

    def __exit__(self, *exc_info):
        self.graph._insert = self.orig_insert


class _node_list:
    """The nodes in order; while one iterates, nodes may be inserted and erased."""

    def __init__(self, graph, direction="_next"):
        assert direction in ("_next", "_prev")
        self.graph, self.direction = graph, direction

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        root, step = self.graph._root, self.direction
        node = getattr(root, step)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, step)

    def __reversed__(self):
        return iter(_node_list(self.graph, "_next" if self.direction == "_prev" else "_prev"))


class Graph:
    """A program: placeholders, operations, an output.

    Nodes are added at the insert point, which is the end unless `inserting_before` or `inserting_after` says otherwise. GraphModule makes
    the graph callable; `python_code` gives its source.
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._used_names, self._len = {}, 0
        self._graph_namespace = _Namespace()
        self._owning_module, self._owners = owning_module, 0
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields = {}

    @property
    def owning_module(self):
        """The GraphModule whose graph this is, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module):
        self._owning_module = module

    @property
    def nodes(self):
        """The nodes in order of execution; has a length, `reversed` works."""
        return _node_list(self)

    def output_node(self):
        """The output; StopIteration when there is none."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def find_nodes(self, *, op, target=None, sort=True):
        """The nodes of an op, and of a target (needed for call_function), in order."""
        if op == "call_function":
            assert target is not None, f"op={op}, target={target}"
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # --- copies -----------------------------------------------------------------------------------------------------------------

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copy the nodes of g to the insert point; gives what its output has as argument, mapped.

        val_map: {node of g: node here}; nodes in it already are not copied, the others are added. With return_output_node the result is a
        pair with g's output node.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return result if not return_output_node else (result, node)
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None):
        memo = memo if memo else {}
        g = Graph(tracer_cls=self._tracer_cls, tracer_extras=copy.copy(self._tracer_extras))
        val_map = {}
        output = g.graph_copy(self, val_map, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen)
        g._co_fields = dict(self._co_fields)
        memo[id(self)] = g
        for old, new in val_map.items():
            new.meta = copy.copy(old.meta)
        if output is not None:
            value, old = output
            node = g.output(value, type_expr=getattr(old, "type", None))
            node.meta = copy.copy(old.meta)
        return g

    # --- nodes ------------------------------------------------------------------------------------------------------------------

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """A new node at the insert point. name: a wish; type_expr: the annotation in generated code."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        assert isinstance(args, tuple), f"args must be a tuple, got {type(args)}"
        assert isinstance(kwargs, dict), f"kwargs must be a dict, got {type(kwargs)}"
        name = self._graph_namespace.create_name(name if name is not None else self._target_to_str(target), None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        for hook in self._hooks("_create_node_hooks"):
            hook(node)
        return node

    def _hooks(self, kind):
        return getattr(self.owning_module, kind, ()) if self.owning_module is not None else ()

    def erase_node(self, to_erase):
        """Take a node out; RuntimeError while other nodes use it."""
        if len(to_erase.users) > 0:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!")
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in self._hooks("_erase_node_hooks"):
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs(map_arg(to_erase.args, lambda n: None), map_arg(to_erase.kwargs, lambda n: None))

    def inserting_before(self, n=None):
        """The insert point in front of n, for a `with` or from now on; without n at the beginning of the graph."""
        if n is None:
            return self.inserting_after(self._root)
        assert n.graph is self, "Node to insert before is not in graph."
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n=None):
        """The insert point behind n, for a `with` or from now on; without n at the end of the graph."""
        if n is None:
            return self.inserting_before(self._root)
        assert n.graph is self, "Node to insert after is not in graph."
        return _InsertPoint(self, n.append)

    def placeholder(self, name, type_expr=None, default_value=...):
        """An input. `*args` and `**kwargs` are written so."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """A value of the module: parameter, buffer, submodule, by its path. Warns when the owning module has none such."""
        if self.owning_module is not None and not self._attribute_exists(qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call GraphModule.add_submodule to add the "
                "necessary submodule, GraphModule.add_parameter to add the necessary Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def _attribute_exists(self, path):
        value = self.owning_module
        parts = path.split(".")
        for at, part in enumerate(parts):
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
            if at < len(parts) - 1 and not isinstance(value, cresset.nn.Module):
                return False
        return True

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """A call of a submodule; AttributeError when the owning module has none such."""
        if self.owning_module is not None and self.owning_module.get_submodule(module_name) is None:
            warnings.warn("Attempted to insert a call_module Node with no underlying reference in the owning GraphModule!", stacklevel=2)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """A call of a method of args[0]."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda x: x):
        """A copy of a node of another graph; arg_transform(node there) → argument here."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        assert isinstance(args, tuple) and isinstance(kwargs, dict)
        result = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    def output(self, result, type_expr=None):
        """The output; result: a node, or nodes in tuples, lists, dicts."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _target_to_str(self, target):
        name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
        if not isinstance(target, str) and isinstance(name, str) and name.partition("_")[0] in ("linalg", "fft", "special"):
            pass  # as PyTorch names them
        return _snake_case(name[2:-2] if _is_magic(name) else name)

    # --- code -------------------------------------------------------------------------------------------------------------------

    def python_code(
        self, root_module, *, verbose=False, include_stride=False, include_device=False, colored=False, expanded_def=False, record_func=False,
        additional_meta=None,
    ):  # fmt: skip
        """PythonCode of a function that does what the graph does; root_module: the name under which it finds attributes ("self").

        verbose: with comments that say where nodes are from, and tensors' dtypes and shapes where nodes' meta tells them.
        """
        namespace = _Namespace()
        with nodes_named_in(namespace, self.nodes):
            return self._codegen._gen_python_code(
                self.nodes, root_module, namespace, verbose=verbose, include_stride=include_stride, include_device=include_device, colored=colored,
                expanded_def=expanded_def,
            )  # fmt: skip

    def __str__(self):
        """The nodes, a line for each."""
        lines = [n.format_node() for n in self.nodes]
        return "graph():" + "".join(f"\n    {line}" for line in lines if line is not None)

    def print_tabular(self):
        """Print a table of the nodes. Needs the package tabulate (ImportError)."""
        try:
            from tabulate import tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def set_codegen(self, codegen):
        """Choose how code is generated."""
        self._codegen = codegen

    def process_inputs(self, *args):
        """What the placeholders get for the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """What a call gives for the value of the output node."""
        return self._codegen.process_outputs(out)

    def on_generate_code(self, make_transformer):
        """Context manager: the lines of generated code go through a function. make_transformer(function so far, or None) → the function."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def restoring():
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restoring()

    # --- checks and cleaning ----------------------------------------------------------------------------------------------------

    def lint(self):
        """RuntimeError unless arguments are of this graph and defined before they are used, names are unique, and targets exist in the owning module."""
        names, seen = set(), set()

        def check(argument, node):
            if argument.graph is not self:
                raise RuntimeError(
                    f"Argument '{argument}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are copying nodes from "
                    f"another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{self}"
                )
            if argument not in seen:
                raise RuntimeError(
                    f"Argument '{argument}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph are "
                    f"topologically ordered\n{self}"
                )

        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            if node._erased:
                raise RuntimeError(f"Node '{node}' is erased!")
            map_arg((node.args, node.kwargs), lambda n, node=node: check(n, node))
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                if node.op in ("get_attr", "call_module"):
                    self._lint_target(node)

    def _lint_target(self, node):
        value, parts = self.owning_module, node.target.split(".")
        for at, part in enumerate(parts):
            path = ".".join(parts[:at])
            if not hasattr(value, part):
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part} of {path}")
            value = getattr(value, part)
            if node.op == "call_module" and at == len(parts) - 1 and not isinstance(value, cresset.nn.Module):
                raise RuntimeError(f"Node {node} target {node.target} {part} of {path} does not reference an nn.Module")

    def eliminate_dead_code(self, is_impure_node=None):
        """Erase nodes nobody uses, unless they do something besides (Node.is_impure, or is_impure_node(node)). Was there one?"""
        self.lint()

        def impure(node):
            return is_impure_node(node) if is_impure_node else node.is_impure()

        before = self._len
        for node in reversed(self.nodes):
            if not impure(node) and len(node.users) == 0:
                self.erase_node(node)
        for node in self.nodes:  # graphs inside of this one
            if node.op == "get_attr" and self.owning_module is not None:
                inner = getattr(self.owning_module, node.target, None)
                if hasattr(inner, "graph") and isinstance(inner.graph, Graph):
                    inner.graph.eliminate_dead_code(is_impure_node)
        return self._len < before


reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "div": "{} / {}", "mod": "{} % {}",
    "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}  # fmt: skip

settle(globals())
