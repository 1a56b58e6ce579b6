"""An autograd.Function of tensors of the layout `_mkldnn` is part of the graph, and sees tensors of this layout."""

import pytest

import cresset


class Scale(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, other):
        assert x.layout is cresset._mkldnn and other.layout is cresset.strided
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor, other.clone()

    @staticmethod
    def backward(ctx, gradient, of_other):
        (x,) = ctx.saved_tensors
        assert x.layout is cresset._mkldnn and gradient.layout is cresset._mkldnn
        return gradient * ctx.factor, None, of_other + x.to_dense().sum()


class Separate(cresset.autograd.Function):
    @staticmethod
    def forward(x, factor=3.0):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        assert inputs[0].layout is output.layout is cresset._mkldnn
        ctx.factor = inputs[1]

    @staticmethod
    def vjp(ctx, gradient):
        return gradient * ctx.factor, None


def test_gradients_pass():
    x, y = cresset.ones(2, 3, requires_grad=True), cresset.ones(2, requires_grad=True)
    scaled, copied = Scale.apply(x.to_mkldnn(), 2.0, y)
    assert scaled.layout is cresset._mkldnn and scaled.requires_grad and copied.layout is cresset.strided
    assert scaled.grad_fn.name() == "ScaleBackward"
    (scaled.to_dense().sum() + copied.sum()).backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2 and y.grad.tolist() == [7.0, 7.0]


def test_a_leaf_of_this_layout_and_a_separate_context():
    x = cresset.ones(2).to_mkldnn().requires_grad_()
    Separate.apply(x).to_dense().sum().backward()
    assert x.grad.layout is cresset._mkldnn and x.grad.to_dense().tolist() == [3.0, 3.0]
    with cresset.no_grad():
        assert not Separate.apply(x, 2.0).requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        Separate.apply(x.detach()).to_dense().sum().backward()
