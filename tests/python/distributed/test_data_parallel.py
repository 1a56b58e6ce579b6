"""DistributedDataParallel on two and three ranks beside one process that sees the whole batch; hooks, unused parameters, words of errors."""

import copy
import io
import os
import subprocess
import sys

import pytest

import cresset as torch
import cresset.distributed as dist
from cresset import nn
from cresset.distributed.algorithms.ddp_comm_hooks import default_hooks
from cresset.nn.parallel import DistributedDataParallel

from ranks import RankError


class Net(nn.Module):
    """Layers of several dtypes and sizes; `skip` leaves one out."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(4, 8), nn.Linear(8, 8, dtype=torch.float64), nn.Linear(8, 2)
        self.fixed = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, x, skip=False):
        x = self.first(x).relu()
        if not skip:
            x = self.second(x.double()).float().relu()
        return {"out": [self.third(x) * self.fixed]}


def batch(size, step, rank=None):
    """Six rows a rank and their targets: of one rank, or all."""
    generator = torch.Generator().manual_seed(step)
    x, y = torch.randn(6 * size, 4, generator=generator), torch.randn(6 * size, 2, generator=generator)
    part = slice(None) if rank is None else slice(6 * rank, 6 * rank + 6)
    return x[part], y[part]


def loss_of(model, x, y, skip=False):
    return (model(x, skip)["out"][0] - y).square().mean()


def made(seed, **options):
    torch.manual_seed(seed)
    return DistributedDataParallel(Net(), **options)


def steps_agree(rank, options, optimizer, hook=None, tolerance=1e-6, skip=lambda step: False):
    size = dist.get_world_size()
    torch.manual_seed(0)
    alone = Net()
    model = made(rank, **options)  # other values on each rank: those of rank 0 count
    assert model.module.first.weight.tolist() == alone.first.weight.tolist()
    if hook is not None:
        model.register_comm_hook(None, getattr(default_hooks, hook))
    optimizers = [getattr(torch.optim, optimizer)(m.parameters(), lr=0.05) for m in (model, alone)]
    for step in range(4):
        for o in optimizers:
            o.zero_grad()
        loss_of(model, *batch(size, step, rank), skip(step)).backward()
        loss_of(alone, *batch(size, step), skip(step)).backward()
        for (name, p), q in zip(model.named_parameters(), alone.parameters()):
            assert (p.grad is None) == (q.grad is None), (step, name)
            if p.grad is not None:
                torch.testing.assert_close(p.grad, q.grad, rtol=tolerance, atol=tolerance)
        for o in optimizers:
            o.step()
    for p, q in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(p, q, rtol=10 * tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("options", [{}, {"bucket_cap_mb": 1e-4}, {"gradient_as_bucket_view": True}, {"static_graph": True}], ids=str)
def test_steps_are_those_of_one_process(pool, options, optimizer):
    pool.run(steps_agree_plain, options, optimizer)


def steps_agree_plain(rank, options, optimizer):
    steps_agree(rank, options, optimizer)


def hooks_agree(rank):
    steps_agree(rank, {}, "SGD", "allreduce_hook")
    steps_agree(rank, {"gradient_as_bucket_view": True, "bucket_cap_mb": 1e-4}, "SGD", "allreduce_hook")
    steps_agree(rank, {}, "SGD", "fp16_compress_hook", 2e-3)
    steps_agree(rank, {}, "SGD", "bf16_compress_hook", 2e-2)


def test_default_hooks(pool):
    pool.run(hooks_agree)


def unused_agree(rank):
    for options in ({"find_unused_parameters": True}, {"find_unused_parameters": True, "bucket_cap_mb": 1e-4, "gradient_as_bucket_view": True}):
        steps_agree(rank, options, "SGD", skip=lambda step: step % 2 == 0)
    steps_agree(rank, {"static_graph": True}, "SGD", skip=lambda step: True)
    # Used by rank 0 alone: everybody gets its gradient, divided.
    size = dist.get_world_size()
    model = made(0, find_unused_parameters=True)
    loss_of(model, *batch(size, 0, rank), skip=rank != 0).backward()
    torch.manual_seed(0)
    alone = Net()
    loss_of(alone, *batch(size, 0, 0)).backward()
    torch.testing.assert_close(model.module.second.weight.grad, alone.second.weight.grad / size, rtol=1e-6, atol=1e-7)


def test_unused_parameters(pool):
    pool.run(unused_agree)


def no_sync_agrees(rank, view):
    size = dist.get_world_size()
    model = made(0, gradient_as_bucket_view=view)
    torch.manual_seed(0)
    alone = Net()
    for round_ in range(2):
        with model.no_sync():
            loss_of(model, *batch(size, 0, rank)).backward()
        if rank and round_ == 0:
            mine = copy.deepcopy(alone)
            loss_of(mine, *batch(size, 0, rank)).backward()
            torch.testing.assert_close(model.module.first.weight.grad, mine.first.weight.grad)
        loss_of(model, *batch(size, 1, rank)).backward()
        loss_of(alone, *batch(size, 0)).backward()
        loss_of(alone, *batch(size, 1)).backward()
        for p, q in zip(model.parameters(), alone.parameters()):
            assert q.grad is None or torch.allclose(p.grad, q.grad, rtol=1e-5, atol=1e-6)
    model.zero_grad(set_to_none=False)
    with torch.no_grad():
        if rank == 0:
            model(batch(size, 0, rank)[0])  # no other rank takes part
    loss_of(model, *batch(size, 1, rank)).backward()
    alone.zero_grad()
    loss_of(alone, *batch(size, 1)).backward()
    torch.testing.assert_close(model.module.first.weight.grad, alone.first.weight.grad, rtol=1e-5, atol=1e-6)
    y = loss_of(model, *batch(size, 1, rank))
    y.backward(retain_graph=True)
    y.backward()
    torch.testing.assert_close(model.module.first.weight.grad, alone.first.weight.grad * 3, rtol=1e-5, atol=1e-6)
    # The module alone, without a forward of DistributedDataParallel: its gradients stay this rank's.
    model.zero_grad()
    alone.zero_grad()
    loss_of(model.module, *batch(size, 1, rank)).backward()
    loss_of(alone, *batch(size, 1, rank)).backward()
    torch.testing.assert_close(model.module.first.weight.grad, alone.first.weight.grad)


def test_no_sync_and_no_grad(pool):
    for view in (False, True):
        pool.run(no_sync_agrees, view)


def buffers_of_rank_0(rank):
    norm = DistributedDataParallel(nn.BatchNorm1d(2, momentum=1.0))
    assert norm.will_sync_module_buffers()
    norm(torch.arange(6.0).reshape(3, 2) + 10 * rank)
    assert norm.module.running_mean.tolist() == [2.0 + 10 * rank, 3.0 + 10 * rank]
    norm.eval()
    out = norm(torch.zeros(3, 2))
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, (out.tolist(), norm.module.running_mean.tolist()))
    assert all(e == everyone[0] for e in everyone) and everyone[0][1] == [2.0, 3.0]
    own = DistributedDataParallel(nn.BatchNorm1d(2, momentum=1.0), forward_sync_buffers=False)
    for _ in range(2):
        own(torch.zeros(3, 2) + rank)
    assert own.module.running_mean.tolist() == [float(rank)] * 2 and not own.will_sync_module_buffers()


def test_buffers(pair):
    pair.run(buffers_of_rank_0)


def seen_by_a_hook(rank):
    seen = []

    def hook(state, bucket):
        state.append((bucket.index(), bucket.is_last(), [tuple(p.shape) for p in bucket.parameters()], [tuple(g.shape) for g in bucket.gradients()]))
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0] * 10)

    model = DistributedDataParallel(nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 3)), bucket_cap_mb=1e-6)
    model.register_comm_hook(seen, hook)
    model(torch.ones(1, 1)).sum().backward()
    assert model.module[1].bias.grad.tolist() == [20.0] * 3
    shapes = [(3,), (3, 2), (2,), (2, 1)]  # from the last parameter to the first
    assert seen == [(i, i == 3, [shape], [shape]) for i, shape in enumerate(shapes)]
    assert list(model.state_dict()) == ["module.0.weight", "module.0.bias", "module.1.weight", "module.1.bias"]
    stream = io.BytesIO()
    plain = DistributedDataParallel(nn.Linear(1, 1))
    torch.save(plain, stream)
    again = torch.load(io.BytesIO(stream.getvalue()), weights_only=False)
    again(torch.ones(1, 1) * (rank + 1)).sum().backward()
    assert again.module.weight.grad.item() == 1.5 and plain.module.weight.grad is None
    del plain
    layer = nn.Linear(1, 1)
    DistributedDataParallel(layer)  # gone at once, with its hooks
    if rank == 0:
        layer(torch.ones(1, 1)).sum().backward()
    # Nested passes of a checkpoint: a parameter's gradient comes in parts.
    checkpointed = DistributedDataParallel(nn.Linear(2, 2, bias=False), static_graph=True)
    f = checkpointed.module.forward
    checkpointed.module.forward = lambda x: torch.utils.checkpoint.checkpoint(f, torch.utils.checkpoint.checkpoint(f, x, use_reentrant=True), use_reentrant=True)
    with torch.no_grad():
        checkpointed.module.weight.copy_(torch.eye(2))
    for _ in range(3):
        checkpointed.zero_grad()
        checkpointed(torch.ones(1, 2, requires_grad=True) * (rank + 1)).sum().backward()
        assert checkpointed.module.weight.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    ignored = nn.Linear(1, 1)
    ignored.weight.data.fill_(rank)
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(ignored, ["weight"])
    DistributedDataParallel(ignored)(torch.ones(1, 1) * rank).sum().backward()
    assert ignored.weight.item() == rank and ignored.weight.grad.item() == rank


def test_hooks_pickles_checkpoints_and_parameters_left_out(pair):
    pair.run(seen_by_a_hook)


ALONE = """
import cresset, cresset.distributed as dist
from cresset import nn
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
for options in ({}, {"find_unused_parameters": True, "gradient_as_bucket_view": True}, {"static_graph": True}):
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(1, 2), nn.SyncBatchNorm(2)), **options)
    for _ in range(2):
        model(cresset.randn(4, 1)).square().mean().backward()
    assert model.module[0].weight.grad is not None
