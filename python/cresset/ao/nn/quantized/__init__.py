"""Layers with quantized weights: those of dynamic quantization."""

from . import dynamic  # noqa: F401
