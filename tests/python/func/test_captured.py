"""In-place operations on what the function of a transform captured are refused; on its own tensors they work. Words as PyTorch's."""

import pytest

import cresset
from cresset.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

REFUSED = (
    r"During a grad \(vjp, jvp, grad, etc\) transform, the function provided attempted to call in-place operation \(aten::{}\) that would "
    r"mutate a captured Tensor. This is not supported; please rewrite the function being transformed to explicitly accept the mutated "
    r"Tensor\(s\) as inputs."
)
X = cresset.tensor([1.0, 2.0, 3.0])


def transforms():
    return {
        "grad": lambda f: grad(f)(X),
        "vjp": lambda f: vjp(f, X),
        "jvp": lambda f: jvp(f, (X,), (X,)),
        "jacrev": lambda f: jacrev(f)(X),
        "jacfwd": lambda f: jacfwd(f)(X),
        "hessian": lambda f: hessian(f)(X),
        "vmap of grad": lambda f: vmap(grad(f))(cresset.stack([X, X])),
        "grad of jvp": lambda f: grad(lambda x: jvp(f, (x,), (x,))[1])(X),
    }


WRITES = {
    "add_.Tensor": lambda c: c.add_(1),
    "copy_": lambda c: c.copy_(X),
    "mul_.Tensor": lambda c: c.mul_(c),
    "zero_": lambda c: c[0].zero_(),
    "fill_.Scalar": lambda c: c.view(-1).fill_(2),
    "resize_": lambda c: c.resize_(5),
    "detach_": lambda c: c.detach_(),
    "normal_": lambda c: c.normal_(),
}


@pytest.mark.parametrize("transform", transforms())
def test_captured_tensors_are_refused(transform):
    captured = cresset.zeros(3)

    def f(x):
        captured.add_(1)
        return (x * x).sum()

    with pytest.raises(RuntimeError, match=REFUSED.format("add_.Tensor")):
        transforms()[transform](f)
    assert captured.tolist() == [0, 0, 0]


@pytest.mark.parametrize("op", WRITES)
def test_every_in_place_operator(op):
    captured = cresset.zeros(3)

    def f(x):
        WRITES[op](captured)
        return x.sum()

    with pytest.raises(RuntimeError, match=REFUSED.format(op)):
        grad(f)(X)
    assert captured.tolist() == [0, 0, 0]


def test_indexing_and_scopes_without_gradients():
    captured = cresset.zeros(3)

    def assign(x):
        captured[0] = 5
        return x.sum()

    def quietly(x):
        with cresset.no_grad():
            captured.sub_(1)
        return x.sum()

    for f in (assign, quietly):
        with pytest.raises(RuntimeError, match="that would mutate a captured Tensor"):
            grad(f)(X)
    assert captured.tolist() == [0, 0, 0]


@pytest.mark.parametrize("size", [3, 3000])  # small and large blocks
def test_own_tensors_may_be_written(size):
    x = cresset.ones(size)

    def f(x):
        total = cresset.zeros(size)
        total.add_(x)
        total[0] = 4
        product = (x * 2).mul_(x)
        random = cresset.empty(size).normal_().zero_()
        copy = x.clone()
        copy.view(-1).mul_(3)
        buffer = cresset.tensor([0.0])
        buffer.add_(1)
        return (total + product + random + copy).sum() * buffer.sum()

    expected = [8.0] * size
    expected[0] = 7.0
    assert grad(f)(x).tolist() == jacrev(f)(x).tolist() == expected
    assert jvp(f, (x,), (x,))[1].item() == sum(expected)


def test_arguments_may_be_written():
    count = cresset.zeros(1)

    def f(x, count, *, other):
        count.add_(1)
        other.mul_(2)
        return x.sum()

    other = cresset.ones(1)
    grad(f)(X, count, other=other)
    assert (count.item(), other.item()) == (1, 2)


def test_statistics_of_modules_are_arguments():
    model = cresset.nn.BatchNorm1d(3)
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())

    def loss(parameters, buffers, x):
        return functional_call(model, (parameters, buffers), (x,)).square().sum()

    grad(loss)(parameters, buffers, cresset.randn(4, 3))
    assert buffers["num_batches_tracked"].item() == 1
    with pytest.raises(RuntimeError, match="attempted to call in-place operation .aten::add_"):
        grad(lambda p, x: functional_call(model, p, (x,)).square().sum())(parameters, cresset.randn(4, 3))


def test_an_inner_function_captures_what_an_outer_one_made():
    def outer(x):
        made = x * 2

        def inner(z):
            made.add_(1)
            return z.sum()

        return grad(inner)(x).sum()

    with pytest.raises(RuntimeError, match="that would mutate a captured Tensor"):
        grad(outer)(X)

    def allowed(x):
        g = grad(lambda z: (z * z).sum())(x)
        return g.mul_(2).sum()  # made inside of the inner function's transform, in the outer function

    assert grad(allowed)(X).tolist() == [4, 4, 4]


def test_afterwards_everything_may_be_written():
    captured = cresset.zeros(3)
    with pytest.raises(RuntimeError, match="captured"):
        grad(lambda x: captured.add_(x).sum())(X)
    captured.add_(1)
    assert captured.tolist() == [1, 1, 1]
    vmap(lambda x: x.sum())(cresset.ones(2, 3))
    with pytest.raises(ValueError, match="inside"):
        grad(lambda x: (_ for _ in ()).throw(ValueError("inside")))(X)
    captured.add_(1)
    assert captured.tolist() == [2, 2, 2]


@pytest.mark.parametrize("transform", ["grad", "vjp", "jvp", "jacrev"])
@pytest.mark.parametrize("layer", ["batch_norm", "instance_norm"])
def test_running_statistics_may_be_captured(transform, layer):
    """PyTorch 2.13 updates them, as modules in training mode need it."""
    F, x = cresset.nn.functional, cresset.randn(2, 3, 4)
    f = {"batch_norm": lambda x, m, v: F.batch_norm(x, m, v, training=True), "instance_norm": lambda x, m, v: F.instance_norm(x, m, v, use_input_stats=True)}[layer]
    want_m, want_v = cresset.zeros(3), cresset.ones(3)
    want = f(x, want_m, want_v).pow(2).sum()
    m, v = cresset.zeros(3), cresset.ones(3)
    loss = lambda x: f(x, m, v).pow(2).sum()  # noqa: E731
    if transform == "jvp":
        got = cresset.func.jvp(loss, (x,), (cresset.ones_like(x),))[0]
    elif transform == "vjp":
        got = cresset.func.vjp(loss, x)[0]
    else:
        getattr(cresset.func, transform)(loss)(x)
        got = want
    cresset.testing.assert_close(got, want)
    cresset.testing.assert_close(m, want_m)
    cresset.testing.assert_close(v, want_v)
