"""Every operator of a list, under every placement of its arguments along a mesh of pair ranks: the whole is what plain tensors give, gradients too."""

import itertools
import random

import pytest

import cresset
import cresset.nn.functional as F
from cresset.distributed.device_mesh import init_device_mesh
from cresset.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from cresset.distributed.tensor._redistribute import Redistribute


# name: (function, sizes of the floating arguments)
CASES = {
    "add": (lambda x, y: x + y, (4, 6), (6,)),
    "sub": (lambda x, y: x - 2 * y, (4, 6), (4, 1)),
    "mul": (lambda x, y: x * y, (5, 6), (5, 6)),
    "div": (lambda x, y: x / (y.abs() + 1), (4, 3), (4, 3)),
    "number": (lambda x: 2 - x * 3 + 1, (4, 3)),
    "pow": (lambda x: (x.abs() + 1) ** 1.5, (4, 3)),
    "relu": (F.relu, (4, 6)), "gelu": (F.gelu, (4, 6)), "silu": (F.silu, (3, 6)), "sigmoid": (cresset.sigmoid, (4, 6)), "tanh": (cresset.tanh, (4,)),
    "where": (lambda x, y: cresset.where(x > 0, x, y), (4, 6), (4, 6)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 1.0), (4, 6)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), (4, 6)),
    "exp log": (lambda x: (x.exp() + 1).log(), (4, 6)),
    "sum": (lambda x: x.sum(), (4, 6)), "sum dim": (lambda x: x.sum(1), (4, 6)), "sum keep": (lambda x: x.sum(0, keepdim=True), (5, 6)),
    "mean": (lambda x: x.mean(), (4, 6)), "mean uneven": (lambda x: x.mean(0), (5, 3)), "var": (lambda x: x.var(0), (5, 6)), "std": (lambda x: x.std(), (4, 6)),
    "max": (lambda x: x.max(), (4, 6)), "amin": (lambda x: x.amin(1), (4, 6)), "max dim": (lambda x: x.max(0)[0], (4, 6)),
    "argmax": (lambda x: x.argmax(1), (4, 6)), "prod": (lambda x: x.prod(0), (4, 3)), "logsumexp": (lambda x: x.logsumexp(1), (4, 6)),
    "norm": (lambda x: x.norm(), (4, 6)), "norm 1": (lambda x: cresset.linalg.vector_norm(x, 1, dim=0), (4, 6)),
    "norm inf": (lambda x: cresset.linalg.vector_norm(x, float("inf")), (5, 6)), "norm 3": (lambda x: cresset.linalg.vector_norm(x, 3), (4, 6)),
    "any": (lambda x: (x > 0.5).any(), (4, 6)), "all": (lambda x: (x > -9).all(0), (4, 6)), "cumsum": (lambda x: x.cumsum(1), (4, 6)),
    "topk": (lambda x: x.topk(2, dim=1)[0], (4, 6)), "sort": (lambda x: x.sort(0)[0], (4, 6)),
    "mm": (lambda x, y: x @ y, (4, 6), (6, 8)), "mm uneven": (lambda x, y: x @ y, (5, 3), (3, 7)), "bmm": (cresset.bmm, (4, 3, 6), (4, 6, 2)),
    "matmul": (lambda x, y: x @ y, (2, 4, 6), (6, 4)), "matmul batch": (lambda x, y: x @ y, (2, 4, 3, 6), (4, 6, 2)),
    "addmm": (cresset.addmm, (8,), (4, 6), (6, 8)), "baddbmm": (cresset.baddbmm, (4, 3, 2), (4, 3, 6), (4, 6, 2)),
    "linear": (F.linear, (4, 6), (8, 6), (8,)), "linear 3": (F.linear, (2, 4, 6), (8, 6)), "mv": (cresset.mv, (4, 6), (6,)), "dot": (cresset.dot, (6,), (6,)),
    "einsum": (lambda x, y: cresset.einsum("bij,bkj->bik", x, y), (2, 3, 4), (2, 5, 4)),
    "view": (lambda x: x.view(4, 2, 3), (4, 6)), "flatten": (lambda x: x.flatten(), (4, 6)), "flatten uneven": (lambda x: x.flatten(1), (3, 5, 2)),
    "split heads": (lambda x: x.view(2, 3, 4, 2).transpose(1, 2), (2, 3, 8)), "permute": (lambda x: x.permute(2, 0, 1), (2, 4, 6)), "t": (lambda x: x.t(), (4, 6)),
    "unsqueeze": (lambda x: x.unsqueeze(1), (4, 6)), "squeeze": (lambda x: x.squeeze(1), (4, 1, 6)), "expand": (lambda x: x.expand(3, 4, 6), (4, 6)),
    "expand 1": (lambda x: x.expand(4, 6), (1, 6)), "repeat": (lambda x: x.repeat(2, 1), (4, 6)), "flip": (lambda x: x.flip(0), (4, 6)),
    "select": (lambda x: x[1], (4, 6)), "slice": (lambda x: x[:, 1:4], (4, 6)), "slice all": (lambda x: x[:, :, None], (4, 6)), "tril": (cresset.tril, (2, 4, 4)),
    "cat": (lambda x, y: cresset.cat([x, y], 1), (4, 6), (4, 2)), "stack": (lambda x, y: cresset.stack([x, y], 1), (4, 6), (4, 6)),
    "chunk": (lambda x: x.chunk(3, 1)[2], (4, 6)), "unbind": (lambda x: x.unbind(1)[1], (4, 6)), "pad": (lambda x: F.pad(x, (1, 2)), (4, 6)), "roll": (lambda x: x.roll(1, 1), (4, 6)),
    "softmax": (lambda x: x.softmax(-1), (4, 6)), "log_softmax": (lambda x: x.log_softmax(0), (4, 6)), "layer_norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), (4, 6), (6,), (6,)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (4, 4, 3), (4,), (4,)), "rms_norm": (lambda x, w: F.rms_norm(x, (6,), w), (4, 6), (6,)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (4, 4, 3), (4,), (4,)),
    "mse": (F.mse_loss, (5, 6), (5, 6)), "mse sum": (lambda x, y: F.mse_loss(x, y, reduction="sum"), (4, 6), (4, 6)), "l1": (F.l1_loss, (4, 6), (4, 6)),
    "smooth_l1": (F.smooth_l1_loss, (5, 2), (5, 2)), "bce": (lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), (4, 6), (4, 6)),
    "conv": (lambda x, w, b: F.conv2d(x, w, b, padding=1), (2, 4, 5, 5), (6, 4, 3, 3), (6,)), "max_pool": (lambda x: F.max_pool2d(x, 2), (2, 4, 6, 6)),
    "avg_pool": (lambda x: F.adaptive_avg_pool2d(x, 1), (2, 4, 6, 6)), "interpolate": (lambda x: F.interpolate(x, scale_factor=2), (2, 4, 3, 3)),
    "pool of one image": (lambda x: F.max_pool2d(x, 2), (4, 6, 6)), "pad of one image": (lambda x: F.pad(x, (1, 1, 1, 1), "reflect"), (4, 6, 6)),
    "fractional": (lambda x, s: F.fractional_max_pool2d(x, 2, output_size=2, _random_samples=s.sigmoid()), (2, 4, 6, 6), (2, 4, 2)),
    "inverse": (lambda x: cresset.linalg.matrix_exp(x).inverse(), (4, 3, 3)), "det": (lambda x: x.det(), (4, 3, 3)),
    "cholesky": (lambda x: cresset.linalg.cholesky(cresset.linalg.matrix_exp(x + x.mT)), (4, 3, 3)), "triu": (cresset.triu, (3, 4, 4)),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (2, 4, 3, 6), (2, 4, 3, 6), (2, 4, 3, 6)),
    "causal attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (2, 4, 3, 6), (2, 4, 3, 6), (2, 4, 3, 6)),
    "in place": (lambda x: x.clone().mul_(2).add_(1), (4, 6)),
    "zeros_like": (lambda x: cresset.zeros_like(x) + x, (4, 6)), "fill": (lambda x: x.detach().clone().fill_(2), (4, 6)), "dtype": (lambda x: x.double().float(), (4, 6)),
}  # fmt: skip
# What these write in place is no term of a sum.
NOT_OF_TERMS = {"in place", "fill"}
_MOST = 8  # combinations of placements of one case
WITHOUT_GRADIENT = {"argmax", "fractional", "det", "cholesky", "any", "all", "fill", "zeros_like"}


