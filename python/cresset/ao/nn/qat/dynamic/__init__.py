"""Layers that are trained to be quantized dynamically."""

from . import modules  # noqa: F401
from .modules import Linear  # noqa: F401
