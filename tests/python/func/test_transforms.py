"""Derivatives of functions against closed forms, alone, nested and under vmap."""

import itertools

import cresset
import numpy as np
import pytest
from cresset import vmap
from cresset.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp

cubic = lambda v: (v**3).sum()  # noqa: E731
gradient_of_cubic = lambda v: 3 * v**2  # noqa: E731


@pytest.fixture
def x():
    return cresset.tensor([0.5, -1.5, 2.0], dtype=cresset.float64)


@pytest.fixture
def batch():
    return cresset.from_numpy(np.random.default_rng(3).standard_normal((4, 3)))


def close(a, b):
    return cresset.allclose(a, b, rtol=1e-10, atol=1e-12)


def test_grad_and_value_of_containers(x):
    grads, (value, aux) = grad_and_value(lambda d, k: (k * cubic(d["a"]) + d["b"][0].sum(), d["a"] * 2), has_aux=True)({"a": x, "b": [x]}, 2.0)
    assert close(grads["a"], 2 * gradient_of_cubic(x)) and close(grads["b"][0], cresset.ones_like(x))
    assert close(value, 2 * cubic(x) + x.sum()) and close(aux, 2 * x)
    assert not value.requires_grad and not aux.requires_grad


def test_argnums(x):
    f = lambda a, b: (a * b**2).sum()  # noqa: E731
    assert close(grad(f, argnums=-1)(x, x), 2 * x * x)
    da, db = grad(f, argnums=(0, 1))(x, x)
    assert close(da, x**2) and close(db, 2 * x * x)


def test_an_unused_input_has_zeros(x):
    assert grad(lambda a, b: a.sum(), argnums=1)(x, x).tolist() == [0, 0, 0]
    assert grad(lambda a: cresset.tensor(1.0))(x).tolist() == [0, 0, 0]


def test_derivatives_of_all_orders(x):
    s = x[0]
    third = grad(grad(grad(lambda t: t**5)))
    assert close(third(s), 60 * s**2)


def test_results_are_recorded_only_where_something_outside_is(x):
    assert not grad(cubic)(x).requires_grad
    leaf = x.clone().requires_grad_()
    g = grad(cubic)(leaf)
    (second,) = cresset.autograd.grad(g.sum(), leaf)
    assert close(second, 6 * x)
    captured = x.clone().requires_grad_()
    g = grad(lambda a: (a**2 * captured).sum())(x)
    (cross,) = cresset.autograd.grad(g.sum(), captured)
    assert close(cross, 2 * x)


def test_no_grad_outside_does_not_matter_and_inside_does(x):
    leaf = x.clone().requires_grad_()
    with cresset.no_grad():
        g = grad(cubic)(leaf)
    assert close(g, gradient_of_cubic(x)) and not g.requires_grad

    def half_recorded(a):
        with cresset.no_grad():
            constant = a**2
        return (a - constant).sum()

    assert grad(half_recorded)(x).tolist() == [1, 1, 1]


def test_vjp_and_jvp_agree_with_the_jacobian(x, batch):
    f = lambda v: (batch @ v).sin()  # noqa: E731
    jacobian = (batch @ x).cos()[:, None] * batch
    value, pull = vjp(f, x)
    assert close(value, f(x)) and close(pull(cresset.ones_like(value))[0], jacobian.sum(0))
    assert close(pull(value)[0], value @ jacobian)  # a second time
    value, push = jvp(f, (x,), (x,))
    assert close(value, f(x)) and close(push, jacobian @ x)
    value, line = linearize(f, x)
    assert close(line(x), jacobian @ x) and close(value, f(x))


@pytest.mark.parametrize("of", [jacrev, jacfwd])
def test_jacobians(of, x, batch):
    f = lambda v: {"sin": (batch @ v).sin(), "product": v[0] * v}  # noqa: E731
    result = of(f)(x)
    assert close(result["sin"], (batch @ x).cos()[:, None] * batch)
    product = x[0] * cresset.eye(3, dtype=x.dtype)
    product[:, 0] += x
    assert close(result["product"], product)
    first, second = of(lambda a, b: a * b, argnums=(0, 1))(x, 2 * x)
    assert close(first, cresset.diag(2 * x)) and close(second, cresset.diag(x))
    value, aux = of(lambda a: (a * 2, a + 1), has_aux=True)(x)
    assert close(value, 2 * cresset.eye(3, dtype=x.dtype)) and close(aux, x + 1)


