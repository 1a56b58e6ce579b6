"""The sequences."""

from .fused import *  # noqa: F403
from .fused import __all__, _FusedModule  # noqa: F401
