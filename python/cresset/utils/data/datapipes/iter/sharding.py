"""Sharding filters, under the name that PyTorch gives them."""

from ..datapipe import SHARDING_PRIORITIES
from . import ShardingFilter as ShardingFilterIterDataPipe

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]