@pytest.mark.parametrize("chunk_size", [1, 2, 100])
def test_jacrev_in_chunks(chunk_size, x, batch):
    f = lambda v: (batch @ v).exp()  # noqa: E731
    assert close(jacrev(f, chunk_size=chunk_size)(x), jacrev(f)(x))


@pytest.mark.parametrize("outer, inner", list(itertools.product([jacrev, jacfwd], repeat=2)))
def test_second_derivatives_by_every_pair(outer, inner, x, batch):
    f = lambda v: ((batch @ v).sin() ** 2).sum()  # noqa: E731
    want = batch.T @ cresset.diag(2 * (2 * (batch @ x)).cos()) @ batch
    assert close(outer(inner(f))(x), want)
    assert close(hessian(f)(x), want)
    assert close(vmap(outer(inner(cubic)))(batch), cresset.diag_embed(6 * batch))


def test_jvp_inside_jvp(x):
    inner = lambda a: jvp(lambda b: b**3, (a,), (cresset.ones_like(a),))[1]  # noqa: E731
    value, tangent = jvp(inner, (x,), (cresset.ones_like(x),))
    assert close(value, 3 * x**2) and close(tangent, 6 * x)


def test_grad_of_vmap_and_vmap_of_grad(batch):
    assert close(vmap(grad(cubic))(batch), gradient_of_cubic(batch))
    assert close(grad(lambda b: vmap(cubic)(b).sum())(batch), gradient_of_cubic(batch))
    assert close(vmap(vmap(grad(lambda t: t**3)))(batch), gradient_of_cubic(batch))


def test_gradients_for_each_example(batch):
    weight = cresset.from_numpy(np.random.default_rng(5).standard_normal((3, 2)))
    loss = lambda w, a: ((a @ w) ** 2).sum()  # noqa: E731
    each = vmap(grad(loss), in_dims=(None, 0))(weight, batch)
    want = 2 * batch[:, :, None] * (batch @ weight)[:, None, :]
    assert close(each, want)


def test_jvp_under_vmap_with_a_batched_tangent_only(x, batch):
    assert close(vmap(lambda t: jvp(cubic, (x,), (t,))[1])(batch), batch @ (3 * x**2))
    scaled = vmap(lambda t, s: jvp(lambda v: (v * s).sum(), (x,), (t,))[1])(batch, batch)
    assert close(scaled, (batch * batch).sum(1))


def test_a_graph_made_outside_takes_a_batch_of_gradients(x, batch):
    leaf = x.clone().requires_grad_()
    y = leaf**2
    rows = vmap(lambda v: cresset.autograd.grad(y, leaf, v, retain_graph=True)[0])(batch)
    assert close(rows, 2 * x * batch)
    (same,) = cresset.autograd.grad(y, leaf, batch, is_grads_batched=True)
    assert close(same, rows)


def test_functional_vectorize(x, batch):
    functional = cresset.autograd.functional
    f = lambda v: ((batch @ v).sin(), v[:2] ** 2)  # noqa: E731
    for strategy in ("reverse-mode", "forward-mode"):
        for have, want in zip(functional.jacobian(f, x, vectorize=True, strategy=strategy), functional.jacobian(f, x)):
            assert close(have, want)
    assert close(functional.hessian(cubic, x, vectorize=True), cresset.diag(6 * x))
    assert close(functional.hessian(cubic, x, vectorize=True, outer_jacobian_strategy="forward-mode"), cresset.diag(6 * x))


def test_gradcheck_of_batches(x):
    leaf = x.clone().requires_grad_()
    assert cresset.autograd.gradcheck(
        lambda v: (v.sin() * v, v.sum()), leaf, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )


def network(parameters, x):
    hidden = (x.unsqueeze(0) @ parameters["w1"].t() + parameters["b1"]).relu()
    return (hidden @ parameters["w2"].t()).squeeze(0)


@pytest.fixture
def kernel_arguments():
    numbers = np.random.default_rng(5)
    parameters = {n: cresset.from_numpy(numbers.standard_normal(s)) for n, s in (("w1", (8, 3)), ("b1", (8,)), ("w2", (2, 8)))}
    return parameters, cresset.from_numpy(numbers.standard_normal((6, 3))), cresset.from_numpy(numbers.standard_normal((4, 3)))


