"""Records of the profiler: events, lists of them, and averages over events of one kind. Times are microseconds."""

import enum
from collections import defaultdict
from operator import attrgetter

from ._profiler_table import format_time, table
from ._profiler_table import format_time as _format_time  # noqa: F401
from ._profiler_trace import MEMORY as MEMORY_EVENT_NAME  # noqa: F401
from ._profiler_trace import write_trace

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel"]

_STACK_METRICS = [
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
    "self_device_time_total",
]


class DeviceType(enum.IntEnum):
    """Where an event ran: on the CPU, or on a device of a backend (PrivateUse1). The others are PyTorch's names of what does not exist here."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20

    __str__ = enum.Enum.__str__


class Interval:
    """From `start` to `end`."""

    __slots__ = ("end", "start")

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        """Its length."""
        return self.end - self.start


class Kernel:
    """Work on a device that an event started: `name`, the device's number, `duration`."""

    __slots__ = ("device", "duration", "name")

    def __init__(self, name, device, duration):
        self.name, self.device, self.duration = name, device, duration

    def __repr__(self):
        return f"Kernel(name={self.name!r}, device={self.device}, duration={self.duration})"


class _Times:
    # What events and averages have in common. Older names say cuda where they mean the device.
    cpu_time_str = property(lambda self: format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: format_time(self.self_cpu_time_total))
    device_time_str = property(lambda self: format_time(self.device_time))
    device_time_total_str = property(lambda self: format_time(self.device_time_total))
    self_device_time_total_str = property(lambda self: format_time(self.self_device_time_total))

    cpu_time = property(lambda self: self.cpu_time_total / self.count if self.count else 0.0)
    device_time = property(lambda self: self.device_time_total / self.count if self.count else 0.0)

    cuda_time = property(lambda self: self.device_time)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    self_privateuse1_time_total = property(lambda self: self.self_device_time_total)
    cuda_memory_usage = property(lambda self: self.device_memory_usage)
    self_cuda_memory_usage = property(lambda self: self.self_device_memory_usage)


class FunctionEvent(_Times):
    """One call: an operator, a backward step, a named range, or a change of memory outside of all of them."""

    def __init__(
        self, id, name, thread, start_us, end_us, overload_name="", fwd_thread=0, input_shapes=(), stack=(), scope=0, use_device=None,
        cpu_memory_usage=0, device_memory_usage=0, is_async=False, is_remote=False, sequence_nr=-1, node_id=-1, device_type=DeviceType.CPU,
        device_index=0, is_legacy=False, flops=0, trace_name=None, concrete_inputs=(), is_user_annotation=False, *, input_dtypes=(),
        input_strides=(), args="", os_thread=0,
    ):  # fmt: skip
        self.id, self.node_id, self.name = id, node_id, name
        self.overload_name = overload_name
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread, self.fwd_thread, self.os_thread = thread, fwd_thread, os_thread
        self.kernels, self.count = [], 1
        self.cpu_children, self.cpu_parent = [], None
        self.structured_input_shapes = list(input_shapes)
        # A list of tensors counts as one input without sizes.
        self.input_shapes = [[] if s and isinstance(s[0], list) else s for s in input_shapes]
        self.concrete_inputs, self.kwinputs = list(concrete_inputs), {}
        self.input_dtypes, self.structured_input_strides = list(input_dtypes), list(input_strides)
        self.stack, self.scope, self.use_device, self.args = list(stack), scope, use_device, args
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.sequence_nr, self.device_type, self.device_index = sequence_nr, device_type, device_index
        self.flops, self.is_user_annotation, self.is_python_function = flops, is_user_annotation, False

    key = property(lambda self: self.name)

    def append_kernel(self, name, device, duration):
        """Add work on a device that this call started."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child):
        """Add a call that ran inside of this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent):
        """Say inside of which call this one ran."""
        self.cpu_parent = parent

    @property
    def cpu_time_total(self):
        """The time between begin and end."""
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self):
        """The same without the calls inside."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self):
        """Time on the device, with the calls inside."""
        return sum(k.duration for k in self.kernels) + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self):
        """The same without the calls inside."""
        return sum(k.duration for k in self.kernels)

    @property
    def self_cpu_memory_usage(self):
        """Bytes that this call itself took, less those it gave back."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self):
        """The same of the device's memory."""
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    def __repr__(self):
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} device_type={self.device_type!s} "
            f"node_id={self.node_id} cpu_time={self.cpu_time_str} start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} name={self.name} "
            f"thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage} is_async={self.is_async} is_remote={self.is_remote} "
            f"seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


