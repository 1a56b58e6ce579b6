"""Sizes and places of parts."""

from .placement_types import local_shape_and_offset

__all__ = ["compute_global_tensor_info", "compute_local_shape", "compute_local_shape_and_global_offset", "compute_local_stride"]


def compute_local_shape_and_global_offset(global_shape, mesh, placements):
    """(sizes of this rank's part, where it begins in the whole). Empty tuples on a rank outside of the mesh."""
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,), ()
    return local_shape_and_offset(global_shape, mesh.shape, placements, coordinate)


def compute_local_shape(global_shape, mesh, placements):
    """Sizes of this rank's part."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements)[0]


def compute_local_stride(global_stride, mesh, placements):
    """Strides of a part of which the whole has these strides, for even parts."""
    divisors = [1] * len(global_stride)
    for mesh_dim, placement in enumerate(placements):
        if placement.is_shard():
            for j, stride in enumerate(global_stride):
                if stride > global_stride[placement.dim]:
                    divisors[j] *= mesh.size(mesh_dim)
    return tuple(stride // divisor for stride, divisor in zip(global_stride, divisors))


def compute_global_tensor_info(tensor, mesh, placements):
    """(sizes, strides) of the whole, of which this tensor is one of equal parts."""
    shape, stride = list(tensor.size()), list(tensor.stride())
    for mesh_dim, placement in enumerate(placements):
        ranks = mesh.size(mesh_dim)
        if placement.is_shard():
            dim = placement.dim
            if dim < 0:
                raise AssertionError(f"Shard placements should have negative dims normalized in the user-facing APIs: {placement}")
            if dim >= tensor.ndim:
                raise AssertionError(f"Sharding dim {dim} greater than tensor ndim {tensor.ndim} for placement number {mesh_dim}.")
            own = stride[dim]
            shape[dim] *= ranks
            stride = [s * ranks if j != dim and s >= own and s > 0 and (s > own or j < dim) else s for j, s in enumerate(stride)]
        elif not placement.is_replicate() and not placement.is_partial():
            raise RuntimeError(f"placement type {type(placement)} not supported!")
    return shape, stride
