"""PyTorch's place for Muon."""

from .muon import Muon  # noqa: F401

__all__ = []
