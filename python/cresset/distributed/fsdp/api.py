"""Options of FullyShardedDataParallel, and how it writes its states."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Optional

import cresset
from cresset.nn.modules.batchnorm import _BatchNorm

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig", "LocalStateDictConfig",
    "MixedPrecision", "OptimStateDictConfig", "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType",
]  # fmt: skip


class ShardingStrategy(Enum):
    """What ranks divide, and when the wholes are there.

    FULL_SHARD: parameters, gradients and optimizer states are divided; wholes are freed after forward and gathered again for backward.
    SHARD_GRAD_OP: the same, but wholes stay from forward to the end of backward. NO_SHARD: nothing is divided, gradients are averaged. HYBRID_SHARD and
    _HYBRID_SHARD_ZERO2: FULL_SHARD and SHARD_GRAD_OP within groups of ranks (one machine), copies of which average gradients.
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the next module's parameters are gathered in backward: before or after this one's gradients are computed. A hint without effect here."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """Dtypes of computation; None: as they are. Parameters, gradients and optimizer states between passes keep theirs, in checkpoints, too.

    `param_dtype`: of parameters in forward and backward. `reduce_dtype`: of the reduction of gradients (None: `param_dtype`). `buffer_dtype`: of
    buffers from the first forward on. `cast_forward_inputs`: cast floating-point inputs of forward to `param_dtype`; `cast_root_forward_inputs` is that of
    the outermost module. Submodules of `_module_classes_to_ignore` compute in full precision where an auto_wrap_policy can wrap them by themselves.
    `keep_low_precision_grads` is not supported.
    """

    param_dtype: Optional[cresset.dtype] = None
    reduce_dtype: Optional[cresset.dtype] = None
    buffer_dtype: Optional[cresset.dtype] = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """`offload_params`: parameters and gradients lie in this host's memory between passes."""

    offload_params: bool = False


class StateDictType(Enum):
    """What state_dict() gives.

    FULL_STATE_DICT: whole tensors under the names of the unwrapped module. SHARDED_STATE_DICT: the same names, each rank's part of each tensor, as
    ShardedTensor, or as DTensor where a device_mesh was given. LOCAL_STATE_DICT: the same as ShardedTensor; in PyTorch it has flat parameters, which there are none of here.
    """

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """`offload_to_cpu`: copy tensors to this host's memory."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """`rank0_only`: the others get no entries."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """No more options."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """`_use_dtensor`: DTensors instead of ShardedTensors."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """`offload_to_cpu`: copy tensors to this host's memory."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """`rank0_only`: the others get {}."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """No more options."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """`_use_dtensor`: DTensors instead of ShardedTensors."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """A StateDictType and the configurations of a model's and an optimizer's states."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
