"""The backend "mpi" under mpirun: what test_collectives.py asks of Gloo, on three ranks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cresset.distributed as dist

ALLOWED = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl_base_warn_component_unused": "0"}
needs_mpi = pytest.mark.skipif(not (shutil.which("mpirun") and dist.is_mpi_available()), reason="needs mpirun (Debian: openmpi-bin) and mpi4py")


def under_mpi(ranks, *command):
    return subprocess.run(
        ["mpirun", "--oversubscribe", "-n", str(ranks), *map(str, command)], env={**os.environ, **ALLOWED}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@needs_mpi
def test_collectives(tmp_path):
    done = under_mpi(3, sys.executable, Path(__file__).parent / "mpi_program.py", tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]


KILLED = """
import os, signal, cresset, cresset.distributed as dist
dist.init_process_group("mpi")
dist.barrier()
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(cresset.ones(3))
"""


@needs_mpi
def test_a_killed_rank_ends_the_job():
    done = under_mpi(3, sys.executable, "-c", KILLED)
    assert done.returncode != 0 and "signal 9" in done.stdout + done.stderr
