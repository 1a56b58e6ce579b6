"""compile() of functions: the answer is always the function's, and the report says what was captured and why the rest was not."""

import copy
import math
import re
from collections import namedtuple

import cresset
import pytest
from cresset import nn

Pair = namedtuple("Pair", "a b")
SCALE, NAMES, STATE = 2.0, ["relu", "sigmoid"], {"calls": 0}
X, Y = cresset.arange(12.0).reshape(3, 4) - 5, cresset.linspace(-2, 2, 12).reshape(3, 4)


def chain(x, y, n=2):
    z = (x + y).relu()
    for i in range(n):
        z = z * 0.5 + i
    return z


def branches(x, y):
    if x.shape[0] > 2 and x.dtype == cresset.float32:
        return x.sum(0), y
    return x, y.mean()


def collections(x, y):
    parts = [p.exp() for p in (x, y)]
    parts.append(x - y)
    named = {"sum": sum(parts), **{str(i): p[0] for i, p in enumerate(parts)}}
    first, *rest = parts
    return named, tuple(rest), [first, (1, "text", None)], x.shape, x.size(-1)


def results_with_names(x, y):
    top = x.max(dim=1)
    values, indices = cresset.sort(y, dim=1)
    return top.values + values[:, 0], top.indices, indices, top


def closures(x, y):
    def scaled(t, by=3):
        return t * by + offset

    offset = y[0, 0]
    twice = lambda f: lambda t: f(f(t))  # noqa: E731
    return twice(scaled)(x), scaled(by=2, t=y)


def stars(x, *more, scale=1.0, **rest):
    return sum(more, x) * scale + sum(rest.values())


def in_place(x, y):
    z = x.clone()
    z += y
    z[0] = 1
    z[:, 1] *= 2
    z.mul_(2).clamp_(max=3)
    return z, z.t()


