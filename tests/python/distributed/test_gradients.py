"""Collectives that gradients flow through, beside values that PyTorch 2.13 gave on two ranks; SyncBatchNorm beside BatchNorm of the joined batch."""


import pytest

import cresset as torch
import cresset.distributed as dist
from cresset import nn
from cresset.distributed.nn import functional as f

from ranks import RankError


CALLS = {
    "all_reduce": lambda x: f.all_reduce(x),
    "all_reduce max": lambda x: f.all_reduce(x, dist.ReduceOp.MAX),
    "broadcast": lambda x: f.broadcast(x, 1),
    "reduce": lambda x: f.reduce(x, 1),
    "gather": lambda x: f.gather(x, 1),
    "scatter": lambda x: f.scatter([x, x * 2], 1),
    "all_gather": lambda x: f.all_gather(x),
    "all_to_all": lambda x: f.all_to_all([torch.empty(2), torch.empty(2)], [x, x * 2]),
    "all_to_all_single": lambda x: f.all_to_all_single(torch.empty(2), x),
    "reduce_scatter": lambda x: f.reduce_scatter(torch.empty(2), [x, x * 3]),
}
# PyTorch 2.13, gloo: results and the gradient of x by rank. What rank 0 gets of a reduce to rank 1 is no result.
RECORDED = {
    "all_reduce": ([[[3, 3]], [[3, 3]]], [[18, 18], [18, 18]]),
    "all_reduce max": ([[[2, 2]], [[2, 2]]], [[8, 8], [8, 8]]),
    "broadcast": ([[[2, 2]], [[2, 2]]], [[0, 0], [12, 12]]),
    "reduce": ([None, [[3, 3]]], [[12, 12], [12, 12]]),
    "gather": ([[[0, 0], [0, 0]], [[1, 1], [2, 2]]], [[4, 4], [16, 16]]),
    "scatter": ([[[2, 2]], [[4, 4]]], [[0, 0], [36, 36]]),
    "all_gather": ([[[1, 1], [2, 2]]] * 2, [[6, 6], [24, 24]]),
    "all_to_all": ([[[1, 1], [2, 2]], [[2, 2], [4, 4]]], [[18, 18], [72, 72]]),
    "all_to_all_single": ([[[1, 2]], [[1, 2]]], [[2, 4], [4, 8]]),
    "reduce_scatter": ([[[3, 3]], [[9, 9]]], [[114, 114], [114, 114]]),
}


def outcome(rank, name):
    x = torch.full((2,), float(rank + 1), requires_grad=True)
    results = CALLS[name](x)
    results = results if isinstance(results, tuple) else [results]
    sum((i + 1) * (rank + 1) * y.pow(2).sum() for i, y in enumerate(results)).backward()
    return [y.tolist() for y in results], x.grad.tolist()


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(pair, name):
    results, gradients = RECORDED[name]
    for rank, (values, gradient) in enumerate(pair.run(outcome, name)):
        assert gradient == gradients[rank] and results[rank] in (None, values)


def twice(rank):
    x = torch.tensor([float(rank + 1)], requires_grad=True, dtype=torch.float64)
    y = sum(part**3 for part in f.all_gather(x))
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    # every rank has the sum over three of x**3: the gradient is three of them, and again for its own gradient
    assert first.item() == 3 * 3 * (rank + 1) ** 2 and second.item() == 3 * 6 * (rank + 1)
    rows = torch.ones(sum(range(1, 4)), 2, requires_grad=True)
    out = f.all_to_all_single(torch.empty(3 * (rank + 1), 2), rows, [rank + 1] * 3, [1, 2, 3])
    (out * (rank + 1)).sum().backward()
    assert rows.grad[:, 0].tolist() == [1, 2, 2, 3, 3, 3]
    some = dist.new_group([0, 2])
    if rank != 1:
        z = torch.ones(1, requires_grad=True)
        f.broadcast(z, 2, some).backward()
        assert z.grad.item() == (2 if rank == 2 else 0)


def test_second_derivatives_split_sizes_and_groups(three):
    three.run(twice)


SIZES = [3, 1, 4]


