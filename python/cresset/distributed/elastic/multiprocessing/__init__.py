"""Ranks of one machine as processes: `start_processes`. What they do for their launcher: `errors.record`."""

from .api import (
    DefaultLogsSpecs, LogsDest, LogsSpecs, MultiprocessContext, PContext, RunProcsResult, SignalException, Std, SubprocessContext, start_processes,
    to_map,
)
from .errors import ProcessFailure

__all__ = [
    "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "ProcessFailure", "RunProcsResult", "SignalException", "Std",
    "SubprocessContext", "start_processes", "to_map",
]
