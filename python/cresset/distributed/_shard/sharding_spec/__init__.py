"""How a tensor is cut into boxes for ranks."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import List, Union

from cresset.distributed._shard.metadata import ShardMetadata
from cresset.distributed.remote_device import _remote_device

__all__ = ["ChunkShardingSpec", "EnumerableShardingSpec", "ShardMetadata", "ShardingSpec"]


class ShardingSpec(ABC):
    """A way to cut a tensor."""

    @abstractmethod
    def build_metadata(self, tensor_sizes, tensor_properties):
        """The ShardedTensorMetadata of a tensor of these sizes."""


@dataclass
class ChunkShardingSpec(ShardingSpec):
    """Cut along `dim` as chunk() does, a part for each placement."""

    dim: int
    placements: List[Union[_remote_device, str]]

    def __post_init__(self):
        if not isinstance(self.dim, int):
            raise ValueError(f"Sharding dim needs to be an integer, found: {self.dim}")
        self.placements = [p if isinstance(p, _remote_device) else _remote_device(p) for p in self.placements]

    def build_metadata(self, tensor_sizes, tensor_properties):
        from cresset.distributed._shard.sharded_tensor.metadata import ShardedTensorMetadata

        sizes = list(tensor_sizes)
        if not -len(sizes) <= self.dim < len(sizes):
            raise ValueError(f"Invalid sharding dim: {self.dim}")
        dim, parts = self.dim % len(sizes), len(self.placements)
        step, shards = -(-sizes[dim] // parts), []
        for n, placement in enumerate(self.placements):
            begin = min(step * n, sizes[dim])
            length = min(sizes[dim], begin + step) - begin
            offsets = [begin if d == dim else 0 for d in range(len(sizes))]
            shards.append(ShardMetadata(offsets, [length if d == dim else s for d, s in enumerate(sizes)], placement))
        return ShardedTensorMetadata(shards, tensor_sizes, tensor_properties)

    def __hash__(self):
        return hash((self.dim, tuple(self.placements)))


@dataclass
class EnumerableShardingSpec(ShardingSpec):
    """These boxes. ValueError where two of them overlap."""

    shards: List[ShardMetadata]

    def __post_init__(self):
        if not self.shards:
            raise ValueError(f"Shard list must not be empty: {self.shards}")
        if len({len(s.shard_offsets) for s in self.shards}) > 1:
            raise ValueError("Found inconsistent ranks for shards")
        for n, a in enumerate(self.shards):
            for b in self.shards[:n]:
                boxes = zip(a.shard_offsets, a.shard_sizes, b.shard_offsets, b.shard_sizes)
                if all(max(ao, bo) < min(ao + an, bo + bn) for ao, an, bo, bn in boxes):
                    raise ValueError(f"Shards {b} and {a} overlap")

    def build_metadata(self, tensor_sizes, tensor_properties):
        """ValueError where the boxes leave a part of the tensor out."""
        from cresset.distributed._shard.sharded_tensor.metadata import ShardedTensorMetadata

        def volume(sizes):
            n = 1
            for size in sizes:
                n *= size
            return n

        ends = [tuple(o + n for o, n in zip(s.shard_offsets, s.shard_sizes)) for s in self.shards]
        inside = all(len(e) == len(tensor_sizes) and all(a <= b for a, b in zip(e, tensor_sizes)) for e in ends)
        if not inside or sum(volume(s.shard_sizes) for s in self.shards) != volume(tensor_sizes):
            raise ValueError(f"Total volume of shards does not match tensor volume: the shards do not make up a tensor of size {tuple(tensor_sizes)}")
        return ShardedTensorMetadata(self.shards, tensor_sizes, tensor_properties)

    def __hash__(self):
        return hash(tuple(self.shards))
