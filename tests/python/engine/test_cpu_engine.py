"""The CPU's engine: convolutions and linear layers that are packed with what follows them answer as the interpreter does."""

import copy
import itertools
import threading

import cresset
import cresset.engine
import pytest
from cresset import nn

F = nn.functional
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": F.relu,
    "relu6": F.relu6,
    "clamp": lambda x: cresset.clamp(x, max=0.25),
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.5),
    "sigmoid": cresset.sigmoid,
    "tanh": cresset.tanh,
    "silu": F.silu,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
}


class Layer(nn.Module):
    def __init__(self, layer, activation, joined=None, before=False):
        super().__init__()
        self.layer, self.activation, self.joined, self.before = layer, ACTIVATIONS[activation], joined, before

    def forward(self, x, other=None):
        y = self.layer(x)
        if self.before:
            y = self.activation(y)
        if self.joined == "add":
            y = other + y
        elif self.joined == "mul":
            y = y * other
        return y if self.before else self.activation(y)


def compiled(module, *inputs):
    module.eval()
    with cresset.no_grad():
        return cresset.engine.compile(cresset.jit.trace(module, inputs, check_trace=False), inputs=[*inputs], min_block_size=1)


def program(module) -> str:
    return module.engine_0.program()


def check(module, engine, *inputs, tolerance=1e-5):
    with cresset.inference_mode():
        expected, given = module(*inputs), engine(*inputs)
    assert given.stride() == expected.stride()
    cresset.testing.assert_close(given, expected, atol=tolerance, rtol=1e-4)


CONVOLUTIONS = [
    dict(kernel_size=3, padding=1),
    dict(kernel_size=3, stride=2, padding=1, bias=False),
    dict(kernel_size=1),
    dict(kernel_size=(3, 5), padding=(0, 2), dilation=(2, 1)),
    dict(kernel_size=7, stride=(2, 3), padding=3),
    dict(kernel_size=3, padding=1, groups=2),
    dict(kernel_size=3, padding=1, groups=16),
    dict(kernel_size=2, stride=2),
    dict(kernel_size=3, padding=5),
]


@pytest.mark.parametrize("options", CONVOLUTIONS, ids=str)
def test_convolutions_of_any_size_and_format(options):
    cresset.manual_seed(0)
    module = Layer(nn.Conv2d(16, 24 if options.get("groups") != 16 else 32, **options), "relu")
    engine = compiled(module, cresset.randn(1, 16, 12, 12))
    assert "convolution_packed" in program(engine) and "aten::relu" not in program(engine)
    for n, h, w in [(1, 12, 12), (2, 9, 17), (5, 8, 30), (1, 40, 7), (0, 12, 12)]:
        check(module, engine, cresset.randn(n, 16, h, w))
    check(module, engine, cresset.randn(2, 16, 9, 12).contiguous(memory_format=cresset.channels_last))
    check(module, engine, cresset.randn(1, 1, 9, 12).expand(2, 16, 9, 12))
    check(module, engine, cresset.randn(12, 16, 9, 2).transpose(0, 3)[:, :, 1:].contiguous())


@pytest.mark.parametrize("activation, joined, before", [*itertools.product(ACTIVATIONS, [None], [False]), *itertools.product(["relu", "silu", "hardsigmoid"], ["add", "mul"], [False, True])])
@pytest.mark.parametrize("linear", [False, True], ids=["conv", "linear"])
def test_what_follows_is_part_of_it(linear, activation, joined, before):
    cresset.manual_seed(0)
    module = Layer(nn.Linear(24, 16) if linear else nn.Conv2d(24, 16, 3, padding=1), activation, joined, before)
    x, other = (cresset.randn(3, 5, 24), cresset.randn(3, 5, 16)) if linear else (cresset.randn(2, 24, 6, 7), cresset.randn(2, 16, 6, 7))
    inputs = (x, other) if joined else (x,)
    engine = compiled(module, *inputs)
    rest = [line for line in program(engine).splitlines() if "= aten::" in line]
    assert not rest and ("linear_packed" if linear else "convolution_packed") in program(engine)
    check(module, engine, *inputs)
    if joined:  # of a size that is broadcast, and of another type
        narrow = other[..., :1] if linear else other[:, :, :1, :1]
        check(module, engine, x, narrow)
        check(module, engine, x, other.double(), tolerance=1e-5)


