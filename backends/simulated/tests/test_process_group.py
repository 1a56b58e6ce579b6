"""The process group `scc` of the device: what PyTorch's tests ask of collectives in streams (test_c10d_nccl.py, test_c10d_ops_nccl.py), on two ranks."""

import os
import signal
import threading
import time
from datetime import timedelta

import cresset
import cresset.distributed as dist
import pytest
import two_ranks as ranks
from cresset import nn
from cresset.futures import Future
from cresset_simulated import _distributed, faults

DEVICE = "simulated"
pytestmark = pytest.mark.skipif(_distributed._module() is None or not dist.is_available(), reason="the process group is not built")


def numbers(*values, **options):
    return cresset.tensor(values, device=DEVICE, **options)


def waits():
    return faults.calls("host_wait")


def late(milliseconds):
    """Transfers take so long in front of the communication itself."""
    return faults.fault("transfer_delay", int(milliseconds * 1000))


def idle_after(tensor):
    """The tensor, once the device has nothing to do any more."""
    cresset.accelerator.synchronize(DEVICE)
    return tensor


def milliseconds(begin):
    return (time.perf_counter() - begin) * 1000


# --- every collective gives what Gloo gives for tensors of the processor

def _made(rank, device, dtype, *shape):
    n = 1
    for s in shape:
        n *= s
    return ((cresset.arange(n) % 5 + 1 + rank).reshape(shape)).to(dtype).to(device)


def _list(device, dtype, *shape):
    return [cresset.zeros(shape, dtype=dtype, device=device) for _ in range(2)]


def _all_reduce(op):
    def call(r, d, t):
        x = _made(r, d, t, 3, 4)
        dist.all_reduce(x, op=op() if callable(op) else op)
        return [x]

    return call


def _reduce(r, d, t):
    x = _made(r, d, t, 5)
    dist.reduce(x, 1)
    return [x] if r == 1 else []


def _broadcast(r, d, t):
    x = _made(r, d, t, 2, 3).t()  # not contiguous
    dist.broadcast(x, 1)
    return [x]


def _broadcast_into_slice(r, d, t):
    x = _made(r, d, t, 4, 6)
    dist.broadcast(x[1:3, ::2], 0)
    return [x]


def _all_gather(r, d, t):
    out = _list(d, t, 3, 2)
    dist.all_gather(out, _made(r, d, t, 2, 3).t())
    return out


def _all_gather_into_tensor(r, d, t):
    out = cresset.zeros(6, dtype=t, device=d)
    dist.all_gather_into_tensor(out, _made(r, d, t, 3))
    return [out]


def _gather(r, d, t):
    out = _list(d, t, 2) if r == 0 else None
    dist.gather(_made(r, d, t, 2), out, 0)
    return out or []


def _scatter(r, d, t):
    x = cresset.zeros(2, dtype=t, device=d)
    dist.scatter(x, [_made(3, d, t, 2), _made(4, d, t, 2)] if r == 0 else None, 0)
    return [x]


def _reduce_scatter(r, d, t):
    x = cresset.zeros(2, dtype=t, device=d)
    dist.reduce_scatter(x, [_made(r, d, t, 2), _made(r + 1, d, t, 2)])
    return [x]


def _reduce_scatter_tensor(r, d, t):
    x = cresset.zeros(2, dtype=t, device=d)
    dist.reduce_scatter_tensor(x, _made(r, d, t, 4))
    return [x]


def _all_to_all(r, d, t):
    out = [cresset.zeros(r + 1, dtype=t, device=d) for _ in range(2)]
    dist.all_to_all(out, [_made(r, d, t, 1), _made(r, d, t, 2)])
    return out


def _all_to_all_single(r, d, t):
    out = cresset.zeros(2 * (r + 1), dtype=t, device=d)
    dist.all_to_all_single(out, _made(r, d, t, 3), [r + 1] * 2, [1, 2])
    return [out]


def _coalesced(r, d, t):
    xs = [_made(r, d, t, 3), _made(r, d, t, 2, 2)]
    with dist._coalescing_manager():
        for x in xs:
            dist.all_reduce(x)
    wholes = [cresset.zeros(6, dtype=t, device=d), cresset.zeros(2, 2, 2, dtype=t, device=d)]
    with dist._coalescing_manager():
        for whole, x in zip(wholes, xs):
            dist.all_gather_into_tensor(whole, x)
    parts = [cresset.zeros(3, dtype=t, device=d), cresset.zeros(1, 2, 2, dtype=t, device=d)]
    with dist._coalescing_manager():
        for part, whole in zip(parts, wholes):
            dist.reduce_scatter_tensor(part, whole)
    return xs + wholes + parts


