"""Engines that compute in bfloat16 and in whole numbers of 8 bits: packed operators beside exact arithmetic, calibration, what is lost on real digits."""

import sys
from pathlib import Path

import cresset
import cresset.engine
import pytest
from cresset import nn

HAS = {name: cresset.ops.cresset.has_packed_products(name) for name in ("bfloat16", "int8")}
needs_bfloat16 = pytest.mark.skipif(not HAS["bfloat16"], reason="this processor has no products of bfloat16")
needs_int8 = pytest.mark.skipif(not HAS["int8"], reason="this processor has no products of 8 bits")
F = nn.functional


def pack(weight, bias, steps=(), numbers=(), *, stride=1, padding=0, groups=1, input="float32", output="float32", scales=()):
    return cresset.ops.cresset.pack_convolution(weight, bias, [stride] * 2, [padding] * 2, [1, 1], groups, list(steps), list(numbers), input, output, list(scales))


def whole(dtype, *shape):
    low, high = (0, 256) if dtype == cresset.uint8 else (-128, 128)
    return cresset.randint(low, high, shape).to(dtype)


def exact(x, x_scale, weight, bias, **options):
    """The convolution of whole numbers, in float64."""
    scale = weight.flatten(1).abs().amax(1) / 127
    stored = (weight / scale.view(-1, 1, 1, 1)).round()
    y = F.conv2d(x.double(), stored.double(), None, **options)
    return y * (x_scale * scale.double()).view(1, -1, 1, 1) + bias.double().view(1, -1, 1, 1)


def as_stored(y, scale, dtype):
    low, high = (0, 255) if dtype == cresset.uint8 else (-128, 127)
    return (y / scale).round().clamp(low, high)


SHAPES = [
    (dict(padding=1), (2, 16, 9, 11), (24, 16, 3, 3)),
    (dict(stride=2, padding=1), (1, 3, 17, 16), (8, 3, 3, 3)),
    (dict(padding=1, groups=16), (2, 16, 8, 8), (16, 1, 3, 3)),
    (dict(groups=2), (1, 8, 6, 5), (12, 4, 1, 1)),
    (dict(), (3, 32, 7, 7), (40, 32, 1, 1)),
]


@needs_int8
@pytest.mark.parametrize("output", ["float32", "uint8", "int8", "bfloat16"])
@pytest.mark.parametrize("source", [cresset.uint8, cresset.int8])
@pytest.mark.parametrize("options, size, weight_size", SHAPES, ids=str)
def test_convolutions_of_8_bits_are_exact(options, size, weight_size, source, output):
    if output == "bfloat16" and not HAS["bfloat16"]:
        pytest.skip("no bfloat16 here")
    cresset.manual_seed(0)
    x, weight, bias = whole(source, *size), cresset.randn(weight_size), cresset.randn(weight_size[0])
    x_scale, y_scale = 0.03, 0.11
    packed = pack(weight, bias, ["relu"], [0.0, 0.0], input=str(source)[8:], output=output, scales=[x_scale, y_scale], **options)
    want = exact(x, x_scale, weight, bias, **options).relu()
    got = cresset.ops.cresset.convolution_packed(x, [], packed)
    assert str(got.dtype)[8:] == output and got.is_contiguous(memory_format=cresset.channels_last)
    if output in ("uint8", "int8"):
        assert (got.double() - as_stored(want, y_scale, got.dtype)).abs().max() <= 1  # halves, rounded in float32
        assert (got.double() != as_stored(want, y_scale, got.dtype)).double().mean() < 0.01
    else:
        cresset.testing.assert_close(got.double(), want, rtol=1e-2 if output == "bfloat16" else 1e-5, atol=1e-4)
    # Floats come in as the nearest whole numbers.
    floats = x.float() * x_scale
    cresset.testing.assert_close(cresset.ops.cresset.convolution_packed(floats, [], packed).float(), got.float(), atol=1, rtol=0)


@needs_int8
@pytest.mark.parametrize("dtype, scale", [(cresset.float32, 0.0), (cresset.uint8, 0.05), (cresset.int8, 0.05)], ids=str)
@pytest.mark.parametrize("step", ["add", "mul"])
def test_operands_of_8_bits(step, dtype, scale):
    cresset.manual_seed(0)
    x, weight, bias = whole(cresset.uint8, 2, 16, 6, 6), cresset.randn(8, 16, 3, 3), cresset.randn(8)
    other = whole(dtype, 2, 8, 6, 6) if scale else cresset.randn(2, 8, 6, 6)
    packed = pack(weight, bias, ["hardsigmoid", step, "relu"], [0.0] * 6, padding=1, input="uint8", scales=[0.02, 1.0, scale])
    value = other.double() * (scale or 1)
    y = F.hardsigmoid(exact(x, 0.02, weight, bias, padding=1))
    want = (y + value if step == "add" else y * value).relu()
    cresset.testing.assert_close(cresset.ops.cresset.convolution_packed(x, [other], packed).double(), want, atol=1e-4, rtol=1e-5)
    narrow = other[:, :, :1, :1]  # of a size that is broadcast: by operators, one after the other
    value = narrow.double() * (scale or 1)
    want = (y + value if step == "add" else y * value).relu()
    cresset.testing.assert_close(cresset.ops.cresset.convolution_packed(x, [narrow], packed).double(), want, atol=1e-3, rtol=1e-4)


