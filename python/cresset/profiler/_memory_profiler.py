"""What the memory of a profile was for: parameters, inputs, activations, gradients, and how much of each there was when."""

import enum
import gzip
import json

import cresset
from cresset._profiler_c import RecordScope, _EventType

from ._data_flow import (
    DataFlowEdge,
    DataFlowGraph,
    DataFlowNode,
    Key,
    OpTree,
    SchemaMatcher,
    TensorKey,
    extract_gradients,
    extract_parameters,
    get_scopes,
    tensors_in,
)

__all__ = [
    "Action", "Category", "CategoryDict", "DataFlowEdge", "DataFlowGraph", "DataFlowNode", "Key", "MemoryProfile", "MemoryProfileTimeline", "OpTree", "SchemaMatcher",
    "SizeMap", "TensorKey", "extract_gradients", "extract_parameters", "get_scopes",
]  # fmt: skip


class Category(enum.Enum):
    """What memory was for."""

    INPUT = enum.auto()
    TEMPORARY = enum.auto()
    ACTIVATION = enum.auto()
    GRADIENT = enum.auto()
    AUTOGRAD_DETAIL = enum.auto()
    PARAMETER = enum.auto()
    OPTIMIZER_STATE = enum.auto()


class Action(enum.Enum):
    """What happened to memory."""

    PREEXISTING = enum.auto()
    CREATE = enum.auto()
    INCREMENT_VERSION = enum.auto()
    DESTROY = enum.auto()


# Files have actions and categories as numbers; None is of what nobody knows.
_ACTION_TO_INDEX = {action: action.value for action in Action}
_CATEGORY_TO_COLORS = {
    Category.PARAMETER: "seagreen", Category.OPTIMIZER_STATE: "orange", Category.INPUT: "dimgray", Category.TEMPORARY: "orchid",
    Category.ACTIVATION: "crimson", Category.GRADIENT: "navy", Category.AUTOGRAD_DETAIL: "cornflowerblue", None: "silver",
}  # fmt: skip
_CATEGORY_TO_INDEX = {category: i for i, category in enumerate(_CATEGORY_TO_COLORS)}


class CategoryDict:
    """Categories of memory: of all its versions, or of one, which comes first."""

    def __init__(self):
        self._of_key, self._of_version = {}, {}

    def set_by_key(self, key, category):
        """Of all versions, unless they have one."""
        self._of_key.setdefault(key, category)

    def setdefault_by_version(self, key, version, category):
        """Of one version, unless it has one."""
        if self.get(key, version) is None:
            self._of_version[key, version] = category

    def get(self, key, version):
        """None: nobody knows."""
        return self._of_key.get(key) or self._of_version.get((key, version))


class SizeMap:
    """The number of bytes behind keys: what was taken or given back, or what the largest tensor there needs."""

    def __init__(self, op_tree):
        self._sizes = {}
        exact = set()
        for event in op_tree.dfs():
            if event.tag is _EventType.Allocation:
                key = TensorKey.from_allocation(event.extra_fields)
                if key is not None:
                    exact.add(key)
                    self._sizes[key] = abs(event.extra_fields.alloc_size)
        for event in op_tree.dfs():
            for tensor in tensors_in(event):
                key = TensorKey.from_tensor(tensor)
                if key is not None and key not in exact:
                    self._sizes[key] = max(self._sizes.get(key, 0), self._bytes_of(tensor))

    @staticmethod
    def _bytes_of(tensor):
        if 0 in tensor.sizes:
            return 0
        return tensor.dtype.itemsize * (1 + sum((n - 1) * stride for n, stride in zip(tensor.sizes, tensor.strides)))

    def __contains__(self, key):
        return key in self._sizes

    def __iter__(self):
        return iter(self._sizes)

    def __getitem__(self, key):
        return self._sizes[key]


