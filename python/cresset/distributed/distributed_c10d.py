"""The functions of cresset.distributed under the module name that libraries use."""

from cresset._C_distributed import (
    AllgatherOptions, AllreduceCoalescedOptions, AllreduceOptions, AllToAllOptions, BarrierOptions, BroadcastOptions, DistBackendError, DistError,
    DistNetworkError, DistStoreError, FileStore, GatherOptions, HashStore, PrefixStore, ProcessGroup, ProcessGroupGloo, QueueEmptyError, ReduceOp,
    ReduceOptions, ReduceScatterOptions, ScatterOptions, Store, TCPStore, Work,
)

from cresset import _C_distributed

from . import _collectives, _groups, _objects
from ._reducer import GradBucket
from .constants import default_pg_timeout
from .rendezvous import register_rendezvous_handler, rendezvous

for _kind in (GradBucket, Store, TCPStore, FileStore, HashStore, PrefixStore, ProcessGroup, ProcessGroupGloo, Work, ReduceOp):
    _kind.__module__ = "cresset.distributed"
del _kind

for _part in (_collectives, _groups, _objects):
    globals().update({name: getattr(_part, name) for name in _part.__all__})
del _part
_Backend, _make_nccl_premul_sum = _C_distributed.Backend, _C_distributed._make_nccl_premul_sum
_coalescing_manager, _CoalescingManager = _collectives._coalescing_manager, _collectives._CoalescingManager
_get_default_group, _rank_not_in_group, _world = _groups._get_default_group, _groups._rank_not_in_group, _groups._world
_get_group_name, _get_group_size_by_name = _groups._get_group_name, _groups._get_group_size_by_name
_resolve_process_group = _groups._resolve_process_group
default_pg_nccl_timeout = None

__all__ = [
    *_groups.__all__, *_collectives.__all__, *_objects.__all__, "AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions",
    "AllreduceOptions", "BarrierOptions", "BroadcastOptions", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore",
    "GatherOptions", "GradBucket", "HashStore", "PrefixStore", "ProcessGroup", "ProcessGroupGloo", "QueueEmptyError", "ReduceOp", "ReduceOptions",
    "ReduceScatterOptions", "ScatterOptions", "Store", "TCPStore", "Work", "default_pg_timeout", "reduce_op", "register_rendezvous_handler",
    "rendezvous",
]


class _ReduceOps:
    """The older name of ReduceOp."""

    def __init__(self):
        for name, value in ReduceOp.RedOpType.__members__.items():
            setattr(self, name, value)


reduce_op = _ReduceOps()