def norm_agrees(rank, dtype, shape, options, layout, sizes=SIZES):
    dtype, tolerance = getattr(torch, dtype), {"float64": 1e-10, "float32": 1e-5, "bfloat16": 6e-2}[dtype]
    torch.manual_seed(0)
    alone = nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d
    alone = alone(shape[0], dtype=torch.float64, **options)
    if alone.affine:
        with torch.no_grad():
            alone.weight.uniform_(0.5, 2)
            alone.bias.normal_()
    synced = nn.SyncBatchNorm(shape[0], dtype=torch.float64, **options)
    synced.load_state_dict(alone.state_dict())
    synced = synced.to(torch.float32 if dtype == torch.bfloat16 else dtype)
    begin = sum(sizes[:rank])
    mine = slice(begin, begin + sizes[rank])
    for _ in range(2):
        whole = (torch.randn(sum(sizes), *shape, dtype=torch.float64) * 3 + 100).to(dtype)
        weights = torch.randn(whole.shape, dtype=torch.float64)
        x, y = whole.double().clone().requires_grad_(), whole[mine].clone(memory_format=layout).requires_grad_()
        one, two = alone(x), synced(y)
        (one * weights).sum().backward()
        (two * weights[mine].to(two.dtype)).sum().backward()
        torch.testing.assert_close(two.double(), one[mine], rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(y.grad.double(), x.grad[mine], rtol=tolerance, atol=tolerance)
    for name, p in synced.named_parameters():
        dist.all_reduce(p.grad)
        torch.testing.assert_close(p.grad.double(), getattr(alone, name).grad, rtol=10 * tolerance, atol=10 * tolerance)
    for name, b in synced.named_buffers():
        torch.testing.assert_close(b.double(), getattr(alone, name).double(), rtol=tolerance, atol=tolerance)
    synced.eval(), alone.eval()
    if synced.track_running_stats and rank == 0:  # nobody else takes part
        torch.testing.assert_close(synced(whole[mine]).double(), alone(whole[mine].double()), rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize(
    ("dtype", "shape", "options", "layout"),
    [
        ("float64", (2, 3, 3), {}, "preserve_format"),
        ("float32", (2, 3, 3), {"momentum": None}, "channels_last"),
        ("float32", (3,), {"affine": False}, "preserve_format"),
        ("float64", (3, 5), {"track_running_stats": False}, "preserve_format"),
        ("bfloat16", (2, 4, 4), {}, "preserve_format"),
    ],
    ids=str,
)
def test_norms_of_the_joined_batch(three, dtype, shape, options, layout):
    three.run(norm_in_layout, dtype, shape, options, layout)


def norm_in_layout(rank, dtype, shape, options, layout):
    norm_agrees(rank, dtype, shape, options, getattr(torch, layout))


def norm_without_rows(rank, sizes, shape, options):
    norm_agrees(rank, "float64", shape, options, torch.preserve_format, sizes)


@pytest.mark.parametrize("sizes", [[0, 3, 5], [4, 0, 4], [2, 6, 0], [0, 0, 8]], ids=str)
@pytest.mark.parametrize(
    ("shape", "options"), [((2, 3, 3), {}), ((3,), {"affine": False}), ((3, 5), {"track_running_stats": False}), ((3, 2), {"momentum": None})], ids=str
)
def test_norms_where_ranks_have_no_rows(three, sizes, shape, options):
    three.run(norm_without_rows, sizes, shape, options)


def training_agrees(rank):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 1))
    import copy

    model = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(net)))
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (net, model)]
    for _ in range(3):
        x = torch.randn(6, 1, 4, 4)
        for o in optimizers:
            o.zero_grad()
        net(x).square().mean().backward()
        model(x[2 * rank : 2 * rank + 2]).square().mean().backward()
        for o in optimizers:
            o.step()
    for (name, p), q in zip(net.state_dict().items(), model.module.state_dict().values()):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6, msg=name)


def test_training_with_synced_norms(three):
    three.run(training_agrees)


def one_value(rank):
    nn.SyncBatchNorm(2)(torch.ones(int(rank == 0), 2))


def test_words(three):
    with pytest.raises(RankError) as failure:
        three.run(one_value)
    assert failure.value.errors == {r: f"ValueError: Expected more than 1 value per channel when training, got input size [{int(r == 0)}, 2]" for r in range(3)}
