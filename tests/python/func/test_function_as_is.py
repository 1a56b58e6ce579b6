"""Custom Functions that return their input as it is, under the transforms of derivatives. Values are PyTorch's."""

import cresset
import pytest
from cresset.autograd import forward_ad


class AsIs(cresset.autograd.Function):
    """The identity, with three times the tangent."""

    @staticmethod
    def forward(x):
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return 3 * grad

    @staticmethod
    def jvp(ctx, tangent):
        return 3 * tangent


class AsItIs(AsIs):
    @staticmethod
    def backward(ctx, grad):
        return grad

    @staticmethod
    def jvp(ctx, tangent):
        return tangent


class Both(AsIs):
    @staticmethod
    def forward(x, y):
        return x, y * 2

    @staticmethod
    def backward(ctx, grad_x, grad_y):
        return 3 * grad_x, 2 * grad_y

    @staticmethod
    def jvp(ctx, x, y):
        return 3 * x, 2 * y


X, T = cresset.tensor([1.0, 2.0]), cresset.tensor([5.0, 7.0])


@pytest.mark.parametrize("function, factor", [(AsIs, 3), (AsItIs, 1)])
def test_jvp(function, factor):
    value, tangent = cresset.func.jvp(function.apply, (X,), (T,))
    assert value.tolist() == X.tolist() and tangent.tolist() == (factor * T).tolist()
    value, tangent = cresset.func.jvp(lambda x: function.apply(x * 2).sin(), (X,), (T,))
    assert cresset.allclose(tangent, (2 * X).cos() * 2 * factor * T)


def test_outer_values_keep_their_tangents():
    value, tangent = cresset.func.jvp(lambda x: AsIs.apply(x) + x, (X,), (T,))
    assert tangent.tolist() == (4 * T).tolist()


def test_jvp_of_several_results():
    values, tangents = cresset.func.jvp(Both.apply, (X, X), (T, T))
    assert [v.tolist() for v in values] == [X.tolist(), (2 * X).tolist()]
    assert [t.tolist() for t in tangents] == [(3 * T).tolist(), (2 * T).tolist()]


def test_jvp_of_a_jvp():
    inner = lambda x: cresset.func.jvp(lambda y: AsIs.apply(y) ** 2, (x,), (T,))[1]  # noqa: E731
    value, tangent = cresset.func.jvp(inner, (X,), (T,))
    assert cresset.allclose(value, 2 * X * 3 * T) and cresset.allclose(tangent, 2 * 3 * T * 3 * T)


def test_outside_of_transforms_a_view_is_required():
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="returning a view .or an input as-is. but the jvp is not returning a view"):
        AsIs.apply(forward_ad.make_dual(X, T))
