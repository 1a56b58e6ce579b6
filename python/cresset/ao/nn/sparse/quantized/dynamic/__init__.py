"""Layers whose inputs are quantized as they come."""

from .linear import Linear

__all__ = ["Linear"]
