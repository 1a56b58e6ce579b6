"""ShardedTensor: boxes on ranks, specifications, and checkpoints between specifications."""


import pytest

import cresset as torch
import cresset.distributed as dist
import cresset.distributed.checkpoint as dcp
from cresset.distributed._shard import sharded_tensor
from cresset.distributed._shard.sharding_spec import ChunkShardingSpec, EnumerableShardingSpec, ShardMetadata
from cresset.distributed.remote_device import _remote_device


SPECS = [
    ChunkShardingSpec(0, ["rank:0", "rank:1"]), ChunkShardingSpec(1, ["rank:1", "rank:0", "rank:1"]),
    EnumerableShardingSpec([ShardMetadata([0, 0], [3, 4], "rank:1"), ShardMetadata([3, 0], [2, 4], "rank:0/cpu")]),
]  # fmt: skip


def crosses(rank, path, first, second):
    saved, target = sharded_tensor.rand(SPECS[first], 5, 4), sharded_tensor.zeros(SPECS[second], 5, 4)
    dcp.save({"x": saved}, checkpoint_id=path)
    dcp.load({"x": target}, checkpoint_id=path)
    whole = [torch.zeros(5, 4) if rank == 0 else None for _ in range(2)]
    saved.gather(out=whole[0])
    target.gather(out=whole[1])
    dist.barrier()
    return rank or (torch.equal(*whole) and bool(whole[0].ne(0).all()))


@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("second", range(3))
def test_checkpoints_between_specifications(pair, tmp_path, first, second):
    assert pair.run(crosses, tmp_path, first, second) == [True, 1]


@pytest.mark.parametrize("make, words", [
    (lambda: ShardMetadata([0], [1, 2]), "shard_offsets and shard_sizes should have the same number of elements, found 1 and"),
    (lambda: ShardMetadata([-1], [1]), "shard_offsets should be >=0"),
    (lambda: EnumerableShardingSpec([ShardMetadata([0], [2], "rank:0"), ShardMetadata([1], [2], "rank:1")]), "Shards .* overlap"),
    (lambda: EnumerableShardingSpec([]), "Shard list must not be empty"),
    (lambda: SPECS[2].build_metadata([6, 4], None), "does not match tensor volume"),
    (lambda: ChunkShardingSpec(2, ["rank:0"]).build_metadata([6, 4], None), "Invalid sharding dim: 2"),
    (lambda: _remote_device("a/b/c"), "Could not parse remote_device: a/b/c"),
])  # fmt: skip
def test_errors(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_remote_devices():
    assert str(_remote_device("rank:3")) == "rank:3/cpu" and _remote_device("rank:3/cpu").rank() == 3
    assert _remote_device("worker/cpu").worker_name() == "worker" and _remote_device("cpu").rank() is None
    assert _remote_device("rank:1") == _remote_device("rank:1/cpu") != _remote_device("rank:0")
