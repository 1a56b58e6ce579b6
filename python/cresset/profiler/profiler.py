"""`profile` with a schedule: it waits, warms up, records, and hands each trace over."""

import enum
import json
import os
import socket
import time
import warnings

from cresset import _C
from cresset.autograd import profiler as _autograd_profiler

from ._execution_trace import ExecutionTraceObserver

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerAction(enum.Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4  # a device's profiler has ended by itself: a name that schedules of others mention


class ProfilerActivity(enum.Enum):
    """What a profile records: calls on the CPU, and work on the devices of a backend (PrivateUse1). The other names are known and have
    no devices here."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


def supported_activities():
    """The activities that can be recorded in this process."""
    return {ProfilerActivity.CPU} | ({ProfilerActivity.PrivateUse1} if _C._registered_backends() else set())


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A function from step numbers to actions: after `skip_first` steps, cycles of `wait` steps of nothing, `warmup` steps that are
    thrown away and `active` steps that are recorded; `repeat` cycles, or without end when it is 0. With `skip_first_wait` the first
    cycle does not wait.

    AssertionError for negative numbers and for cycles that record nothing.
    """
    if not (wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0):
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} (need > 0), "
            f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action_of(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        if repeat and step >= repeat * length:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action_of


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """A function for `on_trace_ready` that writes each trace to `dir_name` under a name of its own."""

    def handler(prof):
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(
            os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}")
        )

    return handler


def _default_schedule_fn(_):
    """Every step is recorded."""
    return ProfilerAction.RECORD


