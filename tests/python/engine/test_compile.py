"""Modules with engines answer as the modules that they were made of, for any size, through files, gradients and control flow."""

import cresset
import cresset.engine
import pytest
from cresset import nn


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        y = cresset.relu(self.norm(self.first(x)))
        z = cresset.sigmoid(self.second(y)) * 2 + y[:, :, 1:-1, 1:-1]
        return self.head(z.mean([2, 3]).view(z.size(0), -1))


class Control(nn.Module):
    def forward(self, x, n: int):
        y = x.relu()
        if bool(y.sum() > 3):
            y = y.exp().log1p() + 1
        else:
            y = y.neg() - 1
        for i in range(n):
            y = (y * 0.5).sin() + i
        return y, y.size(0)


class Lists(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, 0)
        out = []
        for part in [a, b]:
            out.append(part.relu() + 1)
        return cresset.cat(out, 0), {"sum": x.sum()}


class Writes(nn.Module):
    def forward(self, x):
        y = x.relu() + 1
        y.mul_(2)
        y[0] = 3
        return y.exp().sum() + x


X = cresset.arange(2 * 3 * 8 * 8.0).reshape(2, 3, 8, 8) / 100 - 1.5
MODULES = [(Branches(), (X,), (X[:1],)), (Control(), (X, 3), (-X, 0)), (Lists(), (X,), (X[:, 1:],)), (Writes(), (X.clone(),), (X[1:].clone(),))]
SETTINGS = [
    {},
    {"min_block_size": 1},
    {"min_block_size": 1, "torch_executed_ops": ["aten::sigmoid", "aten::exp", "aten::relu"]},
    {"min_block_size": 1, "torch_executed_modules": ["second"]},
]


def equal_shapes(a: cresset.Tensor, b: cresset.Tensor):
    return a.shape == b.shape


def equal(a, b):
    if isinstance(a, cresset.Tensor):
        return a.shape == b.shape and cresset.allclose(a, b, rtol=1e-5, atol=1e-6)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


@pytest.mark.filterwarnings("ignore:compile. no engine came")
@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
@pytest.mark.parametrize("module, first, second", MODULES, ids=[type(m[0]).__name__ for m in MODULES])
def test_answers(module, first, second, settings, tmp_path):
    module = module.eval()
    compiled = cresset.engine.compile(module, **settings)
    compiled.save(str(tmp_path / "out.cre"))
    loaded = cresset.jit.load(str(tmp_path / "out.cre"))
    for inputs in (first, second):
        for made in (compiled, loaded):
            assert equal(made(*inputs), module(*inputs))


def test_a_whole_module_is_one_engine():
    compiled = cresset.engine.compile(MODULES[0][0].eval(), require_full_compilation=True)
    assert "execute_engine" in str(compiled.graph) and str(compiled.graph).count("aten::") == 0
    assert cresset.engine.report(compiled).startswith("segment 0: engine, ")
    assert compiled.engine_0.name() == "engine_0" and compiled.engine_0.backend() == "cpu" and "aten::_convolution" in compiled.engine_0.graph()
    assert cresset.engine.check_method_operator_support(MODULES[0][0].eval()) == []


def test_weights_take_in_what_follows_their_layers():
    module = Branches().eval()
    module.norm.running_mean.uniform_(-1, 1)
    module.norm.running_var.uniform_(0.5, 2)
    compiled = cresset.engine.compile(module, inputs=[cresset.lowering.Input((-1, 3, 8, 8))])
    assert "batch_norm" not in compiled.engine_0.graph()
    assert equal(compiled(X), module(X))


def test_gradients_pass_through():
    module = Branches().eval()
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    cresset.engine.compile(module)(x).sum().backward()
    module(y).sum().backward()
    assert cresset.allclose(x.grad, y.grad)


def test_inputs_type_the_graph():
    compiled = cresset.engine.compile(MODULES[0][0].eval(), inputs=[cresset.lowering.Input((-1, 3, 8, 8))])
    assert "Float(*, 3, 8, 8" in compiled.engine_0.graph()
    assert equal(compiled(X), MODULES[0][0](X))


