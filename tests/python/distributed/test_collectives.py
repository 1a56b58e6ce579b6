"""Every collective, on two and three ranks: values, dtypes, forms, words of errors."""

import os
import warnings
from datetime import timedelta

import pytest

import cresset as torch
import cresset.distributed as dist

from ranks import RankError, Ranks

SIZE = 3
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def values(rank, dtype, shape=(4, 3)):
    """Small numbers that differ by rank and place, exact in every dtype."""
    n = shape[0] * shape[1]
    return ((torch.arange(n) * 7 + rank * 5) % 4).reshape(shape).to(getattr(torch, dtype))


def folded(kind, dtype, size=SIZE):
    """The reduction, computed in one process from NumPy's definitions on wide types."""
    import numpy as np

    parts = np.stack([values(r, dtype).to(torch.complex128 if dtype.startswith("complex") else torch.int64).numpy() for r in range(size)])
    ufunc = {"SUM": np.add, "AVG": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum, "BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor}[kind]
    total = ufunc.reduce(parts, axis=0)
    if kind == "AVG":
        total = total / size if dtype[0] in "fbc" and dtype != "bool" else total // size
    return torch.from_numpy(np.asarray(total)).to(getattr(torch, dtype))


def reduce_long(rank, bytes_):
    x = (torch.arange(bytes_) % 50 + rank).to(torch.uint8)
    dist.all_reduce(x)
    expected = (torch.arange(bytes_) % 50 * SIZE + SIZE * (SIZE - 1) // 2).to(torch.uint8)
    assert torch.equal(x, expected)


@pytest.mark.parametrize("bytes_", [1, 65536, 65537, 1_000_003])
def test_lengths(three, bytes_):
    """Up to 64 kB three ranks exchange all at once; then Gloo's ring."""
    three.run(reduce_long, bytes_)


def scheduling_policies(rank):
    policies = [os.sched_getscheduler(int(thread)) for thread in os.listdir("/proc/self/task")]
    return os.sched_getscheduler(0), policies.count(os.SCHED_BATCH)


@pytest.mark.skipif(os.sched_getscheduler(0) != os.SCHED_OTHER, reason="threads keep another policy that they begin with")
def test_the_thread_of_the_connections_is_patient(three):
    assert three.run(scheduling_policies) == [(os.SCHED_OTHER, 1)] * SIZE


def reduce_everywhere(rank, kind, dtype):
    op = getattr(dist.ReduceOp, kind)
    expected = folded(kind, dtype)
    tolerance = {"rtol": 1e-2, "atol": 1e-2} if dtype in ("float16", "bfloat16") else {"rtol": 1e-6, "atol": 1e-6}
    plain = values(rank, dtype)
    dist.all_reduce(plain, op)
    torch.testing.assert_close(plain, expected, **tolerance)
    strided = torch.empty(3, 4, dtype=plain.dtype).t()
    strided.copy_(values(rank, dtype))
    work = dist.all_reduce(strided, op, async_op=True)
    assert work.wait() is True and work.is_completed() and work.is_success() and work.exception() is None
    torch.testing.assert_close(strided, expected, **tolerance)
    assert torch.equal(work.result()[0], strided) and torch.equal(work.get_future().wait()[0], strided)
    one = values(rank, dtype)
    dist.reduce(one, 1, op)
    torch.testing.assert_close(one, expected if rank == 1 else values(rank, dtype), **tolerance)
    part = torch.empty(3, dtype=plain.dtype)
    dist.reduce_scatter(part, [values(rank, dtype)[i].clone() for i in range(SIZE)], op)
    torch.testing.assert_close(part, expected[rank], **tolerance)
    dist.reduce_scatter_tensor(part, values(rank, dtype)[:SIZE].contiguous(), op)
    torch.testing.assert_close(part, expected[rank], **tolerance)


def kinds_of(dtype):
    integral = dtype[0] in "ui" or dtype == "bool"
    kinds = ["SUM", "PRODUCT"] + ([] if dtype.startswith("complex") else ["MIN", "MAX"]) + (["BAND", "BOR", "BXOR"] if integral else [])
    return kinds + ([] if dtype == "bool" else ["AVG"])


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(three, dtype):
    for kind in kinds_of(dtype):
        three.run(reduce_everywhere, kind, dtype)


def factors(rank):
    """PREMUL_SUM keeps the dtype, whatever the factor is."""
    for dtype in DTYPES[1:]:
        x = values(rank, dtype)
        wide = torch.complex128 if dtype.startswith("complex") else torch.float64
        for factor in (2.0, 2.5, torch.tensor(2.5), torch.tensor([2.5])):
            expected = sum((values(r, dtype).to(wide) * float(factor)).to(x.dtype) for r in range(SIZE))
            for call in (lambda y, op: dist.all_reduce(y, op), lambda y, op: dist.reduce(y, 0, op), lambda y, op: dist.all_reduce_coalesced([y], op)):
                y = x.clone()
                call(y, dist._make_nccl_premul_sum(factor))
                assert y.dtype == x.dtype
                if rank == 0:
                    torch.testing.assert_close(y, expected, rtol=2e-2, atol=1e-5)
            part = torch.empty(3, dtype=x.dtype)
            dist.reduce_scatter_tensor(part, x[:SIZE].contiguous(), dist._make_nccl_premul_sum(factor))
            torch.testing.assert_close(part, expected[rank], rtol=2e-2, atol=1e-5)
    with pytest.raises(RuntimeError, match="ReduceOp.PREMUL_SUM: a factor of one element was required; it has 2"):
        dist.all_reduce(torch.ones(2), dist._make_nccl_premul_sum(torch.ones(2)))


def test_factors(three):
    three.run(factors)


def large_and_empty(rank):
    for n in (0, 1, 4097, 300_000):
        x = torch.full((n,), float(rank + 1))
        dist.all_reduce(x)
        assert torch.equal(x, torch.full((n,), 6.0))
    x = torch.ones(5) * (rank + 1)
    dist.all_reduce(x, dist._make_nccl_premul_sum(2.0))
    assert x.tolist() == [12.0] * 5
    xs = [torch.ones(2) * rank, torch.ones(3, 2).t() * rank]
    dist.all_reduce_coalesced(xs)
    assert xs[0].tolist() == [3.0, 3.0] and xs[1].tolist() == [[3.0] * 3] * 2
    leaf = torch.ones(2, requires_grad=True)
    before = leaf._version
    with torch.no_grad():
        dist.all_reduce(leaf)
    assert leaf._version > before


def test_sizes_factors_and_versions(three):
    three.run(large_and_empty)


def moving(rank, dtype):
    mine = values(rank, dtype)
    for x in (mine.clone(), mine.t().contiguous().t()):
        dist.broadcast(x, 2)
        assert torch.equal(x, values(2, dtype))
    out = [torch.zeros(4, 3, dtype=mine.dtype) for _ in range(SIZE)]
    dist.all_gather(out, mine)
    assert all(torch.equal(o, values(r, dtype)) for r, o in enumerate(out))
    whole = torch.zeros(4 * SIZE, 3, dtype=mine.dtype)
    dist.all_gather_into_tensor(whole, mine)
    assert torch.equal(whole, torch.cat(out))
    stacked = torch.zeros(SIZE, 4, 3, dtype=mine.dtype)
    dist.all_gather_into_tensor(stacked, mine.t().contiguous().t())
    assert torch.equal(stacked, torch.stack(out))
    gathered = [torch.zeros_like(mine) for _ in range(SIZE)] if rank == 1 else None
    dist.gather(mine, gathered, dst=1)
    assert rank != 1 or all(torch.equal(g, o) for g, o in zip(gathered, out))
    part = torch.zeros(3, dtype=mine.dtype)
    dist.scatter(part, list(mine[:SIZE].unbind()) if rank == 0 else None, src=0)
    assert torch.equal(part, values(0, dtype)[rank])
    lists = [[torch.zeros(4, 3, dtype=mine.dtype), torch.zeros(2, dtype=mine.dtype)] for _ in range(SIZE)]
    dist.all_gather_coalesced(lists, [mine, mine[0, :2]])
    assert all(torch.equal(a, values(r, dtype)) and torch.equal(b, values(r, dtype)[0, :2]) for r, (a, b) in enumerate(lists))


@pytest.mark.parametrize("dtype", DTYPES)
def test_moving(three, dtype):
    three.run(moving, dtype)


def exchanges(rank):
    rows = torch.arange(6).reshape(6, 1) + 100 * rank
    out = torch.zeros(6, 1, dtype=torch.int64)
    dist.all_to_all_single(out, rows)
    assert out.flatten().tolist() == [100 * r + 2 * rank + i for r in range(SIZE) for i in (0, 1)]
    sends, receives = [r + 1 for r in range(SIZE)], [rank + 1] * SIZE  # r + 1 rows to rank r
    out = torch.zeros(sum(receives), 1, dtype=torch.int64)
    dist.all_to_all_single(out, rows, receives, sends)
    assert out.flatten().tolist() == [100 * r + sum(range(1, rank + 1)) + i for r in range(SIZE) for i in range(rank + 1)]
    ins = [torch.full((rank + 1, r + 1), float(rank)) for r in range(SIZE)]
    outs = [torch.zeros(r + 1, rank + 1) for r in range(SIZE)]
    dist.all_to_all(outs, ins)
    assert all(o.unique().tolist() == [float(r)] for r, o in enumerate(outs))


def test_exchanges(three):
    three.run(exchanges)


def messages(rank):
    if rank == 0:
        for r in (1, 2):
            dist.send(torch.arange(6).reshape(2, 3).t(), r, tag=r)
        x = torch.zeros(1)
        assert sorted((dist.recv(x), x.item()) for _ in range(2)) == [(1, 1.0), (2, 2.0)]
    else:
        x = torch.zeros(2, 3, dtype=torch.int64).t()
        assert dist.recv(x, 0, tag=rank) == 0 and x.tolist() == [[0, 3], [1, 4], [2, 5]]
        dist.send(torch.tensor([float(rank)]), 0)
    after, before = (rank + 1) % SIZE, (rank - 1) % SIZE
    x = torch.zeros(2)
    works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, before, tag=5), dist.P2POp(dist.isend, torch.full((2,), float(rank)), after, tag=5)])
    for work in works:
        work.wait()
    assert x.tolist() == [before] * 2 and all(work.is_completed() for work in works)
    y = torch.zeros(1)
    work = dist.irecv(y, before, tag=9)
    assert not work.is_completed()
    total = torch.ones(1)
    dist.all_reduce(total)  # a message that has not come blocks nothing
    dist.isend(torch.ones(1) * rank, after, tag=9).wait()
    work.wait()
    assert y.item() == before and total.item() == 3