def sizes(x, y):
    b, n = x.shape
    flat = x.reshape(b * n // 2, -1)
    return flat, cresset.zeros(b, n + 1), x.view(n, -1), cresset.arange(b) + n, len(x), x.numel()


def loops(x, y):
    i = 0
    while i < 3:
        i += 1
        if i == 2:
            continue
        x = x + i
    else:
        y = y * i
    for row in y:
        x = x + row
        if i > 100:
            break
    return x


def words(x, y):
    key = f"{'a' * 2}-{3:03d}".upper()
    table = {"AA-003": x, "other": y}
    return table[key] if key in table else y, (total := y.sum()) + total


def uses_globals(x, y):
    z = getattr(x, NAMES[0])() * SCALE
    return cresset.nn.functional.gelu(z) + math.sqrt(2) * math.pi


def returns_inputs(x, y):
    return x, [y, x], None


def indices(x, y):
    return x[1:, ::2], x[..., -1], x[:, None], x[cresset.tensor([0, 2])], x[y > 0], cresset.where(y > 0, x, y)


def attends(x, y):
    return nn.functional.scaled_dot_product_attention(x[None], y[None], y[None], is_causal=True)


def inner_no_grad(x, y):
    with cresset.no_grad():
        return x * y


CAPTURED = [
    (chain, (X, Y), {}), (chain, (X, Y, 3), {}), (chain, (X, Y), {"n": 0}), (branches, (X, Y), {}), (branches, (X[:1], Y), {}), (collections, (X, Y), {}),
    (results_with_names, (X, Y), {}), (closures, (X, Y), {}), (stars, (X, Y, Y), {"scale": 2.0, "other": Y}), (in_place, (X, Y), {}), (sizes, (X, Y), {}), (sizes, (X[:2], Y), {}),
    (loops, (X, Y), {}), (words, (X, Y), {}), (uses_globals, (X, Y), {}), (indices, (X, Y), {}), (inner_no_grad, (X, Y), {}), (attends, (X, Y), {}),
    (lambda x, y: x @ y.T, (X, Y), {}), (chain, (X, X), {}), (chain, (X.T, Y.T), {}), (chain, (X.double(), Y), {}), (chain, (X.to(cresset.int32), Y), {}),
]  # fmt: skip


def same(a, b):
    if isinstance(a, cresset.Tensor):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and cresset.allclose(a.double(), b.double(), rtol=1e-5, atol=1e-6, equal_nan=True)
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("backend", ["inductor", "eager"])
@pytest.mark.parametrize("dynamic", [None, False, True])
@pytest.mark.parametrize("f, args, kwargs", CAPTURED, ids=[f"{c[0].__name__}{i}" for i, c in enumerate(CAPTURED)])
def test_captured(f, args, kwargs, backend, dynamic):
    compiled = cresset.compile(f, backend=backend, dynamic=dynamic)
    for _ in range(3):
        assert same(compiled(*args, **kwargs), f(*args, **kwargs))
    text = cresset.compile_report(compiled)
    assert "captured, 3 calls: " in text and "eager," not in text, text


def test_sizes_are_values():
    compiled = cresset.compile(lambda x, y: (x.reshape(x.shape[0] * 2, -1), y.sum(0), x.size(1) + 1))
    for n in (2, 6, 3, 1):
        x = cresset.randn(n, 4)
        got = compiled(x, x)
        assert got[0].shape == (2 * n, 2) and got[2] == 5 and cresset.equal(got[1], x.sum(0))
    assert "captured, 4 calls" in cresset.compile_report(compiled)


def test_inputs_come_back_as_themselves():
    compiled = cresset.compile(lambda x, y: (x, [y, x], x + 1))
    a, (b, c), _ = compiled(X, Y)
    assert a is X and b is Y and c is X
    assert cresset.compile(lambda x: x.view(-1))(X).data_ptr() == X.data_ptr()


class Holder:
    def __init__(self):
        self.scale, self.seen = 2.0, []

    def forward(self, x):
        return x * self.scale


def writes_argument(x, y):
    x += 1
    return x


def writes_view(x, y):
    x[0].zero_()
    return x + y


def writes_global(x, y):
    global SCALE
    SCALE = 3.0
    return x


def counts(x, y):
    STATE["calls"] += 1
    return x


def appends(x, y):
    NAMES.append("x")
    return x


def sets_attribute(x, y):
    x.note = 3
    return x


def asks_contents(x, y):
    if x.sum() > 0:
        return x
    return y


def asks_items(x, y):
    return y * x.max().item()


def prints(x, y):
    print("here")
    return x + y


def takes_random(x, y):
    return x + cresset.rand(4)


def drops(x, y):
    return nn.functional.dropout(x, 0.5)


def raises(x, y):
    raise KeyError("mine")


def fails(x, y):
    return x.view(7)


def tries(x, y):
    try:
        return x.view(7)
    except RuntimeError:
        return y


def generates(x, y):
    yield x


def counts_nonzero(x, y):
    z = x[x > 0]
    return z * z.shape[0] if z.shape[0] > 3 else z


def asserts_contents(x, y):
    assert (x < 100).all()
    return x


def makes_lists(x, y):
    return x.tolist()


def breaks_graph(x, y):
    cresset._dynamo.graph_break()
    return x + 1


@cresset.compiler.disable
def left_alone(x):
    return x + 1


def calls_disabled(x, y):
    return left_alone(x)


EAGER = [
    (writes_argument, "aten::add_ writes to a tensor from outside"), (writes_view, "aten::zero_ writes to a tensor from outside"), (writes_global, "Global statements"),
    (counts, "sets a part of an object that others see"), (appends, "calls .append of a list that others see"), (sets_attribute, "sets .note, which others see"),
    (asks_contents, "the way depends on a tensor's contents"), (asks_items, "reads or calls .item of a tensor"), (prints, r"calls print\(\)"),
    (takes_random, "aten::rand takes random numbers"), (drops, "takes random numbers"), (raises, "Raise statements"), (fails, "RuntimeError"),
    (tries, "Try statements"), (generates, "is a generator or coroutine"), (counts_nonzero, "a size depends on a tensor's contents"),
    (asserts_contents, "the source of asserts_contents is not what runs|depends on a tensor's contents"), (makes_lists, "reads or calls .tolist"),
    (breaks_graph, "disabled for compilers"), (calls_disabled, "left_alone, which is disabled for compilers"),
]  # fmt: skip


def outcome(f, x, y):
    """What a call gives or raises, and what it does to its arguments and to what is around."""
    global SCALE
    SCALE, NAMES[:], STATE["calls"] = 2.0, ["relu", "sigmoid"], 0
    cresset.manual_seed(3)
    x, y = x.clone(), y.clone()
    try:
        result = f(x, y)
        result = list(result) if hasattr(result, "__next__") else result
    except Exception as error:  # noqa: BLE001 - whatever it is
        result = (type(error).__name__, str(error))
    return result, x, y, SCALE, list(NAMES), dict(STATE), getattr(x, "note", None), cresset.rand(1)


@pytest.mark.parametrize("f, reason", EAGER, ids=[c[0].__name__ for c in EAGER])
def test_eager(f, reason, capsys):
    compiled = cresset.compile(f)
    for x, y in ((X, Y), (-X, Y), (X, Y)):
        want = outcome(f, x, y)
        printed = capsys.readouterr().out
        assert same(outcome(compiled, x, y), want)
        assert capsys.readouterr().out == printed
    text = cresset.compile_report(compiled)
    assert re.search(reason, text) and "captured," not in text, text
    assert f"test_capture.py:{f.__code__.co_firstlineno}" in text


def test_lines_are_named():
    compiled = cresset.compile(asks_contents)
    compiled(X, Y)
    line = asks_contents.__code__.co_firstlineno + 1
    assert f"the way depends on a tensor's contents ({__file__}:{line} in asks_contents)" in cresset.compile_report(compiled)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.acts = nn.ModuleDict({"gelu": nn.GELU(), "relu": nn.ReLU()})
        self.register_buffer("shift", cresset.ones(4))
        self.drop, self.kind = nn.Dropout(0.3), "gelu"

    @property
    def act(self):
        return self.acts[self.kind]

    def step(self, layer, x):
        return self.act(layer(x))

    def forward(self, x, mask=None):
        for i, layer in enumerate(self.layers):
            x = x + self.step(layer, x) if i % 2 == 0 else self.acts["relu"](x)
        return self.drop(x + self.shift) if mask is None else x * mask


class Child(Block):
    def forward(self, x, mask=None):
        return super().forward(x, mask) * 2


MODULES = [
    (Block(), (X,)), (Child(), (X,)), (Child(), (X, Y)), (nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.SiLU()), (X,)),
    (nn.MultiheadAttention(4, 2, batch_first=True), (X[None], X[None], X[None])), (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (X[None],)),
    (nn.LSTM(4, 3), (X[:, None],)), (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten()), (cresset.randn(2, 3, 8, 8),)),
    (nn.Embedding(12, 4), (cresset.tensor([1, 2, 3]),)), (nn.ConvTranspose2d(3, 2, 2), (cresset.randn(1, 3, 4, 4),)), (nn.Softmax(-1), (X,)), (nn.CrossEntropyLoss(), (X, cresset.tensor([1, 2, 3]))),
]  # fmt: skip