class MemoryProfile:
    """Made from the results of a profile with record_shapes, profile_memory and with_stack. Parameters are those that modules and optimizers tell
    of; the other categories follow from these, from gradients, and from where data flows."""

    def __init__(self, result):
        self._op_tree = OpTree(result)
        self._data_flow_graph = DataFlowGraph(self._op_tree)
        self._size_map = SizeMap(self._op_tree)
        self._categories = CategoryDict()
        self._in_backward = {id(node): RecordScope.BACKWARD_FUNCTION in get_scopes(node._event) or _is_engine(node._event) for node in self._nodes}
        self._set_parameters()
        self._set_gradients_and_temporaries()
        self._set_optimizer_state()
        self._set_inputs()
        self._set_activations()
        self._set_autograd_detail()

    @property
    def _nodes(self):
        return self._data_flow_graph.flow_nodes

    def _set_parameters(self):
        for event in self._op_tree.dfs():
            for key in extract_parameters(event):
                self._categories.set_by_key(key, Category.PARAMETER)

    def _set_gradients_and_temporaries(self):
        for event in self._op_tree.dfs():
            for _, key in extract_gradients(event):
                self._categories.set_by_key(key, Category.GRADIENT)
        for node in self._nodes:
            for key in node.intermediates:
                self._categories.set_by_key(key, Category.TEMPORARY)

    def _set_optimizer_state(self):
        for event in self._op_tree.dfs():
            if event.tag is _EventType.PyCall and event.extra_fields.optimizer is not None:
                for _, _, state in event.extra_fields.optimizer.parameters:
                    for key in (TensorKey.from_tensor(value) for _, value in state):
                        if key is not None:
                            self._categories.set_by_key(key, Category.OPTIMIZER_STATE)

    def _is(self, category, key, version=0):
        return self._categories.get(key, version) is category

    def _what_flows_from(self, *categories):
        """All (key, version) that depend on memory of these categories. Parameters and the state of optimizers that are changed stay what they are."""
        found = set()
        fixed = (Category.PARAMETER, Category.OPTIMIZER_STATE)

        def belongs(key, version):
            return self._categories.get(key, version) in categories or (key, version) in found

        for node in self._nodes:
            if any(belongs(key, version) for key, (_, version) in node.inputs.items()):
                found.update((k, v) for k, v in node.outputs.items() if self._categories.get(k, v) not in fixed)
        return found

    def _what_flows_into_gradients(self):
        found = set()
        for node in reversed(self._nodes):
            if any((k, v) in found or self._is(Category.GRADIENT, k, v) for k, v in node.outputs.items()):
                found.update((key, version) for key, (_, version) in node.inputs.items())
        return found

    def _set_inputs(self):
        """Inputs are what does not come from parameters and meets them, or is a part of how gradients come about."""
        candidates = self._what_flows_into_gradients()
        for node in self._nodes:
            if any(self._is(Category.PARAMETER, key, version) for key, (_, version) in node.inputs.items()):
                candidates.update((key, version) for key, (_, version) in node.inputs.items())
        not_given = self._what_flows_from(Category.PARAMETER) | self._what_flows_from(Category.GRADIENT, Category.OPTIMIZER_STATE)
        made_in_backward = {item for node in self._nodes if self._in_backward[id(node)] for item in node.outputs.items()}
        for key, version in candidates - not_given - made_in_backward:
            self._categories.setdefault_by_version(key, version, Category.INPUT)

    def _set_activations(self):
        """What a forward pass makes of inputs and activations, with nothing but parameters and temporaries besides."""
        from_these = {Category.INPUT, Category.ACTIVATION}
        allowed = from_these | {Category.PARAMETER, Category.TEMPORARY}
        for node in self._nodes:
            given = {self._categories.get(key, version) for key, (_, version) in node.inputs.items()}
            if given & from_these and given <= allowed and not self._in_backward[id(node)]:
                for key, version in node.outputs.items():
                    self._categories.setdefault_by_version(key, version, Category.ACTIVATION)

    def _set_autograd_detail(self):
        for node in self._nodes:
            if self._in_backward[id(node)]:
                for key, version in node.outputs.items():
                    self._categories.setdefault_by_version(key, version, Category.AUTOGRAD_DETAIL)

    def _category_snapshot(self):
        """The category of each version of each key, None where nobody knows."""
        graph = self._data_flow_graph
        known = dict.fromkeys(graph.versions()) | dict.fromkeys((key, 0) for key in self._size_map)
        return {(key, version): self._categories.get(key, version) for key, version in known}

    @property
    def timeline(self):
        """(time, action, (key, version), bytes) of all that happened to memory, in order; times are nanoseconds since 1970, -1 for what was there at
        the beginning. Memory without a number has a Key. A version is that before the action, and the last one for what is given back."""
        graph, taken, out = self._data_flow_graph, set(), []
        for event in self._op_tree.sorted_nodes:
            if event.tag is not _EventType.Allocation:
                continue
            fields = event.extra_fields
            key, nbytes = TensorKey.from_allocation(fields) or Key(fields.device), abs(fields.alloc_size)
            if fields.alloc_size > 0:
                taken.add(key)
                out.append((event.start_time_ns, Action.CREATE, (key, 0), nbytes))
            elif fields.alloc_size < 0:
                version = graph.last_version(key)
                out.append((event.start_time_ns, Action.DESTROY, (key, version), nbytes))
        for node in self._nodes:
            for key, version in node.outputs.items():
                if version > 0:
                    out.append((node.start_time, Action.INCREMENT_VERSION, (key, version - 1), self._size_map[key]))
        there = sorted(key for key in self._size_map if key not in taken)
        out[:0] = ((-1, Action.PREEXISTING, (key, 0), self._size_map[key]) for key in there)
        return sorted(out, key=lambda action: action[0])


