"""Communication that gradients flow through: without a process group, and none can be made here, each function says that there is none."""

from . import functional
from .functional import *  # noqa: F403

__all__ = list(functional.__all__)