SEVERAL = [
    lambda x: F.hardtanh(F.hardtanh(x, -0.2, 2.0), -1.0, 0.3),
    lambda x: F.leaky_relu(F.leaky_relu(x, 0.5) - 0.0, 0.1).relu(),
    lambda x: F.hardsigmoid(cresset.clamp(x, -1, 2)),
    lambda x: cresset.clamp(F.hardsigmoid(x), 0.25, 0.5),
    lambda x: F.leaky_relu(x.relu(), 0.5),
    lambda x: F.leaky_relu(F.leaky_relu(x, 0.5), 0.1),
]


@pytest.mark.parametrize("steps", SEVERAL)
@pytest.mark.parametrize("linear", [False, True], ids=["conv", "linear"])
def test_several_steps_of_one_kind(linear, steps):
    """oneDNN 2.6 takes the numbers of the first of them for all."""

    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 16) if linear else nn.Conv2d(8, 16, 3)

        def forward(self, x):
            return steps(self.layer(x))

    cresset.manual_seed(0)
    module = Steps()
    x = cresset.randn(5, 8) * 3 if linear else cresset.randn(2, 8, 6, 6) * 3
    check(module, compiled(module, x), x)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(threads):
    before = cresset.get_num_threads()
    cresset.manual_seed(0)
    try:
        cresset.set_num_threads(threads)
        for module, shapes in [
            (Layer(nn.Conv2d(32, 64, 3, 2, 1), "relu", "add"), [((n, 32, h, h), (n, 64, (h + 1) // 2, (h + 1) // 2)) for n, h in [(1, 56), (2, 33), (3, 30), (7, 40)]]),
            (Layer(nn.Conv2d(8, 64, 5, padding=12, dilation=6), "tanh", "add"), [((1, 8, 60, 60), (1, 64, 60, 60)), ((1, 8, 61, 50), (1, 64, 61, 50))]),
            (Layer(nn.Linear(512, 700), "gelu", "add"), [((n, 512), (n, 700)) for n in [1, 2, 65, 300]]),
        ]:
            engine = compiled(module, *(cresset.randn(s) for s in shapes[0]))
            for given in shapes:
                check(module, engine, *(cresset.randn(s) for s in given), tolerance=1e-4)
    finally:
        cresset.set_num_threads(before)


def test_many_threads_run_one_engine_with_different_sizes():
    cresset.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    engine = compiled(module, cresset.randn(1, 3, 16, 16))
    inputs = [cresset.randn(1 + i % 3, 3, 10 + i, 30 - i) for i in range(16)]
    with cresset.inference_mode():
        expected = [module(x) for x in inputs]
    wrong = []

    def work(first):
        for k in range(48):
            i = (first * 5 + k) % len(inputs)
            with cresset.inference_mode():
                if not cresset.allclose(engine(inputs[i]), expected[i], atol=1e-5):
                    wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert not wrong


def test_who_wants_to_see_operators_sees_them():
    cresset.manual_seed(0)
    module = Layer(nn.Conv2d(3, 8, 3), "relu").eval()
    x = cresset.randn(2, 3, 8, 8)
    engine = compiled(module, x)
    leaf, same = x.clone().requires_grad_(), x.clone().requires_grad_()
    engine(leaf).square().sum().backward()
    module(same).square().sum().backward()
    cresset.testing.assert_close(leaf.grad, same.grad)
    batch = cresset.randn(4, 2, 3, 8, 8)
    cresset.testing.assert_close(cresset.vmap(engine)(batch), cresset.stack([module(b) for b in batch]).detach())
    _, tangent = cresset.func.jvp(engine, (x,), (cresset.ones_like(x),))
    cresset.testing.assert_close(tangent, cresset.func.jvp(module, (x,), (cresset.ones_like(x),))[1].detach())
    row = cresset.randn(2, 8)
    with cresset.autocast("cpu", cresset.bfloat16), cresset.no_grad():
        assert compiled(nn.Linear(8, 8), row)(row).dtype == cresset.bfloat16


def test_nan_and_infinity_stay():
    module = nn.Sequential(nn.Conv2d(1, 8, 1, bias=False), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.ReLU6()).eval()
    x = cresset.tensor([float("nan"), 1.0, float("inf"), -float("inf")]).view(1, 1, 2, 2)
    engine = compiled(module, cresset.ones(1, 1, 2, 2))
    assert "convolution_packed" in program(engine)
    with cresset.inference_mode():
        cresset.testing.assert_close(engine(x), module(x), equal_nan=True)
        module[0].weight[0] = float("nan")
        cresset.testing.assert_close(compiled(module, x.nan_to_num(0, 1, -1))(cresset.ones(1, 1, 2, 2)), module(cresset.ones(1, 1, 2, 2)), equal_nan=True)


class Residual(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.a, self.b, self.short, self.norm = nn.Conv2d(a, b, 3, 2, 1), nn.Conv2d(b, b, 3, 1, 1), nn.Conv2d(a, b, 1, 2), nn.BatchNorm2d(b)

    def forward(self, x):
        y = self.norm(self.b(self.a(x).relu()))
        return (y + self.short(x)).relu(), y.flatten(1)


def test_a_block_with_results_that_are_used_twice():
    cresset.manual_seed(0)
    module = nn.Sequential(Residual(8, 16)).eval()
    engine = compiled(module, cresset.randn(2, 8, 10, 10))
    for x in (cresset.randn(2, 8, 10, 10), cresset.randn(3, 8, 7, 5)):
        with cresset.inference_mode():
            for a, b in zip(engine(x), module(x)):
                cresset.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)
                assert a.stride() == b.stride()


def test_archives_and_other_types(tmp_path):
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4)).eval()
    x = cresset.randn(1, 3, 8, 8)
    engine = compiled(module, x)
    engine.save(tmp_path / "net.cre")
    loaded = cresset.jit.load(tmp_path / "net.cre")
    assert "linear_packed" in program(loaded)
    check(module, loaded, x)
    double = compiled(module.double(), x.double())
    assert "packed" not in program(double)
    check(module, double, x.double())


def test_errors_are_the_interpreters():
    engine = compiled(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), cresset.randn(1, 3, 8, 8))
    with pytest.raises(RuntimeError, match="expected input.*to have 3 channels, but got 4 channels instead"):
        engine(cresset.randn(1, 4, 8, 8))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        engine(cresset.randn(1, 3, 2, 8))
    packed = cresset.ops.cresset.pack_convolution(cresset.randn(4, 3, 1, 1), None, [1, 1], [0, 0], [1, 1], 1, ["add"], [0.0, 0.0])
    with pytest.raises(ValueError, match="convolution_packed: 1 operands were required; 0 were given"):
        cresset.ops.cresset.convolution_packed(cresset.randn(1, 3, 4, 4), [], packed)
    with pytest.raises(ValueError, match="there is no step 'sine'; there are: add, mul, clamp"):
        cresset.ops.cresset.pack_convolution(cresset.randn(4, 3, 1, 1), None, [1, 1], [0, 0], [1, 1], 1, ["sine"], [0.0, 0.0])


GOOD = dict(weight=(4, 2, 1, 1), bias=(4,), stride=[1, 1], padding=[0, 0], dilation=[1, 1], groups=2)
BAD = [
    ("a weight of 4 dimensions and dtype float32 on the CPU, with elements, was required", dict(weight=(4, 2, 0, 1))),
    ("a weight of 4 dimensions", dict(weight=(0, 2, 1, 1), bias=None)),
    ("a bias of 4 elements and dtype float32 on the CPU was required", dict(bias=(3,))),
    ("groups that divide 4 were required; got 0", dict(groups=0)),
    ("groups that divide 4 were required; got 3", dict(groups=3)),
    ("two numbers from 1 up were required for stride", dict(stride=[1, 0])),
    ("two numbers from 0 up were required for padding", dict(padding=[-1, 0])),
    ("two numbers from 0 up were required for padding", dict(padding=[2**62, 0])),
    ("two numbers from 1 up were required for dilation", dict(dilation=[0])),
]


@pytest.mark.parametrize("words, change", BAD)
def test_what_cannot_be_packed_is_refused(words, change):
    a = {**GOOD, **change}
    with pytest.raises(ValueError, match=words):
        cresset.ops.cresset.pack_convolution(cresset.zeros(a["weight"]), a["bias"] and cresset.zeros(a["bias"]), a["stride"], a["padding"], a["dilation"], a["groups"], [], [])


def test_only_single_places_are_linear():
    packed = cresset.ops.cresset.pack_convolution(cresset.zeros(4, 4, 3, 3), None, [1, 1], [1, 1], [1, 1], 1, [], [])
    with pytest.raises(ValueError, match="linear_packed: a packed weight of 1 x 1 without stride, padding and groups was required"):
        cresset.ops.cresset.linear_packed(cresset.zeros(5, 4), [], packed)


class Numbers(nn.Module):
    def __init__(self, stride, padding, dilation, groups):
        super().__init__()
        self.weight, self.stride, self.padding, self.dilation, self.groups = cresset.ones(2, 3, 1, 1), stride, padding, dilation, groups

    def forward(self, x):
        return cresset.conv2d(x, self.weight, None, self.stride, self.padding, self.dilation, self.groups).relu()


@pytest.mark.parametrize("numbers", [((0, 1), (0, 0), (1, 1), 1), ((1, 1), (-1, 0), (1, 1), 1), ((1, 1), (0, 0), (0, 0), 1), ((1, 1), (0, 0), (1, 1), 0)], ids=str)
def test_graphs_that_are_wrong_say_what_the_operator_says(numbers):
    """Such graphs come out of files; they neither stop the building nor the process."""
    module = cresset.jit.script(Numbers(*numbers).eval())
    engine = cresset.engine.compile(module, min_block_size=1)
    assert "aten::_convolution" in program(engine)
    errors = []
    for run in (module, engine):
        with pytest.raises(RuntimeError) as error:
            run(cresset.ones(1, 3, 4, 4))
        errors.append(str(error.value).strip().splitlines()[-1])
    assert errors[0] == errors[1]


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(6))

    def forward(self, x):
        seen = []
        for layer in self.layers:
            x = nn.functional.silu(layer(x))
            seen.append(x.mean([2, 3]))
        return x, cresset.stack(seen)


