"""Parameters that keep the gradient of every sample of a batch: `ExpandedWeight`."""

from .expanded_weights_impl import ExpandedWeight

__all__ = ["ExpandedWeight"]
