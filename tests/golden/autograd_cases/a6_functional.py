"""autograd.functional."""

from . import raised


def _f(t):
    return t.autograd.functional


def _x(t, n=3):
    return t.arange(1.0, n + 1.0, dtype=t.float64)


def n07_jacobian(t):
    J = _f(t).jacobian
    x, y = _x(t), _x(t, 2)
    return (
        J(lambda x: x**2, x),
        J(lambda x, y: x.sum() * y, (x, y)),
        J(lambda x, y: (x.sum() * y, x), (x, y)),
        J(lambda x: x.sum(), x),
        J(lambda x: x**2, x, strategy="forward-mode", vectorize=True),
        J(lambda x: t.ones(2, dtype=t.float64), x),
        J(lambda x: x**2, x, create_graph=True).requires_grad,
        J(lambda x: x**2, x.clone().requires_grad_(), create_graph=True).requires_grad,
        J(lambda x: x[None] * y[:, None], x),
    )


def n07_jacobian_errors(t):
    J = _f(t).jacobian
    x = _x(t)
    return (
        raised(lambda: J(lambda x: x.detach(), x, strict=True), "Output 0 of the user-provided function does not require gradients"),
        raised(lambda: J(lambda x, y: x * 2, (x, x.clone()), strict=True), "Output 0 of the user-provided function is independent of input 1"),
        raised(lambda: J(lambda x: 3, x), "The outputs of the user-provided function given to jacobian must be either a Tensor or a tuple of Tensors but the given outputs of the user-provided function has type"),
        raised(lambda: J(lambda x: x, 3), "The inputs given to jacobian must be either a Tensor or a tuple of Tensors but the given inputs has type"),
        raised(lambda: J(lambda x: (x, 3), x), "the value at index 1 has type"),
        raised(lambda: J(lambda x: x, (x, 3)), "the value at index 1 has type"),
        raised(lambda: J(lambda x: x, x, strict=True, vectorize=True), "`strict=True` and `vectorized=True` are not supported together"),
        raised(lambda: J(lambda x: x, x, strategy="forward-mode"), "vectorize=True"),
        raised(lambda: J(lambda x: x, x, strategy="sideways"), "Expected strategy to be either"),
    )


def n07_hessian(t):
    H = _f(t).hessian
    x, y = _x(t, 2), _x(t, 2)
    return (
        H(lambda x: (x**3).sum(), x),
        H(lambda x, y: (x * x * y).sum(), (x, y)),
        H(lambda x: (x**3).sum(), x, create_graph=True).requires_grad,
        raised(lambda: H(lambda x: x * 2, x), "The Tensor returned by the function given to hessian should contain a single element"),
        raised(lambda: H(lambda x: (x.sum(), x.sum()), x), "The function given to hessian should return a single Tensor"),
        raised(lambda: H(lambda x: (x * 2).sum(), x, strict=True), "jacobian of the user-provided function"),
        H(lambda x: (x * 2).sum(), x),
    )


def n07_vjp_and_jvp(t):
    F = _f(t)
    x, y, v = _x(t), _x(t) * 2, t.ones(3, dtype=t.float64)
    return (
        F.vjp(lambda x: x**2, x, v),
        F.vjp(lambda x, y: x * y, (x, y), v),
        F.vjp(lambda x: x.sum(), x),
        F.jvp(lambda x: x**2, x, v),
        F.jvp(lambda x, y: x * y, (x, y), (v, v)),
        F.jvp(lambda x: (x * 2, x.sum()), x, v),
        F.vjp(lambda x: t.ones(2, dtype=t.float64), x, t.ones(2, dtype=t.float64))[1],
        F.jvp(lambda x: t.ones(2, dtype=t.float64), x, v)[1],
        F.vjp(lambda x: x**2, x, v, create_graph=True)[1].requires_grad,
        raised(lambda: F.vjp(lambda x: x**2, x), "The vector v can only be None if the user-provided function returns a single Tensor with a single element"),
        raised(lambda: F.jvp(lambda x: x**2, x), "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element"),
        raised(lambda: F.vjp(lambda x: x**2, x, t.ones(2, dtype=t.float64)), "v has invalid size"),
        raised(lambda: F.vjp(lambda x: x**2, x, (v, v)), "The given v should contain a single Tensor"),
        raised(lambda: F.vjp(lambda x: x.detach(), x, v, strict=True), "does not require gradients"),
        raised(lambda: F.jvp(lambda x: x.detach(), x, v, strict=True), ""),
    )


