"""Equalization of inputs and weights in graphs: nodes, numbers of channels and ranges are PyTorch 2.13's (written down)."""

import copy

import cresset
import pytest
from cresset import nn
from cresset.ao.quantization import HistogramObserver, QConfig, default_qconfig, default_weight_observer
from cresset.ao.quantization.fx import _equalize
from cresset.ao.quantization.quantize_fx import convert_fx, prepare_fx
from cresset.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore:.*reduce_range")
KINDS = (nn.Linear, F.linear, nn.ReLU, F.relu, nn.Conv2d, F.conv2d)
ROWS = cresset.linspace(-1, 2, 20).view(4, 5)


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 8), nn.Linear(8, 5)

    def forward(self, x):
        return self.b(self.a(x))


class Sum(Chain):
    def forward(self, x):
        return self.b(self.a(x) + 5)


class Functions(Chain):
    def forward(self, x):
        return F.linear(F.relu(F.linear(x, self.a.weight, self.a.bias)), self.b.weight, self.b.bias)


class Branches(Chain):
    def forward(self, x):
        return self.a(x), F.linear(x, self.a.weight)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.r, self.b = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3)

    def forward(self, x):
        return self.b(self.r(self.a(x)))


def prepared(kind, x, qconfig=default_qconfig):
    model = kind().eval()
    for p in model.parameters():
        p.data = cresset.sin(cresset.arange(p.numel()).float()).view(p.shape) * 0.3
    own = {"": None, "object_type": [(k, qconfig) for k in KINDS]}
    equal = {"": None, "object_type": [(k, _equalize.default_equalization_qconfig) for k in KINDS]}
    return prepare_fx(model, own, example_inputs=(x,), _equalization_config=equal)


def _called(model):
    return " ".join(
        type(model.get_submodule(n.target)).__name__ if n.op == "call_module" else getattr(n.target, "__name__", str(n.target))
        for n in model.graph.nodes
        if n.op.startswith("call")
    )


@pytest.mark.parametrize(
    ("kind", "x", "watched", "equalized", "converted"),
    [
        (
            Chain, ROWS, "MinMaxObserver _InputEqualizationObserver Linear MinMaxObserver _InputEqualizationObserver Linear MinMaxObserver",
            "mul MinMaxObserver Linear MinMaxObserver Linear MinMaxObserver", "mul quantize_per_tensor Linear Linear dequantize",
        ),
        (
            Sum, ROWS, "MinMaxObserver _InputEqualizationObserver Linear MinMaxObserver add MinMaxObserver _InputEqualizationObserver Linear MinMaxObserver",
            "mul MinMaxObserver Linear MinMaxObserver add mul MinMaxObserver Linear MinMaxObserver",
            "mul quantize_per_tensor Linear dequantize add mul quantize_per_tensor Linear dequantize",
        ),
        (
            Functions, ROWS,
            "MinMaxObserver _InputEqualizationObserver MinMaxObserver _WeightEqualizationObserver linear relu MinMaxObserver _InputEqualizationObserver "
            "MinMaxObserver _WeightEqualizationObserver linear MinMaxObserver",
            "mul MinMaxObserver MinMaxObserver linear relu MinMaxObserver MinMaxObserver linear MinMaxObserver",
            "mul quantize_per_tensor linear_relu linear dequantize",
        ),
        (
            Images, cresset.linspace(-1, 1, 192).view(1, 3, 8, 8),
            "MinMaxObserver _InputEqualizationObserver ConvReLU2d MinMaxObserver _InputEqualizationObserver Conv2d MinMaxObserver",
            "mul MinMaxObserver ConvReLU2d MinMaxObserver Conv2d MinMaxObserver", "mul quantize_per_tensor ConvReLU2d Conv2d dequantize",
        ),
    ],
)  # fmt: skip
def test_graphs(kind, x, watched, equalized, converted):
    made = prepared(kind, x)
    assert _called(made) == watched
    expected = made(x)
    reference = _equalize._convert_equalization_ref(copy.deepcopy(made))
    assert _called(reference) == equalized
    cresset.testing.assert_close(reference(x), expected)  # what it computes is what it was
    whole = convert_fx(made)
    assert _called(whole) == converted and (whole(x) - expected).abs().max() < 0.15 * expected.abs().max()


