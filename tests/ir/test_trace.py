"""Tracing: what a trace does is what the program does, for other values and other batch sizes; graphs, warnings and errors."""

import threading
import warnings

import pytest

import cresset
import cresset.nn.functional as F
from cresset import _C, nn
from cresset.testing import assert_close
from cresset.testing.models import MODELS, build

jit = cresset.jit


def kinds(graph):
    return [n.kind().split("::")[1] for n in graph.nodes() if n.kind() != "prim::Constant"]


def rand(*shape):
    return cresset.rand(*shape, generator=cresset.Generator().manual_seed(sum(shape)))


# ---- functions: traced with one shape, run with another

FUNCTIONS = {
    "view": lambda x: x.view(x.size(0), -1),
    "view_of_shape": lambda x: x.view(*x.shape[:2], -1),
    "view_as_size": lambda x: x.view(x.size()),
    "sizes_multiplied": lambda x: x.reshape(x.shape[0] * x.shape[1], -1) + x.size(1) * 2.0,
    "size_divided": lambda x: x.view(x.size(0), 2, x.size(-1) // 2, -1),
    "numel": lambda x: x.reshape(x.numel()),
    "product_of_sizes": lambda x: x.reshape(x.shape.numel()),
    "slice_of_size": lambda x: x[:, : x.size(1) - 1],
    "slices": lambda x: x[1:, ..., x.size(2) // 2 :, None],
    "select_last": lambda x: x[x.size(0) - 1],
    "full_slices_first": lambda x: x[:, :, 1 : x.size(2)],
    "arange": lambda x: cresset.arange(x.size(1)) + x[0, :, 0],
    "full": lambda x: cresset.full((2, x.size(0)), 1.5),
    "zeros": lambda x: cresset.zeros(x.shape[0], x.size(1)),
    "new_zeros": lambda x: x.new_zeros(x.size(0), 3),
    "expand": lambda x: x[:1].expand(x.size(0), -1, -1),
    "repeat": lambda x: x.repeat(x.size(0), 1, 1),
    "narrow": lambda x: x.narrow(2, 0, x.size(2) - 1),
    "root_of_size": lambda x: x / (x.size(-1) ** 0.5),
    "number_left": lambda x: 1 - x / 2 + 3 // (x + 1),
    "in_place": lambda x: x.clone().add_(1).mul_(x).relu_(),
    "in_place_on_view": lambda x: _written(x.clone()),
    "out": lambda x: cresset.add(x, x, out=cresset.empty(0)),
    "index_by_mask": lambda x: x[x > 0.5].sum(),
    "index_by_list": lambda x: x[:, [0, 1]],
    "index_by_tensor": lambda x: x[x.sum((1, 2)).argmax()],
    "split": lambda x: x.split(1, 1),
    "chunk": lambda x: x.chunk(2, 2)[1],
    "unbind": lambda x: cresset.stack(x.unbind(1)),
    "topk": lambda x: cresset.topk(x, 2),
    "cat": lambda x: cresset.cat([x, x * 2], dim=1),
    "where": lambda x: cresset.where(x > 0.5, x, 0.0),
    "einsum": lambda x: cresset.einsum("bij,bkj->bik", x, x),
    "cast": lambda x: x.double().to(cresset.float32),
    "constant": lambda x: x + CONSTANT,
    "data": lambda x: x.data * 2,
    "detach": lambda x: x.detach() * 2,
    "interpolate": lambda x: F.interpolate(x, scale_factor=2.0),
    "pad": lambda x: F.pad(x, (1, 1), mode="reflect"),
    "conv": lambda x: F.conv1d(x, WEIGHT, padding=1),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "dropout_of_nothing": lambda x: F.dropout(x, 0.0, True),
    "normalize": lambda x: F.normalize(F.layer_norm(x, x.shape[-1:])),
    "custom_function": lambda x: Doubled.apply(x) + 1,
    "tuple": lambda x: (x, (x + 1, x.shape)),
}
CONSTANT, WEIGHT = cresset.tensor([1.0, 2.0, 3.0, 4.0]), rand(3, 4, 3)


def _written(x):
    x[0] = 1
    x[:, 1] += 2
    x[x > 1.5] = 0
    return x


class Doubled(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def same(found, expected):
    if isinstance(expected, cresset.Size):
        expected = tuple(cresset.tensor(n) for n in expected)
    if isinstance(expected, (tuple, list)):
        return len(found) == len(expected) and all(same(a, b) for a, b in zip(found, expected))
    assert_close(found, expected)
    return True


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_with_other_sizes(name):
    f = FUNCTIONS[name]
    traced = jit.trace(f, rand(2, 4, 4))
    traced.graph.lint()
    for shape in [(2, 4, 4), (5, 4, 4)] + ([(3, 4, 4)] if name.startswith("index") else []):
        x = cresset.rand(shape)
        assert same(traced(x), f(x))


def test_nothing_is_recorded_without_a_trace():
    assert not jit.is_tracing()
    jit.trace(lambda x: x + 1, rand(2))
    assert not jit.is_tracing()
    assert isinstance(rand(2, 3).shape[0], int)


def test_is_tracing_inside():
    seen = []

    def f(x):
        seen.append(jit.is_tracing())
        return x + 1

    jit.trace(f, rand(2), check_trace=False)
    assert seen == [True]


# PyTorch's traces of these have the same operators; what is left out is computed while tracing.
OPERATORS = {
    "conv2d": (lambda x: F.conv2d(x, cresset.ones(3, 2, 3, 3)), ["_convolution"]),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), ["batch_norm"]),
    "dropout": (lambda x: F.dropout(x, 0.5, False), ["dropout"]),
    "softmax": (lambda x: F.softmax(x, -1), ["softmax"]),
    "matmul": (lambda x: x @ x, ["matmul"]),
    "flatten": (lambda x: x.flatten(1), ["flatten"]),
    "linear": (lambda x: F.linear(x, cresset.ones(3, 8)), ["linear"]),
    "power": (lambda x: x**2, ["pow"]),
    "negative": (lambda x: -x, ["neg"]),
    "max_pool": (lambda x: F.max_pool2d(x, 2), ["max_pool2d"]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    f, expected = OPERATORS[name]
    found = kinds(jit.trace(f, rand(1, 2, 8, 8)).graph)
    assert [k for k in found if k not in ("ListConstruct", "ones")] == expected


# ---- inputs and outputs


def test_nested_inputs_and_outputs():
    def f(x, y):
        return (x[0] + x[1]["k"], [y, y * 2])

    a, b = (rand(2, 3), {"k": rand(3)}), rand(3)
    traced = jit.trace(f, (a, b), strict=False)
    other = (rand(4, 3), {"k": rand(3) + 1})
    assert same(traced(other, b), f(other, b))
    assert "%x : (Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), Dict(str, Tensor))" in traced.graph.str(False)


def test_dictionary_output_without_strict():
    traced = jit.trace(lambda x: {"a": x, "b": (x * 2)}, rand(3), strict=False)
    assert set(traced(rand(3))) == {"a", "b"}


def test_one_tensor_given_twice_is_two_inputs():
    x = rand(3)
    traced = jit.trace(lambda a, b: a - b, (x, x))
    assert_close(traced(x, x * 2), -x)


def test_keyword_inputs():
    traced = jit.trace(lambda x, y: x - y, example_kwarg_inputs={"y": rand(3), "x": rand(3) + 1})
    assert_close(traced(y=rand(3), x=rand(3) * 3), rand(3) * 2)


def test_no_inputs():
    assert_close(jit.trace(lambda: cresset.ones(2) * 2, ())(), cresset.full((2,), 2.0))


def test_gradients_go_through():
    w = nn.Linear(3, 3)
    traced = jit.trace(w, rand(2, 3))
    traced(rand(2, 3)).sum().backward()
    assert_close(w.weight.grad, rand(2, 3).sum(0).expand(3, 3))


# ---- modules

MODULES = {
    "Linear": (lambda: nn.Linear(4, 3), (2, 4), (5, 4)),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3, padding=1, groups=1), (1, 3, 8, 8), (3, 3, 8, 8)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2), (1, 3, 8, 8), (3, 3, 8, 8)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), (2, 3, 4, 4), (5, 3, 4, 4)),
    "LayerNorm": (lambda: nn.LayerNorm(4), (2, 4), (5, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3), (5, 4, 3)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), (1, 3, 8, 8), (3, 3, 6, 6)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(2), (1, 3, 8, 8), (3, 3, 6, 6)),
    "Flatten": (lambda: nn.Flatten(), (2, 3, 4), (5, 3, 4)),
    "Dropout": (lambda: nn.Dropout(0.5), (2, 3), (5, 3)),
    "Identity": (lambda: nn.Identity(), (2, 3), (5, 3)),
    "GELU": (lambda: nn.GELU(), (2, 3), (5, 3)),
    "Softmax": (lambda: nn.Softmax(-1), (2, 3), (5, 3)),
    "PReLU": (lambda: nn.PReLU(), (2, 3), (5, 3)),
    "LSTM": (lambda: nn.LSTM(4, 5, 2, batch_first=True), (2, 3, 4), (5, 3, 4)),
    "GRU": (lambda: nn.GRU(4, 5), (3, 2, 4), (3, 5, 4)),
    "LSTMCell": (lambda: nn.LSTMCell(4, 5), (2, 4), (5, 4)),
    "Bilinear": (lambda: Applied(nn.Bilinear(4, 4, 3)), (2, 4), (5, 4)),
    "MultiheadAttention": (lambda: Applied(nn.MultiheadAttention(4, 2, batch_first=True), 3), (2, 3, 4), (5, 3, 4)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (2, 3, 4), (5, 3, 4)),
    "Upsample": (lambda: nn.Upsample(scale_factor=2), (1, 2, 3, 3), (2, 2, 3, 3)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (1, 4, 3, 3), (2, 4, 3, 3)),
    "Sequential": (lambda: nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2))), (2, 4), (5, 4)),
}