def test_messages(three):
    three.run(messages)


def objects(rank):
    everyone = [None] * SIZE
    dist.all_gather_object(everyone, {"rank": rank, "text": "x" * rank * 100})
    assert [e["rank"] for e in everyone] == [0, 1, 2] and len(everyone[2]["text"]) == 200
    collected = [None] * SIZE if rank == 2 else None
    dist.gather_object((rank, "a"), collected, dst=2)
    assert rank != 2 or collected == [(0, "a"), (1, "a"), (2, "a")]
    things = ["one", {2: 3}, None] if rank == 1 else [None] * 3
    dist.broadcast_object_list(things, src=1)
    assert things == ["one", {2: 3}, None]
    mine = [None]
    dist.scatter_object_list(mine, ["a", "bb", "ccc"] if rank == 0 else None, src=0)
    assert mine == ["abc"[rank] * (rank + 1)]
    if rank == 0:
        dist.send_object_list(["over", 1], 1)
    elif rank == 1:
        got = [None, None]
        assert dist.recv_object_list(got, 0) == 0 and got == ["over", 1]


def test_objects(three):
    three.run(objects)


def groups(rank):
    pair = dist.new_group([0, 2])
    assert dist.get_rank(pair) == {0: 0, 1: -1, 2: 1}[rank] and dist.get_world_size(pair) == (-1 if rank == 1 else 2)
    x = torch.tensor([float(rank)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.all_reduce(x, group=pair)
    assert x.item() == (1.0 if rank == 1 else 2.0)
    if rank != 1:
        assert dist.get_process_group_ranks(pair) == [0, 2] and dist.get_global_rank(pair, 1) == 2 and dist.get_group_rank(pair, 2) == 1
        dist.broadcast(x.fill_(rank), src=2, group=pair)
        assert x.item() == 2
    mine = dist.split_group(split_ranks=[[0, 1], [2]])
    assert mine.size() == (1 if rank == 2 else 2)
    y = torch.ones(3)
    dist.all_reduce(y, group=mine)
    assert y.tolist() == [float(mine.size())] * 3
    if rank != 1:
        dist.destroy_process_group(pair)
    own, every = dist.new_subgroups(1)
    assert own.size() == 1 and len(every) == SIZE
    with dist._coalescing_manager() as manager:
        a, b = torch.ones(2), torch.ones(1)
        dist.all_reduce(a)
        dist.all_reduce(b)
    assert a.tolist() == [3.0, 3.0] and b.item() == 3 and manager is not None
    dist.barrier()


def watched(rank):
    dist.monitored_barrier(timeout=timedelta(seconds=20))


def test_groups(three):
    three.run(groups)
    three.run(watched)


def words(rank):
    def error_of(call):
        try:
            call()
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    one = torch.ones(1)
    return [
        error_of(lambda: dist.all_reduce([1])),
        error_of(lambda: dist.broadcast(one, 7)),
        error_of(lambda: dist.send(one, rank)),
        error_of(lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND)),
        error_of(lambda: dist.all_reduce(torch.ones(2, device="meta"))),
        error_of(lambda: dist.all_gather([one], one)),
        error_of(lambda: dist.all_gather_into_tensor(torch.ones(2), one)),
        error_of(lambda: dist.reduce_scatter_tensor(one, torch.ones(2))),
        error_of(lambda: dist.init_process_group("gloo")),
        error_of(lambda: dist.new_group([0, 9])),
        error_of(lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4))),
        error_of(lambda: dist.all_gather([one.int()] * 3, one)),
    ]