def test_numbers_of_channels_and_ranges():
    made = prepared(Sum, ROWS)
    made(ROWS)
    reference = _equalize._convert_equalization_ref(made)
    scales = {name: value for name, value in reference.named_buffers() if "equalization" in name}
    expected = {
        "x_equalization_scale0": [[0.4907, 0.483, 0.4929, 0.4836, 0.4901]],
        "add_equalization_scale0": [[0.8396, 1.0049, 1.023, 0.8296, 8.5312, 0.7969, 1.1017, 0.9754]],
    }
    for name, values in expected.items():
        cresset.testing.assert_close(scales[name], cresset.tensor(values), atol=1e-4, rtol=0)
    seen = [(round(float(m.min_val), 4), round(float(m.max_val), 4)) for n, m in reference.named_modules() if type(m).__name__ == "MinMaxObserver"]
    assert seen == [(-0.4907, 0.9802), (-0.6334, 0.8568), (3.5012, 38.5886), (-2.149, 2.9827)]


def test_histograms_become_ranges():
    made = prepared(Chain, ROWS, QConfig(activation=HistogramObserver.with_args(reduce_range=True), weight=default_weight_observer))
    expected = made(ROWS)
    assert (convert_fx(made)(ROWS) - expected).abs().max() < 0.1


def test_branches_are_not_equalized():
    with pytest.warns(UserWarning, match="Cannot equalize a because it is part of a branch"):
        made = prepared(Branches, ROWS)
    assert "Equalization" not in _called(made)


def test_without_observations():
    assert _called(convert_fx(prepared(Chain, ROWS))) == "mul quantize_per_tensor Linear Linear dequantize"


def test_observers():
    seen, weights = _equalize._InputEqualizationObserver(), _equalize._WeightEqualizationObserver()
    with pytest.warns(UserWarning, match="Must run observer before calling"):
        assert _equalize.calculate_equalization_scale(seen, weights) == 1
    x, w = cresset.tensor([[0.0, 1.0], [4.0, 2.0]]), cresset.tensor([[1.0, 0.0], [0.0, 9.0], [0.5, 3.0]])
    assert seen(x) is x and weights(w) is w
    assert [v.tolist() for v in seen.get_input_minmax()] == [[0, 1], [4, 2]] and [v.tolist() for v in weights.get_weight_col_minmax()] == [[0, 0], [1, 9]]
    scale = _equalize.calculate_equalization_scale(seen, weights)
    assert scale.tolist() == [0.5, 3.0]
    with pytest.warns(UserWarning, match="Must call calculate_equalization_scale before"):
        assert seen.calculate_scaled_minmax() == (None, None)
    seen.set_equalization_scale(scale)
    assert seen.calculate_scaled_minmax() == (0, 6)
    other = _equalize._WeightEqualizationObserver()
    other(w.t())
    with pytest.warns(UserWarning, match="same number of channels"):
        assert _equalize.calculate_equalization_scale(seen, other) == 1
    with pytest.raises(ValueError, match="only supports Linear and Conv layers"):
        seen(cresset.ones(2))
    with pytest.raises(TypeError, match="Input qscheme must be per-tensor"):
        _equalize._InputEqualizationObserver(qscheme=cresset.per_channel_affine)
    with pytest.raises(ValueError, match="received observer instance, please pass observer class instead"):
        _equalize.EqualizationQConfig(seen, weights)
    assert _equalize.get_equalization_qconfig_dict({"a": 3, "b": 1, "c": 2}, 2) == {"module_name": [(n, _equalize.default_equalization_qconfig) for n in "bc"]}
