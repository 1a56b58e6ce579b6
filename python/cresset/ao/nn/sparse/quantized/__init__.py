"""Quantized layers with weights that have blocks of zeros."""

from . import dynamic
from .linear import Linear, LinearPackedParams

__all__ = ["dynamic", "Linear", "LinearPackedParams"]
