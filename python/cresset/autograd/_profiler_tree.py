"""The tree of a profile: operators, changes of memory and calls of Python functions of a thread, each inside of what it ran in."""

import itertools

from .. import _profiler_c as types
from ._profiler_events import _short
from ._profiler_ids import identify
from .profiler_util import DeviceType

_numbers = itertools.count(1)  # of operators, in all sessions


class PythonCall:
    """A call of a function: `name` as traces show it, begin and end in nanoseconds of the session, its position and that of its caller."""

    __slots__ = (
        "begin", "c_function", "end", "file", "function", "line", "module", "module_info", "module_number", "name", "number", "optimizer", "os_thread", "parent",
    )  # fmt: skip


def python_calls(found, optimizers):
    """The PythonCalls of a session, from (callees, threads) as the library notes them, and its optimizers by thread. Numbers count from 1.
    Modules hold what they held when they were called first, or hold now when they ran before the session."""
    callees, threads = found
    names, counts, known_files, infos = [], {}, {}, {}
    for target, module, about in callees:
        if module is not None:
            kind = type(module).__name__
            n = counts[kind] = counts.get(kind, -1) + 1
            infos[len(names)] = about or types._NNModuleInfo._of(module)
            names.append((f"nn.Module: {kind}_{n}", target.co_filename, target.co_name, module, len(names), False))
        elif isinstance(target, str):
            names.append((target, None, target, None, None, True))
        else:
            file = known_files.get(target.co_filename) or known_files.setdefault(target.co_filename, _short(target.co_filename))
            names.append((f"{file}({target.co_firstlineno}): {target.co_name}", file, target.co_name, None, None, False))
    out = []
    for os_thread, calls in threads:
        own, steps, looking = [], iter(optimizers.get(os_thread, ())), set()
        for callee, begin, end, parent, line in calls:
            call = PythonCall()
            call.name, call.file, call.function, call.module, call.module_number, call.c_function = names[callee]
            call.begin, call.end, call.os_thread, call.line, call.number = begin, end, os_thread, line, len(out) + len(own) + 1
            call.module_info = infos.get(callee)
            call.parent = own[parent] if parent >= 0 else None
            looks = call.function == "_optimizer_step_code" and not call.c_function and call.file.endswith("cresset/optim/optimizer.py")
            call.optimizer = next(steps, None) if looks else None
            own.append(call)
            if looks or parent in looking:
                looking.add(len(own) - 1)
        out += [call for i, call in enumerate(own) if i not in looking or call.optimizer]  # without what looked at an optimizer
    return out


def _tensor(given):
    return given and types._TensorMetadata(*given)


def _input(given):
    _, _, dtype, value, tensors = given
    if dtype == "TensorList":
        return list(map(_tensor, tensors))
    return _tensor(tensors[0]) if tensors else value


def _operator(record, tid, base):
    name, overload, begin, end, _, scope, sequence, _, _, _, _, inputs, _, _ = record
    fields = types._ExtraFields_TorchOp(False, [_input(i) for i in inputs], name, types.RecordScope(scope), sequence, overload)
    number = next(_numbers)
    return types._ProfilerEvent(name, types._EventType.TorchOp, number, base + begin, end - begin, tid, fields, number, overload)


def _frame(call):
    return types._PyFrameState(call.file or "", call.function, call.line)


def _python(call, base):
    caller = types._PyFrameState("", "", 0) if call.parent is None else types._PyFrameState(call.parent.file or "", call.parent.function, call.line)
    if call.c_function:
        tag, fields = types._EventType.PyCCall, types._ExtraFields_PyCCall(caller)
    else:
        tag, fields = types._EventType.PyCall, types._ExtraFields_PyCall(caller, _frame(call), call.module_info, call.optimizer)
    return types._ProfilerEvent(call.name, tag, call.number, base + call.begin, call.end - call.begin, call.os_thread, fields)


def _allocations(changes, tid, base):
    for time, nbytes, address, device, _, total in changes:
        fields = types._ExtraFields_Allocation(nbytes, device, address, total, 0, None, None)
        yield types._ProfilerEvent("[memory]", types._EventType.Allocation, 0, base + time, 0, tid, fields)


