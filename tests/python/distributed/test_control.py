"""Ranks as threads over a store in memory: control collectives, barriers, values that one rank makes for all; the backend that plays one rank."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

import cresset as torch
import cresset.distributed as dist
from cresset.distributed import collective_utils
from cresset.distributed.elastic.utils.store import barrier

SHORT = timedelta(milliseconds=50)


def on_ranks(size, function):
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(function, range(size)))


def test_control_collectives():
    store = dist.HashStore()

    def work(rank):
        c = dist._StoreCollectives(store, rank, 3)
        c.barrier("a")
        got = [c.broadcast_send("b", "x") if rank == 1 else c.broadcast_recv("b")]
        got.append(c.gather_recv("c", str(rank)) if rank == 0 else c.gather_send("c", str(rank)))
        got.append(c.scatter_send("d", ["p", "q", "r"]) if rank == 2 else c.scatter_recv("d"))
        return got + [c.all_gather("e", str(rank)), c.all_sum("f", rank)]

    every = [b"0", b"1", b"2"]
    assert on_ranks(3, work) == [[b"x", every, b"p", every, 3], [None, None, b"q", every, 3], [b"x", None, b"r", every, 3]]


def test_what_control_collectives_say():
    c = dist._StoreCollectives(dist.HashStore(), 1, 3)
    with pytest.raises(dist.DistStoreError, match="^gather failed -- missing ranks: 0, 2$"):
        c.gather_recv("a", "x", SHORT)
    with pytest.raises(dist.DistStoreError, match="^Key a has already been used$"):
        c.barrier("a")
    with pytest.raises(dist.DistStoreError, match="^Wait timeout: wait timeout after 50ms"):
        c.broadcast_recv("b", SHORT)
    with pytest.raises(ValueError, match="^scatter_send: a value for each of 3 ranks was required; 1 were given.$"):
        c.scatter_send("c", ["x"])


def test_a_barrier_names_who_is_missing():
    store = dist.HashStore()

    def come(rank):
        with pytest.raises(dist.DistStoreError) as failure:
            barrier(store, 3, "here", 0.1, rank, lambda r: f"host {r}", 1.0)
        return str(failure.value)

    first, second = on_ranks(2, come)
    assert "missing_ranks=[host 2]" in first and "check rank 0 (host 0) for missing rank info" in second


def test_stores_without_more_do_with_less():
    class Basic(dist.Store):
        def __init__(self):
            super().__init__()
            self.held = {}

        def set(self, key, value):
            self.held[key] = value

        def get(self, key):
            return self.held[key]

        def compare_set(self, key, expected, desired):
            if self.held.get(key, b"") == expected:
                self.held[key] = desired
            return self.held[key]

    store = dist.PrefixStore("p", Basic())
    store.append("a", "po")
    store.append("a", "tato")
    store.multi_set(["b", "c"], [b"1", b"2"])
    assert store.multi_get(["a", "b", "c"]) == [b"potato", b"1", b"2"] and not store.has_extended_api()
    with pytest.raises(NotImplementedError, match="^Not implemented. A class derived from Store must define compare_set; this one does not.$"):
        dist.PrefixStore("p", dist.Store()).append("a", "b")


def test_values_that_one_rank_makes():
    assert collective_utils.broadcast(lambda: 3) == 3 and collective_utils.all_gather(4) == [4]
    with pytest.raises(RuntimeError, match="^Stage load failed: ZeroDivisionError: division by zero$"):
        collective_utils.broadcast(lambda: 1 / 0, stage_name="load")


def test_one_process_plays_a_rank_of_many():
    from cresset._C._distributed_c10d import FakeProcessGroup

    if not dist.is_backend_available("fake"):
        dist.Backend.register_backend("fake", lambda store, rank, size, timeout: FakeProcessGroup(rank, size), devices=["cpu"])
    dist.init_process_group("fake", rank=1, world_size=4, store=dist.HashStore())
    try:
        x, parts, row = torch.ones(2), [torch.zeros(2) for _ in range(4)], torch.zeros(8)
        dist.all_reduce(x)
        dist.all_gather(parts, x)
        dist.all_gather_into_tensor(row, x)
        dist.reduce_scatter_tensor(x, torch.arange(8.0))
        dist.barrier()
        assert x.tolist() == [2, 3] and all(p.tolist() == [1, 1] for p in parts) and row.sum() == 8
        assert dist.get_rank() == 1 and dist.get_world_size() == 4
        assert dist.distributed_c10d._resolve_process_group("0") is dist.group.WORLD
        tagged = dist.distributed_c10d._new_group_with_tag([0, 1], pg_tag="pair")
        assert dist.distributed_c10d._find_pg_by_ranks_and_tag("pair", [1, 0]) is tagged
        assert dist.distributed_c10d._new_group_with_tag([0, 1], pg_tag="pair") is tagged
    finally:
        dist.destroy_process_group()
    with pytest.raises(RuntimeError, match="^Could not resolve the process group registered under the name 0$"):
        dist.distributed_c10d._resolve_process_group("0")


def test_buckets_by_size():
    sizes = [(100, torch.float32), (25, torch.float64), (100, torch.float32), (25, torch.float64), (10, torch.float32)]
    tensors = [torch.empty(n, dtype=t) for n, t in sizes]
    assert dist._compute_bucket_assignment_by_size(tensors, [400, 900]) == ([[0], [1, 3], [2, 4]], [400, 400, 900])
    with pytest.raises(RuntimeError, match="^All parameters in a bucket must be placed on the same device and have the same dtype.$"):
        dist.Reducer([torch.nn.Parameter(t) for t in tensors[:2]], [[0, 1]], [400], None)


def test_levels(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "iNfo")
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() == dist.DebugLevel.INFO
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "more")
    with pytest.raises(ValueError, match="^The value of TORCH_DISTRIBUTED_DEBUG must be one of OFF, INFO, DETAIL; it is more.$"):
        dist.set_debug_level_from_env()
    dist.set_debug_level(dist.DebugLevel.OFF)
