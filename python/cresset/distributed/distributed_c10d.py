"""The functions of cresset.distributed under the module name that libraries use."""

from cresset._C_distributed import (
    AllgatherOptions, AllreduceCoalescedOptions, AllreduceOptions, AllToAllOptions, BarrierOptions, BroadcastOptions, DistBackendError, DistError,
    DistNetworkError, DistStoreError, FileStore, GatherOptions, HashStore, PrefixStore, ProcessGroup, ProcessGroupGloo, QueueEmptyError, ReduceOp,
    DebugLevel, ReduceOptions, ReduceScatterOptions, ScatterOptions, Store, TCPStore, Work, get_debug_level, set_debug_level, set_debug_level_from_env,
)

import functools
import sys
import warnings

import cresset
from cresset import _C_distributed

from . import _collectives, _groups, _objects, _world as _groups_of_process
from ._control import _ControlCollectives, _StoreCollectives  # noqa: F401
from ._reducer import GradBucket, Reducer, _compute_bucket_assignment_by_size, broadcast_coalesced as _broadcast_coalesced_of  # noqa: F401
from ._store_barrier import STORE_BASED_BARRIER_PREFIX  # noqa: F401
from .constants import default_pg_timeout
from .rendezvous import register_rendezvous_handler, rendezvous

for _kind in (GradBucket, Store, TCPStore, FileStore, HashStore, PrefixStore, ProcessGroup, ProcessGroupGloo, Work, ReduceOp):
    _kind.__module__ = "cresset.distributed"
del _kind

for _part in (_collectives, _groups, _objects):
    globals().update({name: getattr(_part, name) for name in _part.__all__})
del _part
_Backend, _make_nccl_premul_sum, _Work = _C_distributed.Backend, _C_distributed._make_nccl_premul_sum, Work
_ProcessGroupWrapper, _test_python_store = _C_distributed._ProcessGroupWrapper, _C_distributed._test_python_store
_coalescing_manager, _CoalescingManager, _CollOp = _collectives._coalescing_manager, _collectives._CoalescingManager, _collectives._CollOp
_PRIVATE = (
    "_abort_process_group", "_create_process_group_wrapper", "_find_or_create_pg_by_ranks_and_tag", "_find_pg_by_ranks_and_tag", "_get_default_group",
    "_get_default_store", "_get_group_size", "_get_group_tag", "_get_pg_default_device", "_get_process_group_name", "_get_process_group_store",
    "_group_or_default", "_new_group_with_tag", "_rank_not_in_group", "_resolve_group_name_by_ranks_and_tag", "_store_based_barrier",
    "_warn_not_in_group",
)  # fmt: skip
globals().update({name: getattr(_groups, name) for name in _PRIVATE})
_register_process_group, _resolve_process_group = _groups_of_process._register_process_group, _groups_of_process._resolve_process_group
_unregister_all_process_groups = _groups_of_process._unregister_all_process_groups
_unregister_process_group, _World = _groups_of_process._unregister_process_group, _groups_of_process._World
# The errors under the names that PyTorch's extension module has for them.
for _kind in (DistBackendError, DistError, DistNetworkError, DistStoreError):
    setattr(cresset._C, "_" + _kind.__name__, _kind)
del _kind
_GLOO_AVAILABLE, _DEFAULT_FIRST_BUCKET_BYTES = True, 2**20
default_pg_nccl_timeout = None

# All functions look here for the groups of this process.
_world = _groups_of_process._world
_groups_of_process._home = sys.modules[__name__]


def _older(name, now, what):
    """A function under an older name, with PyTorch's warning."""

    @functools.wraps(globals()[now])
    def function(*args, **kwargs):
        warnings.warn(what, FutureWarning, stacklevel=2)
        return globals()[now](*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


_SOON = "`torch.distributed.{}` is a private function and will be deprecated. Please use `torch.distributed.{}` instead."
_all_gather_base = _older("_all_gather_base", "all_gather_into_tensor", _SOON.format("_all_gather_base", "all_gather_single"))
_reduce_scatter_base = _older("_reduce_scatter_base", "reduce_scatter_tensor", _SOON.format("_reduce_scatter_base", "reduce_scatter_single"))
_get_global_rank = _older("_get_global_rank", "get_global_rank", "`torch.distributed.distributed_c10d._get_global_rank` is deprecated, please use "
                          "`torch.distributed.distributed_c10d.get_global_rank` instead")  # fmt: skip


def __getattr__(name):
    # The tables of `_world`, which may be another object later.
    tables = {"_" + table: table for table in ("pg_map", "pg_names", "pg_group_ranks", "pg_backend_config", "pg_to_tag")}
    if name in tables:
        return getattr(_world, tables[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _broadcast_coalesced(process_group, tensors, buffer_size, src=0):
    """Give tensors the values that rank `src` of the group has, in messages of up to `buffer_size` bytes."""
    _broadcast_coalesced_of(tensors, process_group, src, buffer_size)


__all__ = [
    *_groups.__all__, *_collectives.__all__, *_objects.__all__, "AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions",
    "AllreduceOptions", "BarrierOptions", "BroadcastOptions", "DistBackendError", "DistError", "DebugLevel", "DistNetworkError", "DistStoreError", "FileStore",
    "GatherOptions", "GradBucket", "HashStore", "PrefixStore", "ProcessGroup", "ProcessGroupGloo", "QueueEmptyError", "ReduceOp", "ReduceOptions",
    "ReduceScatterOptions", "Reducer", "ScatterOptions", "Store", "TCPStore", "Work", "default_pg_timeout", "get_debug_level", "reduce_op",
    "register_rendezvous_handler", "rendezvous", "set_debug_level", "set_debug_level_from_env",
]


class _ReduceOps:
    """The older name of ReduceOp."""

    def __init__(self):
        for name, value in ReduceOp.RedOpType.__members__.items():
            setattr(self, name, value)


reduce_op = _ReduceOps()