def _nested(nodes):
    """The roots among nodes of one thread, in order of their beginning; of two that begin together the longer one is outside."""
    roots, open_nodes = [], []
    for node in sorted(nodes, key=lambda n: (n.start_time_ns, -n.duration_time_ns)):
        open_nodes = [n for n in open_nodes if n.end_time_ns > node.start_time_ns or (n.end_time_ns == node.start_time_ns and not node.duration_time_ns)]
        # A range that ends before this one does is beside it.
        outer = next((n for n in reversed(open_nodes) if n.end_time_ns >= node.end_time_ns), None)
        node.parent = outer
        (roots if outer is None else outer.children).append(node)
        if node.tag is not types._EventType.Allocation:
            open_nodes.append(node)
    return roots


def tree_of(threads, calls, wall_clock):
    """Roots of all threads, in order of their beginning, from the threads of a session and its PythonCalls."""
    by_thread = {}
    for _, os_thread, _, records, changes in threads:
        nodes = by_thread.setdefault(os_thread, [])
        nodes += [_operator(r, os_thread, wall_clock) for r in records]
        nodes += _allocations(changes, os_thread, wall_clock)
    for call in calls:
        by_thread.setdefault(call.os_thread, []).append(_python(call, wall_clock))
    roots = sorted((root for nodes in by_thread.values() for root in _nested(nodes)), key=lambda n: n.start_time_ns)
    identify(roots)
    return roots


class RecordedEvent:
    """One operator of a profile; what it knows is asked for by calling."""

    def __init__(self, node, event):
        self._node, self._event = node, event

    def __repr__(self):
        return f"<RecordedEvent {self._node.name}>"

    def name(self):
        """What it is called."""
        return self._node.name

    def overload_name(self):
        """The operator's overload."""
        return self._node.overload_name

    def start_ns(self):
        """When it began, in nanoseconds since 1970."""
        return self._node.start_time_ns

    def end_ns(self):
        """When it ended."""
        return self._node.end_time_ns

    def duration_ns(self):
        """How long it took."""
        return self._node.duration_time_ns

    def correlation_id(self):
        """A number that no other operator of this process has."""
        return self._node.correlation_id

    def linked_correlation_id(self):
        """The number of the operator that started this work on a device: 0, there are operators only."""
        return 0

    def device_type(self):
        """Where it ran."""
        return DeviceType.CPU

    def device_index(self):
        """Which of these devices."""
        return 0

    def start_thread_id(self):
        """The system's number of its thread."""
        return self._node.start_tid

    end_thread_id = start_thread_id

    def scope(self):
        """What kind of work it is, a number of RecordScope."""
        return self._node.extra_fields.scope.value

    def sequence_nr(self):
        """Of the backward step that belongs to it, or -1."""
        return self._node.extra_fields.sequence_number

    def shapes(self):
        """Sizes of the inputs that are tensors, of a profile with shapes."""
        return [list(i.sizes) if isinstance(i, types._TensorMetadata) else [] for i in self._node.extra_fields.inputs]

    def stack(self):
        """The Python frames that called it, of a profile with stacks."""
        return list(self._event)

    def is_user_annotation(self):
        """Is it a range that the program named?"""
        return self.scope() == types.RecordScope.USER_SCOPE.value

    def is_async(self):
        """False: calls end in the thread in which they began."""
        return False


class Results:
    """What a session recorded, in the forms of PyTorch's own results: a list of operators and a tree."""

    def __init__(self, threads, calls, wall_clock, save):
        self._threads, self._calls, self._wall_clock, self._save = threads, calls, wall_clock, save
        self._tree = self._events = None

    def experimental_event_tree(self):
        """The roots of the tree, `_ProfilerEvent`s."""
        if self._tree is None:
            self._tree = tree_of(self._threads, self._calls, self._wall_clock)
        return self._tree

    def events(self):
        """All operators and named ranges, in order of their beginning."""
        if self._events is None:
            stacks = {(thread[1], r[2], r[0]): r[12] for thread in self._threads for r in thread[3]}
            found, waiting = [], list(self.experimental_event_tree())
            while waiting:
                node = waiting.pop()
                waiting += node.children
                if node.tag is types._EventType.TorchOp:
                    found.append(RecordedEvent(node, stacks.get((node.start_tid, node.start_time_ns - self._wall_clock, node.name), ())))
            self._events = sorted(found, key=lambda e: e.start_ns())
        return self._events

    def trace_start_ns(self):
        """When the session began, in nanoseconds since 1970."""
        return self._wall_clock

    def save(self, path):
        """Write the trace to a file."""
        self._save(path)
