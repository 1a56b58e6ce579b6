"""DTensors on four ranks: redistribution between all placements, uneven parts, gradients, factories, random streams, files, words of errors."""

import copy
import io
import itertools
import re

import pytest

import cresset
import cresset.nn.functional as F
from cresset import nn
from cresset.distributed import tensor as dt
from cresset.distributed.device_mesh import DeviceMesh, init_device_mesh
from cresset.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from cresset.distributed.tensor.debug import CommDebugMode
from cresset.distributed.tensor.experimental import implicit_replication, local_map, register_sharding
from cresset.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module


def redistribution(rank, shape):
    mesh = init_device_mesh("cpu", (2, 2))
    kinds = [Replicate(), Shard(0), Shard(1)]
    cresset.manual_seed(0)
    whole = cresset.randn(shape)
    for first in itertools.product(kinds, repeat=2):
        made = distribute_tensor(whole.clone().requires_grad_(), mesh, first)
        assert cresset.equal(made.full_tensor(), whole)
        for second in itertools.product(kinds, repeat=2):
            moved = made.redistribute(placements=second)
            assert moved.placements == second and cresset.equal(moved.full_tensor(), whole), (first, second)
            (gradient,) = cresset.autograd.grad((moved * 2).sum(), made)
            assert gradient.placements == first and cresset.equal(gradient.full_tensor(), cresset.full(shape, 2.0))
    terms = DTensor.from_local(cresset.full(shape, float(rank)), mesh, [Partial(), Partial("max")])
    for second in itertools.product(kinds, repeat=2):  # max along a row of ranks, then the sum: 1 + 3
        assert cresset.equal(terms.redistribute(placements=second).full_tensor(), cresset.full(shape, 4.0)), second


@pytest.mark.parametrize("shape", [(4, 4), (5, 7), (1, 3), (3, 2)])
def test_redistribution(four, shape):
    four.run(redistribution, shape)


def local_parts(rank):
    mesh = init_device_mesh("cpu", (4,))
    x = cresset.arange(10.0)
    made = distribute_tensor(x, mesh, [Shard(0)])  # parts of 3, 3, 3 and 1
    assert made.to_local().tolist() == x[rank * 3 : rank * 3 + 3].tolist() and made.shape == (10,)
    local = cresset.full((2, 3), float(rank), requires_grad=True)
    again = DTensor.from_local(local, mesh, [Shard(0)])
    assert again.shape == (8, 3) and again.to_local().shape == (2, 3)
    again.to_local(grad_placements=[Shard(0)]).sum().backward()
    assert local.grad.tolist() == [[1.0] * 3] * 2
    some = DeviceMesh("cpu", [0, 2])  # ranks 1 and 3 have nothing
    part = distribute_tensor(cresset.ones(4), some, [Shard(0)]) + 1
    assert part.to_local().tolist() == ([2.0, 2.0] if rank % 2 == 0 else [])
    assert copy.deepcopy(made).placements == made.placements and repr(made).startswith("DTensor(local_tensor=")
    parameter = distribute_tensor(nn.Parameter(cresset.ones(4)), mesh, [Shard(0)])
    assert isinstance(parameter, nn.Parameter) and isinstance(parameter, DTensor) and parameter.is_leaf
    file = io.BytesIO()
    cresset.save({"x": made}, file)
    file.seek(0)
    assert cresset.equal(cresset.load(file, weights_only=True)["x"].full_tensor(), x)


def factories(rank):
    mesh = init_device_mesh("cpu", (4,))
    for make, value in ((dt.zeros, 0.0), (dt.ones, 1.0)):
        made = make(6, 3, device_mesh=mesh, placements=[Shard(0)])
        assert made.shape == (6, 3) and cresset.equal(made.full_tensor(), cresset.full((6, 3), value))
    assert dt.full((2, 2), 3.5, device_mesh=mesh).full_tensor().tolist() == [[3.5] * 2] * 2 and dt.empty(4, device_mesh=mesh).placements == (Replicate(),)
    cresset.manual_seed(rank)  # streams of meshes do not depend on it, once they have begun
    same = dt.rand(64, device_mesh=mesh).to_local()
    parts = dt.randn(64, device_mesh=mesh, placements=[Shard(0)]).to_local()
    dropped = F.dropout(dt.ones(64, device_mesh=mesh), 0.5).to_local()
    return same.tolist(), parts.tolist(), dropped.tolist()