_SUMS = (
    "count", "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "cpu_memory_usage",
    "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "flops",
)  # fmt: skip


class FunctionEventAvg(_Times):
    """The sum of events with the same name (and shapes, stack or overload, when grouped by them)."""

    def __init__(self):
        self.key = self.input_shapes = self.overload_name = self.stack = self.scope = self.use_device = None
        self.node_id, self.device_type, self.cpu_children, self.cpu_parent = 0, DeviceType.CPU, None, None
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        for name in _SUMS:
            setattr(self, name, 0)

    def add(self, other):
        """Add an event, or another average with the same key."""
        if self.key is None:
            for name in ("key", "node_id", "is_async", "is_remote", "is_legacy", "is_user_annotation", "cpu_parent", "cpu_children",
                         "overload_name", "stack", "scope", "device_type", "use_device", "input_shapes"):  # fmt: skip
                setattr(self, name, getattr(other, name))
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self):
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  "
            f"self_{device}_time={self.self_device_time_total_str} {device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


class EventList(list):
    """A list of events or averages, which prints as a table."""

    def __init__(self, *args, use_device=None, profile_memory=False, with_flops=False):
        super().__init__(*args)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops

    def __str__(self):
        return self.table()

    def _populate_cpu_children(self):
        """Make of events that were put together by hand the calls of each other: one that ran within another, in its thread, is its child. Of those that
        overlap otherwise none is."""
        by_thread = {}
        for event in self:
            if event.device_type == DeviceType.CPU and not event.is_async:
                by_thread.setdefault((event.thread, event.node_id), []).append(event)
        for events in by_thread.values():
            around = []
            for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
                while around and (event.time_range.start >= around[-1].time_range.end or event.time_range.end > around[-1].time_range.end):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    @property
    def self_cpu_time_total(self):
        """The sum over all events of the time that was their own."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80, header=None,
        top_level_events_only=False, time_unit=None,
    ):  # fmt: skip
        """The events as text, a row each.

        `sort_by` is an attribute, the largest first: "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
        "self_cpu_memory_usage", "count", and the same with device in place of cpu. A row_limit of -1 and widths of None are no limits. `time_unit` is "s", "ms" or
        "us"; by itself each time has its own.
        """
        events = self
        if sort_by is not None:
            events = sorted(self, key=attrgetter(sort_by), reverse=True)
        return table(
            events, self, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            self._use_device, self._profile_memory, self._with_flops, top_level_events_only, time_unit,
        )  # fmt: skip

    def export_chrome_trace(self, path):
        """Write the events as a trace for chrome://tracing and perfetto."""
        write_trace(path, self)

    def supported_export_stacks_metrics(self):
        """What export_stacks can measure by."""
        return _STACK_METRICS[:-1]

    def export_stacks(self, path, metric):
        """Write lines "outermost;...;innermost microseconds", the input of flame graphs. Events without a stack are left out."""
        if metric not in _STACK_METRICS:
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        spoilt = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as file:
            for event in self:
                if event.stack and (value := int(getattr(event, metric))) > 0:
                    file.write(";".join(frame.translate(spoilt) for frame in reversed(event.stack)) + f" {value}\n")

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """One average for each name, or for each name with the same input shapes, innermost frames or overload."""
        averages = defaultdict(FunctionEventAvg)
        for event in self:
            key = (
                event.key, event.node_id, event.device_type, event.is_legacy, event.is_user_annotation,
                str(event.input_shapes) if group_by_input_shapes else "",
                event.overload_name if group_by_overload_name else "",
                tuple(event.stack[:group_by_stack_n]) if group_by_stack_n > 0 else (),
            )  # fmt: skip
            averages[key].add(event)
        out = EventList(
            averages.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        for average in out:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return out

    def total_average(self):
        """One average of all events."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total
