"""Collectives of tensors on the device: copies on the host, by the backend of the CPU."""

import multiprocessing
import tempfile

import cresset
import cresset.distributed as dist
import pytest

DEVICE = "simulated"
pytestmark = pytest.mark.skipif(not dist.is_available(), reason="a build without communication between processes")


def numbers(*values):
    return cresset.tensor(values, device=DEVICE)


def collectives(rank):
    x = numbers(1.0, 2.0) * (rank + 1)
    dist.all_reduce(x)
    assert x.tolist() == [3, 6]
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.result()[0].device.type == DEVICE and x.tolist() == [6, 12]
    doubled = dist.all_reduce(numbers(1.0), async_op=True).get_future().then(lambda done: done.value()[0] * 2).wait()
    assert doubled.device.type == DEVICE and doubled.tolist() == [4]
    y = cresset.full((2, 3), float(rank), device=DEVICE).t()
    dist.broadcast(y, 1)
    assert y.tolist() == [[1, 1]] * 3
    parts = [cresset.zeros(2, device=DEVICE) for _ in range(2)]
    dist.all_gather(parts, numbers(rank, rank + 1.0))
    assert [p.tolist() for p in parts] == [[0, 1], [1, 2]]
    lists = [[cresset.zeros(1, device=DEVICE) for _ in range(4)] for _ in range(2)]
    work = dist.group.WORLD.allgather(lists, [numbers(2.0 * rank), numbers(2.0 * rank + 1)])
    assert work.wait() and [[(t.device.type, t.item()) for t in part] for part in work.get_future().wait()] == [[(DEVICE, n) for n in range(4)]] * 2
    part = cresset.zeros(2, device=DEVICE)
    dist.reduce_scatter_tensor(part, cresset.arange(4.0, device=DEVICE), op=dist._make_nccl_premul_sum(numbers(0.5)))
    assert part.tolist() == [[0, 1], [2, 3]][rank]
    out = cresset.zeros(2, device=DEVICE)
    dist.all_to_all_single(out, numbers(2.0 * rank, 2.0 * rank + 1))
    assert out.tolist() == [rank, 2 + rank]


def messages(rank):
    if rank == 0:
        dist.send(numbers(5.0, 6.0), 1)
    else:
        got = cresset.zeros(2, device=DEVICE)
        assert dist.recv(got) == 0 and got.tolist() == [5, 6]


def training(rank):
    layer = cresset.nn.Linear(3, 2).to(DEVICE)
    parallel = cresset.nn.parallel.DistributedDataParallel(layer)
    parallel(cresset.ones(2, 3, device=DEVICE) * (rank + 1)).sum().backward()
    assert layer.weight.grad.tolist() == [[3.0] * 3] * 2


def errors(rank):
    x = numbers(1.0, 2.0)
    with pytest.raises(ValueError, match="Cannot use ReduceOp.BAND with non-integral dtype"):
        dist.all_reduce(x, op=dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="No backend type associated with device type meta"):
        dist.all_reduce(cresset.ones(1, device="meta"))
    assert x.tolist() == [1, 2]


def run(rank, path, answers):
    try:
        dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
        for function in (collectives, messages, training, errors):
            function(rank)
        dist.destroy_process_group()
        answers.put((rank, "done"))
    except BaseException as error:
        answers.put((rank, f"{type(error).__name__}: {error}"))
        raise


def test_two_ranks():
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=run, args=(rank, f"{folder}/store", answers)) for rank in range(2)]
        for process in ranks:
            process.start()
        assert sorted(answers.get(timeout=60) for _ in ranks) == [(0, "done"), (1, "done")]
        for process in ranks:
            process.join()
