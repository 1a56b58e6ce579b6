"""Functions that change a view: the view, its base and other views of it know of the change, whoever asked for their nodes meanwhile."""

import cresset
import pytest
from cresset.autograd import Function


def gradient(through, slots, asked):
    a = cresset.tensor([1.0, 5.0], requires_grad=True)
    base = a.clone()
    part, whole = base[:1], base[:]

    class Double(Function):
        @staticmethod
        def forward(ctx, x, *others):
            ctx.mark_dirty(x)
            if asked == "before":
                assert part.grad_fn is not None and whole.grad_fn is not None
            result = x.mul_(2)
            if asked == "after":
                assert part.grad_fn is not None and whole.grad_fn is not None
            return result

        @staticmethod
        def backward(ctx, grad):
            return (grad * 2, None)[:slots]

    out = Double.apply(part, *[whole, cresset.tensor(1.0, requires_grad=True)][: slots - 1])
    assert out is part
    {"the view": part, "its base": base, "another view": whole}[through].sum().backward()
    return a.grad.tolist()


@pytest.mark.parametrize("asked", ["never", "before", "after"])
@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("through, expected", [("the view", [2, 0]), ("its base", [2, 1]), ("another view", [2, 1])])
def test_gradients_through_the_change(through, expected, slots, asked):
    assert gradient(through, slots, asked) == expected


class Doubled(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, x, non_differentiable):
        x.mul_(2)
        ctx.mark_dirty(x)
        if non_differentiable:
            ctx.mark_non_differentiable(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("recording, non_differentiable", [(False, False), (False, True), (True, True)])
def test_a_changed_input_whose_result_needs_no_grad_keeps_its_history(leaf, recording, non_differentiable):
    w = cresset.ones(2, requires_grad=True)
    x = w if leaf else w * 1
    history = x.grad_fn
    with cresset.set_grad_enabled(recording):
        y = Doubled.apply(x, non_differentiable)
    assert y is not x and not y.requires_grad and y.is_leaf and y._base is None
    assert y.data_ptr() == x.data_ptr() and y._version == x._version == 2
    assert x.requires_grad and x.grad_fn is history and x.tolist() == [2, 2]


class AsView(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


@pytest.mark.parametrize("recording", [True, False])
def test_views_that_no_node_recorded_say_where_they_come_from(recording):
    with cresset.set_grad_enabled(recording):
        view = AsView.apply(cresset.ones(1, 2))
    view.add_(1)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        view += cresset.ones(1, requires_grad=True)
