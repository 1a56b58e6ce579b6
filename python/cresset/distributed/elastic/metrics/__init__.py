"""Numbers that the launcher emits while it works: a program configures who takes them."""

from .api import (
    ConsoleMetricHandler, MetricData, MetricHandler, MetricsConfig, MetricStream, NullMetricHandler, configure, get_elapsed_time_ms, getStream, prof,
    profile, publish_metric, put_metric,
)

__all__ = [
    "ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig", "NullMetricHandler", "configure", "getStream",
    "get_elapsed_time_ms", "prof", "profile", "publish_metric", "put_metric",
]
