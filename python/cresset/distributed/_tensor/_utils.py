"""The older name of `cresset.distributed.tensor._utils`."""

from ..tensor._utils import compute_global_tensor_info, compute_local_shape, compute_local_shape_and_global_offset, compute_local_stride

__all__ = ["compute_global_tensor_info", "compute_local_shape", "compute_local_shape_and_global_offset", "compute_local_stride"]
