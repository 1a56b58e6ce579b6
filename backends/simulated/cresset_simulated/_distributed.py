"""The backend "scc" of process groups, for tensors on `simulated`."""

import importlib.util
import os
from pathlib import Path

import cresset

_DEVICE = "simulated"


def _module():
    """The file of the module with the process group, None where it was not built: beside the devices' libraries."""
    folders = [Path(__file__).parent, *map(Path, filter(None, os.environ.get("CRESSET_BACKEND_PATH", "").split(":")))]
    return next((file for folder in folders for file in sorted((folder / "distributed").glob("_process_group.*.so"))), None)


def _create(store, rank, size, timeout):
    spec = importlib.util.spec_from_file_location("cresset_simulated._process_group", _module())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cresset.device(_DEVICE)
    return module.make(store, rank, size, timeout, _DEVICE, cresset.accelerator.report(_DEVICE)["library"])


def register():
    """Make "scc" the backend of the device, where it was built and there is communication between processes."""
    if _module() is not None and cresset.distributed.is_available():
        cresset.distributed.Backend.register_backend("scc", _create, devices=[_DEVICE])