class Applied(nn.Module):
    """Gives its only input to all places of a module."""

    def __init__(self, inner, times=2):
        super().__init__()
        self.inner, self.times = inner, times

    def forward(self, x):
        return self.inner(*[x] * self.times)


@pytest.mark.filterwarnings("ignore::cresset.jit.TracerWarning")
@pytest.mark.parametrize("name", MODULES)
def test_modules_with_other_sizes(name):
    make, shape, other = MODULES[name]
    module = make().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jit.TracerWarning)
        traced = jit.trace(module, rand(*shape))
    x = cresset.rand(other)
    assert same(traced(x), module(x))
    traced.inlined_graph.lint()


@pytest.mark.parametrize("name", MODELS)
def test_example_models(name):
    model, inputs, _ = build(name)
    model.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jit.TracerWarning)
        traced = jit.trace(model, inputs)
    doubled = tuple(cresset.cat([x, x.flip(0)]) for x in inputs)
    assert same(traced(*doubled), model(*doubled))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.register_buffer("shift", cresset.ones(3))

    def forward(self, x, unused=None):
        return self.lin(x) + self.shift, x * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.tail = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.scale = nn.Parameter(cresset.ones(3) * 2)
        self.plain = cresset.ones(4) * 3

    def forward(self, x):
        a, _ = self.block(x)
        b, _ = self.block(a)
        return self.tail(b * self.scale) * self.plain + self.block.lin.weight.sum()


