"""The older name of `cresset.distributed.tensor`."""

from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full", "init_device_mesh",
    "ones", "rand", "randn", "zeros",
]
