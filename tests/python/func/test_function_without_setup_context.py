"""A Function that reads its ctx in forward cannot be transformed: each transform says so, and ordinary derivatives work."""

import pytest

import cresset
from cresset import func


class Cube(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return 3 * grad * ctx.saved_tensors[0] ** 2


x = cresset.tensor([1.0, 2.0])

TRANSFORMS = {
    "grad": lambda: func.grad(lambda t: Cube.apply(t).sum())(x),
    "vjp": lambda: func.vjp(Cube.apply, x),
    "jvp": lambda: func.jvp(Cube.apply, (x,), (x,)),
    "jacrev": lambda: func.jacrev(Cube.apply)(x),
    "jacfwd": lambda: func.jacfwd(Cube.apply)(x),
    "hessian": lambda: func.hessian(lambda t: Cube.apply(t).sum())(x),
    "vmap": lambda: func.vmap(Cube.apply)(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_asks_for_setup_context(name):
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        TRANSFORMS[name]()
    leaf = x.clone().requires_grad_()
    Cube.apply(leaf).sum().backward()
    assert leaf.grad.tolist() == [3.0, 12.0]


def test_derivatives_that_are_no_transforms_work():
    assert cresset.autograd.functional.jacobian(Cube.apply, x).tolist() == [[3.0, 0.0], [0.0, 12.0]]
