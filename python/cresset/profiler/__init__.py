"""Profiles of programs that run in steps: what to record when, and what to do with each trace."""

from cresset.autograd.profiler import kineto_available, record_function
from cresset.autograd.profiler_util import DeviceType

from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip
