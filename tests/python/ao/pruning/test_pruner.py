"""Pruning of rows (`ao.pruning._experimental.pruner`): shapes and sums of outputs are those of PyTorch 2.13, and masked models compute what pruned ones do."""

import cresset as torch
import pytest
from cresset import fx, nn
from cresset.ao.pruning._experimental.pruner import BaseStructuredSparsifier, BiasHook, FakeStructuredSparsity, FPGMPruner, LSTMSaliencyPruner, SaliencyPruner
from cresset.ao.pruning._experimental.pruner.match_utils import apply_match
from cresset.ao.pruning._experimental.pruner.prune_functions import prune_linear_linear
from cresset.ao.quantization.utils import MatchAllNode
from cresset.nn import functional as F


class Rows(BaseStructuredSparsifier):
    """Masks given rows."""

    def __init__(self, defaults, rows, patterns=None):
        super().__init__(defaults, patterns)
        self.rows = rows

    def update_mask(self, module, tensor_name, tensor_fqn, **kwargs):
        module.parametrizations[tensor_name][0].mask[self.rows[tensor_fqn]] = False


def filled(model):
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(torch.sin(torch.arange(p.numel(), dtype=torch.float64) * 1.7 + i).view(p.shape).float())
    return model.eval()


def values(*shape):
    return torch.cos(torch.arange(torch.Size(shape).numel(), dtype=torch.float64) * 0.9).view(shape).float()


def pruned(model, rows, prune_bias=True, images=None):
    """Outputs of the masked and of the pruned model, and shapes of parameters."""
    model = filled(model)
    pruner = Rows({"prune_bias": prune_bias}, rows)
    pruner.prepare(model, [{"tensor_fqn": name} for name in rows])
    pruner.step()
    masked = model(images)
    small = pruner.prune()
    return masked, small(images), {name: tuple(p.shape) for name, p in small.named_parameters()}, small


def conv(i, o, **kwargs):
    return nn.Conv2d(i, o, 3, **kwargs)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.b(F.gelu(self.a(x)))


class FunctionalPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.fc = conv(1, 4), conv(4, 3), nn.Linear(12, 2)
        self.pool = nn.AdaptiveMaxPool2d((2, 2))

    def forward(self, x):
        x = self.b(F.relu(F.max_pool2d(self.a(x), 2)))
        return self.fc(torch.flatten(self.pool(x), 1))