def test_words(three):
    assert [line.split("\n")[0] for line in three.run(words)[0]] == [
        "TypeError: Invalid function argument. Expected parameter `tensor` of type torch.Tensor",
        "RuntimeError: ProcessGroupGloo::broadcast: invalid root rank: 7",
        "ValueError: Invalid destination rank: destination rank should not be the same as the rank of the current process. (Rank 0)",
        "ValueError: Cannot use ReduceOp.BAND with non-integral dtype",
        "RuntimeError: No backend type associated with device type meta",
        "RuntimeError: ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length 3, got 1)",
        "ValueError: output tensor size must be equal to world_size times input tensor size",
        "ValueError: input tensor must be the same size as output size times world size",
        "ValueError: trying to initialize the default process group twice!",
        "ValueError: The new group's rank should be within the world_size set by init_process_group",
        "RuntimeError: Tensor's dim 0 does not divide equally across group size",
        "ValueError: Invalid usage of tensors with different dtypesFound cresset.float32 and  cresset.int32",
    ]


def failing(rank):
    if rank == 1:
        raise KeyError("only here")


def test_the_harness_tells_who_failed(three):
    with pytest.raises(RankError) as failure:
        three.run(failing)
    assert failure.value.errors == {1: "KeyError: 'only here'"}


def alone(rank):
    x = torch.arange(6.0).reshape(2, 3).t()
    for call in (dist.all_reduce, lambda t: dist.broadcast(t, 0), lambda t: dist.reduce(t, 0)):
        y = x.clone()
        call(y)
        assert torch.equal(y, x)
    for call in (
        lambda out: dist.all_gather([out], x),
        lambda out: dist.all_gather_into_tensor(out, x),
        lambda out: dist.reduce_scatter(out, [x]),
        lambda out: dist.reduce_scatter_tensor(out, x),
        lambda out: dist.gather(x, [out]),
        lambda out: dist.scatter(out, [x]),
        lambda out: dist.all_to_all([out], [x]),
        lambda out: dist.all_to_all_single(out, x),
    ):
        out = torch.full((3, 2), -1.0)
        call(out)
        assert torch.equal(out, x)
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}]
    dist.barrier()
    return True