def n07_hvp_and_vhp(t):
    F = _f(t)
    x, y, v = _x(t), _x(t) * 2, t.ones(3, dtype=t.float64)
    return (
        F.hvp(lambda x: (x**3).sum(), x, v),
        F.vhp(lambda x: (x**3).sum(), x, v),
        F.hvp(lambda x, y: (x * x * y).sum(), (x, y), (v, v)),
        F.vhp(lambda x, y: (x * x * y).sum(), (x, y), (v, v)),
        F.vhp(lambda x: x.sum() * 2, x, v)[1],
        F.hvp(lambda x: (x * 2).sum(), x, v)[1],
        F.hvp(lambda x: (x**3).sum(), x[:1]),
        raised(lambda: F.hvp(lambda x: x * 2, x, v), "The Tensor returned by the function given to hvp should contain a single element"),
        raised(lambda: F.vhp(lambda x: (x.sum(), x.sum()), x, v), "The function given to vhp should return a single Tensor"),
        raised(lambda: F.vhp(lambda x: x.sum() ** 2, x), "The vector v can only be None"),
    )


def n07_graph_and_inputs(t):
    F = _f(t)
    x = _x(t).requires_grad_()
    out, g = F.vjp(lambda x: (x**3).sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x)
    plain = F.vjp(lambda x: (x**3).sum(), x)
    j = F.jacobian(lambda x: x**3, x, create_graph=True)
    (k,) = t.autograd.grad(j.sum(), x)
    return out.requires_grad, h, plain[0].requires_grad, plain[1].requires_grad, k, x.grad


def n07_transforms(t):
    f = t.func
    x, y = t.tensor([1.0, 2.0, 3.0], dtype=t.float64), t.tensor([0.5, -1.0, 2.0], dtype=t.float64)
    product = lambda a, b: (a * b.sin()).sum()  # noqa: E731
    elementwise = lambda a, b: {"p": a * b, "q": (a**2).sum()}  # noqa: E731
    weights = f.functional_call(t.nn.Linear(3, 1).double(), {"weight": x.view(1, 3), "bias": y[:1]}, (x,))
    return (
        f.grad(product)(x, y),
        f.grad(product, argnums=(0, 1))(x, y),
        f.grad(lambda a: (product(a, y), a * 2), has_aux=True)(x),
        f.grad_and_value(product)(x, y),
        f.vjp(lambda a: a * y, x)[1](t.ones_like(x)),
        f.jvp(product, (x, y), (y, x)),
        f.jvp(lambda a: f.jvp(lambda b: (b**3).sum(), (a,), (y,))[1], (x,), (y,)),
        f.jacrev(elementwise, argnums=(0, 1))(x, y),
        f.jacfwd(elementwise)(x, y),
        f.hessian(lambda a: (a**3).sum())(x),
        f.jacrev(f.jacfwd(lambda a: (a**3).sum()))(x),
        t.vmap(f.jacrev(lambda a: a**2))(t.stack([x, y])),
        t.vmap(f.grad(lambda a: (a**2).sum()), in_dims=1, out_dims=1, chunk_size=2)(t.stack([x, y])),
        f.linearize(lambda a: a**2, x)[1](y),
        weights,
    )


def n06_batched_forward(t):
    x = t.tensor([1.0, 2.0], dtype=t.float64)
    check = t.autograd.gradcheck
    return (
        t.vmap(lambda v: t.func.jvp(lambda a: a.exp() * a, (x,), (v,))[1])(t.eye(2, dtype=t.float64)),
        check(lambda a: a.exp() * a, x.requires_grad_(), check_forward_ad=True, check_batched_forward_grad=True),
        check(lambda a: a.exp() * a, x, check_batched_grad=True),
    )


def n07_captured_writes(t):
    """Writing what the function captured, and its requires_grad_()."""
    x = t.ones(3)

    def write(a):
        return zeros.add_(a).sum()

    out = []
    for transform in (
        t.func.grad,
        t.func.jacrev,
        t.func.jacfwd,
        t.func.hessian,
        lambda g: lambda a: t.func.jvp(g, (a,), (a,)),
    ):
        zeros = t.zeros(3)
        out.append(raised(lambda: transform(write)(x), "that would mutate a captured Tensor"))  # noqa: B023
        out.append(zeros)
        out.append(
            raised(
                lambda: transform(lambda a: (zeros.requires_grad_() * a).sum())(x),
                "attempting to call Tensor.requires_grad_()",
            )
        )  # noqa: B023
    return out