def test_small_segments_leave_the_module():
    module = nn.Sequential(nn.ReLU()).eval()
    with pytest.warns(UserWarning, match="no engine came of forward"):
        same = cresset.engine.compile(module, torch_executed_ops=["aten::relu"])
    assert isinstance(same, cresset.jit.ScriptModule) and "forced by operator" in cresset.engine.report(same)
    assert "too small block" in cresset.engine.partition(Branches().eval(), torch_executed_ops=["aten::relu"], min_block_size=4)


def test_checks_that_types_answer_do_not_part_engines():
    # Attention asks whether it was given batches, whether its three arguments are one, whether sizes fit: all known here, layer after layer.
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(9, 16), encoder).eval()
    fast, alone = cresset.compile(model), cresset.compile(encoder)
    with cresset.no_grad():
        for shape in ((2, 5), (1, 7), (4, 1)):
            ids = cresset.randint(0, 9, shape)
            cresset.testing.assert_close(fast(ids), model(ids), atol=1e-5, rtol=1e-4)
            cresset.testing.assert_close(alone(model[0](ids)), model(ids), atol=1e-5, rtol=1e-4)
        with pytest.raises(AssertionError, match="was expecting embedding dimension of 16, but got 8"):
            alone(cresset.randn(2, 5, 8))
    assert "1 engine, with" in cresset.compile_report(fast)


class OfAnyKernel(nn.Module):
    def forward(self, x, w):
        y = nn.functional.conv2d(x, w, padding=1)
        return nn.functional.interpolate(y, size=(y.size(2) // 2, y.size(3) // 2)).relu()


def test_sizes_that_cancel_in_samples_stay_values():
    compiled = cresset.engine.compile(OfAnyKernel().eval(), [cresset.lowering.Input((-1, -1, -1, -1))] * 2, min_block_size=1)
    for size, kernel in ((3, 3), (8, 3), (9, 1), (6, 5)):
        x, w = cresset.randn(1, 3, size, size + 2), cresset.randn(4, 3, kernel, kernel)
        cresset.testing.assert_close(compiled(x, w), OfAnyKernel()(x, w))


def test_threads_share_an_engine():
    from concurrent.futures import ThreadPoolExecutor

    compiled = cresset.engine.compile(MODULES[0][0].eval())
    want = compiled(X)
    with ThreadPoolExecutor(4) as pool:
        assert all(equal(one, want) for one in pool.map(lambda _: compiled(X), range(40)))


@pytest.mark.parametrize("call, error, words", [
    (lambda: cresset.engine.compile(Control().eval(), require_full_compilation=True), ValueError, r"cannot have the whole of forward: it does not have .*prim::If"),
    (lambda: cresset.engine.compile(Branches(), require_full_compilation=True, torch_executed_ops=["aten::relu"]), ValueError, "exclude each other"),
    (lambda: cresset.engine.compile(Branches().eval(), backend="mine"), ValueError, "no backend 'mine' builds engines; there are: cpu"),
    (lambda: cresset.engine.compile(Branches().eval(), torch_executed_ops=["relu"]), ValueError, "a name like aten::relu was required"),
    (lambda: cresset.engine.compile(cresset.jit.script(equal_shapes)), TypeError, "a module was required; a ScriptFunction was given"),
    (lambda: cresset.engine.compile(3), TypeError, "a module was required; got int"),
    (lambda: cresset.engine.report(nn.ReLU()), ValueError, r"a module that compile\(\) gave was required"),
])  # fmt: skip
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_an_engine_checks_its_inputs():
    compiled = cresset.engine.compile(MODULES[0][0].eval())
    with pytest.raises(ValueError, match="engine 'engine_0': 1 inputs were required; 2 were given"):
        cresset.ops.cresset.execute_engine([X, X], compiled.engine_0)


def test_engines_of_another_format_are_refused():
    compiled = cresset.engine.compile(MODULES[0][0].eval())
    state = compiled.engine_0.__getstate__()
    assert state[0] == "cresset-engine-1"
    with pytest.raises(ValueError, match="format 'cresset-engine-1' was required; this one is of 'cresset-engine-0'"):
        compiled.engine_0.__setstate__(("cresset-engine-0", *state[1:]))