def test_submodules_are_methods_and_attributes():
    net = Net()
    traced = jit.trace(net, rand(2, 3))
    assert isinstance(traced, jit.TopLevelTracedModule)
    assert isinstance(traced, jit.ScriptModule)
    assert [n for n, _ in traced.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert traced.block.lin.weight is net.block.lin.weight
    assert traced.plain is net.plain
    calls = [(n.s("name"), n.inputsAt(0).node().s("name")) for n in traced.graph.findAllNodes("prim::CallMethod")]
    assert calls == [("forward", "block"), ("forward1", "block"), ("forward", "tail")]
    # An unused result of a module is no part of its method.
    assert kinds(traced.block.forward.graph) == ["GetAttr", "GetAttr", "CallMethod", "add"]
    assert "aten::linear" not in traced.graph.str(False)
    scopes = {n.scopeName() for n in traced.inlined_graph.nodes() if n.kind() == "aten::linear"}
    assert scopes == {"__module.block/__module.block.lin", "__module.tail/__module.tail.0"}
    x = rand(5, 3)
    assert_close(traced(x), net(x))
    assert_close(traced.tail(x), net.tail(x))


def test_shared_modules_are_one_object():
    lin = nn.Linear(3, 3)
    traced = jit.trace(nn.Sequential(lin, nn.ReLU(), lin), rand(2, 3))
    x = rand(5, 3)
    assert_close(traced(x), lin(lin(x).relu()))
    assert traced[0] is traced[2] if hasattr(traced, "__getitem__") and traced._concrete else True


def test_weights_are_shared_and_seen_by_the_trace():
    lin = nn.Linear(3, 3)
    traced = jit.trace(lin, rand(2, 3))
    with cresset.no_grad():
        lin.weight.zero_()
        lin.bias.fill_(2)
    assert_close(traced(rand(2, 3)), cresset.full((2, 3), 2.0))


def test_hooks_are_recorded():
    lin = nn.Linear(3, 3)
    lin.register_forward_hook(lambda m, i, o: o * 2)
    lin.register_forward_pre_hook(lambda m, i: (i[0] + 1,))
    traced = jit.trace(nn.Sequential(lin), rand(2, 3))
    x = rand(5, 3)
    assert_close(traced(x), (F.linear(x + 1, lin.weight, lin.bias)) * 2)


def test_training_statistics_are_written():
    norm = nn.BatchNorm1d(3)
    traced = jit.trace(norm, rand(4, 3), check_trace=False)
    before = int(norm.num_batches_tracked)
    traced(rand(4, 3))
    assert int(norm.num_batches_tracked) == before + 1


def test_trace_module_with_several_methods():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)

        def forward(self, x):
            return self.lin(x)

        def twice(self, x):
            return self.lin(self.lin(x))

    two = Two()
    traced = jit.trace_module(two, {"forward": rand(2, 3), "twice": (rand(2, 3),)})
    x = rand(5, 3)
    assert_close(traced(x), two(x))
    assert_close(traced.twice(x), two.twice(x))


