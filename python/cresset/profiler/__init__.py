"""Profiles of programs that run in steps: what to record when, and what to do with each trace."""

import os as _os

from cresset._submodules import submodule
from cresset.autograd.profiler import kineto_available, record_function
from cresset.autograd.profiler_util import DeviceType

from ._execution_trace import ExecutionTraceObserver
from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip


def __getattr__(name):
    if name in ("RecordScope", "_ExperimentalConfig"):
        from cresset import _profiler_c

        return getattr(_profiler_c, name)
    return submodule(__name__, name)


if _os.environ.get("KINETO_USE_DAEMON"):  # a program's steps are followed from outside, also without a profile
    from cresset.autograd.profiler import _count_optimizer_steps
    from cresset.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(_count_optimizer_steps)
