"""torch._vmap_internals: the vmap whose functions give a tensor or a tuple of them. Words are PyTorch 2.13's."""

import pytest

import cresset
from cresset._vmap_internals import _vmap, vmap

X = cresset.arange(6.0).view(2, 3)


def test_places_of_results():
    assert cresset.equal(vmap(lambda x: x * 2)(X), X * 2)
    a, b = vmap(lambda x, y: (x + y, x), in_dims=(0, None), out_dims=(0, 1))(X, X[0])
    assert cresset.equal(a, X + X[0]) and cresset.equal(b, X.t())
    one, nothing = _vmap(lambda x: (x, None), allow_none_pass_through=True)(X)
    assert cresset.equal(one, X) and nothing is None
    assert cresset.equal(vmap(vmap(lambda x: x.sin()))(X), X.sin())


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (lambda x: x, {"out_dims": (0, 0)}, r"`out_dims` must have one dim per output \(got 1 outputs\) of <lambda>\."),
        (lambda x: (x, x), {"out_dims": (0,)}, r"`out_dims` must have one dim per output \(got 2 outputs\)"),
        (lambda x: x, {"out_dims": "a"}, "`out_dims` must be an int or a tuple of int representing where"),
        (lambda x: (x, x), {"out_dims": (None, 0)}, "`out_dims` must be an int or a tuple of int representing where"),
        (lambda x: [x, x], {}, "`<lambda>` must only return Tensors, got type <class 'list'> as the return."),
        (lambda x: (x, (x, x)), {}, "`<lambda>` must only return Tensors, got type <class 'tuple'> for return 1."),
        (lambda x: (x, None), {}, "`<lambda>` must only return Tensors, got type <class 'NoneType'> for return 1."),
        (lambda x: x, {"in_dims": -1}, "Got in_dim=-1 for some input, .* so expected in_dim to satisfy 0 <= in_dim < 2."),
        (lambda x: x, {"in_dims": (0, 0)}, "in_dims is not compatible with the structure of `inputs`"),
    ],
)
def test_refused(function, options, words):
    with pytest.raises(ValueError, match=words):
        vmap(function, **options)(X)


class Times(cresset.autograd.Function):
    """Reads its ctx in forward, which the newer vmap refuses."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        constant = (x > 1).to(x.dtype)
        ctx.mark_non_differentiable(constant)
        return x * y, constant

    @staticmethod
    def backward(ctx, g, _):
        x, y = ctx.saved_tensors
        return g * y, g * x

    @staticmethod
    def jvp(ctx, a, b):
        x, y = ctx.saved_for_forward
        return a * y + x * b, None


def test_functions_that_read_their_ctx_in_forward():
    x, y = cresset.arange(6.0).view(3, 2).requires_grad_(), cresset.full((2,), 2.0, requires_grad=True)
    product, constant = vmap(lambda a: Times.apply(a, y))(x)
    assert product.tolist() == [[0, 2], [4, 6], [8, 10]] and constant.tolist() == [[0, 0], [1, 1], [1, 1]] and not constant.requires_grad
    product.sum().backward()
    assert x.grad.tolist() == [[2, 2]] * 3 and y.grad.tolist() == [6, 9]
    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        cresset.vmap(lambda a: Times.apply(a, y))(x)


def test_forward_derivatives_of_such_functions_are_vectorized():
    x, y = cresset.arange(3.0, dtype=cresset.float64), cresset.full((3,), 2.0, dtype=cresset.float64)
    found = cresset.autograd.functional.jacobian(lambda a, b: Times.apply(a, b)[0], (x, y), vectorize=True, strategy="forward-mode")
    assert [part.tolist() for part in found] == [[[2, 0, 0], [0, 2, 0], [0, 0, 2]], [[0, 0, 0], [0, 1, 0], [0, 0, 2]]]
    x.requires_grad_(), y.requires_grad_()
    assert cresset.autograd.gradcheck(lambda a, b: Times.apply(a, b)[0], (x, y), check_forward_ad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_gives_functions_tangents_of_tensors_without_gradients(fast_mode):
    seen = []

    class Asks(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            if cresset.autograd.forward_ad._current_level >= 0:
                seen.append((x.requires_grad, y.requires_grad))
            return x.clone(), y.clone()

        @staticmethod
        def jvp(ctx, a, b):
            return a, b

    inputs = [cresset.rand(2, dtype=cresset.float64, requires_grad=True) for _ in range(2)]
    assert cresset.autograd.gradcheck(
        Asks.apply, inputs, check_forward_ad=True, check_undefined_grad=True, check_backward_ad=False, check_batched_grad=False,
        check_batched_forward_grad=True, fast_mode=fast_mode,
    )  # fmt: skip
    assert seen == [(False, False)] * (12 if fast_mode else 14)  # as often as in PyTorch 2.13
