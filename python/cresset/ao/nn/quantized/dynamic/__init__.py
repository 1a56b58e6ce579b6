"""Layers whose weights are int8, or float16, and whose inputs are quantized while they run."""

from . import modules  # noqa: F401
from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