class profile:
    """Records the steps that `schedule` names, by default everything; `step()` says that the next one begins.

    `on_trace_ready(profile)` is called at the end of each recorded cycle, when `events`, `key_averages` and `export_chrome_trace` show
    that cycle. `activities` are CPU and, with a backend, PrivateUse1, whose device time is measured. The other options are those of
    `cresset.autograd.profiler.profile`, where the names of sessions are explained too. With `acc_events` events of earlier cycles are kept.
    An `execution_trace_observer` that is registered observes what is recorded; its file is written when the context ends.
    """

    def __init__(
        self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False, with_stack=False,
        with_flops=False, with_modules=False, experimental_config=None, execution_trace_observer=None, acc_events=False, use_cuda=None,
        custom_trace_id_callback=None,
    ):  # fmt: skip
        known = supported_activities()
        self.activities = known if activities is None else set(activities)
        unknown = [a for a in self.activities if not isinstance(a, ProfilerActivity)]
        if unknown or not self.activities & known:
            raise AssertionError("No valid profiler activities found")
        for a in sorted(self.activities - known, key=lambda a: a.name):
            warnings.warn(f"{a.name} is not available, disabling {a.name} profiling", stacklevel=2)
        if execution_trace_observer is None:
            execution_trace_observer = ExecutionTraceObserver.build_execution_trace_obs_from_env()
        self.execution_trace_observer = execution_trace_observer
        self._options = {
            "record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack, "with_flops": with_flops,
            "with_modules": with_modules, "custom_trace_id_callback": custom_trace_id_callback, "experimental_config": experimental_config,
        }  # fmt: skip
        self.with_stack, self.record_shapes, self.profile_memory = with_stack, record_shapes, profile_memory
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready, self.acc_events = on_trace_ready, acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler = None
        self._metadata, self._kept, self._step = {}, None, None
        _autograd_profiler.KinetoStepTracker.init_step_count("ProfilerStep")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc_info):
        self.stop()
        if self.execution_trace_observer:
            self.execution_trace_observer.cleanup()
        return False

    def start(self):
        """Begin, with what the schedule says for step 0."""
        self._move(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self):
        """End; a cycle that is being recorded is handed over."""
        if self.profiler is None and self.current_action is not ProfilerAction.NONE:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self._end_step()
        self._move(self.current_action, None)

    def prepare_trace(self):
        """Begin to warm up; for programs that call start_trace and stop_trace themselves. Nothing has to be done."""

    def start_trace(self):
        """Begin to record now, whatever the schedule says."""
        self._start_recording()

    def stop_trace(self):
        """Stop what start_trace began."""
        self._recorded("stopping trace")
        self._stop_recording()

    def toggle_collection_dynamic(self, enable, activities):
        """Leave out what happens from now on, or collect it again; see the method of cresset.autograd.profiler.profile."""
        activities = set(activities)
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def get_trace_id(self):
        """The name of the session that records or was recorded last, None before the first."""
        return None if self.profiler is None else self.profiler.trace_id

    def set_custom_trace_id_callback(self, callback):
        """A function that gives the names of the sessions that begin from now on."""
        self._options["custom_trace_id_callback"] = callback

    def step(self):
        """Say that the next step begins."""
        self._end_step()
        before = self.current_action
        _autograd_profiler.KinetoStepTracker.increment_step("ProfilerStep")
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._move(before, self.current_action)
        self._begin_step()

    def _begin_step(self):
        if self.record_steps and _C._profiler_recording():
            self._step = _autograd_profiler.record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self):
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def _move(self, before, after):
        recorded = before in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        records = after in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if before is ProfilerAction.WARMUP and after is ProfilerAction.NONE:
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
        if before is ProfilerAction.RECORD and after in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            warnings.warn(f"Incorrect schedule: RECORD followed by {after.name}", stacklevel=3)
        goes_on = before is ProfilerAction.RECORD and records
        if recorded and not goes_on:
            self._stop_recording()
            if self.on_trace_ready and (after is None or before is ProfilerAction.RECORD_AND_SAVE):
                self.on_trace_ready(self)
        if records and not goes_on:
            self._start_recording()

    def _start_recording(self):
        if self.acc_events and self.profiler is not None:
            self._kept = self.events()
        device = None
        if ProfilerActivity.PrivateUse1 in self.activities:
            device = next(iter(_C._registered_backends()), None)
        self.profiler = _autograd_profiler.profile(use_device=device, **self._options)
        self.profiler.__enter__()
        if self.execution_trace_observer:
            self.execution_trace_observer.start()

    def _stop_recording(self):
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        self.profiler.__exit__(None, None, None)

    def _stats(self):
        """How long the parts of profiling took in the session that records or was recorded last; None before the first."""
        return None if self.profiler is None else self.profiler._stats

    def _recorded(self, what):
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def events(self):
        """The events of the cycle, an EventList."""
        events = self._recorded("accessing events").function_events
        if self._kept is None:
            return events
        both = type(events)(
            self._kept,
            use_device=events._use_device,
            profile_memory=events._profile_memory,
            with_flops=events._with_flops,
        )
        both += events
        return both

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """EventList.key_averages of the cycle."""
        self._recorded("getting key averages")
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path):
        """Write the cycle for chrome://tracing and perfetto; a path that ends in .gz is compressed."""
        self._recorded("exporting chrome trace")._export(path, self._metadata)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write the input of flame graphs; needs with_stack."""
        return self._recorded("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path, device=None):
        """Write how much memory of a device (by default the accelerator, or the CPU) was used for what: parameters, inputs, activations, gradients.

        A path that ends in .html gets a page with a picture; .raw.json and .raw.json.gz each change as (time in nanoseconds since 1970, -1 for what was
        there; action; bytes; category), with numbers for actions and categories; other paths [times in microseconds, bytes by category], as JSON that
        is compressed when they end in .gz. ValueError without record_shapes, profile_memory and with_stack."""
        from ._memory_profiler import MemoryProfileTimeline

        timeline = MemoryProfileTimeline(self._memory_profile())
        if device is None:
            found = next(iter(_C._registered_backends()), None) if self.activities & {ProfilerActivity.PrivateUse1} else None
            device = f"{found}:0" if found else "cpu"
        if path.endswith(".html"):
            timeline.export_memory_timeline_html(path, device)
        elif path.endswith((".raw.json", ".raw.json.gz")):
            timeline.export_memory_timeline_raw(path, device)
        else:
            timeline.export_memory_timeline(path, device)

    def _memory_profile(self):
        """The MemoryProfile of the cycle; ValueError without what it needs."""
        from ._memory_profiler import MemoryProfile

        options = ("record_shapes", "profile_memory", "with_stack")
        missing = [f"{name}=True" for name in options if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        return MemoryProfile(self._recorded("memory profiling").kineto_results)

    def add_metadata(self, key, value):
        """Put a text into the traces that are exported from now on."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key, value):
        """Put a value, given as JSON, into the traces that are exported from now on."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json
