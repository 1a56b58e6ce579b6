"""Operators of a functional graph that may write into their argument do so."""

import operator

import cresset
from cresset import _C
from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from cresset.fx.interpreter import Interpreter
from cresset.utils._pytree import tree_leaves

__all__ = ["reinplace"]

_aten = cresset.ops.aten
# Writes a part of a tensor: the view that is this part.
_PARTS = {
    _aten.select_scatter.default: _aten.select.int, _aten.slice_scatter.default: _aten.slice.Tensor, _aten.diagonal_scatter.default: _aten.diagonal.default,
    _aten.as_strided_scatter.default: _aten.as_strided.default,
}  # fmt: skip


def reinplace(gm, *sample_args):
    """The GraphModule, changed: an operator computes in place where nothing reads afterwards what it overwrites, and writing a part of a tensor
    that was computed in place goes away.

    The graph is of aten operators without writes (as make_fx(functionalize(f)) gives), but for writes to inputs at its end. `sample_args` say the
    sizes and types for which the graph is right. Inputs and constants of the module are never written.
    """
    mode = next((a.fake_mode for a in tree_leaves(sample_args) if isinstance(a, FakeTensor)), None) or FakeTensorMode(allow_non_fake_inputs=True)
    graph = _Graph(gm, mode, [mode.from_tensor(a) if isinstance(a, cresset.Tensor) and not isinstance(a, FakeTensor) else a for a in sample_args])
    for node in list(gm.graph.nodes):
        if node.op == "call_function" and node.target in _PARTS:
            graph.write_part(node)
        elif node.op == "call_function":
            graph.write_argument(node)
    gm.recompile()
    return gm


class _Values(Interpreter):
    """Runs a graph and keeps what each node gives: all memory stays distinct."""

    def __init__(self, gm):
        super().__init__(gm, garbage_collect_values=False)
        self.values = {}

    def run_node(self, n):
        self.values[n] = super().run_node(n)
        return self.values[n]


