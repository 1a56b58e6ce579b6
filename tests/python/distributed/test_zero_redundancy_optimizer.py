"""ZeroRedundancyOptimizer beside the optimizer itself on one process; shares, states, groups, words of errors; other optimizers of distributed.optim."""

import copy

import pytest

import cresset as torch
import cresset.distributed as dist
from cresset import nn
from cresset.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step, hook_with_zero_step_interleaved
from cresset.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from cresset.distributed.algorithms.join import Join
from cresset.distributed.algorithms.model_averaging import averagers, hierarchical_model_averager, utils
from cresset.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer, as_functional_optim
from cresset.distributed.optim.utils import functional_optim_map, register_functional_optim
from cresset.nn.parallel import DistributedDataParallel

from ranks import RankError


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Linear(3, 2))


def groups_of(model):
    parameters = list(model.parameters())
    return [{"params": parameters[:3], "weight_decay": 0.1}, {"params": parameters[3:], "lr": 0.02}]


def backward(model, n):
    model.zero_grad()
    model(torch.full((3, 4), 0.1 * n + 1)).square().sum().backward()


def beside_one(rank, kind, options, view):
    model, alone = net(), net()
    sharded = ZeroRedundancyOptimizer(groups_of(model), getattr(torch.optim, kind), parameters_as_bucket_view=view, **options)
    whole = getattr(torch.optim, kind)(groups_of(alone), **options)
    schedules = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (sharded, whole)]
    for n in range(4):
        for m, o, s in zip((model, alone), (sharded, whole), schedules):
            backward(m, n)
            o.step()
            s.step()
        for p, q in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(p, q)
    held = len(sharded.optim.state)
    for target in range(dist.get_world_size()):
        sharded.consolidate_state_dict(target)
        if rank == target:
            state, expected = sharded.state_dict(), whole.state_dict()
            assert state["param_groups"] == expected["param_groups"], (state["param_groups"], expected["param_groups"])
            assert list(state["state"]) == list(expected["state"])
            for index, values in expected["state"].items():
                for name, value in values.items():
                    torch.testing.assert_close(state["state"][index][name], value)
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, held)
    return sum(everyone), max(everyone) < 6


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("kind, options", [("Adam", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9})])
def test_steps_and_states_are_those_of_one_process(pool, kind, options, view):
    assert pool.run(beside_one, kind, options, view) == [(6, True)] * len(pool.pipes)


def continues(rank):
    model = net()
    first = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    backward(model, 1)
    first.step()
    first.consolidate_state_dict(0)
    state = [first.state_dict() if rank == 0 else None]
    dist.broadcast_object_list(state, src=0)
    other = copy.deepcopy(model)
    second = ZeroRedundancyOptimizer(other.parameters(), torch.optim.Adam, lr=5.0)
    second.load_state_dict(state[0])
    for m, o in ((model, first), (other, second)):
        backward(m, 2)
        o.step()
    assert second.param_groups[0]["lr"] == 0.1 and len(second.optim.state) == len(first.optim.state)
    return all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters()))


def test_a_state_is_loaded_by_all(pool):
    assert all(pool.run(continues))


def shares(rank):
    optimizer = ZeroRedundancyOptimizer([nn.Parameter(torch.zeros(n)) for n in (9, 7, 5, 3) * 2][:-1], torch.optim.SGD, lr=0.1)
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(3))], "lr": 0.5})
    assert optimizer.optim.param_groups[1]["lr"] == 0.5
    return sum(p.numel() for g in optimizer.optim.param_groups for p in g["params"])


def test_shares_are_even(pair):
    assert pair.run(shares) == [24, 24]


