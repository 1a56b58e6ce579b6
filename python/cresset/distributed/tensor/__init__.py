"""Tensors that lie on the ranks of a mesh: `docs/guide/dtensor.md` begins with two ranks.

A DTensor has a mesh, a placement for each of its dimensions (`Shard`, `Replicate`, `Partial`), and on each rank the part that the placements give
it. Operators on DTensors run on the parts and communicate where the placements need it; gradients do the same.
"""

from ..device_mesh import DeviceMesh, init_device_mesh  # noqa: F401: programs find them here
from ._api import DTensor, distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from .placement_types import Partial, Placement, Replicate, Shard

from . import _api, _dtensor_spec, placement_types
from .. import device_mesh as _device_mesh
from ...serialization import add_safe_globals

# Files with DTensors are read with weights_only where this module has been imported.
add_safe_globals([
    _api._rebuild, _dtensor_spec.DTensorSpec, _dtensor_spec.TensorMeta, Partial, Replicate, Shard, placement_types._strided, _device_mesh._rebuild_mesh,
])

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros",
]