def _placements(name, shape, ranks):
    terms = [] if name in NOT_OF_TERMS else [Partial()]
    return [Replicate(), *(Shard(d) for d, size in enumerate(shape) if size >= ranks), *terms]


def _placed(tensor, mesh, placements):
    """A leaf under these placements; terms of a sum are the whole divided by the number of ranks."""
    made = distribute_tensor(tensor, mesh, [p if not p.is_partial() else Replicate() for p in placements])
    if any(p.is_partial() for p in placements):
        made = Redistribute.apply(made, mesh, placements).detach()
    return made.requires_grad_()


def _check(name, mesh, choices):
    function, *shapes = CASES[name]
    cresset.manual_seed(1)
    values = [cresset.randn(shape) for shape in shapes]
    plain = [v.clone().requires_grad_() for v in values]
    expected = function(*plain)
    if name not in WITHOUT_GRADIENT:
        (expected * expected).sum().backward()
    # A sample, the same on all ranks, where there are many combinations.
    every = list(choices(shapes))
    for placements in random.Random(name).sample(every, min(len(every), _MOST)):
        args = [_placed(v, mesh, p) for v, p in zip(values, placements)]
        result = function(*args)
        whole = result.full_tensor()
        assert whole.shape == expected.shape and result.shape == expected.shape, (name, placements)
        assert cresset.allclose(whole, expected, atol=1e-4, rtol=1e-4), (name, placements, result.placements)
        if name in WITHOUT_GRADIENT:
            continue
        (result * result).sum().backward()
        for i, (argument, other) in enumerate(zip(args, plain)):
            assert cresset.allclose(argument.grad.full_tensor(), other.grad, atol=2e-4, rtol=1e-3), (name, placements, i, argument.grad.placements)


