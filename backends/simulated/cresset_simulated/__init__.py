"""The devices `simulated` and `opaque` for Cresset: memory the host cannot reach, work that happens later, faults on demand.

With `cresset.distributed` there is the backend "scc" of process groups, whose collectives run in queues of `simulated`.
"""

from pathlib import Path

import cresset

from . import _distributed

for _name in ("simulated", "opaque"):
    _library = Path(__file__).parent / f"libcresset_{_name}.so"
    if _library.exists():  # otherwise CRESSET_BACKEND_PATH leads to it
        cresset.accelerator.load_backend(_library)
_distributed.register()
