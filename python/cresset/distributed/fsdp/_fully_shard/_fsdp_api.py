"""Policies of fully_shard."""

from dataclasses import dataclass
from typing import Optional, Union

import cresset

__all__ = ["CPUOffloadPolicy", "DataParallelMeshDims", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of computation: `param_dtype` of gathered parameters (and, with `cast_forward_inputs`, of inputs), `reduce_dtype` of the reduction of
    gradients, `output_dtype` of outputs. None: as they are. The sharded parameters keep their own.
    """

    param_dtype: Optional[cresset.dtype] = None
    reduce_dtype: Optional[cresset.dtype] = None
    output_dtype: Optional[cresset.dtype] = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """No offloading."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Sharded parameters, gradients and so optimiser states in this host's memory. `pin_memory` has no effect there."""

    pin_memory: bool = True


@dataclass(frozen=True)
class DataParallelMeshDims:
    """Which dimensions of a mesh shard parameters and which replicate them, by name."""

    shard: Optional[Union[str, tuple]] = None
    replicate: Optional[Union[str, tuple]] = None