def _message(r, d, t):
    x = _made(r, d, t, 2, 3).t()
    dist.send(x, 1) if r == 0 else dist.recv(x, 0)
    return [x]


def _empty(r, d, t):
    x, whole = cresset.zeros(0, 3, dtype=t, device=d), cresset.zeros(0, dtype=t, device=d)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.all_gather_into_tensor(whole, cresset.zeros(0, dtype=t, device=d))
    return [x, whole]


FLOATS, WHOLE, COMPLEX = (cresset.float32, cresset.float64, cresset.float16, cresset.bfloat16), (cresset.int64, cresset.int32, cresset.uint8), (cresset.complex64,)
ANY = FLOATS + WHOLE + COMPLEX
COLLECTIVES = {
    "all_reduce": (_all_reduce(dist.ReduceOp.SUM), ANY),
    "all_reduce, average": (_all_reduce(dist.ReduceOp.AVG), FLOATS),
    "all_reduce, product": (_all_reduce(dist.ReduceOp.PRODUCT), FLOATS + WHOLE),
    "all_reduce, minimum": (_all_reduce(dist.ReduceOp.MIN), FLOATS + WHOLE),
    "all_reduce, maximum": (_all_reduce(dist.ReduceOp.MAX), FLOATS + WHOLE),
    "all_reduce, bits": (_all_reduce(dist.ReduceOp.BXOR), WHOLE),
    "all_reduce, factor": (_all_reduce(lambda: dist._make_nccl_premul_sum(0.5)), FLOATS),
    "reduce": (_reduce, ANY),
    "broadcast": (_broadcast, ANY),
    "broadcast into a slice": (_broadcast_into_slice, ANY),
    "all_gather": (_all_gather, ANY),
    "all_gather_into_tensor": (_all_gather_into_tensor, ANY),
    "gather": (_gather, ANY),
    "scatter": (_scatter, ANY),
    "reduce_scatter": (_reduce_scatter, ANY),
    "reduce_scatter_tensor": (_reduce_scatter_tensor, ANY),
    "all_to_all": (_all_to_all, ANY),
    "all_to_all_single": (_all_to_all_single, ANY),
    "coalesced": (_coalesced, ANY),
    "message": (_message, ANY),
    "empty tensors": (_empty, ANY),
}


def collectives(rank):
    assert dist.group.WORLD._get_backend(cresset.device(DEVICE)).name() == "scc"
    wrong, compared = [], 0
    for name, (call, dtypes) in COLLECTIVES.items():
        for dtype in dtypes:
            got, want = call(rank, DEVICE, dtype), call(rank, "cpu", dtype)
            assert all(g.device.type == DEVICE for g in got)
            compared += len(got)
            wrong += [f"{name}, {dtype}" for g, w in zip(got, want) if not cresset.equal(g.cpu(), w)]
    return wrong, compared


# --- streams

def nobody_waits(rank):
    """The call and wait() return at once; what follows in the stream comes after the collective, what it reads comes before."""
    ones = idle_after(numbers(1.0, 2.0))
    with faults.fault("delay", 5_000), late(50):
        before, begin = waits(), time.perf_counter()
        x = ones * (rank + 1)
        work = dist.all_reduce(x, async_op=True)
        dist.all_reduce(x)  # no tensor is waited for either
        y = x + 1
        spent, done = milliseconds(begin), work.is_completed()
        assert (waits() - before, done) == (0, False) and spent < 50, spent
        assert y.tolist() == [7, 13]
        assert work.is_completed() and work.is_success() and work.wait() and work.exception() is None and work.result()[0] is x


def computing_goes_on(rank):
    """(ms of a transfer, ms until computing that does not need it was done): the worker is not held up."""
    x, y = numbers(1.0), idle_after(cresset.ones(64, 64, device=DEVICE))
    with late(300):
        begin = time.perf_counter()
        work = dist.all_reduce(x, async_op=True)
        for _ in range(20):
            y = (y @ y) / 64
        assert y[0, 0].item() == 1
        computed, early = milliseconds(begin), work.is_completed()
        work.wait()
        assert x.item() == 2
        return milliseconds(begin), computed, early


