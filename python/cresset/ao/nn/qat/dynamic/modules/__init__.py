"""The layers by kind."""

from .linear import Linear

__all__ = ["Linear"]
