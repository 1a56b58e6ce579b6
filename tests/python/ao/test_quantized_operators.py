"""torch.ops.quantized: whole numbers equal PyTorch 2.13's (x86 engine) in every element. The digests are of its results; inputs have seven bits,
since processors without VNNI saturate the sums of two products of eight."""

import copy
import hashlib

import cresset as torch
import numpy as np
import pytest

ops = torch.ops.quantized


class Draw:
    """Inputs from a seed, and a digest of whole results with their scales."""

    def __init__(self, seed):
        self.state, self.hash = np.random.RandomState(seed), hashlib.sha256()

    def floats(self, *shape):
        return torch.from_numpy((self.state.standard_normal(shape) * 2).astype("f4"))

    def activation(self, *shape):
        scale, zero = float(self.state.uniform(0.02, 0.06)), int(self.state.randint(0, 90))
        whole = torch.quantize_per_tensor(self.floats(*shape), scale, zero, torch.quint8).int_repr().clamp(0, 127)
        return torch._make_per_tensor_quantized_tensor(whole, scale, zero)

    def weights(self, *shape, axis=0):
        values, scales = self.floats(*shape), torch.from_numpy(self.state.uniform(0.02, 0.04, shape[axis]))
        return (
            torch.quantize_per_tensor(values, 0.03, 0, torch.qint8),
            torch.quantize_per_channel(values, scales, torch.zeros(shape[axis], dtype=torch.int64), axis, torch.qint8),
        )

    def add(self, result):
        self.hash.update(result.int_repr().contiguous().numpy().tobytes() + repr((round(result.q_scale(), 7), result.q_zero_point())).encode())

    def digest(self):
        return self.hash.hexdigest()[:16]


def linear(draw):
    for weight in draw.weights(7, 33):
        for bias in (None, draw.floats(7)):
            packed = ops.linear_prepack(weight, bias)
            for x in (draw.activation(5, 33), draw.activation(2, 3, 33)):
                draw.add(ops.linear(x, packed, 0.2, 30))
                draw.add(ops.linear_relu(x, packed, 0.2, 30))


def convolutions(draw):
    for dims, size in ((1, 9), (2, 8), (3, 5)):
        for weight in draw.weights(4, 3, *(3,) * dims):
            packed = getattr(ops, f"conv{dims}d_prepack")(weight, draw.floats(4), [2] * dims, [1] * dims, [1] * dims, 2)
            for name in (f"conv{dims}d", f"conv{dims}d_relu"):
                draw.add((getattr(ops, name) if dims == 1 else getattr(ops, name).new)(draw.activation(2, 6, *(size,) * dims), packed, 0.3, 20))
        transposed = f"conv_transpose{dims}d"
        packed = getattr(ops, transposed + "_prepack")(draw.weights(6, 2, *(3,) * dims)[0], draw.floats(4), [2] * dims, [1] * dims, [1] * dims, [1] * dims, 2)
        draw.add(getattr(ops, transposed)(draw.activation(2, 6, *(4,) * dims), packed, 0.3, 20))


def pointwise(draw):
    a, b = draw.activation(200), draw.activation(200)
    for name in ("add", "add_relu", "mul", "mul_relu"):
        draw.add(getattr(ops, name)(a, b, 0.07, 40))
        for number in (1.7, -2.3, 0.0, 100.0, -100.0):
            draw.add(getattr(ops, name)(a, number))
    for name in ("cat", "cat_relu"):
        draw.add(getattr(ops, name)([a, b], 0, 0.06, 30))
        draw.add(getattr(ops, name)([a, b], 0, None, None))