def test_results_of_planned_runs_are_the_callers():
    """Intermediate results share memory; what a run gave is not touched by those after it, also of other sizes and in other threads."""
    cresset.manual_seed(0)
    model = Tower().eval()
    with cresset.no_grad():
        engine = cresset.engine.compile(model, inputs=[cresset.lowering.Input((-1, 8, -1, -1))])
        inputs = [cresset.randn(n, 8, h, 24) for n, h in ((1, 24), (2, 40), (1, 24))]
        expected = [model(x) for x in inputs]

        def runs(kept):
            for _ in range(5):
                kept.extend(engine(x) for x in inputs)

        everyone = [[] for _ in range(3)]
        threads = [threading.Thread(target=runs, args=(kept,)) for kept in everyone]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for kept in everyone:
            assert len(kept) == 15
            for i, results in enumerate(kept):
                for ours, theirs in zip(results, expected[i % 3], strict=True):
                    cresset.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        arena, blocks = cresset.engine.profile(engine, inputs[1]).memory["engine_0"]
        assert 3 * arena < blocks, "six layers' results lie in the memory of two"


@pytest.mark.parametrize("name", ["gelu", "hardswish", "sigmoid", "silu"])
def test_activations_behind_a_layer(name):
    """Of every size, beside PyTorch's formulas in double."""
    x = cresset.tensor([-1e4, -120.0, -88.0, -87.0, -20.0, -5.7, -3.0, -1.0, -0.0, 0.0, 1e-20, 0.5, 3.0, 5.6, 20.0, 87.5, 1e4] * 4)
    layer = nn.Conv2d(1, 1, 1)
    with cresset.no_grad():
        layer.weight.fill_(1.0), layer.bias.zero_()
        activation = getattr(nn, {"gelu": "GELU", "hardswish": "Hardswish", "sigmoid": "Sigmoid", "silu": "SiLU"}[name])()
        engine = cresset.engine.compile(nn.Sequential(layer, activation).eval(), inputs=[cresset.lowering.Input((1, 1, 1, -1))], min_block_size=1)
        got = engine(x[None, None, None]).flatten()
        cresset.testing.assert_close(got.double(), activation(x.double()), rtol=1e-6, atol=4e-7)
        assert "aten::" not in engine.engine_0.program()


