"""An LSTM's steps go into one operator where nobody watches its parts: both ways give the same numbers and derivatives of every order."""

import pytest

import cresset as torch
from cresset.utils._python_dispatch import TorchDispatchMode


class Watched(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.name())
        return func(*args, **(kwargs or {}))


CASES = {
    "two layers": {"num_layers": 2},
    "both directions": {"num_layers": 2, "bidirectional": True},
    "without biases": {"bias": False},
    "batch first": {"batch_first": True, "bidirectional": True},
    "projected": {"proj_size": 2},
}


def made(case):
    torch.manual_seed(0)
    layer = torch.nn.LSTM(3, 4, dtype=torch.float64, **CASES[case])
    cells = layer.num_layers * (2 if layer.bidirectional else 1)
    x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    batch = 5 if layer.batch_first else 2
    state = [torch.randn(cells, batch, size, dtype=torch.float64, requires_grad=True) for size in (layer.proj_size or 4, 4)]
    return layer, x, state


def results(case):
    """Outputs, gradients, and gradients of the gradients' squares."""
    layer, x, state = made(case)
    out, (h, c) = layer(x, state)
    inputs = [x, *state, *layer.parameters()]
    loss = (out * torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view_as(out)).sum() + (h * h).sum() + c.sin().sum()
    first = torch.autograd.grad(loss, inputs, create_graph=True)
    return [out, h, c, *first, *torch.autograd.grad(sum((g * g).sum() for g in first), inputs)]


@pytest.mark.parametrize("case", CASES)
def test_one_operator_and_its_parts_agree(case):
    whole = results(case)
    with Watched() as watched:
        parts = results(case)
    assert "aten::tanh" in watched.names and not any("lstm_layer" in name for name in watched.names)
    for have, want in zip(whole, parts):
        torch.testing.assert_close(have, want, rtol=1e-9, atol=1e-12)


def kinds_of_nodes(out):
    seen, waiting = set(), [out.grad_fn]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [n for n, _ in node.next_functions if n is not None]
    return {type(node).__name__ for node in seen}


def test_which_way_is_taken():
    layer, x, state = made("two layers")
    assert any("LstmLayer" in name for name in kinds_of_nodes(layer(x, state)[0]))
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, [5, 3])  # steps of several sizes
    assert not any("LstmLayer" in name for name in kinds_of_nodes(layer(packed, state)[0].data))


def test_tangents_and_examples_go_through_the_parts():
    layer, x, state = made("two layers")
    parameters = dict(layer.named_parameters())
    f = lambda x: torch.func.functional_call(layer, parameters, (x, state))[0]
    tangent = torch.randn_like(x)
    _, along = torch.func.jvp(f, (x.detach(),), (tangent,))
    step = 1e-6
    torch.testing.assert_close(along, (f(x + step * tangent) - f(x - step * tangent)) / (2 * step), rtol=1e-6, atol=1e-8)
    some = torch.stack([x.detach(), x.detach() * 2])
    torch.testing.assert_close(torch.func.vmap(f)(some), torch.stack([f(s) for s in some]), rtol=1e-9, atol=1e-12)


def test_values_of_gates_are_kept_for_derivatives_only():
    lstm_layer = torch.ops.cresset.lstm_layer
    gates, h, w = torch.randn(3, 2, 16), torch.randn(2, 4), torch.randn(16, 4)
    kept, lean = lstm_layer(gates, h, h, w), lstm_layer(gates, h, h, w, False)
    assert kept[2].shape == (3, 2, 16) and lean[2].shape == (0,) and all(a.equal(b) for a, b in zip(kept[:2], lean[:2]))
    with pytest.raises(NotImplementedError, match="lstm_layer: floating-point tensors were required; got"):
        lstm_layer(*(t.to(torch.complex64) for t in (gates, h, h, w)))
