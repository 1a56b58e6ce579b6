"""Which processors the ranks of a machine run on, so that each is near its memory: launcher option --numa-binding, LaunchConfig(numa_options=...).

Linux only: nodes, cores and caches are what /sys/devices/system tells, of those that this process may run on. PyTorch binds a rank near its GPU; backends of
devices do not say here where a device is plugged in, so rank r takes node r modulo the number of nodes.
"""

import os
import warnings
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

__all__ = ["AffinityMode", "NumaOptions"]

_SYSTEM = Path("/sys/devices/system")


class AffinityMode(str, Enum):
    """NODE: all processors of the rank's node. SOCKET: all of the node's socket. EXCLUSIVE: cores of the node that no other rank gets.
    CORE_COMPLEX: processors of the node that share their largest cache.
    """

    NODE = "node"
    SOCKET = "socket"
    EXCLUSIVE = "exclusive"
    CORE_COMPLEX = "core-complex"


@dataclass(frozen=True)
class NumaOptions:
    """How to bind. `should_fall_back_if_binding_fails`: warn and run unbound instead of RuntimeError."""

    affinity_mode: AffinityMode
    should_fall_back_if_binding_fails: bool = False


def _get_set_of_int_from_ranges_str(ranges_str):
    """{0, 1, 2, 5} of "0-2,5"."""
    found = set()
    for part in filter(None, ranges_str.strip().split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _read(path):
    try:
        return path.read_text()
    except OSError as error:
        raise RuntimeError(f"NUMA binding needs {path}, which this system does not have ({error.strerror}).") from None


def _nodes(system, allowed):
    """A list of the nodes' processors, without nodes that have none of `allowed`."""
    numbers = sorted(_get_set_of_int_from_ranges_str(_read(system / "node" / "online")))
    found = [_get_set_of_int_from_ranges_str(_read(system / "node" / f"node{n}" / "cpulist")) & allowed for n in numbers]
    return [cpus for cpus in found if cpus]


def _grouped(cpus, key):
    """Processors in groups of equal keys, ordered by their first one."""
    groups = {}
    for cpu in sorted(cpus):
        groups.setdefault(key(cpu), []).append(cpu)
    return list(groups.values())


def _largest_cache(system, cpu):
    """The processors that share this one's largest cache, as text."""
    caches = sorted((system / "cpu" / f"cpu{cpu}" / "cache").glob("index*"), key=lambda c: int(_read(c / "level")))
    if not caches:
        raise RuntimeError(f"NUMA binding: the system does not say which caches processor {cpu} has.")
    return _read(caches[-1] / "shared_cpu_list")


def _get_logical_cpus_to_bind_to(local_rank, local_world_size, numa_options, system=_SYSTEM, allowed=None):
    """The processors of one of the ranks of this machine. RuntimeError where the system does not say enough, or has too few cores."""
    mode = AffinityMode(numa_options.affinity_mode)
    if allowed is None:
        if not hasattr(os, "sched_getaffinity"):
            raise RuntimeError("NUMA binding needs sched_setaffinity, which is Linux's.")
        allowed = os.sched_getaffinity(0)
    nodes = _nodes(system, set(allowed))
    if not nodes:
        raise RuntimeError("NUMA binding: no node has a processor that this process may run on.")
    mine, place = nodes[local_rank % len(nodes)], local_rank // len(nodes)
    topology = lambda cpu, what: _read(system / "cpu" / f"cpu{cpu}" / "topology" / what)  # noqa: E731
    if mode is AffinityMode.NODE:
        return mine
    if mode is AffinityMode.SOCKET:
        sockets = {topology(cpu, "physical_package_id") for cpu in mine}
        return {cpu for node in nodes for cpu in node if topology(cpu, "physical_package_id") in sockets}
    if mode is AffinityMode.CORE_COMPLEX:
        complexes = _grouped(mine, lambda cpu: _largest_cache(system, cpu))
        return set(complexes[place % len(complexes)])
    cores = _grouped(mine, lambda cpu: topology(cpu, "thread_siblings_list"))
    ranks = len(range(local_rank % len(nodes), local_world_size, len(nodes)))
    if len(cores) < ranks:
        raise RuntimeError(f"NUMA binding: {len(cores)} cores of a node cannot be divided among {ranks} ranks.")
    each, more = divmod(len(cores), ranks)
    begin = place * each + min(place, more)
    return {cpu for core in cores[begin : begin + each + (place < more)] for cpu in core}


def bind_process(pid, local_rank, local_world_size, numa_options):
    """Let a process (0: this one) and threads that it starts from now on run on its processors. None of `numa_options`: nothing."""
    if numa_options is None:
        return
    try:
        os.sched_setaffinity(pid, _get_logical_cpus_to_bind_to(local_rank, local_world_size, numa_options))
    except (RuntimeError, OSError, AttributeError) as error:
        if not numa_options.should_fall_back_if_binding_fails:
            raise RuntimeError(f"rank {local_rank} of this machine could not be bound: {error}") from error
        warnings.warn(f"rank {local_rank} of this machine runs unbound: {error}", stacklevel=2)
