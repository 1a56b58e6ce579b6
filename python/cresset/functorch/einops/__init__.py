"""rearrange, by its older place."""

from cresset.func import rearrange

__all__ = ["rearrange"]
