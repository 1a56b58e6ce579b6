"""AdamW: Adam with decoupled weight decay."""

from .adam import AdamW

__all__ = ["AdamW"]
