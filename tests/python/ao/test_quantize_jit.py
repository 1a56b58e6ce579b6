"""Quantization of scripts and traces: observers, operators and numbers are those that PyTorch 2.13 has, and results those of the same layers quantized as modules."""

import copy

import cresset as torch
import pytest
from cresset import nn
from cresset.ao import quantization as quant
from cresset.ao.quantization import (
    convert_dynamic_jit, convert_jit, default_dynamic_qconfig, default_qconfig, float16_dynamic_qconfig, fuse_conv_bn_jit, prepare_dynamic_jit, prepare_jit,
    quantize_dynamic_jit, quantize_jit,
)  # fmt: skip
from cresset.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore")
FORMS = [lambda model, *inputs: torch.jit.script(model), lambda model, *inputs: torch.jit.trace(model, inputs)]


def kinds(model, start="quantized::"):
    """The operators of a graph, with those in blocks, in order."""
    found = []

    def walk(block):
        for node in block.nodes():
            if node.kind().startswith(start):
                found.append(node.kind().partition("::")[2])
            for inner in node.blocks():
                walk(inner)

    walk(model.graph)
    return " ".join(found)


def watchers(model):
    return [name for name, _ in model.named_children() if name.startswith("_observer_")]


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.pool, self.fc = nn.AvgPool2d(2), nn.Linear(16, 3)

    def forward(self, x):
        x = self.relu(self.bn(self.conv(x)))
        x = self.pool(x + x) * 2
        return self.fc(torch.flatten(x, 1))


@pytest.mark.parametrize("form", FORMS)
def test_a_net(form):
    torch.manual_seed(0)
    x, eager = torch.randn(2, 3, 6, 6), ConvNet().eval()
    model = form(eager, x)
    prepared = prepare_jit(model, {"": default_qconfig})
    assert watchers(model) == [] and watchers(prepared.conv) == watchers(prepared.fc) == ["_observer_0"]
    assert len(watchers(prepared)) == 4  # the input, and results of conv and ReLU, of the sum and of fc; products by numbers have none
    assert torch.allclose(prepared(x), eager(x), atol=1e-6)
    apart, whole = convert_jit(prepared, debug=True), convert_jit(prepared)
    assert watchers(apart) == watchers(apart.conv) == []
    assert kinds(whole) == "conv2d_relu add mul_scalar linear" and "avg_pool2d" in kinds(whole, "aten::") and "conv2d" not in kinds(whole, "aten::")
    assert torch.equal(apart(x), whole(x)) and (whole(x) - eager(x)).abs().max() < 0.05


def test_the_same_numbers_as_modules_have():
    x, layer = torch.randn(4, 5), nn.Linear(5, 3).eval()
    wrapped = quant.QuantWrapper(copy.deepcopy(layer))
    wrapped.qconfig = default_qconfig
    eager = quant.prepare(wrapped)
    eager(x)
    whole = quantize_jit(torch.jit.script(layer), {"": default_qconfig}, lambda model, data: model(data), [x])
    assert torch.equal(whole(x), quant.convert(eager)(x))


@pytest.mark.parametrize("engine", ["x86", "qnnpack"])
@pytest.mark.parametrize("form", FORMS)
def test_dynamic(form, engine):
    x, layer = torch.randn(4, 5), nn.Sequential(nn.Linear(5, 3), nn.ReLU()).eval()
    with _Engine(engine):
        whole = quantize_dynamic_jit(form(layer, x), {"": default_dynamic_qconfig})
        eager = quant.quantize_dynamic(layer, {nn.Linear}, dtype=torch.qint8)
        assert kinds(whole) == "linear_dynamic" and "choose" not in kinds(whole, "aten::")
        assert torch.equal(whole(x), eager(x))


class _Engine:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.before, torch.backends.quantized.engine = torch.backends.quantized.engine, self.name

    def __exit__(self, *error):
        torch.backends.quantized.engine = self.before


def test_dynamic_steps_and_half_weights():
    x, layer = torch.randn(4, 5), nn.Linear(5, 3).eval()
    prepared = prepare_dynamic_jit(torch.jit.script(layer), {"": default_dynamic_qconfig})
    apart = convert_dynamic_jit(prepared, debug=True)
    assert kinds(apart, "aten::").startswith("_choose_qparams_per_tensor quantize_per_tensor dequantize")
    assert torch.allclose(apart(x), convert_dynamic_jit(prepared)(x), atol=1e-5)
    half = quantize_dynamic_jit(torch.jit.script(layer), {"": float16_dynamic_qconfig})
    assert kinds(half) == "linear_dynamic_fp16" and torch.allclose(half(x), layer(x), atol=1e-2)


def test_qconfigs_by_path():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(5, 5)

        def forward(self, x):
            return self.fc(x)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.sub = nn.Linear(5, 5), Inner()

        def forward(self, x):
            return self.sub(self.first(x))

    made = prepare_jit(torch.jit.script(Outer()), {"sub.fc": default_qconfig})
    assert [len(watchers(module)) for module in (made, made.first, made.sub, made.sub.fc)] == [2, 0, 0, 1]
    without = prepare_jit(torch.jit.script(Outer()), {"": default_qconfig, "sub": None})
    assert [len(watchers(module)) for module in (without, without.first, without.sub.fc)] == [2, 1, 0]