def test_factories_and_streams(four):
    results = four.run(factories)
    for kind in (0, 2):
        assert all(r[kind] == results[0][kind] for r in results)
    assert len({tuple(r[1]) for r in results}) == 4 and 0 < sum(results[0][2]) < 128


def parallel(rank):
    mesh = init_device_mesh("cpu", (4,))
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 10))
    plain = copy.deepcopy(model)
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = cresset.randn(3, 10)
    with CommDebugMode() as comm:
        out = model(x)
        out.square().sum().backward()
    plain(x).square().sum().backward()
    assert cresset.allclose(out, plain(x), atol=1e-5) and dict(comm.get_comm_counts()) == {cresset.ops.c10d_functional.all_reduce: 1}
    for a, b in zip(model.parameters(), plain.parameters()):
        assert cresset.allclose(a.grad.full_tensor(), b.grad, atol=1e-4)
    logits, target = cresset.randn(6, 5, requires_grad=True), cresset.tensor([0, 1, 2, 3, 4, -100])
    for reduction in ("mean", "sum"):
        divided = distribute_tensor(logits.detach().clone().requires_grad_(), mesh, [Shard(1)])
        with loss_parallel():
            loss = F.cross_entropy(divided, target, reduction=reduction)
            loss.backward()
        expected = F.cross_entropy(logits, target, reduction=reduction)
        (gradient,) = cresset.autograd.grad(expected, logits)
        assert cresset.allclose(loss.to_local(), expected) and cresset.allclose(divided.grad.full_tensor(), gradient, atol=1e-6)
        assert divided.grad.placements == (Shard(1),)


def embeddings_and_losses(rank):
    mesh = init_device_mesh("cpu", (4,))
    cresset.manual_seed(0)
    table, words = cresset.randn(10, 6), cresset.tensor([[1, 9, 3], [0, 5, 9]])
    logits, target = cresset.randn(8, 5), cresset.tensor([0, 1, 2, -100, 4, -100, -100, 3])
    for placement in (Replicate(), Shard(0), Shard(1)):
        weight = distribute_tensor(table.clone().requires_grad_(), mesh, [placement])
        out = F.embedding(distribute_tensor(words, mesh, [Replicate()]), weight)
        assert cresset.equal(out.full_tensor(), table[words])
        out.full_tensor().sum().backward()
        assert cresset.equal(weight.grad.full_tensor().sum(1) / 6, cresset.bincount(words.flatten(), minlength=10).float())
        for reduction in ("mean", "sum", "none"):  # ranks have other numbers of targets that count
            x = distribute_tensor(logits.clone().requires_grad_(), mesh, [placement])
            plain = logits.clone().requires_grad_()
            loss = F.cross_entropy(x, distribute_tensor(target, mesh, [Replicate()]), reduction=reduction)
            expected = F.cross_entropy(plain, target, reduction=reduction)
            assert cresset.allclose(loss.full_tensor(), expected)
            loss.sum().backward()
            expected.sum().backward()
            assert cresset.allclose(x.grad.full_tensor(), plain.grad, atol=1e-6), (placement, reduction)


def from_outside(rank):
    mesh = init_device_mesh("cpu", (4,))
    x = distribute_tensor(cresset.arange(8.0), mesh, [Shard(0)])
    with implicit_replication():
        assert (x + cresset.ones(8)).full_tensor().tolist() == [float(i + 1) for i in range(8)]
    doubled = local_map(lambda part: part * 2, out_placements=[Shard(0)], in_placements=([Shard(0)],))
    assert doubled(x).full_tensor().tolist() == [2.0 * i for i in range(8)]

    @register_sharding(cresset.ops.aten.logcumsumexp.default)
    def whole_only(spec, dim):
        return [([Replicate()], [Replicate(), None])]

    square = distribute_tensor(cresset.zeros(4, 4), mesh, [Shard(0)])
    assert square.cumsum(1).placements == (Shard(0),) and square.logcumsumexp(1).placements == (Replicate(),)
    linear = distribute_module(nn.Linear(4, 2), mesh)
    assert all(p.placements == (Replicate(),) for p in linear.parameters())
    assert linear.to(cresset.float64).weight.to_local().dtype == cresset.float64


