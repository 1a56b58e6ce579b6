"""Binding to processors, on a system of two nodes that is made of files, and on this one."""

import os

import pytest

from cresset.numa.binding import AffinityMode, NumaOptions, _get_logical_cpus_to_bind_to, bind_process


@pytest.fixture
def system(tmp_path):
    """Two nodes and sockets of four cores with two threads each; two cores share a cache. Processor n and n + 8 are one core."""

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text + "\n")

    write("node/online", "0-1")
    for node in (0, 1):
        write(f"node/node{node}/cpulist", f"{4 * node}-{4 * node + 3},{4 * node + 8}-{4 * node + 11}")
    for cpu in range(16):
        core = cpu % 8
        write(f"cpu/cpu{cpu}/topology/physical_package_id", str(core // 4))
        write(f"cpu/cpu{cpu}/topology/thread_siblings_list", f"{core},{core + 8}")
        first = core // 2 * 2
        write(f"cpu/cpu{cpu}/cache/index0/level", "1")
        write(f"cpu/cpu{cpu}/cache/index0/shared_cpu_list", f"{core},{core + 8}")
        write(f"cpu/cpu{cpu}/cache/index3/level", "3")
        write(f"cpu/cpu{cpu}/cache/index3/shared_cpu_list", f"{first}-{first + 1},{first + 8}-{first + 9}")
    return tmp_path


ALL = set(range(16))
NODES = {0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}


@pytest.mark.parametrize(
    "mode, rank, ranks, allowed, expected",
    [
        ("node", 0, 2, ALL, NODES[0]), ("node", 1, 2, ALL, NODES[1]), ("node", 2, 4, ALL, NODES[0]), ("node", 1, 2, {0, 1, 4}, {4}),
        ("node", 1, 2, {0, 1}, {0, 1}), ("socket", 1, 2, ALL, NODES[1]), ("exclusive", 0, 4, ALL, {0, 1, 8, 9}), ("exclusive", 2, 4, ALL, {2, 3, 10, 11}),
        ("exclusive", 0, 6, ALL, {0, 1, 8, 9}), ("exclusive", 2, 6, ALL, {2, 10}), ("exclusive", 4, 6, ALL, {3, 11}),
        ("core-complex", 0, 4, ALL, {0, 1, 8, 9}), ("core-complex", 3, 4, ALL, {6, 7, 14, 15}),
    ],
)  # fmt: skip
def test_processors(system, mode, rank, ranks, allowed, expected):
    assert _get_logical_cpus_to_bind_to(rank, ranks, NumaOptions(AffinityMode(mode)), system, allowed) == expected


def test_refused(system, tmp_path):
    with pytest.raises(RuntimeError, match="4 cores of a node cannot be divided among 5 ranks."):
        _get_logical_cpus_to_bind_to(0, 10, NumaOptions(AffinityMode.EXCLUSIVE), system, ALL)
    with pytest.raises(RuntimeError, match="NUMA binding needs .*online, which this system does not have"):
        _get_logical_cpus_to_bind_to(0, 1, NumaOptions(AffinityMode.NODE), tmp_path / "nothing", ALL)
    with pytest.raises(ValueError, match="'near' is not a valid AffinityMode"):
        _get_logical_cpus_to_bind_to(0, 1, NumaOptions("near"), system, ALL)


def test_this_process(monkeypatch):
    import cresset.numa.binding as binding

    before = os.sched_getaffinity(0)
    bind_process(0, 0, 1, None)
    assert os.sched_getaffinity(0) == before
    monkeypatch.setattr(binding, "_get_logical_cpus_to_bind_to", lambda *_: {min(before)})
    try:
        bind_process(0, 0, 1, NumaOptions(AffinityMode.NODE))
        assert os.sched_getaffinity(0) == {min(before)}
        monkeypatch.setattr(binding, "_get_logical_cpus_to_bind_to", lambda *_: {10**4})
        with pytest.raises(RuntimeError, match="rank 0 of this machine could not be bound"):
            bind_process(0, 0, 1, NumaOptions(AffinityMode.NODE))
        with pytest.warns(UserWarning, match="rank 0 of this machine runs unbound"):
            bind_process(0, 0, 1, NumaOptions(AffinityMode.NODE, should_fall_back_if_binding_fails=True))
    finally:
        os.sched_setaffinity(0, before)
