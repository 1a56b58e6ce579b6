"""gradcheck and gradgradcheck."""

import importlib

from . import raised, warned


def _leaf(t, n=3):
    return t.arange(1.0, n + 1.0, dtype=t.float64).requires_grad_()


def _wrong(t, complex_too=False):
    class Wrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    return Wrong.apply


def _message(f):
    try:
        f()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def n01_pass_and_fail(t):
    check = t.autograd.gradcheck
    return (
        check(lambda x: x**2, _leaf(t)),
        check(lambda x, y: (x * y, x.sin()), (_leaf(t), _leaf(t))),
        check(_wrong(t), (_leaf(t),), raise_exception=False),
        _message(lambda: check(_wrong(t), (_leaf(t),))).replace("\n", "|").replace("cresset.float64", "torch.float64"),
    )


def n02_fast_mode(t):
    check = t.autograd.gradcheck
    return (
        check(lambda x: x**2, _leaf(t), fast_mode=True),
        check(lambda x: (x * t.arange(3, dtype=t.float64)).sum() * 1j, _leaf(t), fast_mode=True),
        check(_wrong(t), (_leaf(t),), raise_exception=False, fast_mode=True),
        raised(lambda: check(_wrong(t), (_leaf(t),), fast_mode=True), "The above quantities relating the numerical and analytical jacobians are computed "),
        raised(lambda: check(_wrong(t), (_leaf(t),), fast_mode=True), "Jacobian mismatch for output 0 with respect to input 0"),
        raised(lambda: check(_wrong(t), (_leaf(t),), fast_mode=True), "Numerical:\n tensor([[2.0000, 0.0000, 0.0000]"),
    )


def n03_inputs(t):
    check = t.autograd.gradcheck
    expanded = t.ones(1, dtype=t.float64).requires_grad_().expand(3)
    return (
        warned(lambda: check(lambda x: x * 1, t.ones(2).requires_grad_(), eps=1e-2, atol=1e-2), "is not a double precision floating point or complex"),
        raised(lambda: check(lambda x: x * 1, t.ones(2, dtype=t.float64)), "gradcheck expects at least one input tensor to require gradient"),
        raised(lambda: check(lambda x: x * 1, expanded.detach().requires_grad_()), "The 0th input has a dimension with stride 0"),
        check(lambda x: t.ones(2, dtype=t.float64), _leaf(t)),
        raised(lambda: check(lambda x: x.detach() * 2, _leaf(t)), "Numerical gradient for function expected to be zero"),
        check(lambda x, y: x * 2, (_leaf(t), t.ones(2, dtype=t.int64))),
    )


def n04_complex(t):
    check = t.autograd.gradcheck
    z = t.tensor([1 + 2j, 0.5 - 1j], dtype=t.complex128, requires_grad=True)
    cases = [lambda z: z * z, lambda z: z.abs(), lambda z: z.conj() * 3j, lambda z: t.view_as_real(z)]
    out = []
    for fast in (False, True):
        out.append([check(f, z, fast_mode=fast) for f in cases])
        out.append(check(lambda x: x * (1 + 2j), _leaf(t), fast_mode=fast))
        out.append(check(lambda x, z: x[:2] * z, (_leaf(t), z), fast_mode=fast))
        out.append(check(_wrong(t), z, fast_mode=fast, raise_exception=False))
    return out, raised(lambda: check(_wrong(t), z), "While considering the imaginary part of complex outputs only")


def n05_forward_mode(t):
    check = t.autograd.gradcheck

    class Wrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, g):
            return g * 5

    return (
        check(lambda x: x.sin() * x, _leaf(t), check_forward_ad=True),
        check(lambda x: x.sin() * x, _leaf(t), check_forward_ad=True, fast_mode=True),
        check(lambda x: x.sin() * x, _leaf(t), check_forward_ad=True, check_backward_ad=False),
        check(Wrong.apply, _leaf(t)),
        raised(lambda: check(Wrong.apply, _leaf(t), check_forward_ad=True), "Jacobian computed with forward mode mismatch for output 0 with respect to input 0"),
        raised(lambda: check(Wrong.apply, _leaf(t), check_forward_ad=True, fast_mode=True), "Jacobian computed with forward mode mismatch for output 0 with respect to input 0"),
        raised(lambda: check(lambda x: x, _leaf(t), check_backward_ad=False), "Expected at least one of check_forward_ad or check_backward_ad to be True"),
        check(lambda z: z * z.conj(), t.tensor([1 + 2j], dtype=t.complex128, requires_grad=True), check_forward_ad=True),
    )


