"""PixelShuffle and PixelUnshuffle, under the name of PyTorch's module."""

from .distance import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
