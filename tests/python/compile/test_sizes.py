"""Sizes of what is computed: code that decides by them is captured once for all calls that it decides alike, and no call gets another's answer."""

import math
import warnings

import cresset
import pytest
from cresset import nn

F = nn.functional


def ones(*shape):
    return cresset.ones(*shape)


# Operators of one or several operands: (function, shapes of the operands of several calls). Each dimension of the result decides something.
RULES = {
    "pointwise": (lambda x: x.relu() * 2, [(2, 3), (4, 5), (1, 1), (0, 3)]),
    "broadcast": (lambda x, y: x + y, [((2, 3), (1, 3)), ((1, 3), (4, 3)), ((1, 1), (5, 6)), ((2, 1), (1, 7)), ((1, 1), (1, 1))]),
    "broadcast of another rank": (lambda x, y: x * y, [((2, 3), (3,)), ((4, 1), (5,)), ((2, 5), (1,))]),
    "matmul": (lambda x, y: x @ y, [((2, 3), (3, 4)), ((5, 1), (1, 2)), ((1, 2), (2, 1))]),
    "batched matmul": (lambda x, y: x @ y, [((2, 1, 3, 4), (1, 5, 4, 2)), ((1, 1, 2, 1), (3, 2, 1, 6)), ((2, 2, 2, 2), (2, 2, 2, 2))]),
    "linear": (lambda x, w: F.linear(x, w), [((2, 3), (4, 3)), ((1, 2), (5, 2))]),
    "view": (lambda x: x.view(x.size(0), -1), [(2, 3, 4), (1, 5, 2), (4, 1, 1)]),
    "reshape": (lambda x: x.reshape(-1, x.size(1) * 2), [(2, 2, 4), (4, 3, 2)]),
    "flatten": (lambda x: x.flatten(1), [(2, 3, 4), (1, 5, 2)]),
    "transpose": (lambda x: x.transpose(0, -1), [(2, 3, 4), (5, 1, 2)]),
    "permute": (lambda x: x.permute(2, 0, 1), [(2, 3, 4), (5, 1, 2)]),
    "T": (lambda x: x.T, [(2, 3), (4, 1)]),
    "unsqueeze": (lambda x: x.unsqueeze(-1), [(2, 3), (1, 5)]),
    "expand": (lambda x: x.unsqueeze(0).expand(x.size(0) + 1, -1, -1), [(2, 3), (1, 5)]),
    "cat": (lambda x, y: cresset.cat([x, y], 1), [((2, 3), (2, 4)), ((5, 1), (5, 1))]),
    "stack": (lambda x: cresset.stack([x, x, x], 1), [(2, 3), (1, 4)]),
    "slices": (lambda x: x[1:, :-2, ::2], [(2, 4, 5), (3, 2, 8), (1, 1, 1)]),
    "a slice up to a size": (lambda x: x[:, : x.size(0)], [(2, 3), (4, 3), (1, 9)]),
    "an index": (lambda x: x[:, 0, None], [(2, 3, 4), (1, 5, 6)]),
    "an ellipsis": (lambda x: x[..., 0], [(2, 3, 4), (1, 5, 6)]),
    "chunk": (lambda x: x.chunk(2, 1)[1], [(1, 4), (2, 7), (3, 3)]),
    "split": (lambda x: x.split(3, dim=1)[-1], [(1, 4), (2, 7), (3, 3), (1, 9)]),
    "unbind": (lambda x: x.unbind(1)[0], [(2, 3, 4), (1, 3, 2)]),
    "mean": (lambda x: x.mean(-1, keepdim=True), [(2, 3), (4, 5)]),
    "sum": (lambda x: x.sum((0, 2)), [(2, 3, 4), (1, 5, 6)]),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3)), [(2, 3, 4), (1, 5, 6)]),
    "zeros": (lambda x: cresset.zeros(x.size(1), 3), [(2, 3), (1, 4)]),
    "arange": (lambda x: cresset.arange(2, x.size(0) + 2), [(2,), (5,)]),
    "squeeze": (lambda x: x.squeeze(1), [(2, 1, 3), (1, 1, 4), (2, 3, 4), (5, 1, 1)]),
    "attention over one batch": (lambda q, v: F.scaled_dot_product_attention(q, v, v), [((1, 2, 3, 4), (1, 2, 5, 4)), ((3, 2, 3, 4), (3, 2, 5, 4))]),
    "conv1d": (lambda x: F.conv1d(x, ones(2, 3, 3), stride=2, padding=1), [(1, 3, 7), (2, 3, 8), (1, 3, 1)]),
    "conv2d": (lambda x, w: F.conv2d(x, w, None, (1, 2), 1, (2, 1)), [((1, 3, 8, 9), (2, 3, 3, 1)), ((2, 2, 5, 5), (4, 2, 1, 3))]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), [(1, 2, 8, 9), (1, 3, 7, 4)]),
    "max_pool2d, rounded up": (lambda x: F.max_pool2d(x, 2, ceil_mode=True), [(1, 2, 5, 6), (1, 2, 4, 3)]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, (2, 3)), [(1, 2, 8, 9), (1, 3, 7, 4)]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (2, x.size(2))), [(1, 2, 8, 9), (1, 3, 7, 4)]),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), [(1, 2, 3, 4), (1, 2, 5, 1)]),
    "attention": (lambda q, v: F.scaled_dot_product_attention(q, v[..., : q.size(-1)], v), [((1, 2, 3, 4), (1, 2, 5, 6)), ((1, 1, 2, 2), (1, 1, 7, 3))]),
}


def deciding(rule):
    def f(*tensors):
        y = rule(*tensors)
        return [y * 0 + math.sqrt(y.size(i)) for i in range(y.dim())], [y.size(i) % 2 == 0 for i in range(y.dim())]

    return f