@pytest.mark.parametrize("module, args", MODULES, ids=[f"{type(m[0]).__name__}{i}" for i, m in enumerate(MODULES)])
def test_modules(module, args):
    module = module.eval()
    compiled = cresset.compile(module)
    with cresset.no_grad():
        for _ in range(2):
            assert same(compiled(*args), module(*args))
    text = cresset.compile_report(compiled)
    assert "captured, 2 calls" in text and "eager," not in text, text


def test_modules_in_training_stay_as_they_are():
    for module in (nn.BatchNorm2d(3), nn.Dropout(0.5)):
        compiled, other = cresset.compile(module), copy.deepcopy(module)
        x = cresset.randn(2, 3, 4, 4)
        for _ in range(2):
            cresset.manual_seed(0)
            want = other(x)
            cresset.manual_seed(0)
            assert same(compiled(x), want)
        assert all(same(a, b) for a, b in zip(module.state_dict().values(), other.state_dict().values()))


def test_objects_of_users():
    holder = Holder()
    compiled = cresset.compile(holder.forward)
    assert same(compiled(X), X * 2) and same(compiled(X), X * 2)
    holder.scale = 3.0
    assert same(compiled(X), X * 3)
    assert "made again since Holder.scale is not 2.0" in cresset.compile_report(compiled)