CHAINS = {
    "linear": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), {"0.weight": [1]}, (5, 3)),
    "linears": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5, bias=False), nn.Linear(5, 2)), {"0.weight": [0, 2], "1.weight": [1, 3]}, (5, 3)),
    "functional": (Functional, {"a.weight": [1, 2]}, (5, 3)),
    "conv": (lambda: nn.Sequential(conv(1, 4), conv(4, 2)), {"0.weight": [1]}, (2, 1, 8, 8)),
    "padded": (lambda: nn.Sequential(conv(1, 4), nn.ReLU(), conv(4, 2, padding=1)), {"0.weight": [1]}, (2, 1, 8, 8)),
    "padded, no bias": (lambda: nn.Sequential(conv(1, 4, bias=False), conv(4, 2, padding=1)), {"0.weight": [1]}, (2, 1, 8, 8)),
    "pool": (lambda: nn.Sequential(conv(1, 4), nn.MaxPool2d(2), nn.ReLU(), conv(4, 3)), {"0.weight": [1, 3]}, (2, 1, 12, 12)),
    "act, pool": (lambda: nn.Sequential(conv(1, 4), nn.Tanh(), nn.AvgPool2d(2), conv(4, 3)), {"0.weight": [1, 3]}, (2, 1, 12, 12)),
    "flatten": (lambda: nn.Sequential(conv(1, 4), nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(), nn.Linear(16, 3)), {"0.weight": [2]}, (2, 1, 8, 8)),
    "functional pool": (FunctionalPool, {"a.weight": [1], "b.weight": [0]}, (2, 1, 12, 12)),
}
EXPECTED = {
    ("linear", True): (6.05465, {"0.bias": (3,), "0.weight": (3, 3), "1.weight": (2, 3), "1.bias": (2,)}),
    ("linear", False): (3.04262, {"0.bias": (3,), "0.weight": (3, 3), "1.weight": (2, 3), "1.bias": (2,)}),
    ("linears", True): (-6.62233, {"0.bias": (2,), "0.weight": (2, 3), "1.weight": (3, 2), "2.weight": (2, 3), "2.bias": (2,)}),
    ("linears", False): (-5.44529, {"0.bias": (2,), "0.weight": (2, 3), "1.bias": (3,), "1.weight": (3, 2), "2.weight": (2, 3), "2.bias": (2,)}),
    ("functional", True): (2.57344, {"a.bias": (2,), "a.weight": (2, 3), "b.weight": (2, 2), "b.bias": (2,)}),
    ("functional", False): (1.48740, {"a.bias": (2,), "a.weight": (2, 3), "b.weight": (2, 2), "b.bias": (2,)}),
    ("conv", True): (-21.37321, {"0.bias": (3,), "0.weight": (3, 1, 3, 3), "1.weight": (2, 3, 3, 3), "1.bias": (2,)}),
    ("conv", False): (-44.86521, {"0.bias": (3,), "0.weight": (3, 1, 3, 3), "1.weight": (2, 3, 3, 3), "1.bias": (2,)}),
    ("padded", True): (33.62632, {"0.bias": (4,), "0.weight": (4, 1, 3, 3), "2.weight": (2, 4, 3, 3), "2.bias": (2,)}),
    ("padded", False): (-18.27686, {"0.bias": (4,), "0.weight": (4, 1, 3, 3), "2.weight": (2, 4, 3, 3), "2.bias": (2,)}),
    ("padded, no bias", True): (16.62036, {"0.weight": (3, 1, 3, 3), "1.weight": (2, 3, 3, 3), "1.bias": (2,)}),
    ("padded, no bias", False): (16.62036, {"0.weight": (3, 1, 3, 3), "1.weight": (2, 3, 3, 3), "1.bias": (2,)}),
    ("pool", True): (37.69296, {"0.bias": (2,), "0.weight": (2, 1, 3, 3), "3.weight": (3, 2, 3, 3), "3.bias": (3,)}),
    ("pool", False): (33.65109, {"0.bias": (2,), "0.weight": (2, 1, 3, 3), "3.weight": (3, 2, 3, 3), "3.bias": (3,)}),
    ("act, pool", True): (-10.72056, {"0.bias": (2,), "0.weight": (2, 1, 3, 3), "3.weight": (3, 2, 3, 3), "3.bias": (3,)}),
    ("act, pool", False): (-15.76705, {"0.bias": (2,), "0.weight": (2, 1, 3, 3), "3.weight": (3, 2, 3, 3), "3.bias": (3,)}),
    ("flatten", True): (-1.49226, {"0.bias": (3,), "0.weight": (3, 1, 3, 3), "3.weight": (3, 12), "3.bias": (3,)}),
    ("flatten", False): (-1.46223, {"0.bias": (3,), "0.weight": (3, 1, 3, 3), "3.weight": (3, 12), "3.bias": (3,)}),
    ("functional pool", True): (-4.11426, {"a.bias": (3,), "a.weight": (3, 1, 3, 3), "b.bias": (2,), "b.weight": (2, 3, 3, 3), "fc.weight": (2, 8), "fc.bias": (2,)}),
    ("functional pool", False): (-4.41756, {"a.bias": (3,), "a.weight": (3, 1, 3, 3), "b.bias": (2,), "b.weight": (2, 3, 3, 3), "fc.weight": (2, 8), "fc.bias": (2,)}),
}


@pytest.mark.parametrize("prune_bias", [True, False])
@pytest.mark.parametrize("name", CHAINS)
def test_pruned_models_compute_what_masked_ones_do(name, prune_bias):
    model, rows, shape = CHAINS[name]
    masked, out, shapes, _ = pruned(model(), rows, prune_bias, values(*shape))
    torch.testing.assert_close(out, masked, atol=1e-4, rtol=1e-4)
    total, expected = EXPECTED[name, prune_bias]
    assert out.double().sum().item() == pytest.approx(total, abs=2e-3)
    assert shapes == expected