@pytest.mark.parametrize("name", RULES)
def test_rules_say_the_sizes(name):
    rule, calls = RULES[name]
    plain, compiled = deciding(rule), cresset.compile(deciding(rule), backend="eager", dynamic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the limit of captures
        for shapes in [*calls, *reversed(calls)]:
            tensors = [ones(*s) for s in (shapes if isinstance(shapes[0], tuple) else [shapes])]
            cresset.testing.assert_close(compiled(*tensors), plain(*tensors))
    report = cresset.compile_report(compiled)
    assert "captured" in report and ("a shape is not" in report) == (name == "max_pool2d, rounded up")  # which no rule is for


def squeezed(x):
    y = x.squeeze(0)
    return y * y.ndim


def squeezed_everywhere(x):
    y = cresset.squeeze(x)
    return y.sum(-1) if y.dim() > 1 else y


def unbound(x):
    first, *rest = x.unbind(0)
    return first + len(rest)


def cut(x):
    parts = x.split(2)
    return len(parts) + parts[-1]


def cut_by_a_size(x):
    return [p + 1 for p in x.split(x.size(1))]


def chunked(x):
    return [y + 1 for y in cresset.chunk(x, chunks=3, dim=0)]


def in_parts_of_given_sizes(x):
    return x.split([1, x.size(0) - 1])


def row_by_row(x):
    return [r * i for i, r in enumerate(x)]


@pytest.mark.parametrize("f", [squeezed, squeezed_everywhere, unbound, cut, cut_by_a_size, chunked, in_parts_of_given_sizes, row_by_row])
def test_ranks_and_numbers_of_parts_follow_sizes(f):
    compiled = cresset.compile(f)
    for n in (1, 2, 3, 1, 5, 4, 7):
        x = cresset.arange(3.0 * n).view(n, 3)
        cresset.testing.assert_close(compiled(x), f(x))


class Attention(nn.Module):
    """As small language models write it."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.norm, self.qkv, self.out, self.heads = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.register_buffer("bias", cresset.tril(ones(32, 32)).view(1, 1, 32, 32))

    def forward(self, x):
        batch, length, width = self.norm(x).size()
        q, k, v = self.qkv(self.norm(x)).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).contiguous().view(batch, length, width))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cells, self.out = nn.Embedding(9, 6), nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True), nn.Linear(10, 3)

    def forward(self, x):
        y, (h, c) = self.cells(self.embed(x))
        return self.out(y[:, -1]) / math.sqrt(y.size(-1)), h


class Interactions(nn.Module):
    """Dot products of the rows of a batch's examples, as recommenders have them."""

    def __init__(self):
        super().__init__()
        self.dense, self.tables = nn.Linear(5, 4), nn.ModuleList([nn.EmbeddingBag(7, 4, mode="sum") for _ in range(2)])

    def forward(self, x, bags):
        rows = cresset.cat([self.dense(x), *(table(bag) for table, bag in zip(self.tables, bags))], 1).view(x.size(0), -1, 4)
        z = rows @ rows.transpose(1, 2)
        pairs = [(i, j) for i in range(z.size(1)) for j in range(i)]
        return z[:, cresset.tensor([i for i, _ in pairs]), cresset.tensor([j for _, j in pairs])]


@pytest.mark.parametrize("make,arguments", [
    (Attention, lambda n: (cresset.randn(2, n, 16),)),
    (Recurrent, lambda n: (cresset.randint(0, 9, (2, n)),)),
    (Interactions, lambda n: (cresset.randn(n, 5), [cresset.randint(0, 7, (n, 3)) for _ in range(2)])),
])  # fmt: skip
def test_one_capture_for_all_lengths(make, arguments):
    module = make().eval()
    compiled = cresset.compile(module)
    with cresset.no_grad():
        for n in (3, 4, 2, 5, 7, 11, 13, 16, 17, 20):
            given = arguments(n)
            cresset.testing.assert_close(compiled(*given), module(*given), atol=1e-5, rtol=1e-4)
    assert cresset.compile_report(compiled).count("captured") == 1


def test_steps_are_not_lengths():
    def f(x):
        return x * math.sqrt(cresset.arange(0, x.size(0), 2).size(0))

    compiled = cresset.compile(f, backend="eager", dynamic=True)
    for n in (1, 2, 5, 8):
        cresset.testing.assert_close(compiled(ones(n)), f(ones(n)))


def test_sizes_that_divide_by_nothing():
    def f(x):
        return x + x.size(0) // x.size(1) if x.size(0) % x.size(1) == 0 else x

    compiled = cresset.compile(f)
    cresset.testing.assert_close(compiled(ones(4, 2)), f(ones(4, 2)))
    with pytest.raises(ZeroDivisionError):
        compiled(ones(4, 0))


def test_a_parameter_of_other_sizes():
    module = nn.Linear(3, 4).eval()
    compiled = cresset.compile(lambda x: module(x) / math.sqrt(module(x).size(-1)))
    with cresset.no_grad():
        for sizes in ((4, 3), (9, 3), (4, 3)):
            module.weight, module.bias = nn.Parameter(cresset.randn(*sizes)), nn.Parameter(cresset.randn(sizes[0]))
            cresset.testing.assert_close(compiled(ones(2, 3)), module(ones(2, 3)) / math.sqrt(sizes[0]))


def test_shapes_that_change_in_place_stay_eager():
    def f(x):
        y = x + 1
        n = y.size(0)
        y.t_()
        return y * n + y.size(0)

    compiled = cresset.compile(f)
    for shape in ((2, 3), (4, 5)):
        cresset.testing.assert_close(compiled(ones(*shape)), f(ones(*shape)))
