"""From one list of placements to another: a plan of steps, one mesh dimension each, and the autograd function around it.

A tensor dimension can be divided by several mesh dimensions, one after the other (`shard_order`). Only the last division can be undone, and a new
one comes behind the others. So a plan first takes off, from the back, what is not a common beginning of the present and the
wanted order, and then divides anew; a mesh dimension moves straight from one tensor dimension to another where both orders allow it.
"""

from typing import NamedTuple

import cresset

from .. import _functional_collectives as funcol
from ._dtensor_spec import DTensorSpec
from .placement_types import Placement, Replicate, local_range, normalized, one_division, shard_order

__all__ = ["Redistribute", "redistribute_local_tensor"]


class Step(NamedTuple):
    """Mesh dimension, its placement before and after, and the sizes that the tensor has where this division is not made."""

    mesh_dim: int
    source: Placement
    target: Placement
    logical_shape: tuple


def _common(present, wanted):
    count = 0
    while count < min(len(present), len(wanted)) and present[count] == wanted[count]:
        count += 1
    return count


class _Plan:
    """The state while a plan is made: placements, and the order of divisions of each tensor dimension."""

    def __init__(self, current, target):
        self.mesh, self.shape, self.target = current.mesh, current.shape, target.placements
        self.placements = list(current.placements)
        self.sizes = current.mesh.shape
        dims = range(len(current.shape))
        self.orders = [shard_order(current.placements, d, self.sizes) for d in dims]
        self.wanted = [shard_order(target.placements, d, self.sizes) for d in dims]
        self.steps = []

    def logical_shape(self, without):
        coordinate = self.mesh.get_coordinate()
        return tuple(
            local_range(size, self.sizes, [m for m in order if m != without], coordinate)[0] if order else size
            for size, order in zip(self.shape, self.orders)
        )

    def go(self, mesh_dim, target):
        source = self.placements[mesh_dim]
        self.steps.append(Step(mesh_dim, one_division(source), one_division(target), self.logical_shape(mesh_dim)))
        if source.is_shard():
            assert self.orders[source.dim].pop() == mesh_dim
        if target.is_shard():
            self.orders[target.dim].append(mesh_dim)
        self.placements[mesh_dim] = target

    def fits(self, mesh_dim):
        """Can the wanted division by this mesh dimension be made now?"""
        dim = self.target[mesh_dim].dim
        order, wanted = self.orders[dim], self.wanted[dim]
        return len(order) < len(wanted) and wanted[: len(order)] == order and wanted[len(order)] == mesh_dim

    def take_off(self):
        for dim in range(len(self.orders)):
            keep = _common(self.orders[dim], self.wanted[dim])
            while len(self.orders[dim]) > keep:
                mesh_dim = self.orders[dim][-1]
                target = self.target[mesh_dim]
                if target.is_shard() and target.dim != dim and self.fits(mesh_dim):
                    self.go(mesh_dim, target)
                else:
                    self.go(mesh_dim, Replicate())

    def put_on(self):
        for mesh_dim, target in enumerate(self.target):
            if self.placements[mesh_dim] == target or target.is_shard():
                continue
            if self.placements[mesh_dim].is_partial() and target.is_partial():
                raise RuntimeError(f"redistribute: {self.placements[mesh_dim]} is not made {target}: two reductions do not go over into each other.")
            self.go(mesh_dim, target)
        for wanted in self.wanted:
            for mesh_dim in wanted:
                if self.placements[mesh_dim] != self.target[mesh_dim]:
                    self.go(mesh_dim, self.target[mesh_dim])

    def make(self):
        for mesh_dim, target in enumerate(self.target):  # reductions into parts first: what follows has less to carry
            if self.placements[mesh_dim].is_partial() and target.is_shard() and self.fits(mesh_dim):
                self.go(mesh_dim, target)
        self.take_off()
        self.put_on()
        return self.steps


