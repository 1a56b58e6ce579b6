"""Fused layers that are trained to be quantized."""

from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
