"""Communication hooks beside exact averages; PowerSGD on gradients of low rank and with error feedback; mixed precision."""

import pickle

import pytest

import cresset as torch
import cresset.distributed as dist
from cresset import nn
from cresset.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, powerSGD_hook, register_ddp_comm_hook
from cresset.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from cresset.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, _orthogonalize
from cresset.nn.parallel import DistributedDataParallel
from cresset.nn.parallel.distributed import _MixedPrecision


class Given(nn.Module):
    """Its gradients are the matrices it is called with."""

    def __init__(self, *shapes):
        super().__init__()
        self.parameters_ = nn.ParameterList([nn.Parameter(torch.zeros(s)) for s in shapes])

    def forward(self, *gradients):
        return sum((p * g).sum() for p, g in zip(self.parameters_, gradients))


SHAPES = [(30, 20), (7,), (4, 3, 5), ()]


def random(rank, n, shapes):
    generator = torch.Generator().manual_seed(100 * rank + n)
    return [torch.randn(s, generator=generator) for s in shapes]


def mean_of(make):
    everyone = [make(r) for r in range(dist.get_world_size())]
    return [torch.stack(some).mean(0) for some in zip(*everyone)]


def one_pass(rank, model, n, shapes=SHAPES):
    model.zero_grad()
    model(*random(rank, n, shapes)).backward()
    return [p.grad.clone() for p in model.parameters()]


def by_type(rank, name, view):
    model = DistributedDataParallel(Given(*SHAPES), gradient_as_bucket_view=view)
    register_ddp_comm_hook(DDPCommHookType[name], model, dist.group.WORLD)
    found = one_pass(rank, model, 0)
    exact = mean_of(lambda r: random(r, 0, SHAPES))
    return max((a - b).abs().max().item() for a, b in zip(found, exact))


TOLERANCE = {
    "ALLREDUCE": 1e-6, "FP16_COMPRESS": 3e-3, "BF16_COMPRESS": 3e-2, "QUANTIZE_PER_TENSOR": 2e-2, "QUANTIZE_PER_CHANNEL": 2e-2,
    "POWER_SGD": 1e-6, "BATCHED_POWER_SGD": 1e-6, "POWER_SGD_RANK2": 1e-6, "BATCHED_POWER_SGD_RANK2": 1e-6,
}  # fmt: skip


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("name", TOLERANCE)
def test_hooks_by_name(pool, name, view):
    errors = pool.run(by_type, name, view)
    assert max(errors) < TOLERANCE[name] and ("QUANT" not in name or min(errors) > 1e-5)


def noop(rank):
    model = DistributedDataParallel(Given(*SHAPES))
    register_ddp_comm_hook(DDPCommHookType.NOOP, model)
    return all(torch.equal(a, b) for a, b in zip(one_pass(rank, model, 0), random(rank, 0, SHAPES)))


def test_noop(pool):
    assert all(pool.run(noop))


def low_rank(rank, n):
    """A gradient of 40 x 30 of rank 2, whose average over ranks has rank 2, too; and a vector."""
    right = torch.randn(2, 30, generator=torch.Generator().manual_seed(5))
    generator = torch.Generator().manual_seed(100 * rank + n)
    return [torch.randn(40, 2, generator=generator) @ right, torch.randn(9, generator=generator)]


def power(rank, options):
    state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2, **options)
    model = DistributedDataParallel(Given((40, 30), (9,)))
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    errors = []
    for n in range(4):
        model.zero_grad()
        model(*low_rank(rank, n)).backward()
        exact = mean_of(lambda r, n=n: low_rank(r, n))
        errors.append(max((p.grad - e).abs().max().item() for p, e in zip(model.parameters(), exact)))
    return errors, state.compression_stats()


@pytest.mark.parametrize("options", [{}, {"use_error_feedback": False}, {"warm_start": False}, {"orthogonalization_epsilon": 1e-8},
                                     {"batch_tensors_with_same_shape": True}])  # fmt: skip
