"""ShardedTensor: boxes of a tensor, some on each rank."""

from dataclasses import dataclass

import cresset
from cresset import distributed as dist
from cresset.distributed._shard.metadata import ShardMetadata
from cresset.distributed._shard.sharding_spec import EnumerableShardingSpec

from .metadata import TensorProperties

__all__ = ["Shard", "ShardedTensor"]


@dataclass
class Shard:
    """A box and its values here. ValueError for a tensor of another size than the box."""

    tensor: "cresset.Tensor"
    metadata: ShardMetadata

    def __post_init__(self):
        if list(self.tensor.size()) != list(self.metadata.shard_sizes):
            raise ValueError(
                f"Shard tensor size does not match with metadata.shard_lengths! Found shard tensor size: {list(self.tensor.size())}, "
                f"metadata.shard_lengths: {self.metadata.shard_sizes}, "
            )

    @classmethod
    def from_tensor_and_offsets(cls, tensor, shard_offsets, rank):
        """The box that begins at `shard_offsets` and holds a tensor of `rank`."""
        return cls(tensor, ShardMetadata(shard_offsets, list(tensor.size()), f"rank:{rank}/{tensor.device}"))


class ShardedTensor:
    """A tensor of which each rank has some boxes. It has no operations; local_shards() are tensors."""

    def __init__(self, sharding_spec, *size, dtype=None, layout=cresset.strided, requires_grad=False, pin_memory=False,
                 memory_format=cresset.contiguous_format, process_group=None, init_rrefs=False, fill=None):  # fmt: skip
        if init_rrefs:
            raise NotImplementedError("ShardedTensor: init_rrefs, which needs distributed.rpc, is not part of Cresset.")
        size = cresset.Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
        properties = TensorProperties(dtype or cresset.get_default_dtype(), layout, requires_grad, memory_format, pin_memory)
        self._process_group, self._sharding_spec = process_group, sharding_spec
        self._metadata = sharding_spec.build_metadata(size, properties)
        self._local_shards = [
            Shard((fill or cresset.empty)(md.shard_sizes, dtype=properties.dtype, device=md.placement.device()).requires_grad_(requires_grad), md)
            for md in self._metadata.shards_metadata
            if md.placement.rank() == dist.get_rank()
        ]

    @classmethod
    def _init_from_local_shards_and_global_metadata(cls, local_shards, sharded_tensor_metadata, process_group=None, init_rrefs=False, sharding_spec=None):
        """Of this rank's shards and what all ranks know, without communication."""
        made = cls.__new__(cls)
        made._process_group, made._metadata, made._local_shards = process_group, sharded_tensor_metadata, list(local_shards)
        made._sharding_spec = sharding_spec or EnumerableShardingSpec(sharded_tensor_metadata.shards_metadata)
        rank = dist.get_rank()
        expected = [md for md in sharded_tensor_metadata.shards_metadata if md.placement.rank() == rank]
        if len(expected) != len(made._local_shards):
            raise RuntimeError(
                f"Number of local shards ({len(made._local_shards)}) does not match number of local shards metadata in sharded_tensor_metadata "
                f"({len(expected)}) on rank ({rank}) "
            )
        return made

    @classmethod
    def _init_from_local_shards(cls, local_shards, *global_size, process_group=None, init_rrefs=False):
        """Of this rank's shards; the ranks tell each other."""
        everyone = [None] * dist.get_world_size(process_group)
        dist.all_gather_object(everyone, [shard.metadata for shard in local_shards], group=process_group)
        size = cresset.Size(global_size[0] if len(global_size) == 1 and not isinstance(global_size[0], int) else global_size)
        properties = TensorProperties.create_from_tensor(local_shards[0].tensor) if local_shards else TensorProperties()
        shards = sorted((md for some in everyone for md in some), key=lambda md: md.shard_offsets)
        md = EnumerableShardingSpec(shards).build_metadata(size, properties)
        return cls._init_from_local_shards_and_global_metadata(local_shards, md, process_group)

    def local_shards(self):
        """The Shards of this rank."""
        return self._local_shards

    def local_tensor(self):
        """The only local shard's tensor."""
        if len(self._local_shards) != 1:
            raise NotImplementedError("Only single local shard is supported.")
        return self._local_shards[0].tensor

    def metadata(self):
        """What all ranks know."""
        return self._metadata

    def sharding_spec(self):
        """How it was cut."""
        return self._sharding_spec

    def size(self, dim=None):
        """The whole size, or that of a dimension."""
        return self._metadata.size if dim is None else self._metadata.size[dim]

    @property
    def shape(self):
        """The whole size."""
        return self._metadata.size

    def dim(self):
        """The number of dimensions."""
        return len(self._metadata.size)

    @property
    def dtype(self):
        """The dtype of its tensors."""
        return self._metadata.tensor_properties.dtype

    @property
    def requires_grad(self):
        """Do its tensors need gradients?"""
        return self._metadata.tensor_properties.requires_grad

    def remote_shards(self):
        """NotImplementedError: that needs distributed.rpc."""
        raise NotImplementedError("ShardedTensor.remote_shards needs distributed.rpc, which is not part of Cresset.")

    def gather(self, dst=0, out=None, enforce_dtype=False, dtype=None):
        """Put all shards into `out`, a tensor of the whole size, on rank `dst` of the group; the others give none."""
        group = self._process_group
        rank = dist.get_rank(group)
        if rank == dst and out is None:
            raise ValueError("`out` Tensor must be provided on dst rank!")
        everyone = [None] * dist.get_world_size(group) if rank == dst else None
        mine = [(list(s.metadata.shard_offsets), s.tensor.detach().cpu()) for s in self._local_shards]
        dist.gather_object(mine, everyone, group=group, group_dst=dst)
        for offsets, tensor in (shard for some in everyone or () for shard in some):
            target = out.detach()
            for dim, begin in enumerate(offsets):
                target = target.narrow(dim, begin, tensor.shape[dim])
            target.copy_(tensor)

    def __repr__(self):
        return f"ShardedTensor({self._metadata})"