def one_stream_waits(rank):
    """wait() holds up the stream that is current, no other."""
    x, side = idle_after(numbers(1.0)), cresset.Stream(DEVICE)
    with late(200):
        work = dist.all_reduce(x, async_op=True)
        with side:
            work.wait()
            y = x * 3
        main = cresset.accelerator.current_stream(DEVICE)
        assert not side.query() and (numbers(4.0) * 2).item() == 8 and main.query() and not side.query()
        side.synchronize()
        assert y.item() == 6


def comes_after_the_callers_stream(rank):
    side = cresset.Stream(DEVICE)
    with faults.fault("delay", 3_000), side:
        x = numbers(1.0)
        for _ in range(10):
            x = x * 2
        work = dist.all_reduce(x, async_op=True)
    work.wait()
    assert x.item() == 2048


def in_order(rank):
    x = numbers(1.0)
    for _ in range(5):
        dist.all_reduce(x, async_op=True)
    dist.broadcast(x, 0, async_op=True).wait()
    assert x.item() == 32


def two_devices(rank):
    """A group serves all devices of the kind, in one order on all ranks."""
    x, y = cresset.ones(2, device="simulated:0"), cresset.ones(2, device="simulated:1")
    with faults.fault("delay", 1_000 * (1 + 4 * rank)):
        for _ in range(3):
            dist.all_reduce(x, async_op=True)
            work = dist.all_reduce(y, async_op=True)
        work.wait()
        dist.broadcast(x, 0)
        assert x.tolist() == [8, 8] and y.tolist() == [8, 8]
    with pytest.raises(RuntimeError, match="dense tensors of one device of the kind simulated were required; one is on simulated:1"):
        dist.all_gather([x, y], x)


def tensors_are_kept(rank):
    """Nobody holds the tensors, nobody waits, and their memory is not used for others meanwhile."""
    gathered = []
    with late(2):
        for i in range(40):
            out = [cresset.zeros(512, device=DEVICE) for _ in range(2)]
            dist.all_gather(out, cresset.full((512,), float(i + rank), device=DEVICE), async_op=True)
            gathered.append(out[1 - rank])
            cresset.full((512,), -1.0, device=DEVICE)
        cresset.accelerator.synchronize(DEVICE)
    assert [t[7].item() for t in gathered] == [i + 1 - rank for i in range(40)]


def a_time_blocks(rank):
    """With a time wait() blocks the host, and says so when it is over; the work goes on."""
    x = idle_after(numbers(1.0))
    with late(400):
        work = dist.all_reduce(x, async_op=True)
        begin = time.perf_counter()
        with pytest.raises(dist.DistBackendError, match="allreduce: Operation timed out! It goes on in its stream."):
            work.wait(timedelta(milliseconds=50))
        assert 50 <= milliseconds(begin) < 300 and not work.is_completed()
        assert work.wait(timedelta(seconds=5)) and work.is_completed() and milliseconds(begin) >= 350
    assert x.item() == 2


def barriers_block(rank):
    begin = time.perf_counter()
    if rank == 1:
        time.sleep(0.3)
    dist.barrier(device_ids=[0])
    dist.group.WORLD._get_backend(cresset.device(DEVICE)).barrier().wait()
    assert rank == 1 or milliseconds(begin) >= 200


def futures(rank):
    """They have their value at once; callbacks run in streams that come after the work, and who waits comes after the callbacks."""
    ones = idle_after(numbers(1.0, 2.0))
    with late(50):
        before = waits()
        future = dist.all_reduce(ones * (rank + 1), async_op=True).get_future()
        assert isinstance(future, Future) and future.done()
        current = cresset.accelerator.current_stream(DEVICE)
        streams = []

        def times_ten(done):
            streams.append(cresset.accelerator.current_stream(DEVICE))
            return 10 * done.value()[0]

        result = future.then(times_ten).then(lambda done: 0.5 * done.value())
        y = result.wait() + 1
        assert waits() == before and streams[0] != current == cresset.accelerator.current_stream(DEVICE)
        assert y.tolist() == [16, 31]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        future.then(lambda done: 1 / 0).wait()