def n05_undefined_grad(t):
    class Undefined(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x * 2, y * 2

        @staticmethod
        def backward(ctx, g, h):
            if g is None and h is None:
                return t.ones(3, dtype=t.float64), None
            return None if g is None else g * 2, None if h is None else h * 2

    check = t.autograd.gradcheck
    return (
        check(Undefined.apply, (_leaf(t), _leaf(t)), check_undefined_grad=False),
        raised(lambda: check(Undefined.apply, (_leaf(t), _leaf(t))), "Expected all input grads to be undefined or zero when all output grads are undefined or zero"),
        check(Undefined.apply, (_leaf(t), _leaf(t)), raise_exception=False),
    )


def n05_dtypes_shapes_determinism(t):
    check = t.autograd.gradcheck
    calls = []

    class Random(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * 2 + 1e-7 * len(calls) * (g != 0)

    return (
        raised(lambda: check(Random.apply, _leaf(t), check_undefined_grad=False), "Backward is not reentrant"),
        check(Random.apply, _leaf(t), nondet_tol=1e-2, check_undefined_grad=False),
        check(lambda x: x * 2, _leaf(t), check_grad_dtypes=True),
        check(lambda x: x.sin(), _leaf(t), check_batched_grad=True),
    )


def n06_gradgradcheck(t):
    check = t.autograd.gradgradcheck

    class OnceWrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x.detach() ** 2

    return (
        check(lambda x: x**3, _leaf(t)),
        check(lambda x: x**3, _leaf(t), fast_mode=True),
        check(lambda x: x**3, _leaf(t), t.ones(3, dtype=t.float64).requires_grad_()),
        check(lambda x, y: (x * y).sin(), (_leaf(t), _leaf(t)), gen_non_contig_grad_outputs=True),
        check(lambda x: x**3, _leaf(t), check_fwd_over_rev=True),
        check(lambda x: x**3, _leaf(t), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False),
        check(OnceWrong.apply, _leaf(t), raise_exception=False),
        raised(lambda: check(OnceWrong.apply, _leaf(t)), "Jacobian mismatch for output 0 with respect to input 0"),
        check(lambda z: z * z, t.tensor([1 + 2j], dtype=t.complex128, requires_grad=True)),
    )


def n07_forms_of_results(t):
    check = t.autograd.gradcheck
    return (
        check(lambda x: [x * 2, x * 3], _leaf(t)),
        check(lambda xs: xs * 2, (_leaf(t),)),
        check(lambda x: x.clone().mul_(2), _leaf(t)),
        check(lambda x: x[:0], _leaf(t)),
        check(lambda x: t.zeros(0, dtype=t.float64) * x.sum(), _leaf(t)),
        check(lambda x: x.sum(), t.zeros(0, dtype=t.float64, requires_grad=True)),
        check(lambda x: x.reshape(6) * 2, t.ones(2, 3, dtype=t.float64).t().requires_grad_()),
    )


def n07_overlapping_outputs(t):
    return t.autograd.gradcheck(lambda x: x.expand(2, 3), _leaf(t))


def n08_jacobians(t):
    m = (
        t.autograd.gradcheck
        if not callable(t.autograd.gradcheck)
        else importlib.import_module(f"{t.__name__}.autograd.gradcheck")
    )
    x, y = _leaf(t), t.ones(2, dtype=t.float64, requires_grad=True)
    number = lambda *a, **k: m.get_numerical_jacobian(*a, **k)  # noqa: E731
    exact = lambda *a, **k: m.get_analytical_jacobian(*a, **k)  # noqa: E731
    return (
        [(j * 1e3).round().int() for j in number(lambda i: i[0] ** 2, (x,))],
        [j.shape for j in number(lambda i: i[0].sum() * i[1], (x, y), eps=1e-4)],
        [j.shape for j in number(lambda i: i[0].sum() * i[1], (x, y), target=y)],
        exact((x,), x**2)[0],
        exact((x, y), x.sum() * y),
        warned(lambda: number(lambda i: i[0] * 1, (x,)), "`get_numerical_jacobian` was part of"),
        warned(lambda: exact((x,), x * 1), "`get_analytical_jacobian` was part of"),
        raised(lambda: number(lambda i: i[0] * 1, (x,), grad_out=2.0), "Expected grad_out to be 1.0"),
        raised(lambda: exact((x,), x * 1, grad_out=2.0), "Expected grad_out to be 1.0"),
    )
