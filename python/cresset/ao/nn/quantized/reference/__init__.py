"""Layers that compute with real numbers what quantized ones stand for: the weight is quantized and made real again for each call."""

from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
