"""Tensors that lie on the ranks of a mesh: `docs/guide/dtensor.md` begins with two ranks.

A DTensor has a mesh, a placement for each of its dimensions (`Shard`, `Replicate`, `Partial`), and on each rank the part that the placements give
it. Operators on DTensors run on the parts and communicate where the placements need it; gradients do the same.
"""

from ..device_mesh import DeviceMesh, init_device_mesh  # noqa: F401: programs find them here
from ._api import DTensor, distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros",
]