def test_bound_forward_is_its_module():
    lin = nn.Linear(3, 3)
    assert_close(jit.trace(lin.forward, rand(2, 3))(rand(5, 3)), lin(rand(5, 3)))


# ---- graphs inside of traces


@jit.script
def flipped(x: cresset.Tensor):
    if x.sum() > 0:
        return x
    return -x


@jit.script
def head(x: cresset.Tensor, n: int):
    return x[:n]


def test_scripted_functions_keep_their_branches():
    traced = jit.trace(lambda x: flipped(x) + 1, rand(3))
    assert kinds(traced.graph) == ["CallFunction", "add"]
    assert_close(traced(-rand(3)), rand(3) + 1)


def test_sizes_given_to_scripts_and_operators_stay_variable():
    for f in [
        lambda x: head(x, x.size(0) - 1),
        lambda x: cresset.ops.aten.narrow(x, 0, 0, x.size(0) - 1),
        lambda x: cresset.ops.aten.view(x[1:], [x.size(0) - 1, -1]),
    ]:
        traced = jit.trace(f, rand(3, 2))
        assert_close(traced(rand(6, 2)), f(rand(6, 2)))


def test_scripted_modules_inside_of_traces():
    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)

        def forward(self, x):
            if bool(x.sum() > 0):
                return self.lin(x)
            return x

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.branch = jit.script(Branch())

        def forward(self, x):
            return self.branch(x) * 2

    outer = Outer()
    traced = jit.trace(outer, rand(2, 3))
    assert kinds(traced.graph) == ["GetAttr", "CallMethod", "mul"]
    for x in (rand(2, 3), -rand(2, 3)):
        assert_close(traced(x), outer(x))


