"""Fused layers that are quantized dynamically."""

from . import modules  # noqa: F401
from .modules import LinearReLU  # noqa: F401
