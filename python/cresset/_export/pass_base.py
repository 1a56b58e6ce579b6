"""Passes over exported programs: the graph is run node by node with fake values, and a method for each kind of node makes the new one."""

import operator

import cresset
from cresset import fx
from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from cresset.export._control_flow import Operator, cond_operator
from cresset.export._scans import map_operator
from cresset.export.graph_signature import ConstantArgument, CustomObjArgument
from cresset.fx.experimental.proxy_tensor import PythonKeyTracer, _track_tree
from cresset.fx.passes.infra.pass_base import PassBase, PassResult
from cresset.utils import _pytree as pytree

from .pass_infra.node_metadata import NodeMetadata
from .pass_infra.proxy_value import ProxyValue

__all__ = ["ExportPassBaseError", "_ExportPassBaseDeprecatedDoNotUse"]


_OF_NUMBERS = (cresset.sym_float, cresset.sym_int, cresset.sym_max, cresset.sym_min, cresset.sym_not, cresset.sym_sqrt)


class ExportPassBaseError(RuntimeError):
    """A graph has what a pass cannot handle."""


def _data(value):
    return value.data if isinstance(value, ProxyValue) else value


def _proxy(value):
    return value.proxy_or_node if isinstance(value, ProxyValue) else value


class _Tracer(PythonKeyTracer):
    """Makes the new graph; attributes that it gets become attributes of its root."""

    def __init__(self, callback, codegen):
        super().__init__()
        self.callback, self.root, self.graph, self.tensor_attrs = callback, cresset.nn.Module(), fx.Graph(tracer_cls=PythonKeyTracer), {}
        self.graph.set_codegen(codegen)
        self.fake_mode, self.submodules = callback.fake_mode, 0

    def create_arg(self, a):
        """Graphs become attributes by number."""
        if isinstance(a, fx.GraphModule):
            name = f"submodule_{self.submodules}"
            self.submodules += 1
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)


class _Interpreter(fx.Interpreter):
    """Runs the old graph with ProxyValues, by the methods of the pass."""

    def __init__(self, callback, module):
        super().__init__(module)
        self.callback, self.node = callback, None

    def run_node(self, n):
        """What the pass gives for the node."""
        self.node = n
        return super().run_node(n)

    @property
    def meta(self):
        """What is noted at the node that runs."""
        return NodeMetadata(self.node.meta)

    def placeholder(self, target, args, kwargs):
        """An input."""
        return self.callback.placeholder(target, super().placeholder(target, args, kwargs), self.meta)

    def output(self, target, args, kwargs):
        """The outputs."""
        return self.callback.output(args[0], self.meta).data

    def get_attr(self, target, args, kwargs):
        """An attribute: a graph as it is, another value with its node."""
        value = super().get_attr(target, args, kwargs)
        if isinstance(value, fx.GraphModule):
            return value
        tracer = self.callback.tracer
        node = tracer.create_node("get_attr", target, (), {})
        owner, name = tracer.root, target.rpartition(".")[2]
        for part in target.split(".")[:-1]:
            if not hasattr(owner, part):
                owner.add_module(part, cresset.nn.Module())
            owner = getattr(owner, part)
        setattr(owner, name, value)
        found = ProxyValue(value, fx.Proxy(node, tracer))
        node.meta.update(self.meta.data)
        self.callback.on_attr(found)
        return found

    def call_function(self, target, args, kwargs):
        """By the kind of function."""
        if target is operator.getitem:
            return self.callback.call_getitem(args[0], args[1], self.meta)
        if target is cond_operator:
            pred, true_fn, false_fn, inputs = args
            return self.callback.call_cond(pred, true_fn, false_fn, list(inputs), self.meta)
        if target is map_operator:
            f, mapped, operands = args
            return self.callback.call_map(f, list(mapped), list(operands), self.meta)
        if isinstance(target, Operator):
            return self.callback._call_flow(target, args, self.meta)
        if getattr(target, "__module__", None) in ("_operator", "math", "builtins") or target in _OF_NUMBERS:
            return self.callback.call_sym(target, args, self.meta)
        if isinstance(target, (cresset._ops.OpOverload, cresset._ops.HigherOrderOperator)):
            return self.callback.call_operator(target, args, kwargs, self.meta)
        raise ExportPassBaseError(f"Unsupported target type: {target}")

    def call_module(self, target, args, kwargs):
        """ExportPassBaseError: exported graphs have none."""
        raise ExportPassBaseError("call_module is not supported.")

    def call_method(self, target, args, kwargs):
        """ExportPassBaseError: exported graphs have none."""
        raise ExportPassBaseError("call_method is not supported.")


