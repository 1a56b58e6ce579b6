"""supports_tensorlist: gradients through lists of tensors. Values and words are PyTorch 2.13's."""

import re

import pytest

import cresset as torch
from cresset._library.autograd import supports_tensorlist


def scaled(backward):
    @supports_tensorlist
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, xs, y, n):
            ctx.save_for_backward(*xs, y)
            ctx.n = n
            return [x * y for x in xs], xs[0] + y

        @staticmethod
        def backward(ctx, gs, g):
            return backward(ctx, gs, g)

    return Scaled


def test_lists():
    seen = []

    def backward(ctx, gs, g):
        *xs, y = ctx.saved_tensors
        seen.append(ctx.needs_input_grad)
        return [gs[0] * y + g, gs[1] * y], sum(a * x for a, x in zip(gs, xs)) + g, None

    xs, y = [torch.tensor(1.0, requires_grad=True), torch.tensor(2.0)], torch.tensor(3.0, requires_grad=True)
    out, last = scaled(backward).apply(xs, y, 5)
    assert isinstance(out, list) and [o.item() for o in out] == [3.0, 6.0] and last.item() == 4.0 and "ScaledBackward" in repr(last.grad_fn)
    grads = torch.autograd.grad(out[0] + 2 * out[1] + last, [xs[0], y], retain_graph=True)
    assert [g.item() for g in grads] == [4.0, 6.0] and seen == [([True, False], True, False)]
    assert [g.item() for g in torch.autograd.grad(last, [xs[0], y])] == [1.0, 1.0]


@pytest.mark.parametrize("wrong", [lambda c, gs, g: ([g, g], g), lambda c, gs, g: ([g], g, None), lambda c, gs, g: (None, g, None)])
def test_other_structures(wrong):
    xs, y = [torch.tensor(1.0, requires_grad=True), torch.tensor(2.0)], torch.tensor(3.0, requires_grad=True)
    _, last = scaled(wrong).apply(xs, y, 5)
    with pytest.raises(RuntimeError, match=re.escape("Expected the return from backward to be of the same structure as the inputs. Got: TreeSpec(tuple")):
        last.backward()


def test_recursion_and_setup_context():
    @supports_tensorlist
    class Apart(torch.autograd.Function):
        @staticmethod
        def forward(xs):
            return [x + i for i, x in enumerate(xs)]

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.count = len(inputs[0])
            assert len(output) == ctx.count

        @staticmethod
        def backward(ctx, grads):
            assert len(grads) == ctx.count
            return Apart.apply(grads[:2]) + Apart.apply(grads[2:])

    xs = [torch.tensor(0.0, requires_grad=True) for _ in range(5)]
    sum(Apart.apply(xs)).backward()
    assert [x.grad.item() for x in xs] == [1.0, 2.0, 1.0, 2.0, 3.0]
    for name in ("forward", "backward"):
        with pytest.raises(NotImplementedError, match=f"NYI: calling supports_tensorlist autograd.Function.{name} directly"):
            getattr(Apart, name)(None, xs)
    with pytest.raises(TypeError):
        Apart.apply(xs=xs)


def test_tags_of_operators_of_scripts():
    assert torch.ops.aten.sub.complex.tags == [torch.Tag.pt2_compliant_tag]