def activations(draw):
    x, weight, bias = draw.activation(2, 6, 5, 4), draw.floats(6), draw.floats(6)
    mean, var = draw.floats(6), torch.from_numpy(draw.state.uniform(0.5, 2, 6).astype("f4"))
    for made in (
        ops.relu6(x), ops.clamp(x, -0.5, 1.0), ops.threshold(x, 0.2, 0.5), ops.leaky_relu(x, 0.1, False, 0.05, 60), ops.elu(x, 0.05, 60, 1.5),
        ops.celu(x, 0.05, 60, 1.5), ops.hardswish(x, 0.05, 60), ops.sigmoid(x, 0.005, 3), ops.softmax(x, 1, 0.004, 0), torch.nn.functional.hardsigmoid(x),
        ops.batch_norm2d(x, weight, bias, mean, var, 1e-5, 0.1, 60), ops.batch_norm2d_relu(x, weight, bias, mean, var, 1e-5, 0.1, 60),
        ops.group_norm(x, 3, weight, bias, 1e-5, 0.05, 60), ops.instance_norm(x, weight, bias, 1e-5, 0.05, 60),
        ops.layer_norm(x, [4], draw.floats(4), draw.floats(4), 1e-5, 0.05, 60), ops.max_pool2d(x, [2, 2], [2, 2], [0, 0], [1, 1], False),
        ops.matmul(draw.activation(3, 4, 5), draw.activation(3, 5, 2), 0.2, 50),
    ):  # fmt: skip
        draw.add(made)


DIGESTS = {linear: "81a45f027d58db67", convolutions: "55907f618730b030", pointwise: "f82c3dc05e3a490d", activations: "ffb4dfb6bd8ab7a1"}


@pytest.mark.parametrize("family", DIGESTS)
def test_whole_numbers_are_pytorchs(family):
    draw = Draw(7)
    family(draw)
    assert draw.digest() == DIGESTS[family]


def test_dynamic():
    packed = ops.linear_prepack(torch.quantize_per_tensor(torch.tensor([[1.0, -0.5]]), 1 / 127.5, 0, torch.qint8), torch.tensor([0.25]))
    x, step = torch.tensor([[2.0, -1.0]]), 3 / 127  # the range [-1, 2] over seven bits: scale 3/127, zero point 42
    expected = (round(2 / step) * 127 + round(-1 / step) * -64) * step / 127.5 + 0.25
    assert ops.linear_dynamic(x, packed, True).item() == pytest.approx(expected, abs=1e-6)
    assert ops.linear_relu_dynamic(-x, packed, True).item() == 0
    half = ops.linear_prepack_fp16(torch.tensor([[1.0001, 1e6]]), None)
    assert ops.linear_unpack_fp16(half)[0].tolist() == [[1.0, 65504.0]] and ops.linear_dynamic_fp16(torch.tensor([[2.0, 0.0]]), half).item() == 2
    x, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0001, 1e6]])
    assert ops.linear_dynamic_fp16_unpacked_weight(x, weight, torch.ones(1)).item() == 1 + 2 * 65504 + 1
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Half"):
        ops.linear_dynamic_fp16_unpacked_weight(x, weight.half(), None)
    with pytest.raises(RuntimeError, match="The dimension of weight tensor should be equal to 2"):
        ops.linear_dynamic_fp16_unpacked_weight(x, weight[0], None)
    # A convolution's result has the input's scale and range, as PyTorch's has: the range [-1, 2] over eight bits.
    conv = ops.conv1d_prepack(torch.quantize_per_tensor(torch.full((1, 1, 1), 3.0), 0.03, 0, torch.qint8), None, [1], [0], [1], 1)
    made = ops.conv1d_dynamic(torch.tensor([[[-1.0, 0.5, 2.0]]]), conv)
    assert made.flatten().tolist() == pytest.approx([-1.0, 1.5176, 2.0], abs=1e-4)


def test_packed_weights():
    weight = torch.quantize_per_tensor(torch.ones(4, 3, 3, 3), 0.03, 0, torch.qint8)
    packed = ops.conv2d_prepack(weight, None, [2, 1], [1, 0], [1, 1], 1)
    assert str(packed).startswith("<") and ops.conv2d_stride(packed) == [2, 1] and ops.conv2d_padding(packed) == [1, 0]
    assert (ops.conv2d_groups(packed), ops.conv2d_transpose(packed), ops.conv2d_unpack(packed)[1]) == (1, 0, None)
    assert ops.conv2d_unpack(packed)[0].q_scale() == 0.029999999329447746  # kept in float32
    again = copy.deepcopy(packed)
    assert torch.equal(ops.conv2d_unpack(again)[0], packed.unpack()[0]) and ops.conv2d_stride(again) == [2, 1]
    # What the objects themselves say.
    weight = torch.quantize_per_tensor(torch.ones(2, 3, 1, 2, 3), 0.5, 0, torch.qint8)
    packed = ops.conv_transpose3d_prepack(weight, torch.ones(3), [2, 3, 4], [0, 1, 2], [1, 0, 2], [1, 2, 3], 1)
    assert torch.equal(packed.weight(), weight) and packed.bias().tolist() == [1, 1, 1] and packed.transpose() is True
    assert (packed.stride(), packed.padding(), packed.output_padding(), packed.dilation()) == ([2, 3, 4], [0, 1, 2], [1, 0, 2], [1, 2, 3])
    assert packed.groups() == 1 and ops.linear_prepack(weight[0, :, 0, 0], None).bias() is None


