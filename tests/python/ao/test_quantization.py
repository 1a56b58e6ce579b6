"""Quantization after training and in training, beside PyTorch 2.13: scales, zero points and results are its numbers."""

import copy
import io
import warnings

import cresset as torch
import pytest
from cresset import nn
from cresset.ao import quantization as quant
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import quantized as nnq

CALLS = [torch.linspace(-1.5, 2.5, 12).view(3, 4), torch.linspace(-0.5, 4.0, 12).view(3, 4)]


@pytest.mark.parametrize(
    ("observer", "scale", "zero_point"),
    [
        (quant.MinMaxObserver(), [0.021568628], [70]),
        (quant.MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric), [0.031372551], [0]),
        (quant.MinMaxObserver(quant_min=0, quant_max=127), [0.043307088], [35]),
        (quant.MovingAverageMinMaxObserver(averaging_constant=0.5), [0.016666668], [60]),
        (quant.PerChannelMinMaxObserver(dtype=torch.qint8, qscheme=torch.per_channel_symmetric), [0.011764706, 0.018538330, 0.031372551], [0, 0, 0]),
        (quant.PerChannelMinMaxObserver(qscheme=torch.per_channel_affine_float_qparams), [0.0087344032, 0.0094474154, 0.01016043], [171.734680, 4.81131601, -138.684204]),
        (quant.HistogramObserver(bins=16), [0.020220589], [74]),
    ],
)
def test_observers(observer, scale, zero_point):
    for x in CALLS:
        assert observer(x) is x
    found = observer.calculate_qparams()
    torch.testing.assert_close(found[0], torch.tensor(scale))
    torch.testing.assert_close(found[1].float(), torch.tensor(zero_point).float())
    again = type(observer)(**({"bins": 16} if "Histogram" in type(observer).__name__ else {}), dtype=observer.dtype, qscheme=observer.qscheme)
    again.quant_min, again.quant_max = observer.quant_min, observer.quant_max
    again.load_state_dict(observer.state_dict())
    assert torch.equal(again.calculate_qparams()[0], found[0])


def test_observers_refuse():
    with pytest.raises(NotImplementedError, match="MinMaxObserver's qscheme only support torch.per_tensor_symmetric"):
        quant.MinMaxObserver(qscheme=torch.per_channel_affine)
    with pytest.raises(AssertionError, match="Used-specified quantization range must include 0."):
        quant.MinMaxObserver(quant_min=1, quant_max=5)
    with pytest.warns(UserWarning, match="must run observer before calling calculate_qparams"):
        assert quant.MinMaxObserver().calculate_qparams()[0].item() == 1
    with pytest.raises(ValueError, match="QConfig received observer instance, please pass observer class instead"):
        quant.QConfig(quant.MinMaxObserver(), quant.MinMaxObserver)
    with pytest.raises(Exception, match="calculate_qparams should not be called for RecordingObserver"):
        quant.RecordingObserver().calculate_qparams()
    scripted = torch.jit.script(quant.RecordingObserver())
    scripted(torch.ones(2))
    assert [v.tolist() for v in scripted.get_tensor_value()] == [[1, 1]]


def test_constructors_with_arguments():
    made = quant.default_weight_observer.with_args(quant_min=-127, quant_max=127)()
    assert (made.dtype, made.qscheme, made.quant_min) == (torch.qint8, torch.per_tensor_symmetric, -127)
    count = iter(range(5))
    late = quant.MinMaxObserver.with_callable_args(eps=lambda: next(count))
    assert [late().eps.item(), late().eps.item()] == [0, 1]
    assert quant.qconfig_equals(quant.get_default_qconfig("x86"), quant.get_default_qconfig("fbgemm"))
    assert not quant.qconfig_equals(quant.get_default_qconfig("x86"), quant.get_default_qconfig("qnnpack"))


def test_fake_quantizers():
    one, fused = quant.default_fake_quant(), quant.FusedMovingAvgObsFakeQuantize(quant_min=0, quant_max=127, reduce_range=False)
    x = CALLS[0].clone().requires_grad_()
    made = one(x)
    made.sum().backward()
    assert one.scale.item() == pytest.approx(4 / 127) and one.zero_point.item() == 48 and made[0, 0].item() == pytest.approx(-1.5118110)
    torch.testing.assert_close(fused(CALLS[0]), made.detach())
    assert x.grad.sum() == 12
    one.apply(quant.disable_observer), one(CALLS[1])
    assert one.scale.item() == pytest.approx(4 / 127)
    one.apply(quant.disable_fake_quant)
    assert torch.equal(one(CALLS[1]), CALLS[1])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant, self.add = quant.QuantStub(), quant.DeQuantStub(), nnq.FloatFunctional()
        self.conv, self.bn, self.relu = nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU()
        self.linear = nn.Linear(8, 2)
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(torch.linspace(-1, 1.5 + i, p.numel()).view(p.shape))

    def forward(self, x):
        x = self.relu(self.bn(self.conv(self.quant(x))))
        x = self.add.add(x, x).flatten(1)
        return self.dequant(self.linear(x))


