"""fully_shard beside one process that sees the whole batch: parameters after a few steps, in float64, are the same."""

import copy
import re

import pytest

import cresset
import cresset.nn.functional as F
from cresset import nn
from cresset.distributed.device_mesh import init_device_mesh
from cresset.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard
from cresset.distributed.tensor import DTensor, Shard
from cresset.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Classifier(nn.Module):
    """A small transformer whose table of words is also its last layer."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True) for _ in range(2)])
        self.out = nn.Linear(8, 11, bias=False)
        self.out.weight = self.table.weight

    def forward(self, words):
        hidden = self.table(words)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.out(hidden)


def mlp():
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3), nn.Linear(3, 1))  # no size divides by two ranks


def _meshes(ranks, second):
    return init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("replicate", "shard")) if second else init_device_mesh("cpu", (ranks,))


def _difference(sharded, plain):
    for (name, a), (_, b) in zip(sharded.named_parameters(), plain.named_parameters(), strict=True):
        assert isinstance(a, DTensor), name
    return max((a.full_tensor() - b).abs().max().item() for a, b in zip(sharded.parameters(), plain.parameters()))


def transformer(rank, ranks, second, optimizer, options):
    cresset.manual_seed(0)
    model = Classifier().double()
    plain, mesh = copy.deepcopy(model), _meshes(ranks, second)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    model.set_modules_to_forward_prefetch([model.layers[0]])
    model.layers[1].set_modules_to_backward_prefetch([model.layers[0]])
    ours, theirs = (getattr(cresset.optim, optimizer)(m.parameters(), lr=0.01) for m in (model, plain))
    words = cresset.randint(0, 11, (3, 2 * ranks, 5))
    for batch in words:
        mine = batch[rank * 2 : rank * 2 + 2]
        for micro in range(2):  # accumulation
            model.set_requires_gradient_sync(micro == 1)
            F.cross_entropy(model(mine).reshape(-1, 11), mine.reshape(-1)).backward()
            F.cross_entropy(plain(batch).reshape(-1, 11), batch.reshape(-1)).backward()
        norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.5) for m in (model, plain)]
        assert cresset.allclose(norms[0].full_tensor(), norms[1])
        for each in (ours, theirs):
            each.step()
            each.zero_grad()
    state = model.state_dict()
    assert state.keys() == plain.state_dict().keys() and all(isinstance(v, DTensor) for v in state.values())
    model.load_state_dict(state)
    return _difference(model, plain)


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("optimizer, options", [("SGD", {}), ("Adam", {"reshard_after_forward": False}), ("Adam", {"offload_policy": CPUOffloadPolicy()})])
def test_transformer(four, second, optimizer, options):
    assert max(four.run(transformer, 4, second, optimizer, options)) < 1e-9


def uneven(rank, dim):
    cresset.manual_seed(0)
    model = mlp().double()
    plain = copy.deepcopy(model)
    fully_shard(model, shard_placement_fn=lambda p: Shard(dim if p.dim() > 1 else 0))
    assert model[0].weight.placements == (Shard(dim),) and model[3].weight.to_local().numel() in (0, 1, 2, 3)
    ours, theirs = (cresset.optim.Adam(m.parameters(), lr=0.01) for m in (model, plain))
    for x in cresset.randn(3, 4, 2, 5, dtype=cresset.float64):
        model(x[rank]).square().mean().backward()
        plain(x.reshape(-1, 5)).square().mean().backward()
        for each in (ours, theirs):
            each.step()
            each.zero_grad()
    return _difference(model, plain)


@pytest.mark.parametrize("dim", [0, 1])
def test_uneven(four, dim):
    assert max(four.run(uneven, dim)) < 1e-9


def mixed(rank):
    model = mlp()
    fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype=cresset.bfloat16, reduce_dtype=cresset.float32, output_dtype=cresset.float32))
    seen = []
    model[0].register_forward_hook(lambda m, i, o: seen.append((i[0].dtype, m.weight.dtype, o.dtype)))
    out = model(cresset.randn(2, 5))
    out.sum().backward()
    assert seen == [(cresset.bfloat16,) * 3] and out.dtype == cresset.float32
    assert all(p.dtype == p.grad.dtype == cresset.float32 for p in model.parameters())


def with_tensor_parallelism(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6)).double()
    plain = copy.deepcopy(model)
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    assert model[0].weight.to_local().shape == (2, 6) and model[2].weight.to_local().shape == (3, 4)
    ours, theirs = (cresset.optim.Adam(m.parameters(), lr=0.01) for m in (model, plain))
    for x in cresset.randn(3, 2, 4, 6, dtype=cresset.float64):
        model(x[rank // 2]).square().mean().backward()
        plain(x.reshape(-1, 6)).square().mean().backward()
        for each in (ours, theirs):
            each.step()
            each.zero_grad()
    assert _difference(model, plain) < 1e-9


def methods(rank):
    model = mlp()
    assert fully_shard(model) is model and isinstance(model, FSDPModule) and isinstance(model, nn.Sequential) and type(model).__name__ == "FSDPSequential"
    handle = model.unshard(async_op=True)
    handle.wait()
    assert not isinstance(model[0].weight, DTensor) and model[0].weight.shape == (7, 5)
    model.reshard()
    assert isinstance(model[0].weight, DTensor)
    model.to(cresset.float64)
    assert model[0].weight.dtype == model[0].weight.to_local().dtype == cresset.float64
    with cresset.no_grad():
        model(cresset.randn(2, 5, dtype=cresset.float64))
    model.unshard()
    assert all(isinstance(v, DTensor) for v in model.state_dict().values())
    with pytest.raises(AssertionError, match="FSDP does not support deepcopy"):
        copy.deepcopy(model)
    with pytest.raises(AssertionError, match="already been sharded"):
        fully_shard(model)
    with pytest.raises(ValueError, match="containers that do not implement forward"):
        fully_shard(nn.ModuleList([mlp()]))
    with pytest.raises(ValueError, match="expects a 1D or 2D DeviceMesh"):
        fully_shard(mlp(), mesh=init_device_mesh("cpu", (2, 2, 1)))
    with pytest.raises(ValueError, match=re.escape("reshard_after_forward should be a bool")):
        model.set_reshard_after_forward(3)
    with cresset.device("meta"):
        empty = mlp()
    fully_shard(empty)
    with pytest.raises(RuntimeError, match="should be materialized from meta device"):
        empty(cresset.randn(2, 5))


@pytest.mark.parametrize("program", [mixed, with_tensor_parallelism, methods])
def test_fully_shard(four, program):
    four.run(program)


def scaled(rank):
    """A gradient that is not finite in one rank leaves the step out in all; a rank without gradients does what the others do."""
    from cresset.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    steps = []
    for bad_rank in (None, 1):
        p = cresset.nn.Parameter(cresset.ones(1))
        if rank == 0 or bad_rank is None:
            p.grad = cresset.ones(1) * 8
        if rank == bad_rank:
            p.grad = cresset.full((1,), float("inf"))
        optimizer = cresset.optim.SGD([p], lr=1.0)
        scaler = ShardedGradScaler("cpu", init_scale=8.0, growth_interval=1)
        scaler.scale(cresset.ones(1))
        scaler.step(optimizer)
        scaler.update()
        steps.append((p.item(), scaler.get_scale()))
    return steps


def test_steps_are_left_out_together(pair):
    assert pair.run(scaled) == [[(0.0, 16.0), (1.0, 4.0)]] * 2
