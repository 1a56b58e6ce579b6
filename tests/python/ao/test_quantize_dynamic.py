"""Dynamic quantization: numbers of PyTorch's int8 arithmetic, float16, recurrent layers beside their float forms, files."""

import copy
import io
import pickle

import cresset
import pytest
from cresset import nn
from cresset.ao.nn.quantized import dynamic
from cresset.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic


@pytest.fixture(autouse=True)
def seed():
    cresset.manual_seed(0)


def test_linear_counts_in_whole_numbers():
    layer = nn.Linear(2, 1)
    with cresset.no_grad():
        layer.weight.copy_(cresset.tensor([[1.0, -0.5]]))
        layer.bias.fill_(0.25)
    (made,) = quantize_dynamic(nn.Sequential(layer), {nn.Linear})
    scale = 1 / 127.5
    assert made.weight().int_repr().tolist() == [[127, -64]] and made.weight().dequantize().flatten().tolist() == pytest.approx([127 * scale, -64 * scale])
    # The input's range [-1, 2] over seven bits: scale 3/127, zero point 42.
    x = cresset.tensor([[2.0, -1.0]])
    step = 3 / 127
    q = [round(2 / step), round(-1 / step)]
    assert made(x).item() == pytest.approx((q[0] * 127 + q[1] * -64) * step * scale + 0.25, abs=1e-6)
    assert repr(made) == "DynamicQuantizedLinear(in_features=2, out_features=1, dtype=torch.qint8, qscheme=torch.per_tensor_affine)"


@pytest.mark.parametrize("make", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("kwargs", [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False}])
@pytest.mark.parametrize("dtype", ["qint8", "float16"])
def test_recurrent_layers(make, kwargs, dtype):
    net = nn.ModuleDict({"r": make(7, 4, **kwargs)})
    x = cresset.randn(5, 3, 7)
    quantized = quantize_dynamic(net, {make}, dtype=getattr(cresset, dtype))["r"]
    assert type(quantized) is getattr(dynamic, make.__name__) and type(net["r"]) is make
    tolerance = dict(atol=0.06, rtol=0) if dtype == "qint8" else dict(atol=2e-3, rtol=0)
    (a, ha), (b, hb) = net["r"](x), quantized(x)
    cresset.testing.assert_close(a, b, **tolerance)
    cresset.testing.assert_close(ha, hb, **tolerance)
    if not kwargs.get("batch_first"):
        packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3, 2])
        (a, ha), (b, hb) = net["r"](packed), quantized(packed)
        cresset.testing.assert_close(a.data, b.data, **tolerance)
        cresset.testing.assert_close(ha, hb, **tolerance)
    cresset.testing.assert_close(quantized(x[:, 0])[0], net["r"](x[:, 0])[0], **tolerance)


@pytest.mark.parametrize("make", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(make):
    (cell,) = quantize_dynamic(nn.Sequential(make(7, 4)), {make})
    cell_of = make(7, 4)
    same = getattr(dynamic, make.__name__).from_float(cell_of)
    x = cresset.randn(3, 7)
    cresset.testing.assert_close(same(x), cell_of(x), atol=0.06, rtol=0)
    assert cell._get_name() == "DynamicQuantized" + make.__name__


def test_by_name_and_by_row():
    net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 2)), nn.Linear(2, 2))
    made = quantize_dynamic(net, {"1.0": per_channel_dynamic_qconfig})
    assert [type(m) for m in (made[0], made[1][0], made[2])] == [nn.Linear, dynamic.Linear, nn.Linear]
    assert made[1][0].weight().q_per_channel_scales().shape == (2,) and not made.training and net.training
    with pytest.raises(ValueError, match="Don't know how to quantize with default settings for"):
        quantize_dynamic(net, dtype=cresset.int8)
    with pytest.raises(RuntimeError, match="Unknown dtype specified for quantize_dynamic"):
        quantize_dynamic(net, {nn.Linear}, cresset.int8)
    with pytest.raises(AssertionError, match="The only supported dtypes for dynamic quantized linear are qint8 and float16, got: torch.quint8"):
        quantize_dynamic(net, {nn.Linear}, cresset.quint8)


def test_files():
    net = quantize_dynamic(nn.Sequential(nn.Linear(300, 4)))
    data = io.BytesIO()
    cresset.save(net.state_dict(), data)
    assert len(data.getvalue()) < 300 * 4 * 2 + 2000
    data.seek(0)
    other = quantize_dynamic(nn.Sequential(nn.Linear(300, 4)))
    other.load_state_dict(cresset.load(data))
    x = cresset.randn(2, 300)
    assert cresset.equal(other(x), net(x))


def test_state_dicts_have_pytorchs_names():
    net = quantize_dynamic(nn.Sequential(nn.Linear(3, 2)))
    state = net.state_dict()
    assert list(state) == ["0.scale", "0.zero_point", "0._packed_params.dtype", "0._packed_params._packed_params"]
    weight, bias = state["0._packed_params._packed_params"]
    assert weight.is_quantized and weight.equal(net[0].weight()) and cresset.equal(bias, net[0].bias())
    assert state._metadata["0"]["version"] == 4 and state._metadata["0._packed_params"]["version"] == 3
    other = quantize_dynamic(nn.Sequential(nn.Linear(3, 2)), {nn.Linear: per_channel_dynamic_qconfig})
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>" and other[0].weight().equal(weight)
    with pytest.raises(RuntimeError, match="do not fit"):
        quantize_dynamic(nn.Sequential(nn.Linear(4, 2))).load_state_dict(state)
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict({})


