"""Functions that change modules in place, so that names of parameters stay: checkpoint, replicate, fully_shard."""

from .checkpoint_activation import checkpoint
from .contract import _get_registry, contract
from .replicate import replicate

__all__ = ["checkpoint", "contract", "replicate"]