@needs_bfloat16
@pytest.mark.parametrize("output", ["float32", "bfloat16"])
@pytest.mark.parametrize("options, size, weight_size", SHAPES, ids=str)
def test_convolutions_of_bfloat16(options, size, weight_size, output):
    cresset.manual_seed(0)
    x, weight, bias, other = cresset.randn(size), cresset.randn(weight_size), cresset.randn(weight_size[0]), None
    round_off = lambda t: t.bfloat16().double()  # noqa: E731
    want = F.conv2d(round_off(x), round_off(weight), bias.double(), **options)
    other = cresset.randn(want.shape)
    packed = pack(weight, bias, ["add", "silu"], [0.0] * 4, input="bfloat16", output=output, scales=[1.0, 1.0, 0.0], **options)
    for given in (x, x.bfloat16()):
        for operand in (other, other.bfloat16()):
            got = cresset.ops.cresset.convolution_packed(given, [operand], packed)
            assert str(got.dtype)[8:] == output
            cresset.testing.assert_close(got.double(), F.silu(want + operand.double()), rtol=1e-2 if output == "bfloat16" else 1e-4, atol=2e-2 if output == "bfloat16" else 1e-4)


@needs_int8
def test_linear_layers_and_what_does_not_fit():
    cresset.manual_seed(0)
    weight, bias = cresset.randn(10, 6), cresset.randn(10)
    packed = pack(weight.view(10, 6, 1, 1), bias, input="int8", scales=[0.02, 1.0])
    x = whole(cresset.int8, 4, 5, 6)
    want = exact(x.view(20, 6, 1, 1), 0.02, weight.view(10, 6, 1, 1), bias).view(4, 5, 10)
    cresset.testing.assert_close(cresset.ops.cresset.linear_packed(x, [], packed).double(), want, atol=1e-4, rtol=1e-5)
    assert cresset.ops.cresset.linear_packed(x[:0], [], packed).shape == (0, 5, 10)
    with pytest.raises(RuntimeError):
        cresset.ops.cresset.linear_packed(x.double(), [], packed)


BAD = [
    ("float32, bfloat16, uint8 or int8 was required; got 'float16'", dict(input="float16")),
    ("a positive scale was required for tensors of uint8; got 0", dict(input="uint8", scales=[0.0, 1.0])),
    ("a positive scale was required for tensors of int8; got -1", dict(output="int8", scales=[1.0, -1.0])),
    ("2 scales were required, of the input, the output and each operand; 1 were given", dict(input="uint8", scales=[1.0])),
]


@pytest.mark.parametrize("words, change", BAD)
def test_what_cannot_be_packed_is_refused(words, change):
    with pytest.raises(ValueError, match=words):
        pack(cresset.zeros(4, 2, 1, 1), None, **change)


# ---- whole graphs


class Block(nn.Module):
    """Branches, sums and results that several use."""

    def __init__(self):
        super().__init__()
        self.stem, self.a, self.b, self.short = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(16, 16, 3, 1, 1), nn.Conv2d(16, 16, 3, 1, 1), nn.Conv2d(16, 16, 1)
        self.norm, self.head, self.last = nn.BatchNorm2d(16), nn.Linear(16, 32), nn.Linear(32, 5)

    def forward(self, x):
        x = self.norm(self.stem(x)).relu()
        y = (self.b(self.a(x).relu()) + x).relu()
        z = self.short(y) + y * 0.5
        return self.last(F.gelu(self.head(z.relu().mean([2, 3]))))


def block():
    cresset.manual_seed(0)
    return Block().eval()


def traced(module, x):
    with cresset.no_grad():
        return cresset.jit.trace(module, (x,), check_trace=False)


def error_of(engine, module, x):
    with cresset.inference_mode():
        want = module(x)
        return ((engine(x) - want).square().mean() / want.square().mean()).sqrt().item()


@needs_bfloat16
def test_bfloat16_of_a_graph(tmp_path):
    module, x = block(), cresset.randn(2, 3, 12, 12)
    engine = cresset.engine.compile(traced(module, x), inputs=[x], enabled_precisions={cresset.bfloat16})
    assert 1e-5 < error_of(engine, module, x) < 0.02
    assert engine.engine_0.precisions() == ["bfloat16"]
    engine.save(tmp_path / "net.cre")
    loaded = cresset.jit.load(tmp_path / "net.cre")
    assert cresset.equal(loaded(x), engine(x))
    assert error_of(engine, module, cresset.randn(5, 3, 9, 7)) < 0.02  # other sizes