def test_rows_before_padding_lose_their_biases():
    # In PyTorch they keep them where the masked model was not called before.
    model, rows, shape = CHAINS["padded"]
    masked = pruned(model(), rows, images=values(*shape))[0]
    pruner, again = Rows({}, rows), filled(model())
    pruner.prepare(again, [{"tensor_fqn": name} for name in rows])
    pruner.step()
    torch.testing.assert_close(pruner.prune()(values(*shape)), masked, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("prune_bias", [True, False])
def test_rows_of_the_last_layer_go(prune_bias):
    # With prune_bias=False PyTorch's last layer loses its bias, or keeps one that is too long.
    for model, shape in ((nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 3)), (5, 3)), (nn.Sequential(conv(1, 4), conv(4, 3, bias=False)), (2, 1, 8, 8))):
        masked, out, _, _ = pruned(model, {"0.weight": [1], "1.weight": [0]}, prune_bias, values(*shape))
        assert out.shape[1] == 2
        torch.testing.assert_close(out, masked[:, 1:], atol=1e-4, rtol=1e-4)


class Recurrent(nn.Module):
    def __init__(self, layers=1, norm=False, bias=True):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, layers, bias=bias)
        self.norm = nn.LayerNorm(4) if norm else None
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        x, _ = self.lstm(x)
        return self.linear(x if self.norm is None else self.norm(x))


@pytest.mark.parametrize(
    ("layers", "norm", "rows", "total"),
    [
        (1, False, [1, 5, 9, 13], -1.143223),
        (1, False, [1, 4, 11, 14], -3.008757),
        (1, True, [1, 5, 9, 13], 14.329328),
        (2, False, [1, 5, 9, 13], 6.784614),
        (2, True, [0, 7, 8, 15], -31.722858),
    ],
)
def test_lstm(layers, norm, rows, total):
    names = [f"lstm.weight_{part}_l{i}" for i in range(layers) for part in ("ih", "hh")]
    _, out, shapes, small = pruned(Recurrent(layers, norm), dict.fromkeys(names, rows), images=values(5, 2, 3))
    assert out.double().sum().item() == pytest.approx(total, abs=1e-4)
    assert shapes["lstm.weight_ih_l0"] == (12, 3) and shapes["lstm.weight_hh_l0"] == (12, 3) and shapes["linear.weight"] == (2, 3)
    assert small.lstm.hidden_size == 3 and (not norm or small.norm.normalized_shape == (3,))


def test_lstm_without_biases():
    # PyTorch asks for them. Without them a masked row is no row at all: the gates are 0.5, the cell stays 0.
    rows = {"lstm.weight_ih_l0": [1, 5, 9, 13], "lstm.weight_hh_l0": [1, 5, 9, 13]}
    masked, out, _, _ = pruned(Recurrent(bias=False), rows, images=values(5, 2, 3))
    torch.testing.assert_close(out, masked)


def test_prepared_layers():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2, bias=False))
    bias = model[0].bias.detach().clone()
    pruner = Rows(None, {"0.weight": [1], "1.weight": [0]})
    pruner.prepare(model, None)
    assert pruner.config == [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "1.weight"}] and len(pruner.patterns) == 430
    assert model[0].bias is None and torch.equal(model[0]._bias, bias) and model[0].prune_bias is True and not hasattr(model[1], "prune_bias")
    assert [type(hook) for layer in model for hook in layer._forward_hooks.values()] == [BiasHook, BiasHook]
    assert list(model.state_dict()) == ["0._bias", "0.parametrizations.weight.original", "1.parametrizations.weight.original"]
    assert pruner.state["0.weight"]["mask"].tolist() == [True] * 4
    pruner.step()
    model(torch.ones(2, 7, 3)).sum().backward()  # the bias is added to the last dimension, and takes no gradient
    assert model[0]._bias.grad is None and model[0]._bias[1] == 0
    torch.testing.assert_close(model[0](torch.zeros(2, 7, 3))[0, 0], torch.cat([bias[:1], torch.zeros(1), bias[2:]]))