def test_traced_modules_inside_of_scripts():
    class Uses(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = jit.trace(nn.Linear(3, 3), rand(2, 3))

        def forward(self, x):
            if bool(x.sum() > 0):
                return self.inner(x)
            return x

    uses = Uses()
    scripted = jit.script(uses)
    for x in (rand(5, 3), -rand(5, 3)):
        assert_close(scripted(x), uses(x))


def test_a_script_must_give_tensors():
    @jit.script
    def rows(x: cresset.Tensor):
        return x.size(0)

    with pytest.raises(RuntimeError, match="Tracer cannot set value trace for type Int. Supported types are tensor"):
        jit.trace(lambda x: x * rows(x), rand(3))


def test_traced_modules_are_saved_and_loaded(tmp_path):
    model, inputs, _ = build("cnn")
    traced = jit.trace(model.eval(), inputs)
    traced.save(str(tmp_path / "cnn.pt"))
    loaded = jit.load(str(tmp_path / "cnn.pt"))
    assert_close(loaded(*inputs), model(*inputs))


def script_of(text, name):
    return _C._create_function_from_graph(name, _C.parse_ir(text))


CLAMPED = """graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %s : Tensor = aten::sum(%x, %none)
  %positive : Tensor = aten::gt(%s, %zero)
  %c : bool = aten::Bool(%positive)
  %r : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      %n : Tensor = aten::neg(%x)
      -> (%n)
  return (%r)
"""


def test_functions_with_graphs_stay_calls():
    flip = script_of(CLAMPED, "flip")
    traced = jit.trace(lambda x: flip(x) + flip(x * 2), rand(3))
    assert kinds(traced.graph).count("CallFunction") == 2
    assert_close(traced(-rand(3)), rand(3) * 3)  # the branch is taken anew
    assert "prim::If" in traced.inlined_graph.str(False)


def test_traced_modules_inside_of_traces_stay_calls():
    inner = jit.trace(nn.Linear(3, 3), rand(2, 3))

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x) * 2

    traced = jit.trace(Outer(), rand(2, 3))
    assert kinds(traced.graph) == ["GetAttr", "CallMethod", "mul"]
    assert_close(traced(rand(5, 3)), inner(rand(5, 3)) * 2)


def test_a_script_is_not_traced_again():
    inner = jit.trace(nn.Linear(3, 3), rand(2, 3))
    with pytest.warns(UserWarning, match="The input to trace is already a ScriptModule, tracing it is a no-op"):
        assert jit.trace(inner, rand(2, 3)) is inner


def test_custom_operators_are_recorded_by_name():
    @cresset.library.custom_op("traced_test::triple", mutates_args=())
    def triple(x: cresset.Tensor) -> cresset.Tensor:
        return x * 3

    traced = jit.trace(lambda x: triple(x) + 1, rand(3))
    assert "traced_test::triple" in traced.graph.str(False)
    assert_close(traced(rand(3)), rand(3) * 3 + 1)


def test_threads_trace_for_themselves():
    results = {}

    def work(i):
        results[i] = jit.trace(lambda x: x.view(x.size(0), -1) + i, rand(2, 3, 4))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, traced in results.items():
        assert kinds(traced.graph) == ["size", "NumToTensor", "Int", "ListConstruct", "view", "add"]
        assert_close(traced(rand(2, 3, 4)), rand(2, 3, 4).view(2, -1) + i)


# ---- warnings

CONVERTED = (
    "Converting a tensor to a {} might cause the trace to be incorrect. We can't record the data flow of Python values, so this value will "
    "be treated as a constant in the future. This means that the trace might not generalize to other inputs!"
)
REGISTERED = "{} results are registered as constants in the trace."
WARNINGS = [
    (lambda x: x if x.sum() > 0 else -x, CONVERTED.format("Python boolean")),
    (lambda x: x * int(x.sum()), CONVERTED.format("Python integer")),
    (lambda x: x * float(x.sum()), CONVERTED.format("Python float")),
    (lambda x: x * x.sum().item(), CONVERTED.format("Python number")),
    (lambda x: x * [1, 2, 3][x.argmax()], CONVERTED.format("Python index")),
    (lambda x: x * complex(x.sum()).real, CONVERTED.format("Python complex")),
    (lambda x: x * x.tolist()[0], CONVERTED.format("Python list")),
    (lambda x: x * float(x.numpy()[0]), CONVERTED.format("NumPy array")),
    (lambda x: x * len(x), "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would be tensor.shape[0]"),
    (lambda x: sum(x), "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different shape won't change"),
    (lambda x: x + cresset.tensor(3.0), REGISTERED.format("torch.tensor")),
    (lambda x: x + cresset.as_tensor([1.0, 2.0, 3.0]), REGISTERED.format("torch.as_tensor")),
    (lambda x: [x, x], "Encountering a list at the output of the tracer might cause the trace to be incorrect"),
]