def test_neural_tangent_kernels(kernel_arguments):
    parameters, x1, x2 = kernel_arguments

    def by_jacobians(jacobian):
        j1, j2 = ([j.flatten(2) for j in vmap(jacobian(network), (None, 0))(parameters, x).values()] for x in (x1, x2))
        return sum(cresset.einsum("Naf,Mbf->NMab", a, b) for a, b in zip(j1, j2))

    def products(a, b):
        _, vjp_fn = vjp(lambda p: network(p, a), parameters)
        rows = vmap(lambda u: jvp(lambda p: network(p, b), (parameters,), vjp_fn(u))[1])(cresset.eye(2, dtype=cresset.float64))
        return rows

    want = by_jacobians(jacrev)
    assert want.shape == (6, 4, 2, 2) and close(by_jacobians(jacfwd), want)
    assert close(vmap(vmap(products, (None, 0)), (0, None))(x1, x2), want)


@pytest.mark.parametrize(
    "product",
    [
        lambda w, x: x.unsqueeze(0).mm(w), lambda w, x: cresset.addmm(x.sum() * cresset.ones(8, dtype=cresset.float64), x.unsqueeze(0), w),
        lambda w, x: x @ w, lambda w, x: w.t().mv(x), lambda w, x: (x.expand(2, 2, 3) @ w).flatten(), lambda w, x: w.t().reshape(-1)[:3] * x,
        lambda w, x: w.t().unsqueeze(0).baddbmm(w.t().unsqueeze(0), w.unsqueeze(0) @ w.t().unsqueeze(0) @ (w * x.sum()).unsqueeze(0)[..., :3]),
        lambda w, x: cresset.nn.functional.bilinear(x.unsqueeze(0), x.unsqueeze(0), w.t().reshape(8, 3, 1).expand(8, 3, 3)),
    ],
)  # fmt: skip
def test_forward_jacobians_of_products_under_vmap(product, kernel_arguments):
    """The primal is expanded where its tangent is not: what views one may not view the other."""
    parameters, x, _ = kernel_arguments
    w = parameters["w1"].t().contiguous()
    have, want = (vmap(jacobian(product), (None, 0))(w, x) for jacobian in (jacfwd, jacrev))
    assert close(have, want)
    assert close(vmap(vmap(jacfwd(product), (None, 0)), (0, None))(cresset.stack([w, 2 * w]), x)[1], vmap(jacrev(product), (None, 0))(2 * w, x))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, c: jacrev(cresset.mul, argnums=(1, 0.0))(x, x), "argnum must be int, got: <class 'float'>"),
        (lambda x, c: grad(cresset.mul, argnums=("0",))(x, x), "argnum must be int, got: <class 'str'>"),
        (lambda x, c: jacfwd(cresset.mul, argnums=(0, -2))(x, x), r"argnums elements must be unique, got \(0, 0\)"),
        (lambda x, c: jacrev(lambda v: v.conj())(c), "jacrev: Expected all inputs to be real but received complex tensor at flattened input idx: 0"),
        (lambda x, c: jacfwd(lambda v: v.conj())(c), "jacfwd: Expected all inputs to be real"),
        (lambda x, c: jacrev(lambda v: (v, v * 1j))(x), "jacrev: Expected all outputs to be real but received complex tensor at flattened input idx: 1"),
        (lambda x, c: jacfwd(lambda v: v * 1j)(x), "jacfwd: Expected all outputs to be real"),
        (lambda x, c: grad(lambda v: v.sum())(c), "grad can be implicitly created only for real scalar outputs but got .*complex64"),
        (lambda x, c: vjp(lambda v: None, x), r"Expected f to be a function that has non-empty output \(got output = \[None\]\)"),
        (lambda x, c: jvp(lambda v: (), (x,), (x,)), r"Expected f to be a function that has non-empty output \(got output = \[\]\)"),
    ],
)
def test_what_transforms_refuse(call, words, x):
    with pytest.raises(RuntimeError, match=words):
        call(x, cresset.ones(1, dtype=cresset.complex64))