def test_what_no_pattern_begins_with_is_an_error():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.Linear(4, 2))
    pruner = Rows({}, {"0.weight": [1]})
    pruner.prepare(model, [{"tensor_fqn": "0.weight"}])
    with pytest.raises(Exception, match=r"^Error: ParametrizedLinear\((.|\n)*still contains FakeStructuredSparsity parametrizations!$"):
        pruner.prune()
    pruner.patterns = {(nn.Linear, nn.Dropout, nn.Linear): lambda first, dropout, second: prune_linear_linear(first, second)}
    pruner.step()
    assert {name: tuple(p.shape) for name, p in pruner.prune().named_parameters()} == {"0.weight": (3, 3), "0.bias": (3,), "2.weight": (2, 3), "2.bias": (2,)}


def test_masks_of_rows():
    parametrization = FakeStructuredSparsity(torch.tensor([True, False]))
    assert parametrization(torch.ones(2, 3)).tolist() == [[1, 1, 1], [0, 0, 0]] and parametrization(torch.ones(2)).tolist() == [1, 0]
    assert parametrization.state_dict() == {}
    with pytest.raises(AssertionError) as caught:
        parametrization(torch.ones(3, 2))
    assert str(caught.value) == "mask shape[0] (2) must match x shape[0] (3)"
    with pytest.raises(TypeError, match="BaseStructuredSparsifier.*update_mask"):
        BaseStructuredSparsifier({})


def test_matches():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)))
    modules, nodes = dict(traced.named_modules()), list(traced.graph.nodes)
    names = lambda pattern, node: [n.name for n in apply_match(modules, pattern, node, []) or ()]  # noqa: E731
    assert names((nn.Linear, nn.ReLU, nn.Linear, "output"), nodes[1]) == ["_0", "_1", "_2", "output"]
    assert names((nn.Linear, MatchAllNode, nn.Linear), nodes[1]) == ["_0", "_1", "_2"] and names(nn.Linear, nodes[1]) == ["_0"]
    assert names((nn.Linear, "output"), nodes[1]) == [] and names((nn.ReLU,), nodes[1]) == []


def masks(pruner, model, names):
    pruner.prepare(model, [{"tensor_fqn": name} for name in names])
    pruner.step()
    return ["".join(str(int(v)) for v in pruner.state[name]["mask"]) for name in names]


@pytest.mark.parametrize(
    ("level", "saliency", "fpgm", "lstm"),
    [
        (0, "11111111", "11111111", ["11111111111111111111", "11111111111111111111"]),
        (0.3, "01101111", "01111110", ["01111111011011110111", "10111111011101101111"]),
        (0.5, "01101001", "01100110", ["01101011011010110110", "10101011011001101101"]),
        (0.74, "01100001", "00100100", ["01100001011000110100", "10001011000001101100"]),
        (0.99, "01000000", "00000000", ["01000000011000000100", "00001001000000101000"]),
    ],
)
def test_masks_of_pruners(level, saliency, fpgm, lstm):
    assert masks(SaliencyPruner({"sparsity_level": level}), filled(nn.Sequential(nn.Linear(3, 8))), ["0.weight"]) == [saliency]
    assert masks(FPGMPruner(level), filled(nn.Sequential(conv(3, 8))), ["0.weight"]) == [fpgm]
    model = filled(nn.LSTM(3, 5))
    model = nn.Sequential(model)
    assert masks(LSTMSaliencyPruner({"sparsity_level": level}), model, ["0.weight_ih_l0", "0.weight_hh_l0"]) == lstm


def test_pruners_refuse():
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        masks(SaliencyPruner({"sparsity_level": 1.5}), nn.Sequential(nn.Linear(3, 8)), ["0.weight"])
    with pytest.raises(KeyError, match="sparsity_level"):
        masks(SaliencyPruner({}), nn.Sequential(nn.Linear(3, 8)), ["0.weight"])
    with pytest.raises(NotImplementedError, match="^Distance function is not yet implemented.$"):
        FPGMPruner(0.5, 3)
    weight = (torch.arange(24.0) ** 1.5).view(3, 2, 2, 2)
    torch.testing.assert_close(FPGMPruner()._compute_distance(weight), torch.tensor([316.1155, 224.8013, 357.7976]))
    torch.testing.assert_close(FPGMPruner(0.5, 1)._compute_distance(weight), torch.tensor([886.2576, 631.0274, 1006.8245]))