def along_one_dimension(rank, name):
    mesh = init_device_mesh("cpu", (2,))
    _check(name, mesh, lambda shapes: itertools.product(*([(p,) for p in _placements(name, shape, 2)] for shape in shapes)))


def along_two_dimensions(rank, name):
    mesh = init_device_mesh("cpu", (2, 2))

    def choices(shapes):
        """All placements of the first argument, the others whole or divided along dimension 0 by one mesh dimension or both."""
        first = itertools.product(_placements(name, shapes[0], 4), repeat=2)
        for pair in first:
            for rest in ([Replicate(), Replicate()], [Shard(0), Replicate()], [Shard(0), Shard(0)]):
                yield [pair, *(rest if shape and shape[0] >= 4 else [Replicate(), Replicate()] for shape in shapes[1:])]

    _check(name, mesh, choices)


@pytest.mark.parametrize("name", CASES)
def test_operator(pair, name):
    pair.run(along_one_dimension, name)


@pytest.mark.parametrize("name", ["add", "mm", "view", "flatten", "split heads", "sum", "sum dim", "softmax", "layer_norm", "cat", "linear", "mse", "conv", "norm"])
def test_two_mesh_dimensions(four, name):
    four.run(along_two_dimensions, name)


# (sizes, divided dimension, new sizes, its dimension there) where PyTorch 2.13 sends nothing.
VIEWS_OF_ONE = [
    ((1, 2, 2, 2), 0, (1, 2, 4), 0), ((1, 2, 2, 2), 0, (1, 8), 0), ((2, 1, 3), 1, (2, 1, 3), 1), ((3, 1), 1, (1, 3, 1), 2), ((1, 1), 0, (1, 1), 0),
    ((1, 1), 1, (1, 1), 1), ((1, 4), 0, (1, 2, 2), 0), ((4, 1), 1, (2, 2, 1), 2),
]  # fmt: skip


def views_of_one(rank):
    from cresset.distributed.tensor.debug import CommDebugMode

    mesh = init_device_mesh("cpu", (2,))
    for sizes, dim, to, there in VIEWS_OF_ONE:
        whole = cresset.arange(1.0, cresset.Size(sizes).numel() + 1).view(sizes)
        x = distribute_tensor(whole, mesh, [Shard(dim)]).requires_grad_()
        with CommDebugMode() as mode:
            y = x.view(to)
            y.to_local().sum().backward()
        assert y.placements == (Shard(there),) and not mode.get_total_counts(), (sizes, to, y.placements)
        assert cresset.equal(y.full_tensor(), whole.view(to)) and x.grad.placements == (Shard(dim),)
        assert cresset.equal(x.grad.full_tensor(), cresset.ones(sizes))


def test_views_keep_the_division_of_a_dimension_of_size_one(pair):
    pair.run(views_of_one)
