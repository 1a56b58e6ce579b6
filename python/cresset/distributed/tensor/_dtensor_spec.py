"""What is known of a DTensor beside its values: mesh, placements, and the sizes, strides and dtype of the whole."""

from typing import NamedTuple

import cresset

from .placement_types import Partial, Replicate, Shard, local_shape_and_offset, shard_order

__all__ = ["DTensorSpec", "TensorMeta"]


class TensorMeta(NamedTuple):
    """Of the whole tensor."""

    shape: cresset.Size
    stride: tuple
    dtype: cresset.dtype


class DTensorSpec:
    """A mesh, a placement for each of its dimensions, and the TensorMeta of the whole; specs are compared and hashed by value."""

    __slots__ = ("_hash", "mesh", "placements", "tensor_meta")

    def __init__(self, mesh, placements, tensor_meta=None):
        self.mesh, self.placements, self.tensor_meta, self._hash = mesh, tuple(placements), tensor_meta, None

    def __hash__(self):
        if self._hash is None:
            self._hash = hash((self.mesh, self.placements, self.tensor_meta))
        return self._hash

    def __eq__(self, other):
        if self is other:
            return True
        return (
            isinstance(other, DTensorSpec) and self.placements == other.placements and self.tensor_meta == other.tensor_meta and self.mesh == other.mesh
        )

    def __reduce__(self):
        return DTensorSpec, (self.mesh, self.placements, self.tensor_meta)

    def __str__(self):
        placements = "(" + ", ".join(str(p) for p in self.placements) + ")" if len(self.placements) > 1 else str(self.placements[0])
        shape = str(tuple(self.shape)) if self.tensor_meta is not None else "unknown shape"
        return f"Spec({placements} on {shape})"

    __repr__ = __str__

    @property
    def shape(self):
        """Sizes of the whole. ValueError where they are not known."""
        return self._meta().shape

    @property
    def stride(self):
        """Strides of the whole."""
        return self._meta().stride

    def _meta(self):
        if self.tensor_meta is None:
            raise ValueError("tensor_meta is not set")
        return self.tensor_meta

    @property
    def ndim(self):
        """Dimensions of the whole."""
        return len(self.shape)

    @property
    def device_mesh(self):
        """The mesh."""
        return self.mesh

    @property
    def num_shards(self):
        """Into how many parts the tensor is divided."""
        count = 1
        for size, placement in zip(self.mesh.shape, self.placements):
            count *= size if placement.is_shard() else 1
        return count

    @property
    def num_shards_map(self):
        """Into how many parts each dimension is divided."""
        counts = [1] * self.ndim
        for size, placement in zip(self.mesh.shape, self.placements):
            if placement.is_shard():
                counts[placement.dim] *= size
        return counts

    @property
    def dim_map(self):
        """For each dimension the mesh dimension that divides it, or -1."""
        found = [-1] * self.ndim
        for mesh_dim, placement in enumerate(self.placements):
            if placement.is_shard():
                if found[placement.dim] != -1:
                    raise ValueError(
                        f"Tensor dim {placement.dim} is already sharded on mesh dim {found[placement.dim]}, DTensor operator "
                        "implementation does not support things like hybrid sharding strategies yet (i.e. [Shard(0), Shard(0)])"
                    )
                found[placement.dim] = mesh_dim
        return found

    @property
    def sums(self):
        """The mesh dimensions with terms of a reduction."""
        return [mesh_dim for mesh_dim, placement in enumerate(self.placements) if placement.is_partial()]

    @classmethod
    def from_dim_map(cls, mesh, dim_map, sums, tensor_meta=None):
        """The spec of a dim_map and sums."""
        placements = [Replicate()] * mesh.ndim
        for mesh_dim in sums:
            placements[mesh_dim] = Partial()
        for dim, mesh_dim in enumerate(dim_map):
            if mesh_dim < 0:
                continue
            if placements[mesh_dim].is_shard():
                raise RuntimeError(f"DeviceMesh dimension cann't be mapped to two dimension of the same tensor: {dim} and {placements[mesh_dim].dim}")
            if placements[mesh_dim].is_partial():
                raise RuntimeError(f"DeviceMesh dimension {mesh_dim} cannot be both shard and partial!")
            placements[mesh_dim] = Shard(dim)
        return cls(mesh, tuple(placements), tensor_meta)

    def is_replicated(self):
        """Does every rank have the whole?"""
        return all(p.is_replicate() for p in self.placements)

    def is_sharded(self):
        """Is a dimension divided?"""
        return any(p.is_shard() for p in self.placements)

    def shard_order(self, dim):
        """The mesh dimensions that divide a dimension, in order."""
        return shard_order(self.placements, dim, self.mesh.shape)

    def local_shape(self):
        """Sizes of this rank's part."""
        coordinate = self.mesh.get_coordinate()
        return (0,) if coordinate is None else local_shape_and_offset(self.shape, self.mesh.shape, self.placements, coordinate)[0]

    def shallow_copy_with_tensor_meta(self, tensor_meta):
        """The same placements of another tensor."""
        return DTensorSpec(self.mesh, self.placements, tensor_meta)