IMAGES = torch.linspace(-1, 2, 18).view(2, 1, 3, 3)


def quantized():
    net = Net().eval()
    net.qconfig = quant.default_qconfig
    fused = quant.fuse_modules(net, [["conv", "bn", "relu"]])
    assert type(fused.conv) is nni.ConvReLU2d and type(fused.bn) is nn.Identity and type(net.conv) is nn.Conv2d
    torch.testing.assert_close(fused(IMAGES), net(IMAGES))
    watched = quant.prepare(fused)
    watched(IMAGES)
    return net, quant.convert(watched)


def test_after_training():
    net, made = quantized()
    assert [type(m).__module__.rpartition(".")[2] + "." + type(m).__name__ for m in (made.quant, made.conv, made.add, made.linear)] == [
        "modules.Quantize", "conv_relu.ConvReLU2d", "functional_modules.QFunctional", "linear.Linear",
    ]  # fmt: skip
    torch.testing.assert_close(made(IMAGES), net(IMAGES), atol=15, rtol=0)
    assert made(IMAGES).flatten().tolist() == pytest.approx([135.49987793, 437.76885986, 364.80737305, 1313.30651855])
    assert not any(hasattr(m, "qconfig") for m in made.modules())


def test_state_dicts_cross():
    _, made = quantized()
    state = made.state_dict()
    assert list(state) == [
        "quant.scale", "quant.zero_point", "add.scale", "add.zero_point", "conv.weight", "conv.bias", "conv.scale", "conv.zero_point", "linear.scale",
        "linear.zero_point", "linear._packed_params.dtype", "linear._packed_params._packed_params",
    ]  # fmt: skip
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    other = copy.deepcopy(made)
    other.linear.set_weight_bias(torch.quantize_per_tensor(torch.zeros(2, 8), 1.0, 0, torch.qint8), None)
    assert not torch.equal(other(IMAGES), made(IMAGES))
    assert str(other.load_state_dict(torch.load(file))) == "<All keys matched successfully>"
    assert torch.equal(other(IMAGES), made(IMAGES))


def test_in_training():
    net = Net().train()
    net.qconfig = quant.get_default_qat_qconfig("fbgemm")
    prepared = quant.prepare_qat(quant.fuse_modules_qat(net, [["conv", "bn", "relu"]]))
    assert type(prepared.conv).__name__ == "ConvBnReLU2d" and hasattr(prepared.linear, "weight_fake_quant")
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.01)
    losses = []
    for _ in range(5):
        loss = prepared(IMAGES).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    made = quant.convert(prepared.eval())
    assert type(made.conv).__name__ == "ConvReLU2d" and made.conv.weight().dtype is torch.qint8
    torch.testing.assert_close(made(IMAGES), prepared(IMAGES), atol=0.2, rtol=0.05)
    with pytest.raises(AssertionError, match="prepare_qat only works on models in training mode"):
        quant.prepare_qat(Net().eval())


def test_embeddings():
    bag = nn.EmbeddingBag(4, 3, mode="sum")
    made = quant.quantize_dynamic(nn.Sequential(bag), dtype=torch.quint8)[0]
    indices, offsets = torch.tensor([0, 1, 3]), torch.tensor([0, 1])
    assert type(made) is nnq.EmbeddingBag and made.weight().qscheme() is torch.per_channel_affine_float_qparams
    torch.testing.assert_close(made(indices, offsets), bag(indices, offsets), atol=0.02, rtol=0)


@pytest.mark.parametrize("make", [lambda: nn.LSTM(4, 3, 2, bidirectional=True), lambda: nn.MultiheadAttention(4, 2)])
def test_layers_made_of_layers(make):
    torch.manual_seed(0)
    net = nn.ModuleList([make()]).eval()
    net.qconfig = quant.get_default_qconfig("fbgemm")
    x = torch.randn(5, 2, 4)
    args = (x,) if isinstance(net[0], nn.LSTM) else (x, x, x)
    watched = quant.prepare(net)
    torch.testing.assert_close(watched[0](*args)[0], net[0](*args)[0], atol=1e-5, rtol=1e-4)
    made = quant.convert(watched)[0]
    q = torch.quantize_per_tensor(x, 0.04, 64, torch.quint8)
    out = made(*[q] * len(args))[0]
    assert type(made).__name__ == type(net[0]).__name__ and type(made).__module__.startswith("cresset.ao.nn.quantized.modules")
    torch.testing.assert_close(out.dequantize(), net[0](*args)[0], atol=0.2, rtol=0)


