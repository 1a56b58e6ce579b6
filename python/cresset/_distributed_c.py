"""What PyTorch has as torch._C._distributed_c10d: the extension module's names, and those that are Python here."""

from cresset._C_distributed import *  # noqa: F403
from cresset._C_distributed import _make_nccl_premul_sum, _ProcessGroupWrapper, _test_python_store  # noqa: F401
from cresset.distributed._control import _ControlCollectives, _StoreCollectives  # noqa: F401
from cresset.distributed._fake import FakeProcessGroup, _create_work_from_future  # noqa: F401
from cresset.distributed._reducer import Reducer, _compute_bucket_assignment_by_size, broadcast_coalesced as _broadcast_coalesced  # noqa: F401
from cresset.distributed._world import (  # noqa: F401
    _register_process_group, _resolve_process_group, _set_thread_isolation_mode, _unregister_all_process_groups, _unregister_process_group,
)