def test_engines():
    quantized = cresset.backends.quantized
    assert quantized.engine in quantized.supported_engines and "none" in quantized.supported_engines
    quantized.supported_engines.remove("none")
    assert "none" in quantized.supported_engines  # each time a new list
    made, before = quantize_dynamic(nn.Sequential(nn.Linear(2, 2))), quantized.engine
    quantized.engine = "none"
    try:
        with pytest.raises(RuntimeError, match="Didn't find engine for operation quantized::linear_prepack NoQEngine"):
            quantize_dynamic(nn.Sequential(nn.Linear(2, 2)))
        with pytest.raises(RuntimeError, match="Didn't find engine for operation quantized::linear_dynamic NoQEngine"):
            made(cresset.ones(1, 2))
    finally:
        quantized.engine = before
    for wrong in ("foo", 3):
        with pytest.raises(RuntimeError, match=f"{wrong} is not a valid value for quantized engine"):
            quantized.engine = wrong


def test_every_engine_computes_the_same():
    quantized, before = cresset.backends.quantized, cresset.backends.quantized.engine
    x = cresset.quantize_per_tensor(cresset.tensor([[1.0, -2.0, 3.0]]), 0.1, 100, cresset.quint8)
    w = cresset.quantize_per_tensor(cresset.tensor([[0.5, 1.0, -1.5], [2.0, 0.25, 1.0]]), 0.02, 0, cresset.qint8)
    try:
        for name in ("x86", "fbgemm", "onednn", "qnnpack"):
            assert name in quantized.supported_engines
            quantized.engine = name
            packed = cresset.ops.quantized.linear_prepack(w, None)
            # The numbers are those of PyTorch 2.13 with each of its engines.
            assert cresset.ops.quantized.linear(x, packed, 0.1, 50).int_repr().tolist() == [[0, 95]]
    finally:
        quantized.engine = before


@pytest.mark.parametrize(("name", "itemsize", "words"), [("qint8", 1, "QInt8"), ("quint8", 1, "QUInt8"), ("qint32", 4, "QInt32"), ("quint4x2", 1, "QUInt4x2")])
def test_types_stand_in_lists_of_dtypes(name, itemsize, words):
    kind = getattr(cresset, name)
    assert isinstance(kind, cresset.dtype) and str(kind) == f"torch.{name}" and kind not in (cresset.uint8, cresset.int8)
    assert (kind.itemsize, kind.is_floating_point, kind.is_complex, kind.to_real()) == (itemsize, False, False, kind)
    with pytest.raises(RuntimeError, match="isSignedType not supported for quantized types"):
        kind.is_signed  # noqa: B018
    with pytest.raises(RuntimeError, match=f"Unknown Complex ScalarType for {words}"):
        kind.to_complex()
    with pytest.raises(TypeError):
        cresset.zeros(2, dtype=kind)
    assert pickle.loads(pickle.dumps(kind)) is kind and copy.deepcopy(kind) is kind


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_layers_as_functions(kind):
    qconfig = cresset.ao.quantization.default_dynamic_qconfig
    layer = cresset.ao.quantization.quantize_dynamic(nn.Sequential(kind(4, 3, 2, bidirectional=True)), {kind: qconfig})[0]
    x, h = cresset.linspace(-1, 1, 40).view(5, 2, 4), cresset.zeros(4, 2, 3)
    state, function, options = (
        ((h, h), cresset.quantized_lstm, {"dtype": cresset.qint8, "use_dynamic": True}) if kind is nn.LSTM else (h, cresset.quantized_gru, {})
    )
    cells = [cell.param for cell in layer._all_weight_values]
    expected, last = layer(x, state)
    for first in (False, True):
        out, *states = function(x.transpose(0, 1) if first else x, state, cells, True, 2, 0.0, False, True, first, **options)
        assert cresset.equal(out.transpose(0, 1) if first else out, expected)
        assert all(map(cresset.equal, states, last if kind is nn.LSTM else [last]))
    packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    out, *_ = function(packed.data, packed.batch_sizes, state, cells, True, 2, 0.0, False, True, **options)
    assert cresset.equal(out, layer(packed, state)[0].data)


def test_qnnpack_takes_all_of_the_range():
    weight = cresset.ops.quantized.linear_prepack(cresset.quantize_per_tensor(cresset.eye(3), 0.01, 0, cresset.qint8), None)
    x, before = cresset.tensor([[0.1, 0.7, 0.9]]), cresset.backends.quantized.engine
    results = {}
    try:
        for engine in ("x86", "qnnpack"):
            cresset.backends.quantized.engine = engine
            results[engine] = [cresset.ops.quantized.linear_dynamic(x, weight, reduce) for reduce in (True, False)]
    finally:
        cresset.backends.quantized.engine = before
    assert not cresset.equal(*results["x86"]) and cresset.equal(*results["qnnpack"]) and cresset.equal(results["qnnpack"][0], results["x86"][1])