def test_rows_one_at_a_time_need_no_rule(x):
    class Dynamic(cresset.autograd.Function):
        @staticmethod
        def forward(v):
            return v * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            g.nonzero()
            return g * 2

    assert close(jacrev(Dynamic.apply, chunk_size=1)(x), 2 * cresset.eye(3, dtype=x.dtype))
    with pytest.raises(RuntimeError, match="vmap"):
        jacrev(Dynamic.apply)(x)


@pytest.mark.parametrize("constant", [cresset.tensor([True, True]), cresset.tensor([1, 2])])
def test_tangents_beside_constants_of_other_types(constant):
    o, t = cresset.tensor([0.5, 2.0], dtype=cresset.float64), cresset.ones(2, dtype=cresset.float64)
    number = constant.double()
    assert close(jvp(lambda v: constant / v, (o,), (t,))[1], -number / o**2)
    assert close(jvp(lambda v: cresset.fmod(v, constant), (o,), (t,))[1], t)


def test_what_a_function_under_vmap_of_a_derivative_sees_of_its_history():
    seen = []

    def look(x):
        y = x * 2
        seen.append((x.requires_grad, y.requires_grad, y.grad_fn is not None, y.is_leaf))
        return y.sum()

    recorded, plain = (True, True, True, False), (False, False, False, True)
    x = cresset.ones(2, 3)
    cases = {
        "vmap(grad)": (lambda: cresset.vmap(grad(look))(x), recorded),
        "vmap(vmap(grad))": (lambda: cresset.vmap(cresset.vmap(grad(look)))(x), recorded),
        "vmap(grad(vmap))": (lambda: cresset.vmap(grad(lambda q: cresset.vmap(look)(q[None]).sum()))(x), plain),
        "grad(vmap)": (lambda: grad(lambda q: cresset.vmap(look)(q).sum())(x), plain),
        "vmap": (lambda: cresset.vmap(look)(x.clone().requires_grad_()), plain),
        "vmap(grad) of another tensor": (lambda: cresset.vmap(grad(lambda q: look(q.detach()) + q.sum()))(x), plain),
    }
    for name, (call, expected) in cases.items():
        seen.clear()
        call()
        assert seen == [expected], name
    with cresset.no_grad():
        cresset.vmap(grad(look))(x)
    assert seen[-1] == recorded


def test_a_tangent_that_is_switched_off_is_off_in_nested_jvp():
    from cresset.autograd import forward_ad

    def f(x):
        with forward_ad._set_fwd_grad_enabled(False):
            shift = x**2
        return x**2 - shift

    x, one = cresset.tensor(3.0), cresset.tensor(1.0)
    # With the shift constant, f' = 2 x and f'' = 2.
    assert jvp(f, (x,), (one,))[1] == 6
    (value, tangent), (first, second) = jvp(lambda x: jvp(f, (x,), (one,)), (x,), (one,))
    assert (value, tangent, first, second) == (0, 6, 6, 2)
    assert cresset.is_grad_enabled() and forward_ad._is_fwd_grad_enabled()


def test_vjp_of_a_function_that_ran_without_gradients():
    x = cresset.tensor(3.0, requires_grad=True)
    with cresset.no_grad():
        out, pull = cresset.func.vjp(lambda a: a**2, x)
        (without,) = pull(cresset.tensor(1.0))
    (y,) = pull(cresset.tensor(1.0))
    assert not out.requires_grad and not without.requires_grad and y.requires_grad
    assert y.item() == 6.0 and cresset.autograd.grad(y, x)[0].item() == 2.0


def test_an_input_that_is_returned_is_the_one_that_was_given(x):
    assert vjp(lambda v: v, x)[0] is x and vjp(lambda v: (v, v), x)[0][1] is x
    assert jacrev(lambda v: (v, v), has_aux=True)(x)[1] is x and not x.requires_grad
    result, pull = vjp(lambda v: v, x)
    assert pull(cresset.ones_like(x))[0].tolist() == [1.0, 1.0, 1.0]


def test_outputs_without_derivatives(x):
    for call in (lambda: vjp(lambda v: v.long(), x), lambda: jacrev(lambda v: (v, v.long()))(x)):
        with pytest.raises(RuntimeError, match="All outputs of f must be floating-point or complex Tensors, got Tensor with dtype"):
            call()