def refused(rank, which):
    p = nn.Parameter(torch.zeros(2))
    calls = {
        "empty": lambda: ZeroRedundancyOptimizer([], torch.optim.SGD, lr=0.1), "tensor": lambda: ZeroRedundancyOptimizer(p, torch.optim.SGD, lr=0.1),
        "number": lambda: ZeroRedundancyOptimizer([p, 3], torch.optim.SGD, lr=0.1), "float": lambda: ZeroRedundancyOptimizer(1.2, torch.optim.SGD, lr=0.1),
        "dtypes": lambda: ZeroRedundancyOptimizer([p, p.double()], torch.optim.SGD, lr=0.1),
        "overlap": lambda: hook_with_zero_step(allreduce_hook, None, ZeroRedundancyOptimizer([p], torch.optim.SGD, lr=0.1)),
        "state": lambda: ZeroRedundancyOptimizer([p], torch.optim.SGD, lr=0.1).state_dict(),
    }  # fmt: skip
    calls[which]()


@pytest.mark.parametrize("which, words", [
    ("empty", "ValueError: ZeroRedundancyOptimizer got an empty parameter list"),
    ("tensor", "TypeError: `params` argument should be an iterable of Tensors, but got "),
    ("float", "TypeError: `params` argument should be an iterable of Tensors or dicts, but got float"),
    ("number", "TypeError: `params` argument should be an iterable of Tensors or dicts, but got an iterable containing <class 'int'>"),
    ("dtypes", "ValueError: ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got both"),
    ("overlap", "ValueError: ZeroRedundancyOptimizer must be constructed with `overlap_with_ddp=True` to use this hook properly"),
    ("state", "RuntimeError: Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to=0)`"),
])  # fmt: skip
def test_errors(pair, which, words):
    with pytest.raises(RankError) as caught:
        pair.run(refused, which)
    assert caught.value.errors[0].startswith(words)


def joins(rank):
    """Rank r has r + 1 steps; ranks without input repeat their gradients."""
    model = net()
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    backward(model, 1)
    with Join([optimizer]):
        for _ in range(rank + 1):
            optimizer.step()
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, [p.tolist() for p in model.parameters()])
    return all(values == everyone[0] for values in everyone)


def test_join(pool):
    assert all(pool.run(joins))


def with_parallel(rank):
    model = DistributedDataParallel(net())
    alone = net()
    sharded, whole = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1), torch.optim.Adam(alone.parameters(), lr=0.1)
    x = torch.arange(4.0 * 2 * dist.get_world_size()).reshape(-1, 4)
    for _ in range(3):
        sharded.zero_grad()
        whole.zero_grad()
        model(x[2 * rank : 2 * rank + 2]).square().mean().backward()
        alone(x).square().mean().backward()
        sharded.step()
        whole.step()
    for p, q in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


def test_with_distributed_data_parallel(pool):
    pool.run(with_parallel)


def within_backward(rank, make_hook, shard_buckets, view, static):
    """Steps made by a hook, beside the optimizer itself on one process that has everybody's rows."""
    alone = net()
    model = DistributedDataParallel(net(), bucket_cap_mb=3e-5, gradient_as_bucket_view=view, static_graph=static)
    assert len(model.reducer.buckets) > 2
    before = [p.clone() for p in model.parameters()]
    sharded = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, overlap_with_ddp=True, lr=0.1)
    model.register_comm_hook(None, make_hook(allreduce_hook, model, sharded, shard_buckets=shard_buckets))
    whole = torch.optim.Adam(alone.parameters(), lr=0.1)
    schedules = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (sharded, whole)]
    x = torch.arange(4.0 * 2 * dist.get_world_size()).reshape(-1, 4)
    for n in range(6 if static else 5):
        sharded.zero_grad()
        model(x[2 * rank : 2 * rank + 2]).square().mean().backward()
        if n < (3 if static else 2):  # PyTorch's buckets are not final yet
            assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before))
            continue
        whole.zero_grad()
        alone(x).square().mean().backward()
        for p, q in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(p.grad, q.grad)
        whole.step()
        for s in schedules:
            s.step()
        for p, q in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)
    owners = [{sharded._param_to_rank[p] for p in bucket.parameters} for bucket in model.reducer.buckets]
    assert shard_buckets or all(len(ranks) == 1 for ranks in owners)
    sharded.consolidate_state_dict(0)
    if rank == 0:
        found, expected = sharded.state_dict()["state"], whole.state_dict()["state"]
        torch.testing.assert_close([found[i]["exp_avg"] for i in range(6)], [expected[i]["exp_avg"] for i in range(6)], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("shard_buckets", [False, True])
@pytest.mark.parametrize("make_hook", [hook_with_zero_step, hook_with_zero_step_interleaved])
def test_steps_within_backward(pool, make_hook, shard_buckets, view, static):
    pool.run(within_backward, make_hook, shard_buckets, view, static)


def averaged(rank):
    p = nn.Parameter(torch.full((2,), float(rank)))
    p.grad = torch.zeros(2)
    other = nn.Parameter(torch.full((1,), float(rank)))  # without a gradient
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD([p, other], lr=0.1), averagers.PeriodicModelAverager(period=2, warmup_steps=3))
    seen = []
    for _ in range(4):
        optimizer.step()
        seen.append(p[0].item())
    state = optimizer.state_dict()
    again = PostLocalSGDOptimizer(torch.optim.SGD([p, other], lr=0.5), averagers.PeriodicModelAverager(period=2))
    again.load_state_dict(state)
    utils.average_parameters(iter([other]), None)
    return seen, other.item(), again.averager.step, again.param_groups[0]["lr"]


