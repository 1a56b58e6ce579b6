"""Data parallelism with sharded parameters: `fully_shard`. FullyShardedDataParallel, its forerunner, is not part of Cresset."""

from ._fully_shard import (
    CPUOffloadPolicy, DataParallelMeshDims, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, UnshardHandle, fully_shard, register_fsdp_forward_method,
    share_comm_ctx,
)

__all__ = [
    "CPUOffloadPolicy", "DataParallelMeshDims", "FSDPModule", "FullyShardedDataParallel", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method", "share_comm_ctx",
]


class FullyShardedDataParallel:
    """The forerunner of fully_shard: its type, so that programs can ask. RuntimeError from the constructor."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError("FullyShardedDataParallel is not part of Cresset: fully_shard(module) does the same with DTensors.")
