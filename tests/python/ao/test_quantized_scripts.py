"""Quantized modules as scripts, and their archives: what is read back computes the same; the form of packed weights is PyTorch 2.13's."""

import copy
import io

import pytest

import cresset as torch
from cresset import nn
from cresset.ao.nn import quantized as nnq
from cresset.ao.nn.intrinsic import quantized as nniq
from cresset.ao import quantization as quant
from cresset.ao.nn.quantized import dynamic as nnqd

ops = torch.ops.quantized


def rows(*shape, dtype=torch.quint8):
    torch.manual_seed(0)
    return torch.quantize_per_tensor(torch.rand(*shape), 0.05, 3, dtype)


def numbers(result):
    return result.int_repr().tolist() if result.is_quantized else result.tolist()


def archived(module):
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    file.seek(0)
    return torch.jit.load(file)


def convolution(dims, transposed, dynamic, relu=False, **options):
    name = f"Conv{'ReLU' * relu}{'Transpose' * transposed}{dims}d"
    made = getattr(nniq if relu else nnqd if dynamic else nnq, name)(2, 4, 2, padding=1, **options)
    shape = ((2, 4) if transposed else (4, 2)) + (2,) * dims
    made.set_weight_bias(torch.quantize_per_tensor(rows(*shape).dequantize() - 0.5, 0.01, 0, torch.qint8), torch.arange(4.0))
    made.scale, made.zero_point = 0.05, 3
    x = rows(1, 2, *[5] * dims)
    return made, (x.dequantize() if dynamic else x)


def linear(**options):
    made = nnq.Linear(4, 3)
    weight = torch.quantize_per_channel(torch.arange(12.0).reshape(3, 4) - 6, torch.tensor([0.5, 1.0, 2.0]), torch.tensor([0, 0, 0]), 0, torch.qint8)
    made.set_weight_bias(weight, torch.ones(3))
    made.scale, made.zero_point = 0.5, 10
    return made


@pytest.mark.filterwarnings("ignore:The current implementation")
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["plain", "transposed", "dynamic", "transposed dynamic", "relu"])
def test_convolutions(dims, kind):
    module, x = convolution(dims, "transposed" in kind, "dynamic" in kind, kind == "relu")
    assert numbers(archived(module)(x)) == numbers(module(x)) == numbers(copy.deepcopy(module)(x))
    with pytest.raises(Exception, match="Input shape must be `[(]N, C, "):
        archived(module)(x[0])


def test_padding_by_reflection():
    module, x = convolution(2, False, False, padding_mode="reflect")
    assert numbers(archived(module)(x)) == numbers(module(x))


MODULES = [
    (linear(), rows(2, 4)), (nnqd.Linear(4, 3), torch.rand(2, 4)), (nnqd.Linear(4, 3, dtype=torch.float16), torch.rand(2, 4)),
    (nn.Sequential(nnq.Quantize(0.1, 3, torch.quint8), linear(), nn.ReLU(), nnq.DeQuantize()), torch.rand(2, 4)),
    (nnq.BatchNorm2d(3), rows(1, 3, 2, 2)), (nniq.BNReLU3d(3), rows(1, 3, 2, 2, 2)), (nnq.ELU(0.1, 0), rows(2, 4)), (nnq.Embedding(5, 4), torch.tensor([1, 2])),
]  # fmt: skip


@pytest.mark.parametrize("module, x", MODULES, ids=lambda value: type(value).__name__)
def test_modules(module, x):
    assert numbers(archived(module)(x)) == numbers(module(x))
    bag = nnq.EmbeddingBag(5, 4)
    assert numbers(archived(bag)(torch.tensor([1, 2]), torch.tensor([0]))) == numbers(bag(torch.tensor([1, 2]), torch.tensor([0])))


