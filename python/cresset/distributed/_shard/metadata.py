"""A box of a tensor and the rank that has it."""

from dataclasses import dataclass
from typing import List, Optional, Union

from ..remote_device import _remote_device

__all__ = ["ShardMetadata"]


@dataclass
class ShardMetadata:
    """Offsets and sizes of a box, and its device ("rank:0/cpu"). ValueError for negative ones and for different numbers of dimensions."""

    shard_offsets: List[int]
    shard_sizes: List[int]
    placement: Optional[_remote_device]

    def __init__(self, shard_offsets: List[int], shard_sizes: List[int], placement: Union[str, _remote_device, None] = None):
        self.shard_offsets, self.shard_sizes = shard_offsets, shard_sizes
        self.placement = _remote_device(placement) if isinstance(placement, str) else placement
        if len(shard_offsets) != len(shard_sizes):
            raise ValueError(f"shard_offsets and shard_sizes should have the same number of elements, found {len(shard_offsets)} and {shard_sizes} respectively")
        if any(n < 0 for n in shard_offsets):
            raise ValueError("shard_offsets should be >=0")
        if any(n < 0 for n in shard_sizes):
            raise ValueError("shard_sizes should be >= 0")

    def __hash__(self):
        return hash((tuple(self.shard_offsets), tuple(self.shard_sizes), self.placement))
