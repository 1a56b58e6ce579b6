"""ChannelShuffle, under the name of PyTorch's module."""

from .distance import ChannelShuffle

__all__ = ["ChannelShuffle"]
