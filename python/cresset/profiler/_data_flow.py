"""What the operators of a profile do with tensors: which memory each of them reads, changes, takes and gives back, and in which version."""

import dataclasses
import functools
import itertools

import cresset
from cresset._profiler_c import RecordScope, _EventType, _TensorMetadata

from . import _utils

__all__ = ["DataFlowEdge", "DataFlowGraph", "DataFlowNode", "Key", "OpTree", "SchemaMatcher", "TensorKey", "extract_gradients", "extract_parameters", "get_scopes"]


@dataclasses.dataclass(frozen=True)
class Key:
    """Memory of which nothing but its device is known."""

    device: "cresset.device"


@dataclasses.dataclass(frozen=True)
class _Storage:
    """Where memory lies; `allocation_id` tells apart what lay there at different times."""

    ptr: int
    allocation_id: int

    def __repr__(self):
        return f"{hex(self.ptr):>18} ({self.allocation_id})"


@functools.total_ordering
@dataclasses.dataclass(frozen=True)
class TensorKey(Key):
    """Memory of tensors. `id` is common to all memory that a tensor had, see _TensorMetadata."""

    id: int
    storage: _Storage

    def __repr__(self):
        return f"id={self.id}: {self.storage!r} ({self.device})"

    def __lt__(self, other):
        return self._as_sortable() < other._as_sortable()

    def _as_sortable(self):
        return self.id, self.storage.allocation_id, self.storage.ptr, self.device.type, self.device.index or 0

    @staticmethod
    def _make(id, ptr, allocation_id, device):
        known = id is not None and ptr is not None and allocation_id is not None
        return TensorKey(device, id, _Storage(ptr, allocation_id)) if known else None

    @classmethod
    def from_allocation(cls, fields):
        """Of a change of memory; None when no number was given to it."""
        return cls._make(fields.id, fields.ptr, fields.allocation_id, fields.device)

    @classmethod
    def from_tensor(cls, tensor):
        """Of a tensor as the profile describes it; None for no tensor, and for one without a storage."""
        return None if tensor is None else cls._make(tensor.id, tensor.storage_data_ptr, tensor.allocation_id, tensor.device)


# --- events


def get_scopes(event):
    """The scopes of an event and of those around it, its own first."""
    found = []
    while event is not None:
        if event.tag is _EventType.TorchOp:
            found.append(event.extra_fields.scope)
        event = event.parent
    return tuple(found)


def _tensors(value):
    if isinstance(value, _TensorMetadata):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _kept_gradient(step):
    """The gradient that AccumulateGrad leaves: what it adds to, or takes memory for, or else what it was given."""
    for child in step.children:
        if child.tag is _EventType.TorchOp and child.name == "aten::add_":
            return TensorKey.from_tensor(next(_tensors(child.extra_fields.inputs), None))
    changes = [e.extra_fields for e in _utils.traverse_dfs(step.children) if e.tag is _EventType.Allocation]
    gone = {fields.allocation_id for fields in changes if fields.alloc_size < 0}
    new = [fields for fields in changes if fields.alloc_size > 0 and fields.allocation_id not in gone]
    return TensorKey.from_allocation(new[-1]) if new else TensorKey.from_tensor(next(_tensors(step.extra_fields.inputs), None))


def _parameters_and_gradients(event):
    fields = event.extra_fields
    if event.tag is _EventType.TorchOp:
        if fields.scope is RecordScope.BACKWARD_FUNCTION and event.name == "torch::autograd::AccumulateGrad":
            yield None, _kept_gradient(event)
    elif event.tag is _EventType.PyCall:
        if fields.module is not None:
            for _, parameter, gradient in fields.module.parameters:
                yield TensorKey.from_tensor(parameter), TensorKey.from_tensor(gradient)
        if fields.optimizer is not None:
            for parameter, gradient, _ in fields.optimizer.parameters:
                yield TensorKey.from_tensor(parameter), TensorKey.from_tensor(gradient)


def extract_parameters(event):
    """The keys of parameters that a call of a module, or a step of an optimizer, tells of."""
    for parameter, _ in _parameters_and_gradients(event):
        if parameter is not None:
            yield parameter


def extract_gradients(event):
    """(key of the parameter or None, key of its gradient) for each gradient that an event tells of: calls of modules and steps of optimizers know
    the parameters, the backward step that keeps a gradient knows that alone."""
    for parameter, gradient in _parameters_and_gradients(event):
        if gradient is not None:
            yield parameter, gradient


class OpTree:
    """The events of a finished profile."""

    def __init__(self, result):
        self._roots = result.experimental_event_tree()
        self.sorted_nodes = tuple(sorted(self.dfs(), key=lambda event: event.start_time_ns))

    def dfs(self):
        """Each event in front of those inside of it."""
        yield from _utils.traverse_dfs(self._roots)


# --- schemas


class SchemaMatcher:
    """Which operator a recorded call is of, and which of its inputs it changes."""

    @staticmethod
    @functools.cache
    def _schemas(name):
        return tuple(cresset._C._jit_get_schemas_for_operator(name))

    @classmethod
    def lookup_schemas(cls, name):
        """The schemas of an operator's overloads: none for a name that only looks like an operator's, and None for one that cannot be one."""
        return cls._schemas(name) if "::" in name else None

    @classmethod
    def match_schemas(cls, fields):
        """The schemas that the fields of a call fit. The profile knows the overload that ran, so that is one at most."""
        return tuple(
            schema
            for schema in cls.lookup_schemas(fields.name) or ()
            if schema.overload_name == fields.overload_name and len(schema.arguments) == len(fields.inputs)
        )

    @classmethod
    def inputs_are_mutable(cls, fields):
        """For each input, whether the call changes it; None for calls without a schema, of which nobody knows."""
        schemas = cls.match_schemas(fields)
        if not schemas:
            return (None,) * len(fields.inputs)
        return tuple(bool(argument.alias_info and argument.alias_info.is_write) for argument in schemas[0].arguments)


