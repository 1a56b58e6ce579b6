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