def test_tensors_of_all_schemes():
    w = torch.arange(12.0).reshape(3, 4) - 6

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.quantize_per_tensor(w, 0.5, 3, torch.qint8))
            self.register_buffer("b", torch.quantize_per_channel(w, torch.tensor([0.5, 1.0, 2.0]), torch.tensor([1, 2, 3]), 0, torch.quint8))
            self.register_buffer("c", torch.quantize_per_channel(w, torch.tensor([0.5, 1.0, 2.0, 3.0]), torch.tensor([1.0, 2.5, 3, 0]), 1, torch.quint8))
            self.register_buffer("d", torch.quantize_per_tensor(w, 0.25, 0, torch.qint32).t())

        def forward(self, x):
            return x + self.a.dequantize()

    module = Module()
    read = archived(module)
    for name in "abcd":
        expected, found = getattr(module, name), getattr(read, name)
        assert (found.dtype, found.qscheme(), found.stride()) == (expected.dtype, expected.qscheme(), expected.stride()), name
        assert numbers(found) == numbers(expected) and found.dequantize().equal(expected.dequantize()), name
    assert read(torch.ones(3, 4)).equal(module(torch.ones(3, 4)))


def test_packed_weights_in_the_form_of_pytorch():
    weight = torch.quantize_per_tensor(torch.ones(1, 1, 1), 0.03, 0, torch.qint8)
    version, (order, packed), bias = ops.conv1d_prepack(weight, torch.ones(1), [2], [1], [1], 1).__getstate__()
    assert version == "2" and order.dtype is torch.int16 and packed.shape == (1, 1, 1, 1) and bias[0].tolist() == [1.0]
    assert order.tolist() == [2, 1, 2, 0, 1, 1, 1, 0, 0, 1, 0]  # as two dimensions: strides, paddings, dilations, output paddings, groups, transposed
    order = ops.conv_transpose2d_prepack(weight[None], None, [2, 1], [1, 0], [1, 0], [1, 1], 1).__getstate__()[1][0]
    assert order.tolist() == [2, 2, 1, 1, 0, 1, 1, 1, 0, 1, 1]
    order = ops.conv3d_prepack(weight[None, None], None, [2, 1, 1], [1, 0, 0], [1, 1, 1], 1).__getstate__()[1][0]
    assert order.tolist() == [3, 2, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0]
    assert ops.linear_prepack(weight[0], None).__getstate__()[1] is None
    table = torch.quantize_per_channel(torch.ones(2, 8), torch.ones(2), torch.ones(2), 0, torch.quint8)
    version, (kept,), doubles, bits = ops.embedding_bag_prepack(table).__getstate__()
    assert (version, doubles, bits) == (1, [], [8]) and kept.int_repr().equal(table.int_repr())


def test_types_and_schemes_are_numbers():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.kind, self.scheme = torch.quint8, torch.per_tensor_symmetric

        def forward(self, x):
            if self.scheme == torch.per_tensor_symmetric and self.kind == torch.quint8:
                return torch.quantize_per_tensor(x, 0.5, 1, self.kind), self.kind, self.scheme
            return x, 0, 0

    made, kind, scheme = torch.jit.script(Module())(torch.ones(2))
    assert made.int_repr().tolist() == [3, 3] and made.dtype is torch.quint8 and (kind, scheme) == (13, 2)


def test_fake_quantization_in_scripts():
    def both(x, scale, zero_point):
        one = torch.fake_quantize_per_tensor_affine(x, 0.1, 1, 0, 15)
        return one, torch.fake_quantize_per_channel_affine(x, scale, zero_point, 1, 0, 255)

    x = torch.tensor([[0.05, 0.33], [1.0, -1.0]], requires_grad=True)
    scale, zero_point = torch.tensor([0.1, 0.2]), torch.tensor([0, 1], dtype=torch.int32)
    found, expected = torch.jit.script(both)(x, scale, zero_point), both(x, scale, zero_point)
    assert [v.tolist() for v in found] == [v.tolist() for v in expected]
    assert torch.autograd.grad(found[0].sum(), x)[0].tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("made", [
    quant.MinMaxObserver(), quant.MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric), quant.MovingAverageMinMaxObserver(),
    quant.PerChannelMinMaxObserver(ch_axis=1), quant.PerChannelMinMaxObserver(qscheme=torch.per_channel_affine_float_qparams),
    quant.MovingAveragePerChannelMinMaxObserver(qscheme=torch.per_channel_symmetric, dtype=torch.qint8), quant.HistogramObserver(bins=64),
    quant.FakeQuantize(), quant.default_fused_per_channel_wt_fake_quant(),
], ids=lambda made: type(made).__name__)  # fmt: skip
def test_observers(made):
    torch.manual_seed(0)
    script, inputs = archived(copy.deepcopy(made)), [torch.randn(3, 4), torch.randn(3, 4) * 2]
    for x in inputs:
        assert script(x).equal(made(x))
    for found, expected in zip(script.calculate_qparams(), made.calculate_qparams(), strict=True):
        assert found.equal(expected) and found.dtype is expected.dtype
    if isinstance(made, quant.FakeQuantize):
        script.disable_fake_quant()
        script.apply(quant.disable_observer)
        assert script(inputs[0]).equal(inputs[0]) and script.observer_enabled.tolist() == [0]
    elif not isinstance(made, quant.HistogramObserver):
        script.reset_min_max_vals()
        assert script.min_val.numel() == 0 or script.min_val.item() == float("inf")


