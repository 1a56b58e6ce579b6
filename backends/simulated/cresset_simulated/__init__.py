"""The devices `simulated` and `opaque` for Cresset: memory the host cannot reach, work that happens later, faults on demand."""

from pathlib import Path

import cresset

for _name in ("simulated", "opaque"):
    _library = Path(__file__).parent / f"libcresset_{_name}.so"
    if _library.exists():  # otherwise CRESSET_BACKEND_PATH leads to it
        cresset.accelerator.load_backend(_library)