class _Graph:
    """A graph and what its nodes give, kept up to date as operators become writes. `done`: writers of parts that a write
    before them has made needless."""

    def __init__(self, gm, mode, args):
        self.gm, self.mode = gm, mode
        run = _Values(gm)
        with mode:
            run.run(*args)
        self.values, self.done = run.values, set()
        self.kept = {m for n in gm.graph.nodes if n.op in ("placeholder", "get_attr") for m in _memories(self.values[n])}

    def read(self, node):
        """The memory of the arguments of a node."""
        return {m for n in node.all_input_nodes for m in _memories(self.values[n])}

    def only_looks(self, node):
        """Is the result a view: nothing is read but sizes?"""
        if node.op != "call_function" or isinstance(node.target, _C.OpOverload) and any(a.is_write for a in node.target._schema.arguments):
            return False
        found = _memories(self.values[node])
        return bool(found) and found <= self.read(node)

    # --- questions

    def may_be_written(self, target):
        """Is the tensor of a node memory of the graph's own, each place once?"""
        value = self.values[target]
        return isinstance(value, cresset.Tensor) and _memory(value) not in self.kept and not _overlaps(value)

    def new_values(self, node, target, there=False):
        """What later nodes see when `node` becomes a write to the tensor of `target`: {node: value in that memory}, or None when one of them
        reads what was there before. `there`: the memory holds the value already, so that nothing is written."""
        memory = _memory(self.values[target])
        seen, done = {node: self.values[target]}, set()
        later = node.next
        while later.op != "root":
            inputs = later.all_input_nodes
            old = [n for n in inputs if n not in seen and memory in _memories(self.values[n])]
            if later.op == "call_function" and later.target in _PARTS and self.stays(later, seen, old):
                seen[later] = seen.get(later.args[0], self.values[later.args[0]])
                done.add(later)
            elif old and not there and not self.only_looks(later):
                return None
            elif any(n in seen for n in inputs) and self.only_looks(later):
                if old and not there:
                    return None
                seen[later] = self.call(later.target, later.args, later.kwargs, seen)
            later = later.next
        self.done |= done
        return seen

    def stays(self, part, seen, old):
        """Does a node write a part of a tensor that is there already?"""
        base, source = part.args[:2]
        if source not in seen or any(n is not base for n in old):
            return False
        there = self.call(_PARTS[part.target], (base, *part.args[2:]), part.kwargs, seen)
        return _same_place(there, seen[source])

    def call(self, function, args, kwargs, seen):
        value = lambda n: seen.get(n, self.values[n])  # noqa: E731
        with self.mode:
            return function(*cresset.fx.node.map_arg(args, value), **cresset.fx.node.map_arg(kwargs, value))

    # --- changes

    def write_argument(self, node):
        """Make the operator one that writes into its first argument."""
        written = _inplace(node.target)
        target = node.args[0] if node.args else None
        if written is None or not isinstance(target, cresset.fx.Node) or not self.may_be_written(target):
            return
        if written is _aten.resize_.default:
            self.resize(node, target)
            return
        result, value = self.values[node], self.values[target]
        pointwise = cresset.Tag.pointwise in node.target.tags  # reads a place before it writes this place
        others = [self.values[n] for n in node.all_input_nodes if n is not target]
        shared = {m for other in others if not (pointwise and _same_place(other, value)) for m in _memories(other)}
        twice = sum(leaf is target for leaf in tree_leaves((node.args, node.kwargs))) > 1
        if (result.shape, result.dtype, result.device) != (value.shape, value.dtype, value.device) or twice or _memory(value) in shared:
            return
        seen = self.new_values(node, target)
        if seen is not None:
            self.values |= seen
            node.replace_all_uses_with(target)
            node.target = written

    def resize(self, node, target):
        """Make a resized copy the tensor itself with other sizes, where nothing looks at that tensor's memory any more."""
        memory, later = _memory(self.values[target]), node.next
        while later.op != "root":
            if memory in self.read(later):
                return
            later = later.next
        self.values[target] = self.values[node]
        node.replace_all_uses_with(target)
        node.target = _aten.resize_.default

    def write_part(self, node):
        """Make an operator that gives a tensor with one part changed a copy into that part, or nothing where the part is there already."""
        base, source = node.args[:2]
        if node not in self.done:
            if not self.may_be_written(base):
                return
            place = self.call(_PARTS[node.target], (base, *node.args[2:]), node.kwargs, {})
            there = _same_place(place, self.values[source])
            if not there and _memory(self.values[base]) in _memories(self.values[source]):
                return
            seen = self.new_values(node, base, there)
            if seen is None:
                return
            if not there:
                with self.gm.graph.inserting_before(node):
                    view = self.gm.graph.call_function(_PARTS[node.target], (base, *node.args[2:]), node.kwargs)
                    copy = self.gm.graph.call_function(_aten.copy_.default, (view, source))
                self.values |= {view: place, copy: place}
            self.values |= seen
        node.replace_all_uses_with(base)
        self.gm.graph.erase_node(node)


def _memory(tensor):
    return tensor.untyped_storage()._cdata


def _memories(value):
    return {_memory(t) for t in tree_leaves(value) if isinstance(t, cresset.Tensor)}


def _overlaps(tensor):
    """Is one place in memory several elements?"""
    reach = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape) if size > 1):
        if stride < reach:
            return True
        reach += stride * (size - 1)
    return False


def _same_place(a, b):
    is_tensors = isinstance(a, cresset.Tensor) and isinstance(b, cresset.Tensor)
    return is_tensors and _memory(a) == _memory(b) and (a.shape, a.stride(), a.storage_offset(), a.dtype) == (b.shape, b.stride(), b.storage_offset(), b.dtype)


def _inplace(target):
    """The overload that writes the result of a functional one into the first argument, or None."""
    if target is operator.getitem or not isinstance(target, _C.OpOverload):
        return None
    schema = target._schema
    if len(schema.returns) != 1 or schema.returns[0].type != "Tensor" or schema.returns[0].alias or any(a.alias for a in schema.arguments):
        return None
    space, name = schema.name.split("::")
    packet = getattr(getattr(cresset.ops, space), f"{name}_", None)
    overload = getattr(packet, schema.overload_name or "default", None) if packet is not None else None
    if overload is None:
        return None
    arguments = overload._schema.arguments
    fits = [(a.name, a.type) for a in arguments] == [(a.name, a.type) for a in schema.arguments]
    return overload if fits and arguments[0].is_write and not any(a.is_write for a in arguments[1:]) else None