@pytest.mark.parametrize(("f", "words"), WARNINGS)
def test_warnings(f, words):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        jit.trace(f, rand(3), check_trace=False)
    texts = [str(w.message) for w in seen if w.category is jit.TracerWarning]
    assert any(t.startswith(words) for t in texts), texts


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("tuple",)])
def test_no_warnings_where_nothing_is_frozen(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", jit.TracerWarning)
        jit.trace(FUNCTIONS[name], rand(2, 4, 4))


# ---- the check


def test_random_programs_warn():
    with pytest.warns(jit.TracerWarning, match="Trace had nondeterministic nodes. Did you forget call .eval"):
        jit.trace(lambda x: x + cresset.rand(3), rand(3))


def test_a_program_with_memory_fails_the_check():
    calls = []

    def f(x):
        calls.append(1)
        return x + len(calls)

    with pytest.raises(jit.TracingCheckError, match="(?s)ERROR: Graphs differed across invocations!.*First diverging operator") as info:
        jit.trace(f, rand(3))
    assert "test_trace.py" in str(info.value)


def test_different_results_warn():
    with pytest.warns(jit.TracerWarning, match="Output nr 1. of the traced function does not match .* of the Python function"):
        jit.trace(lambda x: x + 1 if jit.is_tracing() else x * 2, rand(3))


def test_check_with_other_inputs():
    def f(x):
        return x if x.sum() > 0 else x * 2

    with warnings.catch_warnings(), pytest.raises(jit.TracingCheckError):
        warnings.simplefilter("ignore")
        jit.trace(f, rand(3), check_inputs=[(-rand(3),)])


def test_the_generator_is_left_as_it_was():
    cresset.manual_seed(3)
    expected = cresset.rand(2)
    cresset.manual_seed(3)
    jit.trace(lambda x: F.dropout(x, 0.0), rand(3))
    assert cresset.rand(2).shape == expected.shape


# ---- errors

NEEDS_GRAD = cresset.ones(3, requires_grad=True)
ERRORS = [
    (lambda x: 3, rand(3), "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"),
    (lambda x: (x, 3), rand(3), "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"),
    (lambda x: None, rand(3), "The traced function didn't return any values! Side-effects are not captured in traces"),
    (lambda x: object(), rand(3), "Tracer cannot infer type of <object object"),
    (lambda x: [], rand(3), "List trace inputs must have elements"),
    (lambda x: [x, (x, x)], rand(3), "must have consistent element type. Found Tensor and Tuple[Tensor, Tensor]"),
    (lambda x: {"a": x}, rand(3), "Encountering a dict at the output of the tracer"),
    (lambda x, y: x, (rand(3), 3), "Type 'Tuple[Tensor, int]' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts"),
    (lambda x, y: x, (rand(3), None), "Type 'Tuple[Tensor, NoneType]' cannot be traced"),
    (lambda x: x + NEEDS_GRAD, rand(3), "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter"),
    (lambda x: jit.trace(lambda y: y, x), rand(3), "Tracing can't be nested"),
]


@pytest.mark.parametrize(("f", "inputs", "words"), ERRORS)
def test_errors(f, inputs, words):
    with warnings.catch_warnings(), pytest.raises(RuntimeError) as info:
        warnings.simplefilter("ignore")
        jit.trace(f, inputs)
    assert words in str(info.value)
    assert not jit.is_tracing()  # a failed trace is over


def test_nested_dictionary_output():
    with pytest.raises(RuntimeError, match="only outputs matching dict"):
        jit.trace(lambda x: {"a": {"b": x}}, rand(3), strict=False)


def test_errors_of_the_program_go_through():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        jit.trace(lambda x, y: x + y, rand(3))
    assert not jit.is_tracing()


def test_arguments_of_trace():
    with pytest.raises(RuntimeError, match="example_kwarg_inputs should be a dict"):
        jit.trace(lambda x: x)
    with pytest.raises(AttributeError, match="expected torch.nn.Module as the first argument"):
        jit.trace_module(lambda x: x, {"forward": rand(3)})
    with pytest.raises(AttributeError, match="expected a dictionary of .method_name, input. pairs"):
        jit.trace_module(nn.Linear(3, 3), rand(3))


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.rest = nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1))

    def forward(self, x, y, factor=1):
        return self.rest(self.first(x)) * factor + y