class _ExportPassBaseDeprecatedDoNotUse(PassBase):
    """The base class of passes over exported graphs. Override placeholder, call_operator, call_sym, call_getitem, call_cond, call_map or output: they get ProxyValues and
    the NodeMetadata of the old node, and give the ProxyValue of the new one, which the same method of this class makes. Nodes that are not touched keep their
    names."""

    def __init__(self):
        self.interpreter, self.tracer, self.fake_mode = None, None, None

    def _fx(self, kind, target, args, kwargs, meta):
        """A node of the new graph with its value."""
        old = self.interpreter.node
        same = old is not None and old.op == kind and old.target is target
        if same and "value" in old.meta:  # it asks for a value of a tensor: the old number stands for it
            result = old.meta["val"]
        else:
            data_args, data_kwargs = pytree.tree_map(_data, (tuple(args), kwargs))
            with self.fake_mode, cresset.no_grad():
                result = target(*data_args, **data_kwargs)
        args, kwargs = pytree.tree_map(_proxy, (tuple(args), kwargs))
        proxy = self.tracer.create_proxy(kind, target, args, kwargs, name=old.name if same else self.tracer.graph._target_to_str(_name_of(target)))
        proxy.node.meta.update(meta.data)
        if same and "val" in old.meta and _forms(old.meta["val"]) == _forms(result):
            return ProxyValue(result, proxy)  # with what the old node says of gradients
        _track_tree(self.tracer, result, proxy)
        return ProxyValue(result, proxy)

    def call(self, graph_module):
        """The pass over a module and the modules that it calls: a new module."""
        if not getattr(self, "_inner", False):
            modes = [x.fake_mode for n in graph_module.graph.nodes for x in pytree.tree_leaves(n.meta.get("val")) if isinstance(x, FakeTensor)]
            self.fake_mode = modes[0] if modes else FakeTensorMode(allow_non_fake_inputs=True)
        before, self._inner = (self.interpreter, self.tracer, getattr(self, "_inner", False)), True
        try:
            return self.call_submodule(graph_module, tuple(self.inputs(graph_module)))
        finally:
            self.interpreter, self.tracer, self._inner = before

    def inputs(self, graph_module):
        """The values of the module's placeholders. ExportPassBaseError where one has none."""
        found = []
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                if "val" not in node.meta:
                    raise ExportPassBaseError(f"Cannot construct an input for graph module: {node.name} has no meta['val'].")
                value = node.meta["val"]
                found.append(value.fake_val if isinstance(value, CustomObjArgument) else value.value if isinstance(value, ConstantArgument) else value)
        return found

    def on_attr(self, attr):
        """An attribute was read."""

    def placeholder(self, name, arg, meta):
        """An input."""
        node = self.tracer.create_node("placeholder", name, (), {}, name=name)
        node.meta.update(meta.data)
        proxy = fx.Proxy(node, self.tracer)
        return ProxyValue(arg, proxy)

    def call_operator(self, op, args, kwargs, meta):
        """An operator."""
        return self._fx("call_function", op, args, kwargs, meta)

    def call_sym(self, target, args, meta):
        """A function of numbers."""
        return self._fx("call_function", target, args, {}, meta)

    def call_getitem(self, value, key, meta):
        """One of several results."""
        return self._fx("call_function", operator.getitem, (value, key), {}, meta)

    def call_cond(self, pred, true_fn, false_fn, inputs, meta):
        """torch.cond, after both branches."""
        branches = [self._submodule(fn, inputs) for fn in (true_fn, false_fn)]
        return self._with_graphs(cond_operator, (pred, *branches, list(inputs)), meta)

    def call_map(self, f, mapped_args, operands, meta):
        """map, after its function."""
        return self._with_graphs(map_operator, (self._submodule(f, self.inputs(f)), mapped_args, operands), meta)

    def _call_flow(self, target, args, meta):
        """while_loop, scan and associative_scan, after their functions."""
        args = [self._submodule(a, self.inputs(a)) if isinstance(a, fx.GraphModule) else a for a in args]
        return self._with_graphs(target, tuple(args), meta)

    def _submodule(self, module, inputs):
        before = self.interpreter, self.tracer
        try:
            return self.call_submodule(module, tuple(map(_data, inputs))).graph_module
        finally:
            self.interpreter, self.tracer = before

    def _with_graphs(self, target, args, meta):
        """A node whose value is that of the old one: its graphs are run when the program is."""
        proxy = self.tracer.create_proxy("call_function", target, pytree.tree_map(_proxy, args), {}, name=self.tracer.graph._target_to_str(_name_of(target)))
        proxy.node.meta.update(meta.data)
        return ProxyValue(meta.data["val"], proxy)

    def output(self, results, meta):
        """The outputs."""
        values = tuple(results) if isinstance(results, (list, tuple)) else results  # one value: that of a loop's condition
        node = self.tracer.create_node("output", "output", (self.tracer.create_arg(pytree.tree_map(_proxy, values)),), {})
        node.meta.update(meta.data)
        return ProxyValue(results, node)

    def call_submodule(self, graph_module, inputs):
        """The pass over one graph."""
        self.tracer, self.interpreter = _Tracer(self, graph_module.graph._codegen), _Interpreter(self, graph_module)
        with fx.traceback.preserve_node_meta():
            self.interpreter.run(*inputs)
        new = fx.GraphModule(self.tracer.root, self.tracer.graph, type(graph_module).__name__)
        new.meta, new.training = dict(graph_module.meta), graph_module.training
        return PassResult(new, True)


def _name_of(target):
    if isinstance(target, cresset._ops.OpOverload):
        return target._schema.name.partition("::")[2]
    return target.name() if isinstance(target, cresset._ops.HigherOrderOperator) else getattr(target, "__name__", str(target))


def _forms(value):
    return pytree.tree_map(lambda x: (tuple(x.shape), tuple(x.stride()), x.dtype) if isinstance(x, cresset.Tensor) else x, value)