def test_modules_of_one_class_have_observers_of_their_own():
    x, model = torch.randn(3, 4), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).eval()
    prepared = prepare_jit(torch.jit.script(model), {"": default_qconfig})
    first, second = getattr(prepared, "0"), getattr(prepared, "1")
    assert watchers(first) == watchers(second) == ["_observer_0"] and first._c._type() == second._c._type()
    assert torch.equal(first._observer_0.max_val, model[0].weight.max()) and torch.equal(second._observer_0.max_val, model[1].weight.max())
    prepared(x)
    assert (convert_jit(prepared)(x) - model(x)).abs().max() < 0.1


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.conv2 = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

    def forward(self, x, cond: bool):
        if cond:
            x = self.conv(x)
        else:
            x = self.conv2(x)
        return torch.relu(x)


def test_branches():
    x, eager = torch.randn(1, 3, 4, 4), Branches().eval()
    prepared = prepare_jit(torch.jit.script(eager), {"": default_qconfig})
    prepared(x, True), prepared(x, False)
    whole = convert_jit(prepared)
    assert kinds(whole) == "conv2d conv2d"
    for cond in (True, False):
        assert (whole(x, cond) - eager(x, cond)).abs().max() < 0.1


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 1), nn.LayerNorm(3)

    def forward(self, x):
        x = self.conv(x)
        a, b = torch.chunk(x, 2, 1)
        x = torch.cat([a, b], 1)
        x = F.hardswish(torch.sigmoid(x.reshape(1, 4, -1)))
        return self.norm(x.view(1, 4, 3, 3)), a


@pytest.mark.parametrize("form", FORMS)
def test_shapes_norms_and_results_in_tuples(form):
    x, eager = torch.randn(1, 4, 3, 3), Parts().eval()
    whole = quantize_jit(form(eager, x), {"": default_qconfig}, lambda model, data: model(data), [x])
    assert kinds(whole) == "conv2d cat hardswish layer_norm"
    for got, expected in zip(whole(x), eager(x)):
        assert not got.is_quantized and (got - expected).abs().max() < 0.2


def test_weights_that_are_inputs():
    class Function(nn.Module):
        def forward(self, x, weight):
            return F.conv2d(x, weight) + F.conv2d(x, weight)

    x, weight = torch.randn(1, 3, 4, 4), torch.randn(2, 3, 1, 1)
    prepared = prepare_jit(torch.jit.script(Function()), {"": default_qconfig})
    assert len(watchers(prepared)) == 5
    prepared(x, weight)
    whole = convert_jit(prepared)
    assert kinds(whole) == "conv2d_prepack conv2d add"  # both products are one
    assert (whole(x, weight) - Function()(x, weight)).abs().max() < 0.3


class ConvNorm(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.conv, self.bn, self.other = nn.Conv2d(2, 3, 3, bias=bias), nn.BatchNorm2d(3), nn.Conv2d(2, 3, 3, bias=bias)
        self.bn.running_mean.fill_(0.3)
        self.bn.bias.data.fill_(0.2)

    def forward(self, x):
        return self.bn(self.conv(x)) + self.other(x)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_norms_become_part_of_convolutions(form, bias):
    x, eager = torch.randn(1, 2, 5, 5), ConvNorm(bias).eval()
    model = form(eager, x)
    fused = fuse_conv_bn_jit(model)
    calls = [node for node in fused.graph.nodes() if node.kind() == "prim::CallMethod"]
    assert len(calls) == 2 and torch.allclose(fused(x), eager(x), atol=1e-5) and torch.allclose(model(x), eager(x), atol=1e-6)


def test_norms_in_training_stay():
    fused = fuse_conv_bn_jit(torch.jit.script(ConvNorm(True)))
    assert len([node for node in fused.graph.nodes() if node.kind() == "prim::CallMethod"]) == 3


def test_saved_and_in_place(tmp_path):
    x, model = torch.randn(2, 5), torch.jit.script(nn.Linear(5, 3).eval())
    quantize_jit(model, {"": default_qconfig}, lambda m, data: m(data), [x], inplace=True)
    assert kinds(model) == "linear"
    torch.jit.save(model, tmp_path / "model.pt")
    assert torch.equal(torch.jit.load(tmp_path / "model.pt")(x), model(x))


def test_embeddings_by_rows():
    bag = nn.EmbeddingBag(10, 12, include_last_offset=True, mode="sum").eval()
    indices, offsets = torch.tensor([9, 6, 5, 7, 8, 8]), torch.tensor([0, 4, 6])
    watch = lambda name: quant.PlaceholderObserver.with_args(dtype=torch.float, custom_op_name=name)  # noqa: E731
    qconfig = quant.QConfig(activation=watch("embedding_bag_byte"), weight=quant.PlaceholderObserver.with_args(custom_op_name="embedding_bag_byte"))
    whole = convert_jit(prepare_jit(torch.jit.script(bag), {"": qconfig}))
    assert "embedding_bag_byte_rowwise_offsets" in kinds(whole) and torch.allclose(whole(indices, offsets), bag(indices, offsets), atol=0.1)


def test_refusals():
    with pytest.raises(ValueError, match="input must be a script module, got:"):
        prepare_jit(nn.Linear(1, 1), {"": default_qconfig})
    with pytest.raises(ValueError, match=r"qconfig_dict should only contain names\(str\) as keys."):
        prepare_jit(torch.jit.script(nn.Linear(1, 1)), {nn.Linear: default_qconfig})


def test_old_names():
    import importlib

    old = importlib.import_module("cresset.quantization.quantize_jit")
    assert old.prepare_jit is prepare_jit and importlib.import_module("cresset.quantization.fx").prepare is quant.fx.prepare
    patterns = importlib.import_module("cresset.quantization.fx.quantization_patterns")
    assert patterns.QuantizeHandler is importlib.import_module("cresset.ao.quantization.fx.pattern_utils").QuantizeHandler