def test_reference_layers():
    net = nn.Sequential(nn.Linear(3, 2), nn.Conv1d(2, 2, 1)).eval()
    net.qconfig = quant.default_qconfig
    made = quant.convert(quant.prepare(net), is_reference=True)
    assert type(made[0]).__module__.startswith("cresset.ao.nn.quantized.reference") and isinstance(made[0], nn.Linear)
    x = torch.randn(4, 3)
    torch.testing.assert_close(made[0](x), nn.functional.linear(x, made[0].get_quantized_weight().dequantize(), net[0].bias))


def test_old_names():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import cresset.nn.intrinsic.qat as old_qat
        import cresset.nn.quantized.modules.linear as old_linear
        import cresset.quantization.observer as old_observer
    assert old_linear.Linear is nnq.Linear and old_observer.MinMaxObserver is quant.MinMaxObserver and old_qat.ConvBn2d.__module__.startswith("cresset.ao")
    assert nn.quantized.FloatFunctional is nnq.FloatFunctional and torch.quantization.prepare is quant.prepare


def test_nothing_is_loaded_early():
    import subprocess
    import sys

    code = "import cresset, sys; cresset.ones(1); print([m for m in sys.modules if 'cresset.ao' in m or 'cresset.quantization' in m or '_quantized._op' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_equalized_layers_compute_the_same():
    from cresset.ao.quantization._equalize import channel_range, equalize

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 5))
    made = equalize(net, [["0", "1"]], inplace=False)
    x = torch.randn(6, 4)
    torch.testing.assert_close(made(x), net(x))
    torch.testing.assert_close(channel_range(made[0].weight, 0), channel_range(made[1].weight, 1), rtol=1e-3, atol=1e-5)
    assert not torch.equal(made[0].weight, net[0].weight)


def test_comparisons():
    from cresset.ao.ns import _numeric_suite as ns

    net, made = quantized()
    weights = ns.compare_weights(net.state_dict(), made.state_dict())
    assert set(weights) == {"conv.weight", "linear._packed_params._packed_params"} and weights["conv.weight"]["quantized"].is_quantized
    stubs = ns.compare_model_stub(copy.deepcopy(net), copy.deepcopy(made), {nn.Linear}, IMAGES)
    assert list(stubs) == ["linear.stats"] and stubs["linear.stats"]["float"][0].shape == (2, 2)
    outputs = ns.compare_model_outputs(net, made, IMAGES)
    assert {"linear.stats", "add.stats"} <= set(outputs)
    torch.testing.assert_close(outputs["linear.stats"]["float"][0], outputs["linear.stats"]["quantized"][0].dequantize(), atol=15, rtol=0)


def test_corrected_biases():
    from cresset.ao.quantization._correct_bias import bias_correction

    torch.manual_seed(0)
    net = quant.QuantWrapper(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4))).eval()
    net.qconfig = quant.default_qconfig
    batches = [(torch.randn(64, 8), None) for _ in range(3)]
    made = quant.quantize(net, quant.default_eval_fn, [batches])
    made.module[1].set_weight_bias(made.module[1].weight(), made.module[1].bias() + 0.5)
    off = lambda: (made(batches[0][0]) - net(batches[0][0])).mean().abs()  # noqa: E731
    assert off() > 0.4
    bias_correction(net, made, batches)
    assert off() < 0.05


def test_limits_of_quantized_types():
    for dtype, low, high in ((torch.quint8, 0, 255), (torch.qint8, -128, 127), (torch.qint32, -(2**31), 2**31 - 1)):
        assert (torch.iinfo(dtype).min, torch.iinfo(dtype).max) == (low, high)
    with pytest.raises(NotImplementedError, match="iinfo.dtype"):
        torch.iinfo(torch.quint8).dtype  # noqa: B018


def test_learnt_scales():
    from cresset.ao.quantization._learnable_fake_quantize import _LearnableFakeQuantize

    made = _LearnableFakeQuantize(quant.MovingAverageMinMaxObserver, scale=0.1, zero_point=0.0, dtype=torch.quint8).enable_param_learning()
    x = torch.tensor([0.12, 0.27, 30.0, -1.0], requires_grad=True)
    out = made(x)
    out.sum().backward()
    torch.testing.assert_close(out.detach(), torch.tensor([0.1, 0.3, 25.5, 0.0]))
    assert x.grad.tolist() == [1, 1, 0, 0]
    # Within: rounding's error in steps, -0.2 and 0.3; beyond: the limits, 255 and 0. Of the zero point: minus the scale for each that was clamped.
    assert made.scale.grad.item() == pytest.approx(255.1, abs=1e-3) and made.zero_point.grad.item() == pytest.approx(-0.2, abs=1e-6)
