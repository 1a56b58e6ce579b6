"""What backward of a Function gives back: too few gradients are named before what is no gradient."""

import pytest

import cresset


def test_too_few_gradients_of_a_wrong_kind():
    class Two(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return [grad, grad]

    x, y = cresset.ones(2, requires_grad=True), cresset.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"function TwoBackward returned an incorrect number of gradients \(expected 2, got 1\)"):
        Two.apply(x, y).sum().backward()
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        x.sum().backward(5)


def test_a_first_gradient_that_is_a_view_is_kept():
    """The gradients of a linear layer's weight and of a broadcast bias are views of products and sums that nobody else has."""
    x, w, b = cresset.randn(5, 4), cresset.randn(3, 4, requires_grad=True), cresset.randn(3, requires_grad=True)
    seen = {}
    for name, parameter in (("w", w), ("b", b)):
        parameter.register_hook(lambda g, name=name: seen.__setitem__(name, g.data_ptr()))
    cresset.nn.functional.linear(x, w, b).sum().backward()
    assert seen == {"w": w.grad.data_ptr(), "b": b.grad.data_ptr()}
    assert not w.grad._is_view() and not b.grad._is_view() and w.grad.stride() == (4, 1) and w.grad._version == 0
    # One whose base the program holds is not.
    bases, w.grad = [], None
    w.register_hook(lambda g: bases.append(g._base))
    cresset.nn.functional.linear(x, w).sum().backward()
    before = bases[0].clone()
    w.grad.zero_()
    assert bases[0].equal(before) and before.abs().sum() > 0


def test_what_a_node_saves():
    class Squared(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            assert ctx.saved_tensors == ()
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    y = Squared.apply(cresset.ones(2, requires_grad=True))
    node = y.grad_fn
    assert len(node.saved_tensors) == 1
    del y
    assert len(node.saved_tensors) == 1
