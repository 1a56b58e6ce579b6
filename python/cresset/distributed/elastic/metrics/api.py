"""Metrics: a name, a value and a group; each group has a handler, nothing by default."""

import abc
import functools
import time
from collections import namedtuple

__all__ = [
    "ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig", "NullMetricHandler", "configure", "getStream",
    "get_elapsed_time_ms", "prof", "profile", "publish_metric", "put_metric",
]

MetricData = namedtuple("MetricData", ["timestamp", "group_name", "name", "value"])


class MetricsConfig:
    """Settings of handlers, by name."""

    def __init__(self, params=None):
        self.params = {} if params is None else params


class MetricHandler(abc.ABC):
    """Takes metrics."""

    @abc.abstractmethod
    def emit(self, metric_data):
        """Take a MetricData."""


class ConsoleMetricHandler(MetricHandler):
    """Prints them."""

    def emit(self, metric_data):
        """Print one line."""
        print(f"[{metric_data.timestamp}][{metric_data.group_name}]: {metric_data.name}={metric_data.value}")


class NullMetricHandler(MetricHandler):
    """Drops them."""

    def emit(self, metric_data):
        """Nothing."""


class MetricStream:
    """A group of metrics with its handler."""

    def __init__(self, group_name, handler):
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name, metric_value):
        """Emit a value now."""
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_handlers, _default = {}, NullMetricHandler()


def configure(handler, group=None):
    """Let `handler` take the metrics of a group, or of all that have none of their own."""
    global _default
    if group is None:
        _default = handler
    else:
        _handlers[group] = handler


def getStream(group):
    """The stream of a group."""
    return MetricStream(group, _handlers.get(group, _default))


def _get_metric_name(fn):
    """"Class.method", or "module.function"."""
    split = fn.__qualname__.split(".")
    return f"{split[-2]}.{split[-1]}" if len(split) > 1 and split[-2] != "<locals>" else f"{fn.__module__.split('.')[-1]}.{split[-1]}"


def prof(fn=None, group="torchelastic"):
    """Decorator: emits `name.success` or `name.failure`, and `name.duration.ms`, of each call."""
    if fn is None:
        return functools.partial(prof, group=group)
    key = _get_metric_name(fn)

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        begin = time.time()
        try:
            result = fn(*args, **kwargs)
        except Exception:
            put_metric(f"{key}.failure", 1, group)
            raise
        else:
            put_metric(f"{key}.success", 1, group)
        finally:
            put_metric(f"{key}.duration.ms", get_elapsed_time_ms(begin), group)
        return result

    return wrapper


def profile(group=None):
    """The older form of prof."""
    return functools.partial(prof, group=group or "torchelastic")


def put_metric(metric_name, metric_value, metric_group="torchelastic"):
    """Emit a value of a group."""
    getStream(metric_group).add_value(metric_name, metric_value)


def publish_metric(metric_group, metric_name, metric_value):
    """The older form of put_metric."""
    put_metric(metric_name, metric_value, metric_group)


def get_elapsed_time_ms(start_time_in_seconds):
    """Milliseconds since a time.time()."""
    return int((time.time() - start_time_in_seconds) * 1000)
