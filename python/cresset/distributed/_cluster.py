"""What the launchers of clusters tell a process by variables: Open MPI's mpirun, those that speak PMI, and Slurm's srun.

A variable of ours (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) goes before all of them.
"""

import os
import re
import zlib

__all__ = ["expand_hosts", "variable"]

_NAMES = {
    "RANK": ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"),
    "WORLD_SIZE": ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"),
    "LOCAL_RANK": ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"),
    "LOCAL_WORLD_SIZE": ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"),
}
# What the ranks of one job have alike, and those of others do not: the port comes from it.
_JOBS = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID")
_PORTS = range(15000, 25000)


def expand_hosts(text):
    """The hosts of Slurm's short form: "a[01-03,7],b" is a01, a02, a03, a7, b."""
    hosts = []
    for item in re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*", text):
        made = [""]
        for fixed, ranges in re.findall(r"([^\[]*)(?:\[([^\]]*)\])?", item):
            numbers = [""] if not ranges else [n for part in ranges.split(",") for n in _numbers(part)]
            made = [begin + fixed + number for begin in made for number in numbers]
        hosts += made
    return hosts


def _numbers(part):
    first, _, last = part.partition("-")
    return [str(n).zfill(len(first)) for n in range(int(first), int(last or first) + 1)]


def _under_slurm():
    # A shell of an allocation has the job's variables, but no task's.
    return "SLURM_PROCID" in os.environ and "SLURM_STEP_ID" in os.environ


def _address():
    hosts = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST")
    if _under_slurm() and hosts:
        return expand_hosts(hosts)[0]
    size = variable("WORLD_SIZE")
    if size is not None and size == os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", os.environ.get("MPI_LOCALNRANKS")):
        return "127.0.0.1"  # all ranks are on this machine
    return None


def _port():
    if _under_slurm() and "SLURM_JOB_ID" in os.environ:
        job = f"{os.environ['SLURM_JOB_ID']}.{os.environ['SLURM_STEP_ID']}"
    else:
        job = next((os.environ[name] for name in _JOBS if name in os.environ), None)
    return None if job is None else str(_PORTS[zlib.crc32(job.encode()) % len(_PORTS)])


def variable(name):
    """RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR or MASTER_PORT, as text; None where nobody tells it."""
    if name in os.environ:
        return os.environ[name]
    if name == "MASTER_ADDR":
        return _address()
    if name == "MASTER_PORT":
        return _port()
    names = [n for n in _NAMES[name] if not n.startswith("SLURM_") or _under_slurm()]
    return next((os.environ[n] for n in names if n in os.environ), None)
