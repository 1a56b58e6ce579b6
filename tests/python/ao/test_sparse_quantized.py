"""Quantized linear layers with blocks of zeros (`ao.nn.sparse.quantized`, `ops.sparse`): whole numbers and words are PyTorch 2.13's (engine fbgemm; dynamic: qnnpack)."""

import copy
import io

import cresset as torch
import pytest
from cresset import nn
from cresset.ao import pruning
from cresset.ao import quantization as quant
from cresset.ao.nn.sparse import quantized as nnsq
from cresset.ao.nn.sparse.quantized.utils import LinearBlockSparsePattern

W = torch.zeros(3, 16)
W[0, 8:12], W[1, :4], W[1, 4:8] = 2, 6, 12
Q = torch.quantize_per_tensor(W, 2.0, 0, torch.qint8)
C = torch.quantize_per_channel(W, torch.tensor([2.0, 6.0, 12.0]), torch.zeros(3, dtype=torch.int), 0, torch.qint8)
X = torch.linspace(-1, 3, 32).view(2, 16)
XQ = torch.quantize_per_tensor(X, 0.05, 20, torch.quint8)


def test_operators():
    ops = torch.ops.sparse
    packed, channels = ops.qlinear_prepack(Q, torch.ones(3), 1, 4), ops.qlinear_prepack(C, None, 1, 4)
    assert ops.qlinear(XQ, packed, 2.0, 10).int_repr().tolist() == [[11, 0, 10], [20, 68, 10]]
    assert ops.qlinear_relu(XQ, channels, 2.0, 10).int_repr().tolist() == [[11, 10, 10], [19, 68, 10]]
    assert ops.qlinear(XQ.view(2, 1, 16), packed, 2.0, 10).shape == (2, 1, 3)
    torch.testing.assert_close(ops.qlinear_dynamic(X, packed), torch.tensor([[2.8196, -32.3176, 1.0], [19.3216, 116.2941, 1.0]]), atol=1e-4, rtol=0)
    weight, bias, block = ops.qlinear_unpack(channels)
    assert torch.equal(weight.int_repr(), C.int_repr()) and bias is None and block == [1, 4]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda ops: ops.qlinear_prepack(torch.quantize_per_tensor(W, 2.0, 1, torch.qint8), None, 1, 4), RuntimeError, "zero point(s) should be 0 for the weight tensor of ao::sparse::qlinear op"),
        (lambda ops: ops.qlinear_prepack(Q[0], None, 1, 4), RuntimeError, "The weight tensor for ao::sparse::qlinear_prepack (fbgemm) should be 2-dimensional."),
        (lambda ops: ops.qlinear_prepack(Q, None, 8, 1), RuntimeError, "The out and in features block sizes for ao::sparse::qlinear_prepack (fbgemm) should be 1 and 4 respectively (got 8 and 1)"),
        (lambda ops: ops.qlinear_prepack(Q, torch.ones(2), 1, 4), RuntimeError, "bias should have N elements: 3"),
        (lambda ops: ops.qlinear(XQ[0], ops.qlinear_prepack(Q, None, 1, 4), 1.0, 0), RuntimeError, "The dimension of input tensor should be larger than or equal to 2"),
        (lambda ops: ops.qlinear(XQ[:, :4], ops.qlinear_prepack(Q, None, 1, 4), 1.0, 0), RuntimeError, "The number of columns in the packW should be equal to K: 4"),
        (lambda ops: ops.qlinear(X, ops.qlinear_prepack(Q, None, 1, 4), 1.0, 0), NotImplementedError, "Could not run 'sparse::qlinear' with arguments from the 'CPU' backend"),
        (lambda ops: nnsq.Linear(16, 3, 1, 4, dtype=torch.float16), NotImplementedError, "Only QINT8 is supported for Sparse Quantized Linear"),
        (lambda ops: nnsq.Linear(16, 3, None, 4), AssertionError, "row_block_size and col_block_size must not be None, got row_block_size=None, col_block_size=4"),
        (lambda ops: nnsq.Linear.from_float(nn.ReLU()), AssertionError, "SparseQuantizedLinear.from_float only works for Linear"),
        (lambda ops: nnsq.Linear.from_float(nn.Linear(4, 4)), AssertionError, "Expecting the Linear to have `sparse_params`."),
        (lambda ops: nnsq.dynamic.Linear.from_float(nn.Linear(4, 4)), AssertionError, "Input float module must have qconfig defined"),
        (lambda ops: LinearBlockSparsePattern(2, 2), AssertionError, "Invalid linear block sparse pattern: row_block_size=2, col_block_size=2"),
    ],
)  # fmt: skip
def test_refusals(call, error, words):
    with pytest.raises(error) as caught:
        call(torch.ops.sparse)
    assert str(caught.value).startswith(words)