def test_images_larger_than_the_caches_with_an_activation():
    """Their rows are computed in pieces, each with its activation, at the borders, too."""
    cresset.manual_seed(0)
    with cresset.no_grad():
        for groups, stride, kernel, n in ((1, 1, 3, 1), (16, 2, 5, 1), (1, 1, 1, 2), (16, 1, 3, 9)):
            model = nn.Sequential(nn.Conv2d(16, 48, kernel, stride=stride, padding=kernel // 2, groups=groups), nn.SiLU()).eval()
            engine = cresset.engine.compile(model, inputs=[cresset.lowering.Input((-1, 16, -1, -1))], min_block_size=1)
            x = cresset.randn(n, 16, 101, 77)
            for _ in range(3):
                cresset.testing.assert_close(engine(x), model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inputs, outputs", [(1, 1), (7, 33), (64, 256), (769, 300), (1540, 513), (1024, 517), (30, 31)])
def test_rows_of_linear_layers(inputs, outputs):
    """Panels, chunks and blocks of inputs at their edges; numbers of rows around what a tile has; threads that share rows or outputs; weights with
    and without a copy; beside the layer in double precision."""
    cresset.manual_seed(0)
    layer = nn.Linear(inputs, outputs, bias=outputs != 31)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, y):
            return cresset.relu(F.silu(self.layer(x)) * y + y)

    before = cresset.get_num_threads()
    with cresset.no_grad():
        net = Net().eval()
        engine = cresset.engine.compile(net, inputs=[cresset.lowering.Input((-1, inputs)), cresset.lowering.Input((-1, outputs))], min_block_size=1)
        exact = copy.deepcopy(net).double()
        try:
            for rows, threads in ((1, 1), (2, 3), (5, 1), (11, 2), (12, 1), (13, 1), (24, 3), (33, 1), (100, 3), (257, 2)):
                cresset.set_num_threads(threads)
                x, y = cresset.randn(rows, inputs), cresset.randn(outputs, rows).t()
                cresset.testing.assert_close(engine(x, y), exact(x.double(), y.double()).float(), rtol=1e-4, atol=1e-4)
        finally:
            cresset.set_num_threads(before)
        assert engine(cresset.randn(0, inputs), cresset.randn(0, outputs)).shape == (0, outputs)


def test_convolutions_of_many_weights_and_few_places():
    """1 x 1 over images of a few places, which the products of linear layers take with AVX-512: layouts, batches, operands."""
    cresset.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.up = nn.Conv2d(512, 128, 1), nn.Conv2d(128, 512, 1, bias=False)

        def forward(self, x):
            return F.relu6(self.up(F.hardswish(self.down(x)))) + x

    with cresset.no_grad():
        net = Net().eval()
        engine = cresset.engine.compile(net, inputs=[cresset.lowering.Input((-1, 512, -1, -1))], min_block_size=1)
        for sizes in ((1, 512, 7, 7), (3, 512, 5, 1), (2, 512, 20, 20), (1, 512, 1, 1)):
            for x in (cresset.randn(sizes), cresset.randn(sizes).contiguous(memory_format=cresset.channels_last)):
                cresset.testing.assert_close(engine(x), net(x), rtol=1e-4, atol=1e-4)


def test_large_weights_are_not_copied():
    """Where the products are our own: a second copy of its weights is what a large model cannot have."""
    level = cresset.backends.cpu.get_cpu_capability()
    if level not in ("AVX2", "AVX512"):
        pytest.skip(f"{level}: oneDNN's products, of weights in its own layout")
    layer = nn.Linear(1024, 1024).eval()
    before = cresset._C._cpu_memory_stats()[0]
    with cresset.no_grad():
        engine = cresset.engine.compile(layer, inputs=[cresset.lowering.Input((-1, 1024))], min_block_size=1)
        for rows in (1,) if level == "AVX2" else (1, 5, 40):
            engine(cresset.randn(rows, 1024))
    assert "linear_packed" in program(engine) and cresset._C._cpu_memory_stats()[0] - before < layer.weight.nbytes / 8