def test_a_group_of_one_rank():
    one = Ranks(1, globals())
    try:
        assert one.run(alone) == [True]
    finally:
        one.close()


# --- sparse tensors

SPARSE = {
    "vectors": ([[0, 2], [1, 2], [3]], (4,), ()),
    "repeated": ([[0, 0], [0], [0, 0, 0]], (4,), ()),
    "rows": ([[1, 2], [], [2]], (5, 3), (3,)),
    "none": ([[], [], []], (2,), ()),
}


def sparse_of(rank, name, dtype):
    places, size, dense = SPARSE[name]
    entries = ((torch.arange(len(places[rank]) * (dense[0] if dense else 1)) + 1 + rank) % 5).reshape(-1, *dense).to(dtype)
    return torch.sparse_coo_tensor(torch.tensor([places[rank]], dtype=torch.int64), entries, size)


def sparse_sum(rank, name, dtype, is_async):
    mine = sparse_of(rank, name, dtype)
    work = dist.all_reduce(mine, async_op=is_async)
    if is_async:
        assert work.wait() and work.is_completed() and work.get_future().value()[0] is mine
    expected = sum(sparse_of(r, name, dtype).to_dense() for r in range(SIZE))
    assert mine.is_coalesced() and mine.to_dense().equal(expected) and mine.dtype == dtype
    assert mine._nnz() == len({p for places in SPARSE[name][0] for p in places})
    return True


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse(three, name, dtype, is_async):
    assert all(three.run(sparse_sum, name, dtype, is_async))


