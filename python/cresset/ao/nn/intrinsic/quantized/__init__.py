"""Fused layers of whole numbers."""

from functools import partial as _partial

from cresset._submodules import submodule as _submodule

from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401

__getattr__ = _partial(_submodule, __name__)