def plan(current, target):
    """The steps from one spec to another, of one mesh and tensor."""
    return _Plan(current, target).make()


def _take(step, tensor, mesh):
    mesh_dim, source, target, shape = step
    if mesh.size(mesh_dim) == 1:
        return tensor
    if target.is_replicate():
        if source.is_partial():
            return source._reduce_value(tensor, mesh, mesh_dim)
        return source._to_replicate_tensor(tensor, mesh, mesh_dim, shape)
    if target.is_shard():
        if source.is_partial():
            return source._reduce_shard_value(tensor, mesh, mesh_dim, target)
        if source.is_replicate():
            return target._replicate_to_shard(tensor, mesh, mesh_dim, mesh.get_coordinate()[mesh_dim])
        return source._to_new_shard_dim(tensor, mesh, mesh_dim, shape, target.dim)
    if not source.is_replicate():
        raise RuntimeError(f"redistribute from {source} to {target} not supported yet")
    return target._partition_value(tensor, mesh, mesh_dim)


def redistribute_local_tensor(local_tensor, current_spec, target_spec, *, async_op=False, is_backward=False):
    """This rank's part of the tensor under `target_spec`. With `async_op` it may be an AsyncCollectiveTensor."""
    if current_spec.mesh != target_spec.mesh:
        raise NotImplementedError("Cross device mesh comm not supported yet!")
    mesh = current_spec.mesh
    if current_spec.placements == target_spec.placements or mesh.get_coordinate() is None:
        return local_tensor
    for step in plan(current_spec, target_spec):
        if isinstance(local_tensor, funcol.AsyncCollectiveTensor):
            local_tensor = local_tensor.trigger_wait()
        local_tensor = _take(step, local_tensor, mesh)
    if not async_op and isinstance(local_tensor, funcol.AsyncCollectiveTensor):
        local_tensor = local_tensor.trigger_wait()
    return local_tensor


class Redistribute(cresset.autograd.Function):
    """redistribute with gradients: they come back under the placements that were, terms of sums as wholes."""

    @staticmethod
    def forward(ctx, input, device_mesh, placements, async_op=False, forward_dtype=None, backward_dtype=None):
        ctx.original, ctx.async_op, ctx.backward_dtype = input._spec, async_op, backward_dtype
        ctx.original_dtype = input.dtype
        local, current = input._local_tensor, input._spec
        if forward_dtype is not None and forward_dtype != local.dtype:
            local = local.to(forward_dtype)
            current = DTensorSpec(current.mesh, current.placements, current.tensor_meta._replace(dtype=forward_dtype))
        target = DTensorSpec(device_mesh, normalized(placements, input.dim()), current.tensor_meta)
        if current.placements != target.placements:
            local = redistribute_local_tensor(local, current, target, async_op=async_op)
        else:
            local = local.view_as(local)
        return type(input)(local, target, requires_grad=input.requires_grad)

    @staticmethod
    def backward(ctx, grad_output):
        previous, current, local = ctx.original, grad_output._spec, grad_output._local_tensor
        if ctx.backward_dtype is not None and local.dtype != ctx.backward_dtype:
            local = local.to(ctx.backward_dtype)
            current = DTensorSpec(current.mesh, current.placements, current.tensor_meta._replace(dtype=ctx.backward_dtype))
        placements = tuple(
            present if before.is_partial() and not present.is_shard() else (Replicate() if before.is_partial() else before)
            for before, present in zip(previous.placements, current.placements)
        )
        target = DTensorSpec(previous.mesh, placements, current.tensor_meta)
        local = redistribute_local_tensor(local, current, target, async_op=ctx.async_op, is_backward=True)
        if local.dtype != ctx.original_dtype:
            local = local.to(ctx.original_dtype)
            target = DTensorSpec(target.mesh, target.placements, target.tensor_meta._replace(dtype=ctx.original_dtype))
        return type(grad_output)(local, target, requires_grad=grad_output.requires_grad), None, None, None, None, None
