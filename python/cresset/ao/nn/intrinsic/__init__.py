"""Fused layers: sequences that become one quantized layer."""

from .modules import *  # noqa: F403
from .modules import __all__, _FusedModule  # noqa: F401
