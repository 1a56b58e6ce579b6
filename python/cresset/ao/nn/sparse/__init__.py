"""Layers with weights that have blocks of zeros."""

from . import quantized

__all__ = ["quantized"]
