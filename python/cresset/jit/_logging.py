"""Counters that scripts, traces and Python add to, and points of time. They are kept only while a LockingLogger is set."""

import enum
import weakref

from cresset import _C
from cresset._ops import ops

__all__ = ["AggregationType", "LockingLogger", "NoopLogger", "add_stat_value", "set_logger", "time_point"]

add_stat_value = ops.prim.AddStatValue
time_point = ops.prim.TimePoint


class AggregationType(enum.Enum):
    """What the value of a counter is: the sum of what was added, or its mean without the fraction."""

    SUM = 0
    AVG = 1


class LoggerBase:
    """What set_logger takes."""


class NoopLogger(LoggerBase):
    """Keeps nothing."""


class LockingLogger(LoggerBase):
    """Counters by name, for any number of threads."""

    def __init__(self):
        self._counters = _C._jit_counters_new()
        weakref.finalize(self, _C._jit_counters_drop, self._counters)

    def get_counter_val(self, name):
        """What the counter comes to; 0 for one that nothing was added to."""
        return _C._jit_counters_value(self._counters, name)

    def set_aggregation_type(self, name, aggregation_type):
        """Whether the counter is a sum, as at first, or a mean."""
        _C._jit_counters_set_mean(self._counters, name, AggregationType(aggregation_type) is AggregationType.AVG)


_current = NoopLogger()


def set_logger(logger):
    """From now on add_stat_value adds to the counters of this logger. Gives the one before."""
    global _current
    if not isinstance(logger, LoggerBase):
        raise TypeError(f"set_logger(): a logger was required; a {type(logger).__name__} was given")
    _C._jit_counters_use(getattr(logger, "_counters", None))
    before, _current = _current, logger
    return before
