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