def recording_is_refused(rank):
    x = numbers(1.0)
    graph = cresset.accelerator.Graph()
    with cresset.Stream(DEVICE), graph, pytest.raises(RuntimeError, match="scc: allreduce: communication cannot be recorded in a graph"):
        dist.all_reduce(x)
    dist.all_reduce(x)
    assert x.item() == 2


def bad_calls(rank):
    """Errors come at the call, as they do on the processor, and change nothing."""
    x, version = numbers(1.0, 2.0), numbers(1.0)._version
    for words, call in (
        ("Cannot use ReduceOp.BAND with non-integral dtype", lambda: dist.all_reduce(x, op=dist.ReduceOp.BAND)),
        ("tensors with different dtypes", lambda: dist.all_gather([x, x.long()], x)),
        ("output tensor size must be equal to world_size times", lambda: dist.all_gather_into_tensor(numbers(1.0), x)),
        ("dense tensors of one device of the kind simulated were required; one is on cpu", lambda: dist.group.WORLD._get_backend(x.device).allreduce([x.cpu()])),
        ("another rank from 0 to 1 was required; 5", lambda: dist.group.WORLD._get_backend(x.device).send([x], 5, 0)),
        ("takes a single tensor", lambda: dist.group.WORLD._get_backend(x.device).send([x, x], 1 - rank, 0)),
    ):
        with pytest.raises((RuntimeError, ValueError, TypeError), match=words):
            call()
    assert x._version == version
    dist.all_reduce(x)
    assert x._version == version + 1 and x.tolist() == [2, 4]


# --- messages, groups

def messages_cross(rank):
    """Both ranks send first: no order of calls waits for ever."""
    out, got = numbers(float(rank)), cresset.zeros(1, device=DEVICE)
    works = [dist.isend(out, 1 - rank), dist.irecv(got, 1 - rank)]
    for work in works:
        work.wait()
    assert got.item() == 1 - rank
    for order in ((dist.isend, dist.irecv), (dist.irecv, dist.isend)):
        ops = [dist.P2POp(f, out + 5 if f is dist.isend else got, 1 - rank) for f in order]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert got.item() == 6 - rank
    if rank == 0:
        dist.send(numbers(7.0), 1, tag=3)
    else:
        assert dist.recv(got, tag=3) == 0 and got.item() == 7
    objects = [{"a": 1}, "b"] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, 0, device=DEVICE)
    assert objects == [{"a": 1}, "b"]


def groups(rank):
    other, alone = dist.new_group([0, 1]), [dist.new_group([r]) for r in range(2)][rank]
    x = numbers(1.0)
    with late(20):
        dist.all_reduce(x, group=other, async_op=True)
        other._get_backend(cresset.device(DEVICE))
    dist.all_reduce(x, group=alone)
    other.barrier().wait()
    cresset.accelerator.synchronize(DEVICE)
    assert x.item() == 2
    for group in (other, alone) if rank else (alone, other):
        dist.destroy_process_group(group)


def functional(rank):
    import cresset.distributed._functional_collectives as functional

    x = functional.all_reduce(numbers(1.0, 2.0), "sum", dist.group.WORLD)
    y = functional.all_gather_tensor(x, 0, dist.group.WORLD)
    z = functional.reduce_scatter_tensor(y, "avg", 0, dist.group.WORLD)
    assert (x.tolist(), y.tolist(), z.tolist()) == ([2, 4], [2, 4, 2, 4], [2, 4])
    dist.all_reduce(numbers(1.0), async_op=True)  # nobody waits: the process ends all the same


def objects(rank):
    """They travel on the device where the group has no backend for the processor."""
    both = [None, None]
    dist.all_gather_object(both, {"rank": rank})
    assert both == [{"rank": 0}, {"rank": 1}]
    gathered, mine = [None, None] if rank == 0 else None, [None]
    dist.gather_object("x" * (100 + rank), gathered, 0)
    assert rank == 1 or [len(text) for text in gathered] == [100, 101]
    dist.scatter_object_list(mine, ["a", ["b"] * 40] if rank == 0 else None, 0)
    assert mine == ["a" if rank == 0 else ["b"] * 40]
    for call in (dist.broadcast_object_list, dist.send_object_list if rank == 0 else dist.recv_object_list):
        two = [{"a": 1}, "b"] if rank == 0 else [None, None]
        call(two, 1 if call is dist.send_object_list else 0, device=0)
        assert two == [{"a": 1}, "b"]


