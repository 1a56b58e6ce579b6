"""Layers that are trained to be quantized: their weights pass through a fake quantizer."""

from . import dynamic  # noqa: F401
from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