def test_graphs_in_training_and_converted():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(4, 1, 3, padding=1), nn.BatchNorm2d(1)

        def forward(self, x):
            return self.bn(self.conv(x))

    fused = quant.fuse_modules_qat(torch.fx.symbolic_trace(Model()), [["conv", "bn"]])
    made = quant.quantize_fx.prepare_qat_fx(fused, quant.get_default_qat_qconfig_mapping("fbgemm"), example_inputs=None)
    torch.manual_seed(0)
    script, x = torch.jit.script(copy.deepcopy(made)), torch.rand(1, 4, 5, 5)
    assert script(x).equal(made(x))
    converted = quant.quantize_fx.convert_fx(made.eval())
    assert archived(converted)(x).equal(converted(x))


CELLS = {  # the first rows of what PyTorch 2.13 gives: int8, float16
    "LSTM": (nn.LSTMCell, {}, [-0.027439, -0.468024, -0.078533], [-0.026897, -0.468730, -0.080919]),
    "GRU": (nn.GRUCell, {}, [-0.038899, -0.513111, -0.042587], [-0.038113, -0.514266, -0.046898]),
    "tanh": (nn.RNNCell, {}, [-0.848949, 0.982649, 0.934532], [-0.851604, 0.983029, 0.933200]),
    "relu": (nn.RNNCell, {"nonlinearity": "relu"}, [0.0, 2.369274, 1.693031], [0.0, 2.380452, 1.682617]),
}


@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
@pytest.mark.parametrize("kind", CELLS)
def test_cells(kind, dtype):
    cls, options, whole, half = CELLS[kind]
    model = nn.Sequential(cls(2, 2, **options)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.arange(p.numel()).reshape(p.shape).float().sin())
    model = quant.quantize_dynamic(model, {cls}, dtype=dtype)
    x = torch.tensor([[1.0, -1.5], [0.5, 2.0], [0.0, 0.25]])
    for run in (model, torch.jit.script(model), archived(model), torch.jit.trace(model, x + 1)):
        result = run(x)
        result = result[0] if isinstance(result, tuple) else result
        torch.testing.assert_close(result.flatten()[:3], torch.tensor(half if dtype is torch.float16 else whole), atol=1e-5, rtol=0)
    with pytest.raises(RuntimeError, match="input has inconsistent input_size: got 3, expected 2"):
        model(torch.ones(1, 3))
    state = (torch.ones(3, 2), torch.ones(3, 2)) if kind == "LSTM" else torch.ones(3, 2)
    first, second = model[0](x, state), torch.jit.script(model[0])(x, state)
    torch.testing.assert_close(first, second, atol=0, rtol=0)


class Sums(nn.Module):
    def __init__(self, functional):
        super().__init__()
        self.f = functional

    def forward(self, x):
        y = self.f.cat([x, x])
        z = self.f.mul(self.f.add(y, y), y)
        return self.f.add_scalar(self.f.mul_scalar(self.f.add_relu(z, z), 2.0), 1.0)


