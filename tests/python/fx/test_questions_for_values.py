"""Derivatives that look at values do not when they are traced: the program holds for matrices of every rank, for rows with zeros."""

import pytest

import cresset
from cresset.func import grad, hessian, jacrev
from cresset.fx.experimental.proxy_tensor import make_fx

T = cresset.tensor


@pytest.mark.parametrize(
    "function, example, other, expected",
    [
        (lambda t: t.cumprod(0).sum(), T([1.0, 2.0, 3.0]), T([2.0, 0.0, 1.0]), [1.0, 4.0, 0.0]),
        (lambda t: t.prod(), T([1.0, 2.0]), T([0.0, 4.0]), [4.0, 0.0]),
        (cresset.det, T([[2.0, 1.0], [1.0, 3.0]]), T([[1.0, 2.0], [2.0, 4.0]]), [[4.0, -2.0], [-2.0, 1.0]]),
        (lambda t: t.quantile(0.5), T([1.0, 2.0, 3.0]), T([3.0, 1.0, 2.0]), [0.0, 0.0, 1.0]),
    ],
    ids=["cumprod", "prod", "det", "quantile"],
)
def test_traced_gradients(function, example, other, expected):
    found = make_fx(grad(function))(example)(other)
    assert found.sub(T(expected)).abs().max() < 1e-5


def test_traced_hessians():
    assert make_fx(hessian(lambda t: t.prod()))(cresset.ones(2))(T([2.0, 3.0])).tolist() == [[0, 1], [1, 0]]


def test_phases_under_vmap():
    """The derivative of |eigenvectors|, whose second derivative is a Jacobian by vmap, with PyTorch's values."""
    found = jacrev(grad(lambda a: cresset.linalg.eigh(a.to(cresset.complex128))[1].abs().sum()))(T([[2.0, 1.0], [1.0, 3.0]]))
    assert found.flatten()[:4].sub(T([-0.058, -0.094, -0.094, 0.058])).abs().max() < 1e-3


def test_sizes_as_a_tensor_are_a_constant():
    graph = make_fx(lambda x: x.sum() * cresset._shape_as_tensor(x))(cresset.ones(2, 3))
    assert graph(cresset.ones(2, 3)).tolist() == [12, 18]
