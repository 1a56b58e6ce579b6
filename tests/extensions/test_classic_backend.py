"""A device that is mounted by PyTorch's C++ interfaces (allocator, guard, hooks, generator, stubs, fallbacks), in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from compiling import needs_pybind11

HERE = Path(__file__).resolve().parent


@needs_pybind11
def test_a_device_by_classic_interfaces(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python")}
    command = [sys.executable, "-m", "cresset.as_torch", HERE / "classic_backend.py", HERE / "sources/classic_backend.cpp", tmp_path]
    run = subprocess.run(list(map(str, command)), env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    assert run.stdout.endswith("all of it\n")