def test_functionals():
    x = torch.tensor([[1.0, -1.5], [0.5, 2.0], [0.0, 0.25]])
    expected = ((x + x) * x * 4).relu().add(1).repeat(2, 1)
    for functional in (nnq.FloatFunctional(), nnq.FXFloatFunctional()):
        assert torch.equal(torch.jit.script(Sums(functional))(x), expected)
    model = Sums(nnq.QFunctional())
    x = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    assert numbers(torch.jit.script(model)(x)) == numbers(model(x))


def test_linear_layers_with_activations_name_their_bias():
    for cls in (nniq.LinearReLU, nniq.LinearTanh):
        assert cls(2, 3, bias=False).bias() is None and cls(2, 3, bias=True).bias().tolist() == [0.0] * 3
    made = torch.ao.nn.intrinsic.quantized.dynamic.LinearReLU(2, 2)
    made.set_weight_bias(torch.quantize_per_tensor(torch.tensor([[1.0, 2.0], [3.0, -4.0]]), 0.05, 0, torch.qint8), torch.ones(2))
    x = torch.tensor([[1.0, -1.5], [0.5, 2.0], [0.0, 0.25]])
    expected = torch.tensor([[0.0, 9.929133], [5.519685, 0.0], [1.496063, 0.007874]])
    torch.testing.assert_close(made(x), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.jit.script(made)(x), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_of_quantized_layers(batch_first):
    torch.manual_seed(0)
    net = nn.ModuleList([nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=batch_first)]).eval()
    net.qconfig = quant.get_default_qconfig("fbgemm")
    real = [torch.rand(3, 4, 8), torch.rand(3, 4, 6), torch.rand(3, 4, 6)]
    watched = quant.prepare(net)
    batch, length = (3, 4) if batch_first else (4, 3)
    pad = torch.zeros(batch, length).bool()
    pad[0, 0] = True
    for mask in (torch.zeros(length, length).bool().fill_diagonal_(True), torch.rand(length, length), torch.rand(2 * batch, length, length)):
        for weights, average in ((True, True), (True, False), (False, True)):
            expected = net[0](*real, pad if mask.dtype is torch.bool else None, weights, mask, average)
            found = watched[0](*real, pad if mask.dtype is torch.bool else None, weights, mask, average)
            torch.testing.assert_close(found[0], expected[0])
            assert (found[1] is None) == (expected[1] is None) and (found[1] is None or torch.allclose(found[1], expected[1], atol=1e-6))
    made = quant.convert(watched)[0]
    inputs = [torch.quantize_per_tensor(x, 1 / 128, 0, torch.quint8) for x in real]
    script = torch.jit.script(made)
    expected, found, read = made(*inputs, pad), script(*inputs, pad), archived(made)(*inputs, pad)
    for result in (found, read):
        assert torch.equal(result[0].int_repr(), expected[0].int_repr()) and torch.equal(result[1].int_repr(), expected[1].int_repr())
    assert script(*inputs, None, False)[1] is None


def test_clipping_to_limits_that_cross():
    """As PyTorch 2.13: the greater limit first; the function for real numbers refuses them."""
    x = torch.quantize_per_tensor(torch.tensor([-1.0, -0.4, 0.0, 0.4, 1.0]), 0.01, 100, torch.quint8)
    expected = {(0.5, -0.3): [70] * 5, (0.5, 0.3): [130] * 5, (-0.5, 0.3): [50, 60, 100, 130, 130], (0.5, 0.5): [150] * 5}
    for limits, values in expected.items():
        assert nnq.functional.hardtanh(x, *limits).int_repr().tolist() == values
    with pytest.raises(ValueError, match="min_val cannot be greater than max_val"):
        nn.functional.hardtanh(x, 0.5, 0.3)


def test_the_first_functions_say_what_took_their_place():
    for name in ("quantize_linear_modules", "quantize_rnn_cell_modules", "quantize_rnn_modules"):
        with pytest.raises(RuntimeError, match=f"{name} function is no longer supported. Please use .*ao.quantization.quantize_dynamic API instead"):
            getattr(torch.jit.quantized, name)(nn.Linear(2, 2))
