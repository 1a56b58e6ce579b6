"""The older name of what makes DTensors."""

from ..tensor._api import DTensor, _shard_tensor, distribute_module, distribute_tensor

__all__ = ["DTensor", "_shard_tensor", "distribute_module", "distribute_tensor"]