def test_power_sgd_is_exact_for_gradients_of_its_rank(pool, options):
    for errors, (rate, before, after) in pool.run(power, options):
        assert max(errors) < 1e-4 and before == 2 * (1200 + 9) and after == 2 * (140 + 9) and rate == before / after


def feedback(rank, batched):
    """The sum of what was sent follows the sum of gradients: the error stays, it does not grow."""
    state = PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model = DistributedDataParallel(Given((12, 10)))
    model.register_comm_hook(state, powerSGD_hook.batched_powerSGD_hook if batched else powerSGD_hook.powerSGD_hook)
    sent, exact, errors = torch.zeros(12, 10), torch.zeros(12, 10), []
    fixed = torch.randn(12, 10, generator=torch.Generator().manual_seed(1))
    for _ in range(60):
        model.zero_grad()
        model(fixed * (rank + 1)).backward()
        sent += next(model.parameters()).grad
        exact += fixed * (dist.get_world_size() + 1) / 2
        errors.append(((sent - exact).norm() / exact.norm()).item())
    return errors[10], errors[-1]


@pytest.mark.parametrize("batched", [False, True])
def test_error_feedback(pool, batched):
    for early, late in pool.run(feedback, batched):
        assert 0 < late < early / 2


def test_power_sgd_states():
    with pytest.raises(ValueError, match="Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled"):
        PowerSGDState(None, start_powerSGD_iter=1)
    state = pickle.loads(pickle.dumps(PowerSGDState(None, random_seed=3)))
    assert torch.equal(state._random((3,), torch.float32, "cpu"), PowerSGDState(None, random_seed=3)._random((3,), torch.float32, "cpu"))
    for epsilon in (0, 1e-8):
        matrix = torch.randn(2, 6, 3)
        _orthogonalize(matrix, epsilon)
        torch.testing.assert_close(matrix.transpose(1, 2) @ matrix, torch.eye(3).expand(2, 3, 3), atol=1e-5, rtol=0)


def local(rank, reduce):
    alone = dist.new_subgroups(group_size=1)[0]
    model = DistributedDataParallel(Given((3,)))
    model.register_comm_hook(PostLocalSGDState(None, alone, 2, post_local_gradient_allreduce=reduce), post_localSGD_hook)
    return [torch.equal(one_pass(rank, model, n, [(3,)])[0], random(rank, n, [(3,)])[0]) for n in range(4)]


@pytest.mark.parametrize("reduce", [True, False])
def test_post_local_sgd(pool, reduce):
    assert pool.run(local, reduce) == [[False, False, True, True]] * len(pool.pipes)


class Seen(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        self.seen = (self.layer.weight.dtype, x.dtype, self.norm.running_mean.dtype)
        return self.norm(self.layer(x))


def mixed(rank, dtypes):
    torch.manual_seed(0)
    model = DistributedDataParallel(Seen(), mixed_precision=_MixedPrecision(*[d and getattr(torch, d) for d in dtypes]))
    torch.manual_seed(0)
    full = DistributedDataParallel(Seen())
    x = random(rank, 0, [(8, 4)])[0]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out = model(x)
    (out.float() ** 3).mean().backward()
    (full(x) ** 3).mean().backward()
    optimizer.step()
    for p, q in zip(model.parameters(), full.parameters()):
        torch.testing.assert_close(p.grad, q.grad, rtol=0.1, atol=0.05)
        assert p.dtype == p.grad.dtype == torch.float32
    return [str(d).rpartition(".")[2] for d in (*model.module.seen, out.dtype)], [p.grad.tolist() for p in model.parameters()]


@pytest.mark.parametrize("dtypes, seen", [
    (("bfloat16", "float32", "bfloat16"), ["bfloat16", "bfloat16", "bfloat16", "bfloat16"]),
    (("bfloat16", None, "bfloat16"), ["bfloat16", "bfloat16", "bfloat16", "bfloat16"]),
    ((None, "float16", None), ["float32", "float32", "float32", "float32"]),
])  # fmt: skip
def test_mixed_precision(pool, dtypes, seen):
    found = pool.run(mixed, dtypes)
    assert [f[0] for f in found] == [seen] * len(found)
    assert all(f[1] == found[0][1] for f in found)
