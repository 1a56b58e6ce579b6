"""The profiler: `with profile() as p: ...`, then `p.key_averages().table()`; and names for stretches of code."""

import dataclasses
import importlib
import time

from .. import _C
from ..autograd.grad_mode import _Decorator
from . import _profiler_state
from ._profiler_parts import EnforceUnique, KinetoStepTracker, MemRecordsAcc

__all__ = ["EnforceUnique", "KinetoStepTracker", "MemRecordsAcc", "emit_itt", "emit_nvtx", "kineto_available", "profile", "record_function"]

_UTIL_NAMES = (
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MEMORY_EVENT_NAME",
)


_is_profiler_enabled = False  # whether a session runs


def _set_running(kind):
    global _is_profiler_enabled
    _is_profiler_enabled, _profiler_state.active_kind = kind != "NONE", kind


def __getattr__(name):
    # The classes of events are needed when a profile is looked at, not to name a block.
    if name in _UTIL_NAMES:
        return getattr(importlib.import_module("cresset.autograd.profiler_util"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def kineto_available():
    """Can `profile` record? Always: sessions need no library."""
    return True


def _count_optimizer_steps(optimizer, args, kwargs):
    KinetoStepTracker.increment_step("Optimizer")


@dataclasses.dataclass
class _ProfilerStats:
    """How long the parts of profiling itself took."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0


def _us_since(start):
    return -(-(time.perf_counter_ns() - start) // 1000)


class record_function(_Decorator):
    """A name for a block of code, or for the calls of a decorated function; `args` is a text that tells its calls apart.

    It becomes a row of the profile, with the operators of the block inside, and backends pass the name to their own profilers.
    """

    def __init__(self, name: str, args: "str | None" = None):
        for what, value in (("name", name), ("args", args)):
            if not (isinstance(value, str) or (what == "args" and value is None)):
                raise TypeError(f"record_function: the argument '{what}' must be a str, not {type(value).__name__}.")
        self.name, self.args = name, args
        self._open = []

    def __enter__(self):
        self._open.append(_C._profiler_begin(self.name, self.args or ""))
        if _C._hears_ranges():
            _C._profile_push(self.name)
        return self

    def __exit__(self, *exc_info):
        if _C._hears_ranges():
            _C._profile_pop()
        _C._profiler_end(self._open.pop())

    def _clone(self):
        return type(self)(self.name, self.args)


class _ModuleRanges:
    """A range for each call of a module, "nn.Module: Linear_0", by hooks on all modules; numbers count the modules of a class."""

    def __init__(self):
        from ..nn.modules import _hooks

        self._open, self._names, self._counts = [], {}, {}
        self._handles = [
            _hooks.register_module_forward_pre_hook(self._begin),
            _hooks.register_module_forward_hook(self._end, always_call=True),
        ]

    def _name(self, module):
        # The module is kept with its name, so that no other one can have its number.
        known = self._names.get(id(module))
        if known is None:
            kind = type(module).__name__
            n = self._counts[kind] = self._counts.get(kind, -1) + 1
            known = self._names[id(module)] = (f"nn.Module: {kind}_{n}", module)
        return known[0]

    def _begin(self, module, args):
        self._open.append(_C._profiler_begin(self._name(module), ""))

    def _end(self, module, args, output):
        if self._open:
            _C._profiler_end(self._open.pop())

    def remove(self):
        for handle in self._handles:
            handle.remove()


def _usable_device(use_device, use_cuda):
    """The name of the device kind whose time is measured, or None with a warning."""
    import warnings

    if use_cuda or use_device == "cuda":
        warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=4)
        return None
    if use_device in (None, "cpu"):
        return None
    if use_device not in _C._registered_backends():
        warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=4)
        return None
    return use_device


def _new_trace_id():
    """32 hexadecimal digits that no other session has."""
    import uuid

    return uuid.uuid4().hex.upper()


class profile:
    """Records what runs in this thread, and in the threads that work for it, while the context is open.

    `record_shapes` keeps shapes, types and values of inputs; `profile_memory` what storages take and give back; `with_stack` the Python
    frames that called an operator; `with_modules` a range for each call of a module; `with_flops` counts operations of products,
    convolutions, sums and products of elements. `use_device` names a backend's device, whose time is then measured with its events.

    `custom_trace_id_callback` gives the name of the session, which its trace carries; by default it is a random one.

    One session runs at a time in a process: a second one raises.
    """

    _kind = "KINETO"

    def __init__(
        self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False, profile_memory=False,
        with_stack=False, with_modules=False, use_kineto=False, use_cpu=True, experimental_config=None, acc_events=False,
        custom_trace_id_callback=None,
    ):  # fmt: skip
        self.enabled = enabled
        self.entered = False
        if not enabled:
            return
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self.use_device = _usable_device(use_device, use_cuda)
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory, self.with_stack, self.with_modules = (
            with_flops,
            profile_memory,
            with_stack,
            with_modules,
        )
        self.acc_events = acc_events
        self.trace_id, self._make_trace_id, self._pause = "", custom_trace_id_callback or _new_trace_id, None
        self._threads, self._events, self._memory, self._wall_clock, self._modules = None, None, None, 0, None
        self._config, self._calls, self.kineto_results, self._stats = experimental_config, [], None, _ProfilerStats()

    def __repr__(self):
        return "<unfinished cresset.autograd.profile>" if self._unfinished() else repr(self.function_events)

    def __str__(self):
        return "<unfinished cresset.autograd.profile>" if self._unfinished() else self.table()

    def __enter__(self):
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._start()
        return self

    def __exit__(self, *exc_info):
        if self.enabled:
            self._stop()
        return False

    def _start(self):
        start = time.perf_counter_ns()
        self.entered = True
        self.trace_id = self._make_trace_id()
        device = self.use_device and _C.device(self.use_device)
        _profiler_state.keyword_values.clear()
        self._keep_values = _profiler_state.keep_values
        self._stats.profiler_prepare_call_duration_us = _us_since(start)
        start = time.perf_counter_ns()
        _C._profiler_start(self.record_shapes, self.profile_memory, self.with_stack, device or None)
        self._modules = _ModuleRanges() if self.with_modules else None
        _set_running(self._kind)
        self._stats.profiler_enable_call_duration_us = _us_since(start)
        if self.with_stack:
            from .._profiler_c import _NNModuleInfo
            from ..nn.modules._hooks import _HookedModule

            _profiler_state.optimizers, _profiler_state.optimizer_infos = {}, {}
            _C._profiler_calls_start(_HookedModule.__call__.__code__, _NNModuleInfo._of)

    def _stop(self):
        start = time.perf_counter_ns()
        calls = _C._profiler_calls_stop() if self.with_stack else ([], [])
        if self._modules is not None:
            self._modules.remove()
        self._resume()
        self._wall_clock, duration, threads = _C._profiler_stop()
        _set_running("NONE")
        self._stats.profiling_window_duration_sec = duration / 1e9
        self._stats.profiler_disable_call_duration_us = _us_since(start)
        start = time.perf_counter_ns()
        from ._profiler_events import with_totals, without_values
        from ._profiler_tree import Results, python_calls

        self._threads = with_totals(threads if self._keep_values else without_values(threads))
        self._keywords = dict(_profiler_state.keyword_values)
        _profiler_state.keyword_values.clear()
        optimizers, _profiler_state.optimizers = _profiler_state.optimizers, None
        _profiler_state.optimizer_infos = None
        self._calls = python_calls(calls, optimizers or {})
        self.kineto_results = Results(self._threads, self._calls, self._wall_clock, self.export_chrome_trace)
        self._stats.parse_kineto_call_duration_us = _us_since(start)

    def toggle_collection_dynamic(self, enabled, activities):
        """Leave out what happens from now on, or collect it again. Calls on the CPU and what they do on devices go together: any activity
        means both."""
        unknown = [a for a in activities if type(a).__name__ != "ProfilerActivity"]
        if unknown:
            raise TypeError(
                f"toggle_collection_dynamic: activities must be ProfilerActivity members, not {type(unknown[0]).__name__}."
            )
        if activities and enabled:
            self._resume()
        elif activities and self._pause is None:
            from ._profiler_events import PAUSE

            self._pause = _C._profiler_begin(PAUSE, "")

    def _resume(self):
        if self._pause is not None:
            _C._profiler_end(self._pause)
            self._pause = None

    def _unfinished(self):
        return not self.enabled or (self._threads is None and self._events is None)

    @property
    def function_events(self):
        """The events of the session, as an EventList; None for a profile that was not enabled."""
        if not self.enabled:
            return None
        if self._events is None:
            from ._profiler_events import events_of

            if self._threads is None:
                return events_of([])[0]
            start = time.perf_counter_ns()
            self._events, self._memory = events_of(
                self._threads, keywords=self._keywords, use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops,
                with_shapes=self.record_shapes, with_stack=self.with_stack,
            )  # fmt: skip
            self._threads = None
            self._stats.function_events_build_tree_call_duration_us = _us_since(start)
            self._stats.number_of_events = len(self._events)
        return self._events

    def _finished_events(self):
        events = self.function_events
        if events is None:
            raise RuntimeError("Profiler didn't finish running: it was not enabled.")
        return events

    def table(
        self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80, header=None,
        top_level_events_only=False, time_unit=None,
    ):  # fmt: skip
        """EventList.table of all events."""
        return self._finished_events().table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header, top_level_events_only,
            time_unit,
        )  # fmt: skip

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """EventList.key_averages of all events."""
        return self._finished_events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        """EventList.total_average of all events."""
        return self._finished_events().total_average()

    @property
    def self_cpu_time_total(self):
        """The time of all events together, in microseconds."""
        return self._finished_events().self_cpu_time_total

    def export_chrome_trace(self, path):
        """Write a trace for chrome://tracing and perfetto; a path that ends in .gz is compressed."""
        self._export(path)

    def _export(self, path, metadata=None):
        if self._unfinished():
            raise RuntimeError("Profiler didn't finish running: there is nothing to export.")
        from ._profiler_trace import write_trace

        metadata = {"trace_id": self.trace_id, **(metadata or {})}
        names = ("record_shapes", "with_stack", "with_modules", "with_flops", "profile_memory")
        options = {name: 1 for name in names if getattr(self, name)}
        events = self.function_events
        write_trace(
            path, events, memory=self._memory, wall_clock=self._wall_clock, options=options, metadata=metadata, calls=self._calls,
            arrows=_profiler_state.draw_arrows, adjust_steps=getattr(self._config, "adjust_profiler_step", False),
        )  # fmt: skip

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """EventList.export_stacks of all events; needs with_stack."""
        events = self._finished_events()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        return events.export_stacks(path, metric)


class _Foreign:
    # Sessions of vendors' tools: their libraries are no part of Cresset.
    _library = ""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled

    def __enter__(self):
        if self.enabled:
            raise NotImplementedError(
                f"{type(self).__name__}: {self._library} is not part of Cresset. Use profile(use_device=...), or record_function, whose names a "
                "backend passes to its vendor's profiler."
            )
        return self

    def __exit__(self, *exc_info):
        return False


class emit_nvtx(_Foreign):
    """Would name operators for NVIDIA's tools; raises NotImplementedError when it is entered."""

    _library = "NVTX"


class emit_itt(_Foreign):
    """Would name operators for Intel's tools; raises NotImplementedError when it is entered."""

    _library = "ITT"