"""


def test_one_rank():
    subprocess.run([sys.executable, "-c", ALONE], check=True, timeout=60)


def raised(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def words(rank):
    layer = nn.Linear(2, 2)
    parallel = DistributedDataParallel(layer)
    parallel.register_comm_hook(None, lambda state, bucket: 2)

    def annotated(state, bucket: int):
        return None

    def returns(state, bucket) -> int:
        return 0

    return [
        raised(lambda: DistributedDataParallel(nn.ReLU())),
        raised(lambda: DistributedDataParallel(nn.Linear(2, 2).requires_grad_(False))),
        raised(lambda: DistributedDataParallel(nn.LazyLinear(2))),
        raised(lambda: DistributedDataParallel(layer, device_ids=[0])),
        raised(lambda: DistributedDataParallel(layer, mixed_precision=1)),
        raised(lambda: parallel.register_comm_hook(None, 2)),
        raised(lambda: DistributedDataParallel(layer).register_comm_hook(None, annotated)),
        raised(lambda: DistributedDataParallel(layer).register_comm_hook(None, returns)),
        raised(lambda: parallel.register_comm_hook(None, lambda state, bucket: 2)),
        raised(lambda: parallel(torch.ones(1, 2)).sum().backward()),
        raised(lambda: DistributedDataParallel(nn.Linear(2, 2 + rank))),
        raised(lambda: DistributedDataParallel(nn.Linear(2, 2, bias=rank == 0))),
    ]


def test_words(pair):
    none = "RuntimeError: DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
    for rank, lines in enumerate(pair.run(words)):
        other = 1 - rank
        assert lines == [
            none,
            none,
            "RuntimeError: Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy forward pass to correctly initialize the modules",
            "ValueError: DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, "
            "but got device_ids [0], output_device None, and module parameters {device(type='cpu')}.",
            "TypeError: DistributedDataParallel: mixed_precision: a _MixedPrecision was required; a int was given.",
            "TypeError: Communication hook must be callable.",
            "ValueError: Communication hook: bucket annotation should be dist.GradBucket.",
            "ValueError: Communication hook: return annotation should be torch.futures.Future[torch.Tensor].",
            "RuntimeError: register_comm_hook or register_builtin_comm_hook can only be called once.",
            "RuntimeError: DDP communication hook's callback must return a torch.futures.Future object, but got builtins.int",
            f"RuntimeError: [{rank}]: params[0] in this process with sizes [{2 + rank}, 2] appears not to match sizes of the same param in process {other}.",
            f"RuntimeError: DDP expects same model across all ranks, but Rank {rank} has {2 - rank} params, while rank {other} has inconsistent {2 - other} params.",
        ]


def unfinished(rank, level):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = level
    model = made(0)
    loss_of(model, *batch(2, 0, rank), skip=True).backward()
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = level
    text = raised(lambda: model(batch(2, 0, rank)[0]))
    os.environ.pop("TORCH_DISTRIBUTED_DEBUG")
    return text


def test_a_reduction_that_did_not_finish(pair):
    for rank, text in enumerate(pair.run(unfinished, "OFF")):
        assert text.startswith(
            "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module "
            "has parameters that were not used in producing loss. You can enable unused parameter detection by passing the keyword argument "
            "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs "
            "participate in calculating loss. \nIf you already have done the above, then the distributed data parallel module wasn't able to locate"
        )
        assert f"\nParameter indices which did not receive grad for rank {rank}: 2 3\n" in text
    for rank, text in enumerate(pair.run(unfinished, "INFO")):
        assert text.endswith(f"Parameters which did not receive grad for rank {rank}: second.weight, second.bias\nParameter indices which did not receive grad for rank {rank}: 2 3")


def fails_in_the_middle(rank):
    model = made(0, bucket_cap_mb=1e-4)
    model.module.first.weight.register_hook(lambda g: 1 / 0)
    loss_of(model, *batch(2, 0, rank)).backward()


def test_an_error_in_backward_is_that_of_the_rank(pair):
    with pytest.raises(RankError) as failure:
        pair.run(fails_in_the_middle)
    assert failure.value.errors == dict.fromkeys(range(2), "ZeroDivisionError: division by zero")


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.table, self.layer = nn.EmbeddingBag(10, 4, sparse=True), nn.Embedding(10, 4, sparse=True), nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(self.bag(x) + self.table(x).sum(1)).softmax(1)


def gathers(state, bucket):
    """A hook for dense and sparse gradients."""
    future = torch.futures.Future()
    if bucket.buffer().layout == torch.strided:
        return default_hooks.allreduce_hook(None, bucket)
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, bucket.buffer().coalesce())
    future.set_result(sum(everyone[1:], everyone[0]) / len(everyone))
    return future


def sparse_gradients(rank, options, hook):
    size = dist.get_world_size()
    torch.manual_seed(0)
    alone = Words()
    model = DistributedDataParallel(copy.deepcopy(alone), **options)
    if hook:
        model.register_comm_hook(None, gathers if hook == "own" else getattr(default_hooks, hook))
    x = torch.randint(0, 10, (2 * size, 3), generator=torch.Generator().manual_seed(1))
    for _ in range(2):
        alone.zero_grad()
        model.zero_grad()
        alone(x)[:, 0].mean().backward()
        model(x[2 * rank : 2 * rank + 2])[:, 0].mean().backward()
        for p, q in zip(model.module.parameters(), alone.parameters()):
            assert p.grad.layout == q.grad.layout
            torch.testing.assert_close(p.grad.to_dense(), q.grad.to_dense(), rtol=1e-2 if hook == "fp16_compress_hook" else 1e-5, atol=1e-4)
    return True


@pytest.mark.parametrize("options, hook", [
    ({}, None), ({"gradient_as_bucket_view": True}, None), ({"find_unused_parameters": True}, None), ({}, "own"), ({}, "allreduce_hook"), ({}, "fp16_compress_hook"),
])  # fmt: skip
def test_sparse_gradients(pool, options, hook):
    assert all(pool.run(sparse_gradients, options, hook))