def _is_engine(event):
    """Is it in what the engine does around a backward step?"""
    while event is not None:
        if event.tag is _EventType.TorchOp and event.name.startswith("autograd::engine::evaluate_function: "):
            return True
        event = event.parent
    return False


class MemoryProfileTimeline:
    """Files of how much memory of each category there was when. Rows of sizes begin with a 0, on which the others stand in a picture."""

    def __init__(self, memory_profile):
        self._timeline, self._categories = memory_profile.timeline, memory_profile._categories

    def _changes(self, device):
        """[(time, action, bytes more or, negative, fewer, category)], as numbers, of a device."""
        device, out = cresset.device(device), []
        for time, action, (key, version), nbytes in self._timeline:
            if key.device != device:
                continue
            after = version + 1 if action is Action.INCREMENT_VERSION else version
            number, before, after = action.value, *(_CATEGORY_TO_INDEX[self._categories.get(key, v)] for v in (version, after))
            if action in (Action.DESTROY, Action.INCREMENT_VERSION):
                out.append((time, number, -nbytes, before))
            if action is not Action.DESTROY:
                out.append((time, number, nbytes, after))
        return out

    def _coalesce_timeline(self, device):
        """(times in microseconds, for each the bytes by category). What was there at the beginning has the time of the first change."""
        changes = self._changes(device)
        first = next((time for time, *_ in changes if time >= 0), 0)
        times, rows, last = [], [], None
        for time, _, nbytes, category in changes:
            if time != last:
                times.append((first if time < 0 else time) // 1000)
                rows.append(list(rows[-1]) if rows else [0] * (1 + len(_CATEGORY_TO_INDEX)))
                last = time
            rows[-1][1 + category] += nbytes
        return times, rows

    def _write(self, path, content):
        with gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w") as file:
            json.dump(content, file)

    def export_memory_timeline(self, path, device_str):
        """Write [times, rows of sizes] as JSON, compressed when path ends in .gz."""
        self._write(path, self._coalesce_timeline(device_str))

    def export_memory_timeline_raw(self, path, device_str):
        """Write each change, [time, action, bytes, category], as JSON, compressed when path ends in .gz."""
        self._write(path, self._changes(device_str))

    def export_memory_timeline_html(self, path, device_str, figsize=(20, 12), title=None):
        """Write a page with a picture; figsize is in inches."""
        from ._memory_picture import page_of

        times, rows = self._coalesce_timeline(device_str)
        with open(path, "w") as file:
            file.write(page_of(times, rows, _CATEGORY_TO_COLORS, figsize, title or f"Memory of {device_str}"))