def test_local_steps_and_averages(pool):
    size = len(pool.pipes)
    mean = (size - 1) / 2
    for rank, found in enumerate(pool.run(averaged)):
        assert found == ([rank, rank, rank, mean], mean, 4, 0.1)


def hierarchical(rank):
    averager = hierarchical_model_averager.HierarchicalModelAverager({2: 1, 4: 2})
    p = nn.Parameter(torch.full((2,), float(rank)))
    p.grad = torch.zeros(2)
    seen = []
    for _ in range(5):
        averager.average_parameters([p])
        seen.append(p[0].item())
        with torch.no_grad():
            p.add_(rank)
    return seen


def test_hierarchical_averages(pair):
    assert pair.run(hierarchical) == [[0.5, 0.5, 0.5, 0.5, 2.5], [0.5, 1.5, 2.5, 3.5, 2.5]]


def test_functional_optimizers():
    p = nn.Parameter(torch.ones(2))
    step = as_functional_optim(torch.optim.SGD, [p], lr=0.5)
    step.step([torch.ones(2)])
    assert p.tolist() == [0.5, 0.5] and p.grad is None
    with pytest.raises(ValueError, match="does not equal to the size of the parameters!Params length: 1. Gradients length: 0"):
        step.step([])
    with pytest.raises(ValueError, match="does not have a functional counterpart!"):
        as_functional_optim(dict)


@pytest.mark.parametrize(("kind", "options"), [("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"lr": 0.1}), ("AdamW", {"lr": 0.1, "amsgrad": True}), ("RMSprop", {})])
def test_functional_optimizers_step_by_parameter(kind, options):
    cls = getattr(torch.optim, kind)
    model, alone = net(), net()
    whole, single = cls(alone.parameters(), **options), functional_optim_map[cls]([], **options, _allow_empty_param_list=True)
    for n in range(3):
        backward(model, n), backward(alone, n)
        whole.step()
        for p in model.parameters():
            grad = p.grad
            single.step_param(p, grad)
            assert p.grad is grad
        for a, b in zip(model.parameters(), alone.parameters()):
            assert torch.equal(a, b)
    with pytest.raises(ValueError, match="empty parameter list"):
        functional_optim_map[cls]([])
    assert single.param_group["params"] == []


def test_functional_optimizers_of_ones_own():
    register_functional_optim("own", dict)
    register_functional_optim("own", list)
    try:
        assert as_functional_optim("own", a=1) == {"a": 1}
    finally:
        del functional_optim_map["own"]


@pytest.mark.parametrize("make", [averagers.PeriodicModelAverager, hierarchical_model_averager.HierarchicalModelAverager])
def test_averagers_need_a_group(make):
    """PyTorch 2.13 asks for the group before it looks at the numbers."""
    with pytest.raises(TypeError) as raised:
        make(0)
    assert str(raised.value) == "Invariant encountered: value was None when it should not be"
    assert "init_process_group" in raised.value.__notes__[0]