def test_layers():
    layer = nnsq.Linear(16, 3, 1, 4)
    layer.set_weight_bias(Q, torch.ones(3), 1, 4)
    layer.scale, layer.zero_point = 2.0, 10
    assert repr(layer).replace("cresset", "torch") == "SparseQuantizedLinear(in_features=16, out_features=3, scale=2.0, zero_point=10, qscheme=torch.per_tensor_affine)"
    expected = [[11, 0, 10], [20, 68, 10]]
    assert layer(XQ).int_repr().tolist() == expected and copy.deepcopy(layer)(XQ).int_repr().tolist() == expected
    state = layer.state_dict()
    assert list(state) == ["scale", "zero_point", "_packed_params.dtype", "_packed_params._packed_params"] and state["_packed_params._packed_params"][2:] == (1, 4)
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    other = nnsq.Linear(16, 3, 1, 4)
    other.load_state_dict(torch.load(file))  # PyTorch's raises KeyError: 'op_type'
    assert other(XQ).int_repr().tolist() == expected
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    assert torch.load(file, weights_only=False)(XQ).int_repr().tolist() == expected
    dynamic = nnsq.dynamic.Linear(16, 3, 1, 4)
    assert list(dynamic.state_dict()) == ["op_type", "_packed_params.dtype", "_packed_params._packed_params"]
    with pytest.raises(RuntimeError, match='Missing key.*"op_type"'):
        dynamic.load_state_dict({key: value for key, value in dynamic.state_dict().items() if key != "op_type"})


def test_conversion_and_scripts():
    net = nn.Sequential(nn.Linear(16, 3)).eval()
    with torch.no_grad():
        net[0].weight.copy_(W / 7)
        net[0].bias.fill_(0.3)
    sparsifier = pruning.WeightNormSparsifier(sparsity_level=0.25)
    sparsifier.prepare(net, None)
    sparsifier.step()
    sparsifier.squash_mask(params_to_keep=("sparse_block_shape",))
    net[0].qconfig = quant.get_default_qconfig("fbgemm")
    watched = quant.prepare(net)
    watched(X)
    whole = quant.convert(watched, mapping=pruning.get_static_sparse_quantized_mapping())
    assert type(whole[0]) is nnsq.Linear and whole[0].scale == pytest.approx(0.16712327301502228) and whole[0].zero_point == 27
    assert whole(XQ).int_repr().tolist() == [[30, 0, 29], [44, 127, 29]]
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(whole), file)
    file.seek(0)
    assert torch.jit.load(file)(XQ).int_repr().tolist() == [[30, 0, 29], [44, 127, 29]]
    net[0].qconfig = quant.default_dynamic_qconfig
    real = quant.convert(net, mapping=pruning.get_dynamic_sparse_quantized_mapping())
    assert type(real[0]) is nnsq.dynamic.Linear
    torch.testing.assert_close(real(X), net(X), atol=0.1, rtol=0.02)


def test_patterns_of_blocks():
    assert LinearBlockSparsePattern.block_size() == (1, 4)
    with LinearBlockSparsePattern(8, 1):
        assert LinearBlockSparsePattern.block_size() == (8, 1)
    assert LinearBlockSparsePattern.block_size() == (1, 4)
