"""Full backward hooks of modules: second derivatives, and outputs that they do not look into."""

import pytest

import cresset as torch
from cresset import nn


def hooked(module, calls):
    module.register_full_backward_pre_hook(lambda m, outputs: calls.append("pre"))
    module.register_full_backward_hook(lambda m, inputs, outputs: calls.append((inputs, outputs)))
    return module


def test_second_derivatives():
    """A gradient penalty: the second pass reaches inputs of modules without passing their outputs, where no hook can tell of it."""

    def run(hooks):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
        calls = []
        if hooks:
            for layer in model:
                layer.register_full_backward_hook(lambda m, inputs, outputs: calls.append(type(m).__name__))
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        (first,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        first.norm().backward()
        return calls, x.grad, [p.grad for p in model.parameters()]

    calls, x_grad, grads = run(True)
    assert calls == ["Linear", "Tanh", "Linear", "Linear"]
    _, x_want, want = run(False)
    assert torch.allclose(x_grad, x_want) and all((g is None and w is None) or torch.allclose(g, w) for g, w in zip(grads, want, strict=True))


def test_gradients_that_hooks_see_have_a_graph():
    calls = []
    layer = hooked(nn.Linear(3, 3), calls)
    x = torch.ones(2, 3, requires_grad=True)
    (first,) = torch.autograd.grad(layer(x).tanh().sum(), x, create_graph=True)
    torch.autograd.grad(first.pow(2).sum(), [x, *layer.parameters()])
    assert [c if c == "pre" else (c[0][0].requires_grad, c[1][0].requires_grad) for c in calls] == ["pre", (True, True), "pre", (False, False)]


class Gives(nn.Module):
    """A module whose output is made by a function."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, x):
        return self.make(x)


def test_outputs_that_are_no_tensors():
    """Tensors in a dict or a list inside of an output have their gradients, and no hooks; those of a tuple have both."""
    for make, read, called in (
        (lambda x: {"a": x * 2, "b": x * 3}, lambda o: o["a"] + o["b"], []),
        (lambda x: [x * 2, x * 3], lambda o: o[0] + o[1], []),
        (lambda x: (x * 2, [x * 3], "s"), lambda o: o[0] + o[1][0], ["pre", (1, 3)]),
        (lambda x: (x * 2, x * 3), lambda o: o[0] + o[1], ["pre", (1, 2)]),
    ):
        calls = []
        x = torch.ones(2, requires_grad=True)
        read(hooked(Gives(make), calls)(x)).sum().backward()
        assert x.grad.tolist() == [5, 5]
        assert [c if c == "pre" else (len(c[0]), len(c[1])) for c in calls] == called
    assert hooked(Gives(lambda x: None), [])(torch.ones(2, requires_grad=True)) is None


def test_words_of_hooks_that_are_not_full():
    class Of(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, *inputs):
            return self.function(*inputs)

    a = torch.rand(2, requires_grad=True)
    for function, given, words in (
        (lambda many: many[0].clone(), [a], "does not take as input a single Tensor .* missing some of the grad_input"),
        (lambda x: [x.clone()], a, "does not return a single Tensor .* missing some of the grad_output"),
    ):
        m = Of(function)
        m.register_backward_hook(lambda *args: None)
        with pytest.warns(FutureWarning, match=words):
            m(given)