ERRORS = [
    (lambda m, x: distribute_tensor(cresset.ones(2), m, [Shard(0), Shard(0)]), ValueError, "`placements` must have the same length as `device_mesh.ndim`!"),
    (lambda m, x: distribute_tensor(cresset.ones(2), m, [Partial()]), RuntimeError, "unsupported placements P on device mesh dimension 0!"),
    (lambda m, x: distribute_tensor(cresset.ones(2), m, [Shard(3)]), IndexError, "S(3): the tensor has 1 dimensions."),
    (lambda m, x: distribute_tensor(cresset.ones(2, requires_grad=True) * 2, m), RuntimeError, "should be used to distribute leaf tensors"),
    (lambda m, x: x.redistribute(placements=[Partial()]), RuntimeError, "Can not redistribute to Partial"),
    (lambda m, x: x.redistribute(), RuntimeError, "placements is needed for redistribute!"),
    (lambda m, x: x + cresset.ones(8), RuntimeError, "aten.add.Tensor: got mixed torch.Tensor and DTensor"),
    (lambda m, x: x + distribute_tensor(cresset.ones(8), DeviceMesh("cpu", [0, 1, 2])), NotImplementedError, "does not support cross-mesh operation yet!"),
    (lambda m, x: x.histc(), NotImplementedError, "Operator aten.histc.default does not have a sharding strategy registered. Its tensors are Spec(S(0) on (8,))"),
    (lambda m, x: DTensor.from_local(cresset.ones(2), m, [Partial()]).add_(1), RuntimeError, "in-place operations that require placement changes are not supported"),
    (lambda m, x: x.unsqueeze_(1), RuntimeError, "a DTensor does not change its sizes in place: from (8,) to (8, 1)"),
    (lambda m, x: DTensor.from_local(cresset.ones(2), m, [Shard(0)], shape=(7,)), RuntimeError, "Please pass both shape and stride at the same time."),
    (lambda m, x: parallelize_module(nn.ReLU(), m, ColwiseParallel()), NotImplementedError, "ColwiseParallel currently only support nn.Linear and nn.Embedding!"),
    (lambda m, x: parallelize_module(nn.ReLU(), init_device_mesh("cpu", (2, 2)), ColwiseParallel()), ValueError, "Tensor Parallel only accepts a 1D DeviceMesh"),
]  # fmt: skip


def errors(rank):
    mesh = init_device_mesh("cpu", (4,))
    for call, kind, words in ERRORS:
        x = distribute_tensor(cresset.arange(8.0), mesh, [Shard(0)])
        with pytest.raises(kind, match=re.escape(words)):
            call(mesh, x)
        assert x.shape == (8,) and x.to_local().tolist() == [2.0 * rank, 2.0 * rank + 1]


@pytest.mark.parametrize("program", [local_parts, parallel, embeddings_and_losses, from_outside, errors])
def test_dtensor(four, program):
    four.run(program)


def strided(rank, size, factor):
    """Parts in strides are taken and put back, even where sizes do not divide, and summed; as the definition says it, by indexing."""
    from cresset.distributed.tensor.placement_types import _StridedShard

    mesh, whole = init_device_mesh("cpu", (cresset.distributed.get_world_size(),)), cresset.arange(2.0 * size).reshape(2, size)
    ranks, placement = mesh.size(), _StridedShard(1, split_factor=factor)
    expected = [cresset.cat([list_of(piece, ranks)[r] for piece in list_of(whole, factor)], 1) for r in range(ranks)]
    parts, pads = placement._split_tensor(whole, ranks)
    for part, pad, theirs in zip(parts, pads, expected, strict=True):
        assert cresset.equal(part[:, : part.shape[1] - pad], theirs)
    assert cresset.equal(placement._replicate_to_shard(whole, mesh, 0, rank), expected[rank])
    assert cresset.equal(placement._shard_tensor(whole, mesh, 0), expected[rank])
    assert cresset.equal(placement._to_replicate_tensor(expected[rank], mesh, 0, [2, size]), whole)
    assert cresset.equal(placement._reduce_shard_tensor(whole, mesh, "sum", 0) + 0, expected[rank] * ranks)
    return True


def list_of(tensor, count):
    parts = list(tensor.chunk(count, 1))
    return parts + [tensor[:, :0]] * (count - len(parts))


@pytest.mark.parametrize("size, factor", [(12, 2), (12, 1), (7, 2), (5, 3), (2, 2)])
def test_parts_in_strides(pool, size, factor):
    assert all(pool.run(strided, size, factor))
