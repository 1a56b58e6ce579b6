"""Tensors that lie on several ranks, by what this rank has of them. The planners know nothing else of a tensor.

A value is asked, in this order: for `__create_write_items__` and `__create_chunk_list__` (classes of users), for `local_shards()`
(ShardedTensor), and for `device_mesh` and `placements` (DTensor). All else is a plain tensor, the same on each rank.
"""

from dataclasses import dataclass
from typing import Tuple

import cresset

__all__ = ["LocalPart", "has_own_items", "local_parts", "placed_box"]


@dataclass
class LocalPart:
    """A box of the whole tensor and its values here."""

    offsets: Tuple[int, ...]
    tensor: "cresset.Tensor"


def has_own_items(value):
    """Does the value make its items itself?"""
    return hasattr(value, "__create_write_items__") and hasattr(value, "__create_chunk_list__")


def is_sharded(value):
    """Is the value in parts, on several ranks?"""
    return hasattr(value, "local_shards") or (hasattr(value, "placements") and hasattr(value, "device_mesh"))


def _begin_and_length(size, parts, place):
    """Where the part of this place begins when `size` is cut as tensor.chunk does: parts of ceil(size / parts), the last ones shorter or empty."""
    step = -(-size // parts)
    begin = min(step * place, size)
    return begin, min(size, begin + step) - begin


def placed_box(shape, mesh_shape, coordinate, placements):
    """(sizes, offsets) of the part at a coordinate of a mesh of a tensor of `shape`; mesh dimensions cut in their order."""
    sizes, offsets = list(shape), [0] * len(shape)
    for parts, place, placement in zip(mesh_shape, coordinate, placements):
        if not placement.is_shard():
            continue
        dim = placement.dim % len(shape)
        begin, length = _begin_and_length(sizes[dim], parts, place)
        sizes[dim] = length
        offsets[dim] += begin
    return tuple(sizes), tuple(offsets)


def _part_of_placed(value):
    mesh = value.device_mesh
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return []
    if any(p.is_partial() for p in value.placements):
        raise ValueError("checkpoint: a tensor with a pending reduction (Partial) cannot be saved or loaded. Redistribute it first.")
    local = value.to_local()
    local = local.wait() if hasattr(local, "wait") and not isinstance(local, cresset.Tensor) else local
    mesh_shape = tuple(mesh.shape)
    strided = [p for p in value.placements if type(p).__name__ == "_StridedShard"]
    if strided:
        raise NotImplementedError("checkpoint: a tensor whose parts are not boxes (_StridedShard) cannot be saved or loaded. Redistribute it first.")
    sizes, offsets = placed_box(value.shape, mesh_shape, coordinate, value.placements)
    if tuple(local.shape) != sizes:
        raise ValueError(f"checkpoint: a local part of shape {sizes} was required by the placements; one of {tuple(local.shape)} was given.")
    return [LocalPart(offsets, local)]


def local_parts(value):
    """The LocalParts of this rank of a tensor; a plain one is its own only part."""
    if hasattr(value, "local_shards"):
        return [LocalPart(tuple(shard.metadata.shard_offsets), shard.tensor) for shard in value.local_shards()]
    if is_sharded(value):
        return _part_of_placed(value)
    return [LocalPart((0,) * value.dim(), value)]
