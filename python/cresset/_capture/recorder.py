"""The graph that a capture writes: operators with their results in this call, inputs and sizes."""

import operator

import cresset
from cresset import _C
from cresset.fx import Graph
from cresset.nn import Parameter
from cresset.utils._pytree import tree_leaves, tree_map

from . import shapes
from .errors import Unsupported
from .guards import Guards
from .values import Known, Results, Sizes, SizeVar, TensorVar
from .watch import Watch

__all__ = ["CONSTANT_TYPES", "Recorder", "is_constant"]

CONSTANT_TYPES = (
    int, float, bool, complex, str, bytes, type(None), type(...), type(NotImplemented), range,
    cresset.dtype, cresset.device, cresset.layout, cresset.memory_format, cresset.Size,
)  # fmt: skip
_COLLECTIVES = ("_c10d_functional.", "_c10d_functional_autograd.", "c10d_functional.", "c10d.")
_TENSORS = {cresset.Tensor, Parameter}
_SIZE_OPERATORS = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%"}
_COMPARISONS = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!="}


def is_constant(v):
    """Is a value's whole content part of what the guards check?"""
    return isinstance(v, Known) and type(v.obj) in CONSTANT_TYPES


def _literal(v):
    return isinstance(v, SizeVar) or (isinstance(v, Known) and type(v.obj) in (int, bool))