def test_embeddings():
    rows = torch.tensor([[0.0, 1.0, 2.0, 3.0], [-1.0, -1.0, 0.0, 1.0]])
    packed = ops.embedding_bag_byte_prepack(rows)
    assert packed[:, :4].tolist() == [[0, 85, 170, 255], [0, 0, 128, 255]] and packed.shape == (2, 12)
    torch.testing.assert_close(ops.embedding_bag_byte_unpack(packed), rows, atol=0.005, rtol=0)
    four = ops.embedding_bag_4bit_prepack(rows)
    assert four[0].tolist() == [80, 250, 102, 50, 0, 0]  # 0, 5, 10, 15 in nibbles; 0.2 and 0 in float16
    assert ops.embedding_bag_4bit_rowwise_offsets(four, torch.tensor([0, 1, 0]), torch.tensor([0, 2])).shape == (2, 4)
    table = torch.quantize_per_channel(rows, torch.full((2,), 0.1), torch.full((2,), 10.5), 0, torch.quint8)
    kept = ops.embedding_bag_prepack(table)
    torch.testing.assert_close(ops.embedding_byte(kept, torch.tensor([1])), table.dequantize()[1:])
    torch.testing.assert_close(ops.embedding_bag_byte(kept, torch.tensor([0, 1, 1]), torch.tensor([0, 1])), torch.stack([table.dequantize()[0], table.dequantize()[1] * 2]))


X = torch.quantize_per_tensor(torch.ones(1, 3), 0.1, 0, torch.quint8)
REFUSED = [
    (lambda p: ops.linear(torch.ones(1, 3), p, 1.0, 0), NotImplementedError, "Could not run 'quantized::linear' with arguments from the 'CPU' backend"),
    (lambda p: ops.linear(X[:, :2], p, 1.0, 0), RuntimeError, "The number of rows in the packB should be equal to K: 2; the weight has 3 columns."),
    (lambda p: ops.linear(X, p, 1.0, 300), RuntimeError, "zero_point 300 is above upper bound"),
    (lambda p: ops.linear_prepack(torch.ones(2, 2)), NotImplementedError, "a quantized weight was required"),
    (lambda p: ops.conv2d_prepack(p.unpack()[0], None, [1, 1], [0, 0], [1, 1], 1), RuntimeError, "Weights are expected to have 4 dimensions; 2 were given."),
    (lambda p: ops.embedding_bag_prepack(X), RuntimeError, "quantized using kPerChannelAffineFloatQParams"),
    (lambda p: ops.add(X, torch.quantize_per_tensor(torch.ones(1, 3), 0.1, 0, torch.qint8), 1.0, 0), RuntimeError, "Add operands should have same data type"),
    (lambda p: ops.nothing_like_this, AttributeError, "has no attribute 'nothing_like_this'"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_refused(call, error, words):
    packed = ops.linear_prepack(torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8), None)
    with pytest.raises(error, match=words):
        call(packed)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8, torch.qint32])
def test_nearest_of_any_dims(dims, mode, dtype):
    q = torch.quantize_per_tensor(torch.randn(2, 3, *[5] * dims), 0.1, 3, dtype)
    made = torch.nn.functional.interpolate(q, scale_factor=1.7, mode=mode)
    assert torch.equal(made.int_repr().float(), torch.nn.functional.interpolate(q.int_repr().float(), scale_factor=1.7, mode=mode))
