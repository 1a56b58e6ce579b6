"""Traces of quantized tensors: what is recorded computes with other inputs. Nodes and numbers are those of PyTorch 2.13."""

import pytest

import cresset as torch

X = torch.tensor([[0.0, 0.52, -1.31], [2.04, 0.1, 7.77], [-0.3, 1.0, 0.25]])
SCALES, ZEROS = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 2, 3])


def quantized(x):
    return torch.quantize_per_tensor(x, 0.1, 20, torch.quint8)


def nodes(graph):
    return [n.kind().partition("::")[2] for n in graph.nodes() if n.kind() not in ("prim::Constant", "prim::ListConstruct")]


CASES = {
    "whole": (lambda x: quantized(x).int_repr(), "quantize_per_tensor int_repr", [[20, 25, 7], [40, 21, 98], [17, 30, 22]]),
    "real": (lambda x: quantized(x).dequantize()[1], "quantize_per_tensor dequantize select", [2.0, 0.1, 7.8]),
    "tensors as parameters": (
        lambda x: torch.quantize_per_tensor(x, SCALES[2], ZEROS[1], torch.qint8).int_repr()[0], "select select quantize_per_tensor int_repr select", [2, 4, -2],
    ),
    "channels": (
        lambda x: torch.quantize_per_channel(x, SCALES, ZEROS, 1, torch.qint8).int_repr(), "quantize_per_channel int_repr", [[1, 5, -1], [21, 2, 29], [-2, 7, 4]],
    ),
    "scales": (
        lambda x: torch.quantize_per_channel(x, SCALES, ZEROS, 1, torch.qint8).q_per_channel_zero_points(), "quantize_per_channel q_per_channel_zero_points",
        [1, 2, 3],
    ),
    "own range": (
        lambda x: torch.quantize_per_tensor_dynamic(x, torch.qint8, False).int_repr(), "quantize_per_tensor_dynamic int_repr",
        [[-91, -76, -128], [-34, -88, 127], [-99, -63, -84]],
    ),
    "from whole numbers": (
        lambda x: torch._make_per_tensor_quantized_tensor(x.abs().to(torch.uint8), 0.5, 3).dequantize()[1],
        "abs to _make_per_tensor_quantized_tensor dequantize select", [-0.5, -1.5, 2.0],
    ),
    "from whole numbers by channel": (
        lambda x: torch._make_per_channel_quantized_tensor(x.abs().to(torch.uint8), SCALES, ZEROS, 1).dequantize()[1],
        "abs to _make_per_channel_quantized_tensor dequantize select", [0.1, -0.4, 1.2],
    ),
    "operators": (lambda x: quantized(x).relu().view(-1)[1:3].int_repr(), "quantize_per_tensor relu view slice int_repr", [25, 20]),
    "cat": (lambda x: torch.cat([quantized(x), quantized(x)])[4].dequantize(), "quantize_per_tensor quantize_per_tensor cat select dequantize", [2.0, 0.1, 7.8]),
    "batch norm": (
        lambda x: torch.quantized_batch_norm(quantized(x)[None, :, :, None], SCALES, SCALES, SCALES, SCALES, 1e-5, 0.1, 3).int_repr().flatten(),
        "quantize_per_tensor unsqueeze slice slice unsqueeze quantized_batch_norm int_repr flatten", [4, 5, 0, 13, 5, 39, 3, 10, 5],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_another_input_gives_its_own_result(case):
    call, expected_nodes, expected = CASES[case]
    traced = torch.jit.trace(call, (X + 3,))
    assert nodes(traced.graph) == expected_nodes.split()
    found = traced(X)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=found.dtype))


def test_lists_of_tensors():
    def call(x):
        return torch.dequantize(torch.quantize_per_tensor([x, x * 2], SCALES[:2], ZEROS[:2], torch.qint32))

    first, second = torch.jit.trace(call, (X + 3,), strict=False)(X)
    torch.testing.assert_close(first[1], torch.tensor([2.0, 0.1, 7.8]))
    torch.testing.assert_close(second[1], torch.tensor([4.0, 0.2, 15.6]))


def test_a_trace_takes_and_gives_quantized_tensors():
    assert torch.jit.trace(lambda q: q.dequantize(), (quantized(X),))(quantized(X + 1))[0].tolist() == pytest.approx([1.0, 1.5, -0.3])
    out = torch.jit.trace(quantized, (X + 1,))(X)
    assert out.is_quantized and out.int_repr()[0].tolist() == [20, 25, 7]


def test_a_layer_that_was_quantized():
    layer = torch.nn.Linear(3, 2)
    layer.load_state_dict({"weight": torch.tensor([[0.5, -0.25, 1.0], [0.125, 0.75, -0.5]]), "bias": torch.tensor([0.1, -0.2])})
    model = torch.nn.Sequential(torch.ao.quantization.QuantStub(), layer, torch.ao.quantization.DeQuantStub()).eval()
    model.qconfig = torch.ao.quantization.QConfig(torch.ao.quantization.default_observer, torch.ao.quantization.default_weight_observer)
    model = torch.ao.quantization.prepare(model)
    model(X)
    model = torch.ao.quantization.convert(model)
    traced = torch.jit.trace(model, X + 1)
    expected = torch.tensor([[-1.2918111, 0.7949607], [8.8439379, -3.7760632], [-0.0993701, 0.3974803]])
    torch.testing.assert_close(model(X), expected)
    torch.testing.assert_close(traced(X), expected)
