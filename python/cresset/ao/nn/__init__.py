"""Layers with quantized weights."""

from . import quantized  # noqa: F401
