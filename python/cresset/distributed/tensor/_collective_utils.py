"""Collectives along a dimension of a mesh, and what they cost."""

import math

from ._mesh_collectives import mesh_broadcast, mesh_scatter
from .placement_types import Shard, pad_tensor, unpad_tensor

__all__ = ["mesh_broadcast", "mesh_scatter", "pad_tensor", "redistribute_cost", "shard_dim_alltoall", "unpad_tensor"]

# Bandwidth of a link in bytes a microsecond, and microseconds until a message begins: their proportion decides between many small and few large ones.
_BYTES_PER_MICROSECOND, _LATENCY = 10_000, 10.0


def shard_dim_alltoall(input, gather_dim, shard_dim, mesh, mesh_dim):
    """What is divided along `gather_dim` divided along `shard_dim`, of sizes that divide evenly."""
    shape = list(input.shape)
    shape[gather_dim] *= mesh.size(mesh_dim)
    return Shard(gather_dim)._to_new_shard_dim(input, mesh, mesh_dim, shape, shard_dim)


def local_bytes(spec):
    """Bytes of a rank's part."""
    return math.prod(spec.shape) * spec.tensor_meta.dtype.itemsize // max(1, spec.num_shards)


def step_cost(current, target, size, num_bytes):
    """Microseconds to go from one placement to another along a mesh dimension of `size` ranks, of `num_bytes` in each; inf where that is not done."""
    if current == target or size == 1:
        return 0.0
    share = (size - 1) / size
    if current.is_shard():
        if target.is_replicate():
            return _LATENCY + num_bytes * (size - 1) / _BYTES_PER_MICROSECOND
        if target.is_shard():  # an exchange; dearer to begin
            return 2 * _LATENCY + num_bytes * share / _BYTES_PER_MICROSECOND
        return math.inf
    if current.is_partial():
        if target.is_replicate():
            return _LATENCY + 2 * num_bytes * share / _BYTES_PER_MICROSECOND
        if target.is_shard():
            return _LATENCY + num_bytes * share / _BYTES_PER_MICROSECOND
        return math.inf
    return 0.0 if target.is_shard() else math.inf


def redistribute_cost(current_spec, target_spec):
    """Microseconds, roughly, to bring a tensor from one spec to another; inf between meshes, or where a term would have to be made of a part."""
    if current_spec.mesh != target_spec.mesh:
        return math.inf
    num_bytes, total = local_bytes(current_spec), 0.0
    for size, current, target in zip(current_spec.mesh.shape, current_spec.placements, target_spec.placements):
        total += step_cost(current, target, size, num_bytes)
        if current.is_shard() and not target.is_shard():
            num_bytes *= size
        elif target.is_shard() and not current.is_shard():
            num_bytes //= size
    return total


