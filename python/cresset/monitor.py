"""Counters and events of a program: `Stat` collects values over a window of time, `log_event` passes events to handlers."""

import enum
import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING  # noqa: F401  where PyTorch has it

__all__ = [
    "Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "data_value_t", "log_event", "register_event_handler",
    "unregister_event_handler", "VALUE", "MEAN", "COUNT", "SUM", "MAX", "MIN", "STAT_EVENT",
]  # fmt: skip

STAT_EVENT = "torch.monitor.Stat"
data_value_t = str | int | float | bool


class Aggregation(enum.Enum):
    """What a Stat makes of its values: the last, their mean, number, sum, largest or smallest."""

    VALUE = 1
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation
_NAMES = {VALUE: "value", MEAN: "mean", COUNT: "count", SUM: "sum", MAX: "max", MIN: "min"}


class Event:
    """Something that happened: its `name`, `timestamp` (a datetime) and `data` (str to str, int, float or bool)."""

    def __init__(self, name, timestamp, data):
        if not isinstance(name, str) or not isinstance(timestamp, datetime) or not isinstance(data, dict):
            raise TypeError("Event: a str, a datetime and a dict were required")
        for key, value in data.items():
            if not isinstance(key, str) or not isinstance(value, data_value_t):
                raise TypeError(f"Event: data from str to str, int, float or bool was required; given: {key!r}: {value!r}")
        self.name, self.timestamp, self.data = name, timestamp, data


class EventHandlerHandle:
    """What register_event_handler gives, for unregister_event_handler."""

    def __init__(self, handler):
        self._handler = handler


_handlers, _lock = [], threading.Lock()


def register_event_handler(callback):
    """Call `callback(event)` for every event from now on; returns a handle."""
    handle = EventHandlerHandle(callback)
    with _lock:
        _handlers.append(handle)
    return handle


def unregister_event_handler(handler):
    """Take away what register_event_handler gave; doing it again changes nothing."""
    with _lock:
        if handler in _handlers:
            _handlers.remove(handler)


def log_event(event):
    """Pass an event to all handlers, in the order of their registration."""
    with _lock:
        handlers = list(_handlers)
    for handle in handlers:
        handle._handler(event)


def _aggregated(kind, values):
    if kind == COUNT:
        return len(values)
    if not values:
        return 0
    return {VALUE: lambda: values[-1], MEAN: lambda: sum(values) / len(values), SUM: lambda: sum(values), MAX: lambda: max(values), MIN: lambda: min(values)}[kind]()


class Stat:
    """Values of which the aggregations over each window (a timedelta) are logged as an event named "torch.monitor.Stat".

    With `max_samples` a window's event comes when it has as many values, and what follows waits for the next window. The event's data has
    `name.aggregation`.
    """

    def __init__(self, name, aggregations, window_size, max_samples=None):
        self.name = name
        self._aggregations = list(aggregations)
        self._seconds, self._most = window_size.total_seconds(), max_samples
        self._lock = threading.RLock()
        self._values, self._window, self._logged = [], self._number(), False
        self._ended = self._aggregates()

    def _number(self):
        return int(time.time() / self._seconds) if self._seconds > 0 else 0

    def add(self, v):
        """Add a value. What an earlier window had is logged first."""
        with self._lock:
            self._end_old_window()
            if self._most is not None and self._logged:
                return
            self._values.append(v)
            if len(self._values) == self._most:
                self._log()

    def _end_old_window(self):
        if (now := self._number()) != self._window:
            if self._values:
                self._log()
            else:
                self._ended = self._aggregates()
            self._window, self._logged = now, False

    def _aggregates(self):
        return {kind: float(_aggregated(kind, self._values)) for kind in self._aggregations}

    def _log(self):
        """Logs the values, and begins to collect others."""
        self._ended, self._logged = self._aggregates(), True
        self._values = []
        data = {f"{self.name}.{_NAMES[kind]}": value for kind, value in self._ended.items()}
        log_event(Event(STAT_EVENT, datetime.now(), data))

    @property
    def count(self):
        """How many values the window has that are not logged yet."""
        with self._lock:
            return len(self._values)

    def get(self):
        """{aggregation: value} of the last window that ended; zeros before."""
        with self._lock:
            return dict(self._ended)

    def __del__(self):
        if self.__dict__.get("_values"):
            self._log()


class TensorboardEventHandler:
    """A handler that writes the statistics of "torch.monitor.Stat" events to a SummaryWriter as scalars."""

    def __init__(self, writer):
        self._writer = writer

    def __call__(self, event):
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