# --- the graph


@dataclasses.dataclass
class DataFlowEdge:
    """What a node does with one tensor's memory."""

    input_version: "int | None" = None  # None: it was not there before
    mutated: bool = False
    is_allocation: bool = False
    is_deletion: bool = False


class DataFlowNode:
    """An event that stands in the graph for all that is inside of it: an operator that was called by a program or by a backward step, a backward
    step, or a change of memory outside of these.

    `inputs` has (whether it is changed, version before) for each key, `outputs` the version afterwards of what is made or changed and stays, and
    `intermediates` what came and went."""

    def __init__(self, event, graph):
        self._event, self._graph = event, graph
        self._edges = self._determine_edges()
        for key, edge in self._edges.items():
            if not edge.is_allocation:
                edge.input_version = graph.lookup(key)
        for key, edge in self._edges.items():
            if edge.is_deletion:
                graph.delete(key)
            elif edge.is_allocation:
                graph.lookup(key)
            elif edge.mutated:
                graph.bump(key)
        self.inputs = {k: (e.mutated, e.input_version) for k, e in self._edges.items() if not e.is_allocation}
        self.outputs = {
            k: 0 if e.is_allocation else e.input_version + 1
            for k, e in self._edges.items()
            if (e.is_allocation or e.mutated) and not e.is_deletion
        }
        self.intermediates = tuple(k for k, e in self._edges.items() if e.is_allocation and e.is_deletion)

    def __repr__(self):
        return f"<{type(self).__name__} {self._event.name}>"

    def _determine_edges(self):
        edges = {}
        edge_of = lambda key: edges.setdefault(key, DataFlowEdge())  # noqa: E731
        for event in _utils.traverse_dfs([self._event]):
            fields = event.extra_fields
            if event.tag is _EventType.TorchOp:
                for value, changed in zip(fields.inputs, SchemaMatcher.inputs_are_mutable(fields), strict=True):
                    for key in filter(None, map(TensorKey.from_tensor, _tensors(value))):
                        edge_of(key).mutated |= bool(changed)
            elif event.tag is _EventType.Allocation and (key := TensorKey.from_allocation(fields)) is not None:
                edge = edge_of(key)
                edge.is_allocation |= fields.alloc_size > 0
                edge.is_deletion |= fields.alloc_size < 0
        return dict(sorted(edges.items()))

    @property
    def start_time(self):
        """When it began, in nanoseconds since 1970."""
        return self._event.start_time_ns


class DataFlowGraph:
    """`flow_nodes` in order of their beginning, and the versions of all memory that they touch: 0 at first, one more with each node that changes it."""

    def __init__(self, op_tree):
        self._op_tree = op_tree
        self.leaf_events = self._extract_leaf_events(op_tree)
        self._active_version = {}  # None: it is gone
        self._last_version = {}
        self.flow_nodes = tuple(DataFlowNode(event, self) for event in self.leaf_events)

    @staticmethod
    def _extract_leaf_events(op_tree):
        found, waiting = [], list(op_tree._roots)
        while waiting:
            event = waiting.pop()
            if DataFlowGraph._stands_for_all_inside(event):
                found.append(event)
            else:
                waiting += event.children
        return sorted(found, key=lambda event: event.start_time_ns)

    @staticmethod
    def _stands_for_all_inside(event):
        if event.tag is _EventType.Allocation:
            return True
        if event.tag is not _EventType.TorchOp:
            return False
        return event.extra_fields.scope is RecordScope.BACKWARD_FUNCTION or bool(SchemaMatcher.lookup_schemas(event.name))

    def lookup(self, key):
        """The version of what a key stands for; the last one of what is gone, which another thread may still tell of."""
        version = self._active_version.setdefault(key, 0)
        return self._last_version.setdefault(key, 0) if version is None else self._last_version.setdefault(key, version)

    def bump(self, key):
        """Note a change."""
        self._active_version[key] = self._last_version[key] = self.lookup(key) + 1

    def delete(self, key):
        """Note that it is given back."""
        self.lookup(key)
        self._active_version[key] = None

    def versions(self):
        """(key, version) of everything that there ever was."""
        for key, last in self._last_version.items():
            yield from ((key, version) for version in range(last + 1))

    def last_version(self, key):
        """The version in which a key is at the end, or was when it was given back."""
        return self._last_version.get(key, 0)


def tensors_in(event):
    """The tensors that an event tells of, as the profile describes them."""
    fields = event.extra_fields
    if event.tag is _EventType.TorchOp:
        return _tensors(fields.inputs)
    if event.tag is not _EventType.PyCall:
        return iter(())
    held = [[p, gradient] for _, p, gradient in fields.module.parameters] if fields.module is not None else []
    if fields.optimizer is not None:
        held += [[p, gradient, [value for _, value in state]] for p, gradient, state in fields.optimizer.parameters]
    return itertools.chain.from_iterable(map(_tensors, held))