# --- training

def _net():
    cresset.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))


def _data():
    cresset.manual_seed(1)
    return cresset.randn(8, 6), cresset.randn(8, 3)


def _train(net, optimizer, x, y, steps=4):
    """Losses, as tensors: the host waits for none."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def _alone(make=lambda parameters: cresset.optim.SGD(parameters, lr=0.1, momentum=0.9), steps=4):
    net = _net()
    losses = _train(net, make(net.parameters()), *_data(), steps=steps)
    return [p.detach() for p in net.parameters()], [loss.item() for loss in losses]


def _mine(rank):
    return [t[4 * rank : 4 * rank + 4].to(DEVICE) for t in _data()]


def data_parallel(rank):
    """Waits of the host in a step: none but those of item(). The weights are those of one process."""
    net = nn.parallel.DistributedDataParallel(_net().to(DEVICE), bucket_cap_mb=0.0002)
    optimizer, (x, y) = cresset.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), _mine(rank)
    losses = _train(net, optimizer, x, y, steps=1)
    with faults.fault("delay", 300), late(5), cresset.accelerator.set_fallback_mode("forbid"):
        before = waits()
        losses += _train(net, optimizer, x, y, steps=3)
        in_steps = waits() - before
        losses[-1].item()
        with_item = waits() - before
    want, want_losses = _alone()
    for p, w in zip(net.parameters(), want):
        cresset.testing.assert_close(p.detach().cpu(), w)
    total = cresset.stack([loss.cpu() for loss in losses])
    dist.all_reduce(total)
    cresset.testing.assert_close(total / 2, cresset.tensor(want_losses))
    return in_steps, with_item


def transfers_overlap_with_backward(rank):
    """(how many transfers of a step have ended when the device has come to the end of backward, how many there are)."""
    cresset.manual_seed(0)
    net = nn.Sequential(*(layer for _ in range(5) for layer in (nn.Linear(64, 64), nn.ReLU()))).to(DEVICE)
    parallel = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.016, gradient_as_bucket_view=True)
    x, y = (cresset.randn(8, 64).to(DEVICE) for _ in range(2))
    works, ends = [], []

    def hook(state, bucket):
        ends.append(cresset.accelerator.current_stream(DEVICE).record_event())
        works.append(dist.all_reduce(bucket.buffer(), async_op=True))
        return works[-1].get_future().then(lambda done: done.value()[0])

    parallel.register_comm_hook(None, hook)
    nn.functional.mse_loss(parallel(x), y).backward()
    works.clear()
    idle_after(x)
    with faults.fault("delay", 8_000), late(20):
        nn.functional.mse_loss(parallel(x), y).backward()
        ends[-1].synchronize()
        done = sum(work.is_completed() for work in works)
    cresset.accelerator.synchronize(DEVICE)
    return done, len(works)


def data_parallel_with_hooks(rank):
    from cresset.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    want, _ = _alone(steps=2)

    def hook(state, bucket):
        future = dist.all_reduce(bucket.buffer() / 2, async_op=True).get_future()
        return future.then(lambda done: 10 * done.value()[0]).then(lambda done: done.value() * 0.1)

    for f, state, close in (
        (hook, None, {}),
        (default_hooks.allreduce_hook, dist.group.WORLD, {}),
        (default_hooks.fp16_compress_hook, dist.group.WORLD, {"rtol": 1e-2, "atol": 1e-3}),
        (default_hooks.bf16_compress_hook, dist.group.WORLD, {"rtol": 5e-2, "atol": 5e-3}),
        (powerSGD_hook.powerSGD_hook, powerSGD_hook.PowerSGDState(dist.group.WORLD, start_powerSGD_iter=10), {}),
    ):
        for view in (False, True):
            net = nn.parallel.DistributedDataParallel(_net().to(DEVICE), gradient_as_bucket_view=view)
            net.register_comm_hook(state, f)
            with late(2):
                _train(net, cresset.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), *_mine(rank), steps=2)
            for p, w in zip(net.parameters(), want):
                cresset.testing.assert_close(p.detach().cpu(), w, **close)


def sharded(rank):
    """fully_shard over a mesh of the device, also with its parts below one another: the weights are those of one process."""
    from cresset.distributed.device_mesh import init_device_mesh
    from cresset.distributed.fsdp import fully_shard

    mesh = init_device_mesh(DEVICE, (2,))
    want, _ = _alone(lambda parameters: cresset.optim.AdamW(parameters, lr=0.01))
    net = _net().to(DEVICE)
    for part in (net[0], net[2], net):
        fully_shard(part, mesh=mesh)
    with late(3):
        _train(net, cresset.optim.AdamW(net.parameters(), lr=0.01), *_mine(rank))
    for p, w in zip(net.parameters(), want):
        cresset.testing.assert_close(p.full_tensor().cpu(), w)


def tensor_parallel(rank):
    from cresset.distributed.device_mesh import init_device_mesh
    from cresset.distributed.tensor import Shard, distribute_tensor

    mesh, x, y = init_device_mesh(DEVICE, (2,)), _data()[0], cresset.randn(6, 4, generator=cresset.Generator().manual_seed(3))
    product = distribute_tensor(x.to(DEVICE), mesh, [Shard(1)]) @ distribute_tensor(y.to(DEVICE), mesh, [Shard(0)])
    cresset.testing.assert_close(product.full_tensor().cpu(), x @ y)


FUNCTIONS = (
    collectives, nobody_waits, computing_goes_on, one_stream_waits, comes_after_the_callers_stream, in_order, two_devices, tensors_are_kept, a_time_blocks,
    barriers_block, futures, recording_is_refused, bad_calls, messages_cross, groups, functional, data_parallel, data_parallel_with_hooks, sharded,
    tensor_parallel, transfers_overlap_with_backward,
)  # fmt: skip
SIMPLE = [f for f in FUNCTIONS if f not in (collectives, computing_goes_on, data_parallel, transfers_overlap_with_backward)]


@pytest.mark.parametrize("function", SIMPLE, ids=lambda f: f.__name__)
def test_on_two_ranks(function):
    ranks.together(FUNCTIONS, function)


def test_objects_on_the_device_alone():
    ranks.run(objects, backend="scc")


def test_collectives_give_what_gloo_gives():
    for wrong, compared in ranks.together(FUNCTIONS, collectives):
        assert wrong == [] and compared > 150


def test_computing_goes_on_while_a_transfer_is_late():
    for whole, computed, early in ranks.together(FUNCTIONS, computing_goes_on):
        assert whole >= 300 and computed < 150 and not early


def test_transfers_of_a_step_overlap_with_backward():
    """When the last bucket is full, others have been reduced: 2 of 4 on an idle machine."""
    for done, count in ranks.together(FUNCTIONS, transfers_overlap_with_backward):
        assert count >= 4 and done >= 1, (done, count)


def test_the_host_waits_for_the_loss_alone():
    assert ranks.together(FUNCTIONS, data_parallel) == [(0, 1)] * 2


# --- ranks that die, hang or leave: each in processes of its own

def _goes_on(x):
    """After a failure the device computes as before."""
    assert (x + 1).numel() == x.numel() and (cresset.ones(3, device=DEVICE) * 2).tolist() == [2, 2, 2]
    cresset.accelerator.synchronize(DEVICE)


def killed(rank):
    x = numbers(1.0)
    dist.all_reduce(x)
    assert x.item() == 2
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin, before = time.perf_counter(), waits()
    work = dist.all_reduce(x, async_op=True)
    with pytest.raises(dist.DistBackendError, match="rank 1 is gone"):
        work.wait(timedelta(seconds=10))
    for again in (work.wait, work.get_future().wait):
        with pytest.raises(dist.DistBackendError, match="rank 1 is gone"):
            again()
    assert milliseconds(begin) < 9_000 and work.is_completed() and not work.is_success() and "rank 1" in str(work.exception())
    assert waits() == before
    _goes_on(x)
    with pytest.raises(dist.DistBackendError, match="all_?reduce: the group cannot be used any more: .*rank 1 is gone.*destroy_process_group"):
        dist.all_reduce(x)


def killed_unseen(rank):
    """Who waits in streams only is told by the device, where it next waits for the stream."""
    x = numbers(1.0)
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(x)
    except dist.DistBackendError as error:  # known at once
        assert "rank 1 is gone" in str(error)
    else:
        with pytest.raises(RuntimeError, match="rank 1 is gone"):
            (x * 2).item()
    _goes_on(x)


def told_once(rank):
    """The failure concerns streams that waited for the work, and is told once."""
    x, side = idle_after(numbers(1.0)), cresset.Stream(DEVICE)
    if rank == 1:
        time.sleep(3)
        return
    work = dist.all_reduce(x, async_op=True)
    with side:
        work.wait()  # nothing is known yet
        y = x * 2
    future = work.get_future().then(lambda done: done.value()[0] * 3)
    z = future.wait() + 1
    with pytest.raises(RuntimeError, match="allreduce.* timed out after 500 ms: rank 1 did not take part"):
        side.synchronize()
    assert (numbers(4.0) * 2).item() == 8  # this stream waited, too, for the future: it was told already
    _goes_on(y + z)
    with pytest.raises(dist.DistBackendError, match="rank 1 did not take part"):
        work.wait()


def hangs(rank):
    if rank == 1:
        time.sleep(3)
        return
    begin = time.perf_counter()
    got = cresset.zeros(1, device=DEVICE)
    with pytest.raises(dist.DistBackendError, match="recv from rank 1 timed out after 500 ms: rank 1 did not take part"):
        dist.irecv(got, 1).wait(timedelta(seconds=10))
    assert milliseconds(begin) < 2_500
    _goes_on(got)


def in_training(rank):
    """A rank that is gone ends the others' training with its name, also under hooks and where nothing waits but the loss."""
    net = nn.parallel.DistributedDataParallel(_net().to(DEVICE), bucket_cap_mb=0.0002)
    optimizer, (x, y) = cresset.optim.SGD(net.parameters(), lr=0.1), _mine(rank)
    with pytest.raises(RuntimeError, match="rank 1 is gone"):
        for step in range(5):
            if rank == 1 and step == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            _train(net, optimizer, x, y, steps=1)[0].item()
    _goes_on(x)


