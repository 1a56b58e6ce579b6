"""Communication between processes: groups of ranks, collectives, stores. `docs/guide/distributed.md` begins with one process.

The transport is Gloo. A build without it (Debian: libgloo-dev) has `is_available() == False`, and the functions say what to install.
`rpc` and `autograd` below it are not part of Cresset.
"""

import importlib
import importlib.util

from cresset._homes import settle

_NOT_BUILT = "this build has no communication between processes: install libgloo-dev (tools/setup does) and pybind11, then build again."
_SUBMODULES = (
    "_composable", "_functional_collectives", "_shard", "_tensor", "algorithms", "autograd", "c10d_logger", "checkpoint", "collective_utils",
    "constants", "device_mesh", "distributed_c10d", "elastic", "fsdp", "launch", "launcher", "nn", "optim", "pipelining", "remote_device", "rpc",
    "tensor", "utils",
)  # fmt: skip


def is_available():
    """Is communication between processes part of this build?"""
    return importlib.util.find_spec("cresset._C_distributed") is not None


if is_available():
    from . import distributed_c10d

    _private = [
        "_Backend", "_CoalescingManager", "_ControlCollectives", "_DEFAULT_FIRST_BUCKET_BYTES", "_ProcessGroupWrapper", "_StoreCollectives", "_Work",
        "_all_gather_base", "_broadcast_coalesced", "_coalescing_manager", "_compute_bucket_assignment_by_size", "_create_process_group_wrapper", "_get_default_group",
        "_get_default_store", "_get_process_group_store", "_make_nccl_premul_sum", "_rank_not_in_group", "_reduce_scatter_base", "_register_process_group",
        "_resolve_process_group", "_store_based_barrier", "_test_python_store", "_unregister_process_group",
    ]
    globals().update({name: getattr(distributed_c10d, name) for name in distributed_c10d.__all__ + _private})
    __all__ = ["is_available", *distributed_c10d.__all__]
    settle(globals())
else:
    __all__ = ["ProcessGroup", "is_available", "is_initialized", "is_torchelastic_launched"]

    class ProcessGroup:
        """Processes that communicate. This build has none: RuntimeError from the constructor."""

        def __init__(self, *args, **kwargs):
            raise RuntimeError(f"ProcessGroup: {_NOT_BUILT}")

    def is_initialized():
        """False: there is no process group."""
        return False

    def is_torchelastic_launched():
        """False."""
        return False


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "_remote_device":
        return importlib.import_module(f"{__name__}.remote_device")._remote_device
    if name in ("DeviceMesh", "init_device_mesh"):
        return getattr(importlib.import_module(f"{__name__}.device_mesh"), name)
    if name.startswith("__") or is_available():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"distributed.{name}: {_NOT_BUILT} Ask distributed.is_available() first, which says False.")
