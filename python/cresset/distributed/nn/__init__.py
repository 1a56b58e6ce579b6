"""Collectives that gradients flow through: see `functional`."""

from . import functional
from .functional import *  # noqa: F403

__all__ = list(functional.__all__)