@needs_int8
@pytest.mark.parametrize("method", ["max", "percentile", "entropy"])
@pytest.mark.parametrize("precisions", [{cresset.int8}, {cresset.int8, cresset.bfloat16}], ids=["int8", "int8+bfloat16"])
def test_int8_of_a_graph(method, precisions, tmp_path):
    if cresset.bfloat16 in precisions and not HAS["bfloat16"]:
        pytest.skip("no bfloat16 here")
    module, x = block(), cresset.randn(2, 3, 12, 12)
    calibrator = cresset.engine.Calibrator([cresset.randn(4, 3, 12, 12) for _ in range(4)], method, 99.9)
    engine = cresset.engine.compile(traced(module, x), inputs=[x], enabled_precisions=precisions, calibrator=calibrator)
    assert 1e-4 < error_of(engine, module, x) < 0.12
    assert "accuracy over 4 calls: largest difference " in cresset.engine.accuracy(engine)
    data = cresset.engine.convert_method_to_engine(traced(module, x), inputs=[x], enabled_precisions=precisions, calibrator=calibrator)
    engine.save(tmp_path / "net.cre")
    for again in (cresset.jit.load(tmp_path / "net.cre"), cresset.engine.embed_engine_in_new_module(data)):
        assert cresset.equal(again(x), engine(x))
    nan = x.clone()
    nan[0, 0, 0, 0] = float("nan")
    with cresset.inference_mode():
        cresset.testing.assert_close(engine(nan), module(nan), equal_nan=True)


@needs_int8
def test_gradients_pass_engines_of_int8():
    module, x = block(), cresset.randn(2, 3, 12, 12)
    engine = cresset.engine.compile(traced(module, x), inputs=[x], enabled_precisions={cresset.int8}, calibrator=cresset.engine.Calibrator([x]))
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    engine(a).sum().backward()
    module(b).sum().backward()
    cresset.testing.assert_close(a.grad, b.grad)


def test_what_is_refused():
    module, x = block(), cresset.randn(1, 3, 8, 8)
    if HAS["int8"]:
        with pytest.raises(ValueError, match="int8 needs data for which ranges are learnt. Give a calibrator"):
            cresset.engine.compile(module, inputs=[x], enabled_precisions={cresset.int8})
    else:
        with pytest.raises(ValueError, match="engines of 'cpu' compute in .*; got int8"):
            cresset.engine.compile(module, inputs=[x], enabled_precisions={cresset.int8})
    with pytest.raises(ValueError, match="engines of 'cpu' compute in float32.*; got float16"):
        cresset.engine.compile(module, inputs=[x], enabled_precisions={cresset.float16})
    with pytest.raises(ValueError, match="the method max, percentile or entropy was required; got 'best'"):
        cresset.engine.compile(module, inputs=[x], calibrator=cresset.engine.Calibrator([x], "best"))
    with pytest.raises(ValueError, match="a percentile above 0 and up to 100 was required; got 101"):
        cresset.engine.compile(module, inputs=[x], calibrator=cresset.engine.Calibrator([x], "percentile", 101))
    with pytest.raises(ValueError, match="at least one call's arguments were required"):
        cresset.engine.Calibrator([])
    with pytest.raises(TypeError, match="an engine.Calibrator was required; got list"):
        cresset.engine.compile(module, inputs=[x], calibrator=[x])
    with pytest.raises(ValueError, match="a module that compile\\(\\) gave with a calibrator was required"):
        cresset.engine.accuracy(cresset.engine.compile(module, inputs=[x]))


def test_float32_is_compared_as_well():
    module, x = block(), cresset.randn(1, 3, 8, 8)
    engine = cresset.engine.compile(traced(module, x), inputs=[x], calibrator=cresset.engine.Calibrator([(x,), (x * 2,)]))
    assert "at the same place in 100 %" in cresset.engine.accuracy(engine)


# ---- real digits


@pytest.fixture(scope="module")
def digits():
    """(trained network, calibration images, held-out images and labels): examples/digits."""
    pytest.importorskip("sklearn")
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples/digits"))
    try:
        from data import load
        from model import DigitsNet
    finally:
        sys.path.pop(0)
    images, labels, test_images, test_labels = load()
    cresset.manual_seed(0)
    net = DigitsNet()
    optimizer = cresset.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(8):
        for i in range(0, len(images), 64):
            optimizer.zero_grad()
            F.cross_entropy(net(images[i : i + 64]), labels[i : i + 64]).backward()
            optimizer.step()
    return net.eval(), images[:256], test_images, test_labels


@pytest.mark.parametrize("precision, method", [("bfloat16", "max"), ("int8", "max"), ("int8", "percentile"), ("int8", "entropy")])
def test_digits_lose_little(digits, precision, method):
    if not HAS[precision]:
        pytest.skip(f"this processor has no products of {precision}")
    net, sample, images, labels = digits
    calibrator = cresset.engine.Calibrator(sample.split(64), method)
    engine = cresset.engine.compile(traced(net, images), inputs=[images], enabled_precisions={getattr(cresset, precision)}, calibrator=calibrator)
    with cresset.inference_mode():
        right = [(m(images).argmax(1) == labels).double().mean().item() for m in (net, engine)]
    assert right[0] > 0.95 and right[1] >= right[0] - 0.005, right
