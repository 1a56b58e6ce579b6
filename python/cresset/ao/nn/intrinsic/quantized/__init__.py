"""Fused layers of whole numbers."""

from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