class Recorder:
    """`dynamic`: sizes stay values of the graph; else they are numbers in it, which the guards check. `gradients`: tensors may ask for some."""

    def __init__(self, *, dynamic, gradients):
        self.graph, self.guards, self.watch = Graph(), Guards(), Watch()
        self.dynamic, self.gradients = dynamic, gradients
        self.inputs = []  # TensorVars
        self.communicates = False  # are there collectives in the graph?
        self._by_path, self._sizes, self._static = {}, {}, not dynamic
        self._last_input = None

    # ---- inputs

    def input(self, tensor, path, name):
        """A tensor from outside, read at each call."""
        found = self._by_path.get(path)
        if found is not None:
            return found
        check, constant = self.guards.check, self.guards.constant
        fixed = isinstance(tensor, Parameter)  # its sizes are the module's; numbers in words make checks of what is computed with it short
        with self.guards.unless(f"{constant(_C._tensor_check(tensor, fixed))}({path})"):
            self._guard_kind(tensor, path, name)
            self._guard_tensor(tensor, path, name)
            if fixed:
                check(f"{path}.shape == {tuple(tensor.shape)!r}", f"{name}'s shape is not {tuple(tensor.shape)}")
        if cresset.is_grad_enabled() and tensor.requires_grad:
            check(f"{path}.is_leaf is {tensor.is_leaf}", f"{name}.is_leaf is not {tensor.is_leaf}")
        if tensor.requires_grad and cresset.is_grad_enabled() and not self.gradients:
            raise Unsupported(f"gradients are needed: {name} requires them")
        self.watch.add(tensor)
        made = TensorVar(self._placeholder(name), tensor, path)
        made.node.meta["ndim"] = tensor.ndim
        made.dims = shapes.of_input(None if fixed else path, tensor)
        self._by_path[path] = made
        self.inputs.append(made)
        return made

    def _guard_kind(self, tensor, path, name):
        kind, check, constant = type(tensor), self.guards.check, self.guards.constant
        check(f"type({path}) is {constant(kind)}", f"{name} is no {kind.__name__} any more")
        if kind not in _TENSORS:
            raise Unsupported(f"{name} is a {kind.__name__}, a tensor of a type of its own")
        check(f"{path}.layout == {constant(tensor.layout)}", f"{name}'s layout is not {tensor.layout}")
        check(f"{path}.is_quantized is {tensor.is_quantized}", f"{name}.is_quantized is not {tensor.is_quantized}")
        if tensor.layout != cresset.strided or tensor.is_quantized:
            raise Unsupported(f"{name} is not strided")

    def _guard_tensor(self, t, path, name):
        check, constant = self.guards.check, self.guards.constant
        check(f"{path}.dtype == {constant(t.dtype)}", f"{name}'s dtype is not {t.dtype}")
        check(f"{path}.device == {constant(t.device)}", f"{name}'s device is not {t.device}")
        check(f"{path}.requires_grad is {t.requires_grad}", f"{name}.requires_grad is not {t.requires_grad}")
        check(f"{path}.ndim == {t.ndim}", f"{name} has not {t.ndim} dimensions")

    def _placeholder(self, name):
        target = "L_" + "".join(c if c.isalnum() else "_" for c in name).strip("_") + "_"
        graph = self.graph
        if self._last_input is None:
            first = next(iter(graph.nodes), None)
            with graph.inserting_before(first) if first is not None else graph.inserting_before():
                node = graph.create_node("placeholder", target, (), {}, target.lower())
        else:
            with graph.inserting_after(self._last_input):
                node = graph.create_node("placeholder", target, (), {}, target.lower())
        node.target = node.name if node.name != target.lower() else target
        self._last_input = node
        return node

    # ---- operators

    def argument(self, v):
        """What a node takes for a value."""
        if isinstance(v, (TensorVar, SizeVar)):
            return v.node
        if isinstance(v, Known):
            if type(v.obj) in CONSTANT_TYPES:
                return v.obj
            raise Unsupported(f"an operator takes a {type(v.obj).__name__}")
        if isinstance(v, (tuple, list)):
            items = [self.argument(i) for i in v]
            return items if isinstance(v, list) else tuple(items)
        if isinstance(v, dict):
            return {k: self.argument(i) for k, i in v.items()}
        if isinstance(v, slice):
            return slice(*(self.argument(i) for i in (v.start, v.stop, v.step)))
        raise Unsupported(f"an operator takes a {type(v).__name__.lower()}")

    def value(self, v):
        """What a value is in this call."""
        if isinstance(v, (TensorVar, SizeVar)):
            return v.value
        if isinstance(v, Known):
            return v.obj
        if isinstance(v, Results):
            return v.kind([self.value(i) for i in v])
        if isinstance(v, Sizes):
            return cresset.Size([self.value(i) for i in v])
        if isinstance(v, (tuple, list)):
            return type(v)(self.value(i) for i in v)
        if isinstance(v, dict):
            return {k: self.value(i) for k, i in v.items()}
        if isinstance(v, slice):
            return slice(*(self.value(i) for i in (v.start, v.stop, v.step)))
        raise Unsupported(f"a {type(v).__name__.lower()} is given to an operator")

    def record(self, op, target, args, kwargs=None, trace=None):
        """A node that runs, and its result."""
        kwargs = kwargs or {}
        node_args, node_kwargs = tuple(map(self.argument, args)), {k: self.argument(v) for k, v in kwargs.items()}
        values, more = list(map(self.value, args)), {k: self.value(v) for k, v in kwargs.items()}
        with self.watch:
            if str(target).startswith(_COLLECTIVES):
                result = self._without_others(target, values, more)
            elif op == "call_method":
                result = getattr(values[0], target)(*values[1:], **more)
            else:
                result = target(*values, **more)
        node = self.graph.create_node(op, target, node_args, node_kwargs)
        if trace:
            node.meta["stack_trace"] = trace
        made = self.result(node, result)
        if self.dynamic:
            self._guard_form(target, args, kwargs)
            shapes.note(made, target, args, kwargs)
        return made

    def _without_others(self, target, values, more):
        """What stands for the result of a collective while the graph is made: other ranks make no capture now. The call itself runs the graph."""
        self.communicates = self.watch.others = True
        name = str(target).removesuffix(".default")
        if name.startswith("c10d."):
            raise Unsupported(f"{name} is called as an operator")
        if name.endswith(("_", "_out", "wait_tensor", "isend", "irecv", "batch_p2p_ops")):
            return more.get("out", values[0] if values else None)
        on_meta = lambda v: v.detach().to("meta") if isinstance(v, cresset.Tensor) else v  # noqa: E731
        forms = target(*tree_map(on_meta, values), **tree_map(on_meta, more))
        given = next(v for v in tree_leaves(values) if isinstance(v, cresset.Tensor))
        zero = (given.flatten()[:1].sum() * 0).nan_to_num() if given.requires_grad else 0  # results have gradients where the argument has
        return tree_map(lambda form: cresset.zeros(form.shape, dtype=form.dtype, device=given.device) + zero, forms)

    def _guard_form(self, target, args, kwargs):
        """Checks of the sizes that decide how many dimensions or parts a result has."""
        try:
            checks = shapes.count_checks(target, args, kwargs)
        except LookupError:
            return self.need_static()
        for v in (*args[1:], *kwargs.values()) if checks else ():
            self.number(v)
        for dim, text in checks:
            size = self.size(args[0], dim)
            if text is None or size.guard is None or not size.value:
                self.number(size)
            else:
                self.guards.check(f"{text.format(n=size.guard)} == {shapes.evaluate(text, size.value)}", f"an operator has another number of dimensions or parts: {size.guard} is not {size.value}")

    def result(self, node, result):
        """The value of what an operator gave."""
        if isinstance(result, cresset.Tensor):
            if type(result) not in _TENSORS:
                raise Unsupported(f"{node.name} gives a {type(result).__name__}, a tensor of a type of its own")
            node.meta["ndim"] = result.ndim
            return TensorVar(node, result)
        if result is None:
            return Known(None)
        if type(result) in (list, tuple) or (isinstance(result, tuple) and hasattr(type(result), "n_fields")):
            items = [self.result(self.graph.call_function(operator.getitem, (node, i)), one) for i, one in enumerate(result)]
            if type(result) is list:
                return items
            if type(result) is tuple:
                return tuple(items)
            named = Results(items)
            named.kind = type(result)
            return named
        self.graph.erase_node(node)
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", node.target)
        raise Unsupported(f"Python gets a {type(result).__name__} of a tensor's contents from {name}", breaks=True)

    # ---- sizes

    def size(self, tensor, dim):
        """The size of a dimension."""
        n = tensor.value.size(dim)
        dim = dim % tensor.value.ndim
        if self.dynamic:
            key = (tensor.node, dim)
            if key not in self._sizes:
                known = tensor.dims[dim] if tensor.dims is not None and len(tensor.dims) == tensor.value.ndim else None
                guard = self.guards.read(known[0]) if known is not None and known[1] == n else None
                self._sizes[key] = SizeVar(self.graph.call_method("size", (tensor.node, dim)), n, guard)
            return self._sizes[key]
        if tensor.path is None:
            self.need_static()
        return Known(n)

    def shape(self, tensor):
        """All of them."""
        return Sizes(self.size(tensor, i) for i in range(tensor.value.ndim))

    def need_static(self):
        """A size that no input's size says decides: all inputs' sizes must be the same again."""
        if self.watch.of_contents:
            raise Unsupported("a size depends on a tensor's contents", breaks=True)
        self._static = True

    def number(self, v):
        """The number itself; later calls must have the same one."""
        if not isinstance(v, SizeVar):
            return v
        if v.guard is None:
            self.need_static()
        else:
            self.guards.check(f"{v.guard} == {v.value}", f"{v.guard} is not {v.value}")
        return Known(v.value)

    def arithmetic(self, function, a, b):
        """A binary operator on a size and a whole number; None where the answer is none of either."""
        if function not in _SIZE_OPERATORS or not (_literal(a) and _literal(b)):
            return None
        value = lambda v: v.value if isinstance(v, SizeVar) else v.obj  # noqa: E731
        words = lambda v: v.guard if isinstance(v, SizeVar) else repr(v.obj)  # noqa: E731
        result = function(value(a), value(b))
        guard = f"({words(a)} {_SIZE_OPERATORS[function]} {words(b)})" if words(a) and words(b) else None
        return SizeVar(self.graph.call_function(function, (self.argument(a), self.argument(b))), result, guard)

    def compare(self, function, a, b):
        """Known(True or False) of a size and a whole number, which later calls must answer the same way."""
        if function not in _COMPARISONS or not (_literal(a) and _literal(b)):
            return None
        value = lambda v: v.value if isinstance(v, SizeVar) else v.obj  # noqa: E731
        words = lambda v: v.guard if isinstance(v, SizeVar) else repr(v.obj)  # noqa: E731
        result = function(value(a), value(b))
        if words(a) and words(b):
            text = f"{words(a)} {_COMPARISONS[function]} {words(b)}"
            self.guards.check(f"({text}) is {result}", f"{text} is not {result}")
        else:
            self.need_static()
        return Known(result)

    def finish(self, outputs):
        """Closes the graph; the checks of sizes that became numbers."""
        self.graph.output(tuple(outputs))
        self._drop_unused_sizes()
        if self._static:
            for one in self.inputs:
                shape = tuple(one.value.shape)
                self.guards.check(f"{one.path}.shape == {shape!r}", f"a shape is not {shape}")

    def _drop_unused_sizes(self):
        for node in reversed(list(self.graph.nodes)):
            of_size = node.op == "call_method" and node.target == "size"
            if not node.users and (of_size or (node.op == "call_function" and node.target in (operator.getitem, *_SIZE_OPERATORS) and _is_number(node))):
                self.graph.erase_node(node)


def _is_number(node):
    """Is a node arithmetic of sizes, or a part of results that nobody takes? Both do nothing."""
    if node.target is operator.getitem:
        return isinstance(node.args[1], int) and "stack_trace" not in node.meta
    return "stack_trace" not in node.meta