def test_flat_graphs_with_scopes():
    """What libraries that count operations do (fvcore): hooks name the scopes, the graph has the parameters as inputs."""
    module, x, y = Counted(), rand(4, 2), rand(1)
    handles = []
    for name, part in module.named_modules():

        def enter(module, inputs, name=name):
            _C._get_tracing_state().push_scope(name or "top")

        def leave(module, inputs, output):
            _C._get_tracing_state().pop_scope()

        handles += [part.register_forward_pre_hook(enter), part.register_forward_hook(leave)]
    graph, result = jit._get_trace_graph(module, (x, y), {"factor": 2})
    for handle in handles:
        handle.remove()
    assert _C._get_tracing_state() is None
    assert result.equal(module(x, y, 2))
    assert [v.type().sizes() for v in graph.inputs()] == [[4, 2], [1], [3, 2], [3], [1, 3], [1]]
    scopes = [(n.kind(), n.scopeName()) for n in graph.nodes() if n.kind() in ("aten::linear", "aten::relu", "aten::add")]
    assert scopes == [("aten::linear", "top/first"), ("aten::relu", "top/rest/rest.0"), ("aten::linear", "top/rest/rest.1"), ("aten::add", "top")]
    assert all(v.isCompleteTensor() for n in graph.nodes() if n.kind() == "aten::linear" for v in n.inputs())
    inputs = jit._get_trace_graph(module, (x, y), return_inputs=True)[2]
    assert len(inputs) == 6 and inputs[0] is x


def test_scopes_that_were_not_pushed():
    def pops(x):
        _C._get_tracing_state().pop_scope()
        return x

    with pytest.raises(RuntimeError, match="pop_scope: no scope was pushed"):
        jit._get_trace_graph(pops, rand(2))


# ---- what cannot be traced, or means another thing than it seems


def test_methods_are_traced_by_name():
    class Two(nn.Module):
        def forward(self, x):
            return x + 1

        def other(self, x):
            return x * 2

    module = Two()
    with pytest.raises(AttributeError, match="trace doesn't support compiling individual module's functions"):
        jit.trace(module.other, rand(2))
    assert_close(jit.trace_module(module, {"other": rand(2)}).other(cresset.ones(2)), cresset.full((2,), 2.0))


def test_modules_with_backward_hooks_are_refused():
    module = nn.Sequential(nn.Linear(2, 2))
    module[0].register_full_backward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="Modules that have backward hooks assigned can't be compiled"):
        jit.trace(module, rand(1, 2))


def test_submodules_that_are_none_are_no_attributes():
    module = nn.Linear(2, 2)
    module.inner = nn.ReLU()
    module.inner = None
    assert not hasattr(jit.trace(module, rand(1, 2)), "inner")


def test_scripts_that_the_program_makes_anew_pass_the_check():
    def f(x, flag):
        @jit.script
        def choose(flag, x):
            if bool(flag):
                return x
            return -x

        return choose(flag, x)

    traced = jit.trace(f, (rand(2), cresset.tensor([True])))
    assert_close(traced(cresset.ones(2), cresset.tensor([False])), -cresset.ones(2))


def test_a_traced_module_is_shown_by_the_class_it_was():
    """PyTorch 2.13's words."""
    model = cresset.nn.Sequential(cresset.nn.Linear(2, 2), cresset.nn.Sequential(cresset.nn.ReLU()))
    shown = """Sequential(
  original_name=Sequential
  (0): Linear(original_name=Linear)
  (1): Sequential(
    original_name=Sequential
    (0): ReLU(original_name=ReLU)
  )
)"""
    assert repr(cresset.jit.trace(model, cresset.ones(1, 2))) == shown
