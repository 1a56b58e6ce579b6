"""What one rank of a mesh dimension gives the others."""

from .. import _collectives

__all__ = ["mesh_broadcast", "mesh_scatter"]


def mesh_scatter(output, scatter_list, mesh, mesh_dim=0, async_op=False, *, group_src=0):
    """Give each rank of a mesh dimension its tensor of the list of rank `group_src` in it; None on a meta device."""
    if output.is_meta:
        return None
    group = mesh.get_group(mesh_dim)
    tensors = list(scatter_list) if group.rank() == group_src else None
    return _collectives.scatter(output, tensors, group=group, async_op=async_op, group_src=group_src)


def mesh_broadcast(tensor, mesh, mesh_dim=0, async_op=False, *, group_src=0):
    """Give each rank of a mesh dimension the tensor of rank `group_src` in it; None on a meta device."""
    if tensor.is_meta:
        return None
    return _collectives.broadcast(tensor, group=mesh.get_group(mesh_dim), async_op=async_op, group_src=group_src)