def aborted(rank):
    """abort() from another thread frees who is stuck (test_abort_pg), in collectives and in messages."""
    x, got = numbers(1.0), cresset.zeros(1, device=DEVICE)
    dist.all_reduce(x)
    backend = dist.group.WORLD._get_backend(cresset.device(DEVICE))
    nn.parallel.DistributedDataParallel(_net().to(DEVICE))
    if rank == 1:
        time.sleep(3)
        return
    dist.irecv(got, 1)
    dist.all_reduce(x)
    begin = time.perf_counter()
    threading.Timer(0.3, backend.abort).start()
    with pytest.raises(RuntimeError):
        x.cpu()  # stuck until then
    cresset.accelerator.synchronize(DEVICE)
    assert 250 <= milliseconds(begin) < 2_500
    with pytest.raises(dist.DistBackendError, match="cannot be used any more"):
        backend.allreduce([x])


def leaving_finishes(rank):
    """destroy_process_group() lets what is under way end; the group is of no use then, and another one can be made."""
    x, pg, store = numbers(1.0), dist.group.WORLD, dist.distributed_c10d._get_default_store()
    with late(200 * (1 + rank)):
        work = dist.all_reduce(x, async_op=True)
        dist.destroy_process_group()
    assert work.is_completed() and x.item() == 2
    with pytest.raises(dist.DistBackendError, match="the group cannot be used any more: it was shut down"):
        pg.allreduce([x])
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.all_reduce(x)
    dist.init_process_group(store=dist.PrefixStore("again", store), rank=rank, world_size=2)  # the default of each device
    assert dist.get_backend_config() == "cpu:gloo,simulated:scc" and dist.get_default_backend_for_device(DEVICE) == "scc"
    dist.all_reduce(x)
    assert x.item() == 4


@pytest.mark.parametrize("function", [killed, killed_unseen, in_training], ids=lambda f: f.__name__)
def test_a_rank_is_killed(function):
    ranks.run(function)


@pytest.mark.parametrize("function", [told_once, hangs, aborted], ids=lambda f: f.__name__)
def test_a_rank_hangs(function):
    ranks.run(function, timeout=20 if function is aborted else 0.5)


def test_leaving():
    ranks.run(leaving_finishes)


def test_detail_compares_calls_first(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    ranks.run(in_order, different_calls)


def different_calls(rank):
    x = numbers(1.0, 2.0)
    with pytest.raises(RuntimeError, match="Detected mismatch between collectives on ranks.*TensorShape"):
        dist.all_reduce(x[: 1 + rank].clone())
    dist.all_reduce(x)
    assert x.tolist() == [2, 4]
