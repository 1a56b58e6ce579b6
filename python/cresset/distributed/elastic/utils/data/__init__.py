"""Data over epochs."""

from .cycling_iterator import CyclingIterator

__all__ = ["CyclingIterator"]
