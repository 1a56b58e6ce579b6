"""Gradients of each sample: against backward from one sample after the other."""

import dataclasses

import cresset
import pytest
import cresset as torch
from cresset import nn
from cresset.nn import functional as F
from cresset.nn.utils._expanded_weights import ExpandedWeight
from cresset.nn.utils._per_sample_grad import call_for_per_sample_grads as call


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.out = nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(4, 3)

    def forward(self, x, scale=1.0):
        return self.out(self.attention(x, x, x, need_weights=False)[0]).mean(1) * scale


CASES = {
    "linear": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), (5, 3)),
    "shared": (lambda: (lambda layer: nn.Sequential(layer, nn.ReLU(), layer))(nn.Linear(3, 3)), (5, 3)),
    "conv": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(16, 2)), (4, 2, 4, 4)),
    "norms": (lambda: nn.Sequential(nn.LayerNorm(6), nn.Conv1d(3, 3, 2, stride=2), nn.InstanceNorm1d(3, affine=True)), (4, 3, 6)),
    "attention": (Attend, (3, 5, 4)),
    "recurrent": (lambda: nn.GRU(3, 4, batch_first=True), (3, 5, 3)),
}


def first(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_each_sample(name, mean):
    make, shape = CASES[name]
    cresset.manual_seed(0)
    model, x = make().double(), cresset.randn(shape, dtype=cresset.float64, requires_grad=True)
    result = first(call(model, loss_reduction="mean" if mean else "sum")(x))
    assert cresset.allclose(result, first(model(x)))
    each = result.square().flatten(1).sum(1)
    (each.mean() if mean else each.sum()).backward()
    parameters = list(model.parameters())
    assert all(p.grad is None for p in parameters) and x.grad is not None
    for i in range(shape[0]):
        expected = cresset.autograd.grad(first(model(x[i : i + 1].detach())).square().sum(), parameters)
        for p, g in zip(parameters, expected):
            assert p.grad_sample.shape == (shape[0], *p.shape) and cresset.allclose(p.grad_sample[i], g, atol=1e-10)


def test_batch_as_second_dimension():
    model, x = nn.RNN(3, 2).double(), cresset.randn(4, 2, 3, dtype=cresset.float64)
    result, last = call(model, batch_first=False)(x)
    assert result.shape == (4, 2, 2) and last.shape == (1, 2, 2) and cresset.allclose(result, model(x)[0])
    result.sum().backward()
    expected = cresset.autograd.grad(model(x[:, 1:])[0].sum(), model.weight_ih_l0)[0]
    assert cresset.allclose(model.weight_ih_l0.grad_sample[1], expected)


def test_what_is_shared_and_what_is_frozen():
    model = Attend()
    model.out.bias.requires_grad_(False)
    call(model, batch_size=3)(cresset.ones(3, 5, 4), cresset.tensor([2.0])).sum().backward()
    assert not hasattr(model.out.bias, "grad_sample") and model.out.weight.grad_sample.shape == (3, 3, 4)


@dataclasses.dataclass
class Both:
    a: cresset.Tensor


ERRORS = [
    (lambda m, x: call("fail"), "Module passed must be nn.Module, got str"), (lambda m, x: call(m, batch_size=6.4), "Batch size passed must be None or an integer, got float"),
    (lambda m, x: call(m, batch_size=-1), "Batch size must be positive, got -1"), (lambda m, x: call(m, loss_reduction=""), "Expected loss_reduction argument to be sum or mean"),
    (lambda m, x: call(m, batch_size=3)(x), "Expected ExpandedWeights to have batch size matching input"), (lambda m, x: call(m)(), "Unable to find a tensor in the passed args"),
    (lambda m, x: call(nn.Bilinear(3, 3, 1))(x, x[1:]), "found at least one input with batch size 4 and one with batch size 3"),
    (lambda m, x: call(m)(Both(x)), "a Both cannot be cut into samples"), (lambda m, x: [call(m)(x).sum().backward(), call(m)], "incorrect for multiple calls"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "words"), ERRORS)
def test_errors(wrong, words):
    with pytest.raises(RuntimeError, match=words):
        wrong(nn.Linear(3, 2), cresset.randn(4, 3))


def test_packed_sequences_are_taken_apart():
    torch.manual_seed(0)
    rnn = nn.LSTM(2, 3, batch_first=True)
    sequences = [torch.randn(n, 2) for n in (2, 4, 3)]
    packed = nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    output, (h, c) = call(rnn)(packed)
    expected, (expected_h, _) = rnn(packed)
    assert torch.allclose(output.data, expected.data, atol=1e-6) and torch.equal(output.batch_sizes, expected.batch_sizes)
    assert torch.allclose(h, expected_h, atol=1e-6) and c.shape == (1, 3, 3)
    output.data.sum().backward()
    for i, sequence in enumerate(sequences):
        wanted = torch.autograd.grad(rnn(sequence[None])[0].sum(), rnn.weight_ih_l0)[0]
        assert torch.allclose(rnn.weight_ih_l0.grad_sample[i], wanted, atol=1e-6)


def test_states_have_the_batch_as_their_second_dimension():
    torch.manual_seed(0)
    rnn, x, h = nn.GRU(2, 3, 2, batch_first=True), torch.randn(2, 4, 2), torch.randn(2, 2, 3)
    output, last = call(rnn)(x, h)
    expected, expected_last = rnn(x, h)
    assert torch.allclose(output, expected, atol=1e-6) and torch.allclose(last, expected_last, atol=1e-6)


FUNCTIONS = [
    (F.linear, (5, 4), [(3, 4), (3,)]),
    (F.conv1d, (5, 2, 6), [(3, 2, 2), (3,)]),
    (lambda x, w, b: F.layer_norm(x, (4,), w, b), (5, 3, 4), [(4,), (4,)]),
    (lambda x, w, b: F.group_norm(x, 2, w, b), (5, 4, 3), [(4,), (4,)]),
]


@pytest.mark.parametrize("function, size, weights", FUNCTIONS)
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_expanded_weights_keep_the_gradient_of_each_sample(function, size, weights, reduction):
    torch.manual_seed(0)
    x, weights = torch.randn(size), [torch.randn(w, requires_grad=True) for w in weights]
    result = function(x, *(ExpandedWeight(w, 5, reduction) for w in weights))
    assert torch.allclose(result, function(x, *weights), atol=1e-6)
    getattr(result, reduction)().backward()
    for i in range(5):
        for w, wanted in zip(weights, torch.autograd.grad(getattr(function(x[i : i + 1], *weights), reduction)(), weights)):
            assert w.grad is None and torch.allclose(w.grad_sample[i], wanted, atol=1e-5)


def test_what_expanded_weights_refuse():
    weight = ExpandedWeight(torch.randn(3, 4, requires_grad=True), 2, "sum")
    for function, words in (
        (lambda: weight + 1, "Expanded Weights encountered but cannot handle function add"),
        (lambda: F.linear(torch.ones(4), weight), "Expanded Weights expected input of at least rank 2, got of rank 1"),
        (lambda: F.linear(torch.ones(5, 4), weight), "Expected ExpandedWeights to have batch size matching input"),
        (lambda: F.linear(torch.ones(0, 4), weight), "0 is not a valid batch size for Expanded Weights"),
        (lambda: F.linear(torch.ones(2, 4), weight, torch.ones(3, requires_grad=True)), "does not support a mixture"),
        (lambda: ExpandedWeight(torch.ones(2), 2, "sum"), "Can only build ExpandedWeights objects of tensors that requires_grad"),
    ):
        with pytest.raises(RuntimeError, match=words):
            function()