def coalesced_errors(rank):
    z = torch.zeros
    for outputs, inputs, words in [
        ([[z(0)]], [z(1)], r"invalid size of output tensor at index 0 \(expected length \[1\], got \[0\]\)"),
        ([[z(1, 2), z(3, 4)]], [z(1, 2), z(4, 3)], "invalid size of output tensor at index 1"),
        ([[z(1), z(1).double()]], [z(1), z(1)], "invalid tensor type at index 1"),
        ([[z(1), z(1)]], [z(1)], r"invalid output size: \(expected length 1, got 2\)"),
        ([[z(1)]], [], "requires non-empty input tensor list"),
    ]:
        with pytest.raises(RuntimeError, match=f"ProcessGroupGloo::allgather_coalesced: {words}"):
            dist.all_gather_coalesced(outputs * SIZE, inputs)
    with pytest.raises(RuntimeError, match="output lists should be equal to world size"):
        dist.all_gather_coalesced([[z(1)]] * (SIZE + 1), [z(1)])


def test_errors_of_coalesced_gathers(three):
    three.run(coalesced_errors)


def sparse_errors(rank):
    x = sparse_of(rank, "vectors", torch.float32)
    with pytest.raises(RuntimeError, match=r"unsupported reduction operation \(allreduce of sparse tensors only works with ReduceOp.SUM\)"):
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
    with pytest.raises(RuntimeError, match="unsupported layout"):
        dist.all_reduce(torch.eye(3).to_sparse_csr())
    other = torch.sparse_coo_tensor(torch.tensor([[0]]), torch.tensor([1.0]), (4 + (rank == 1),))
    with pytest.raises(RuntimeError, match="one size were required on all ranks; that of rank 1 differs from that of rank 0"):
        dist.all_reduce(other)
    assert x.to_dense().equal(sparse_of(rank, "vectors", torch.float32).to_dense())
    return True


def test_errors_of_sparse(three):
    assert all(three.run(sparse_errors))


def under_older_names(rank):
    out = torch.zeros(SIZE)
    with pytest.warns(FutureWarning, match="_all_gather_base` is a private function and will be deprecated"):
        dist._all_gather_base(out, torch.tensor([float(rank)]))
    assert out.tolist() == list(range(SIZE))
    part = torch.zeros(1)
    with pytest.warns(FutureWarning, match="_reduce_scatter_base` is a private function and will be deprecated"):
        dist._reduce_scatter_base(part, torch.arange(float(SIZE)))
    assert part.item() == rank * SIZE
    with pytest.warns(FutureWarning, match="_get_global_rank` is deprecated"):
        assert dist.distributed_c10d._get_global_rank(dist.group.WORLD, rank) == rank


def test_older_names(three):
    three.run(under_older_names)


def values_of_futures(rank):
    """Of allgather with two inputs a rank: PyTorch's future has a list for each, and the work no result."""
    group = dist.group.WORLD
    inputs = [torch.tensor([2 * rank]), torch.tensor([2 * rank + 1])]
    outputs = [[torch.tensor([-1]) for _ in range(2 * SIZE)] for _ in inputs]
    work = group.allgather(outputs, inputs)
    work.wait()
    value = work.get_future().value()
    with pytest.raises(RuntimeError, match=r"work result does not support list of lists, use .getFuture\(\) and value\(\)"):
        work.result()
    one = group.allgather([[torch.zeros(1) for _ in range(SIZE)]], [torch.tensor([float(rank)])])
    one.wait()
    empty = group.barrier()
    empty.wait()
    return [[t.item() for t in part] for part in value], [t.item() for t in one.get_future().value()], empty.get_future().value()


def test_values_of_futures(three):
    assert three.run(values_of_futures) == [([list(range(2 * SIZE))] * 2, [0.0, 1.0, 2.0], [])] * SIZE
