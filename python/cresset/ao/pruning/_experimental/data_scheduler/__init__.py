"""Schedules of the configuration of data sparsifiers."""

from .base_data_scheduler import BaseDataScheduler

__all__ = ["BaseDataScheduler"]
