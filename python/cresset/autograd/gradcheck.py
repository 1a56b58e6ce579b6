"""gradcheck and gradgradcheck: derivative formulas against differences."""

import itertools
import warnings

import cresset

from . import forward_ad

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError"]


class GradcheckError(RuntimeError):
    """A derivative does not agree with differences."""


class _WrongShape(Exception):
    """A gradient has another shape than its input."""


def _tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _differentiable(outputs):
    return [o for o in _tuple(outputs) if isinstance(o, cresset.Tensor) and o.requires_grad]


def _directions(tensor):
    """Index and unit of every real direction of a tensor: 1, and for complex tensors also 1j."""
    units = (1.0, 1j) if tensor.is_complex() else (1.0,)
    for index in itertools.product(*(range(n) for n in tensor.shape)):
        for unit in units:
            yield index, unit


def _evaluate(func, inputs, count):
    with cresset.no_grad():
        outputs = [o for o in _tuple(func(*inputs)) if isinstance(o, cresset.Tensor)]
    return [o.detach().clone() for o in outputs][:count] if count else [o.detach().clone() for o in outputs]


def _numerical(func, inputs, x, eps, which):
    """For each direction of x the difference quotient of every output in `which`, real and imaginary parts apart."""
    rows = []
    data = x.data  # with a version counter of its own: saved tensors stay valid
    for index, unit in _directions(x):
        before = data[index].clone()
        data[index] = before + eps * unit
        plus = _evaluate(func, inputs, None)
        data[index] = before - eps * unit
        minus = _evaluate(func, inputs, None)
        data[index] = before
        rows.append([((plus[i] - minus[i]) / (2 * eps)) for i in which])
    return rows


def _real(tensor):
    """A tensor as a flat list of real numbers."""
    flat = tensor.resolve_conj().reshape(-1)
    return (cresset.view_as_real(flat).reshape(-1) if flat.is_complex() else flat).tolist()


def _jacobians_close(numerical, analytical, rtol, atol):
    return all(
        (a == b) or abs(a - b) <= atol + rtol * abs(b) for row, other in zip(analytical, numerical) for a, b in zip(row, other)
    )


def _gradients(output, xs, seed):
    """Gradients of the output for the given seed; zeros where there is none."""
    grads = cresset.autograd.grad(output, xs, seed, retain_graph=True, allow_unused=True)
    for x, g in zip(xs, grads):
        if g is not None and g.shape != x.shape:
            raise _WrongShape(f"Backward: the gradient has the shape {tuple(g.shape)}, the input {tuple(x.shape)}.")
    return [cresset.zeros_like(x) if g is None else g for x, g in zip(xs, grads)]


def _analytical(output, xs):
    """Rows by direction of each x, columns by direction of the output: d output = Re(conj(gradient) * d x)."""
    columns = [[] for _ in xs]
    for index, unit in _directions(output):
        seed = cresset.zeros_like(output)
        seed[index] = unit
        for column, g in zip(columns, _gradients(output, xs, seed)):
            column.append(_real(g))
    return [[list(row) for row in zip(*column)] if column else [] for column in columns]


def _check_slow(func, inputs, tensors, outputs, eps, rtol, atol, nondet_tol, fail):
    """Every entry of the Jacobian of each output and input, by reverse mode."""
    xs = [x for _, x in tensors]
    numerical = [_numerical(func, inputs, x, eps, [m for m, _ in outputs]) for x in xs]
    for k, (m, output) in enumerate(outputs):
        analytical = _analytical(output, xs)
        again = _analytical(output, xs)
        for i, (n, x) in enumerate(tensors):
            want = [_real(row[k]) for row in numerical[i]]
            if output.numel() and x.numel() and not _jacobians_close(want, analytical[i], rtol, atol):
                return fail(f"Jacobian mismatch for output {m} with respect to input {n},\nnumerical:{want}\nanalytical:{analytical[i]}\n")
            if not _jacobians_close(again[i], analytical[i], 0.0, nondet_tol):
                return fail(
                    f"Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
                    f"although analytical gradient matches numerical gradient. The tolerance for nondeterminism was {nondet_tol}."
                )
    return True


def _check_forward(func, inputs, tensors, eps, rtol, atol, fail):
    for n, x in tensors:
        for (index, unit), row in zip(_directions(x), _numerical(func, inputs, x, eps, _all_outputs(func, inputs))):
            tangents = _tangents(func, inputs, x, _basis(x, index, unit))
            for m, (t, want) in enumerate(zip(tangents, row)):
                got = [0.0] * len(_real(want)) if t is None else _real(t)
                if (want.is_floating_point() or want.is_complex()) and not _jacobians_close([_real(want)], [got], rtol, atol):
                    return fail(
                        f"Jacobian computed with forward mode mismatch for output {m} with respect to input {n},\nnumerical:{_real(want)}\nanalytical:{got}\n"
                    )
    return True


_FAST_NOTE = """
The above quantities relating the numerical and analytical jacobians are computed
in fast mode: projected on one random direction of the output and one of the input. Below, both in slow mode:
"""


def _inner(a, b):
    """Real inner product: the sum of Re(conj(a) b)."""
    return sum(x * y for x, y in zip(_real(a), _real(b)))


def _random_direction(tensor, generator):
    """A random vector of length 1 in the space of the tensor."""
    values = cresset.randn(tensor.shape, dtype=tensor.dtype, generator=generator)
    return values / max(sum(v * v for v in _real(values)), 1e-300) ** 0.5


def _directional(func, inputs, x, direction, eps, which):
    """Difference quotients of the outputs in `which` when x moves along the direction."""
    data = x.data  # with a version counter of its own: saved tensors stay valid
    before = data.clone()
    data.copy_(before + eps * direction)
    plus = _evaluate(func, inputs, None)
    data.copy_(before - eps * direction)
    minus = _evaluate(func, inputs, None)
    data.copy_(before)
    return [(plus[i] - minus[i]) / (2 * eps) for i in which]


def _check_fast(func, inputs, tensors, outputs, eps, rtol, atol, nondet_tol, fail, forward):
    """One projection u' J v for each output and input, with random unit vectors u and v, instead of every entry of J.

    Errors of size atol in every entry add up to atol |u|_1 |v|_1 in the projection, so that is its tolerance.
    """
    generator = cresset.Generator().manual_seed(0)
    for n, x in tensors:
        v = _random_direction(x, generator)
        quotients = _directional(func, inputs, x, v, eps, [m for m, _ in outputs])
        tangents = _tangents(func, inputs, x, v) if forward else None
        for (m, output), quotient in zip(outputs, quotients):
            u = _random_direction(output, generator)
            numerical = _inner(u, quotient)
            if forward:
                analytical = 0.0 if tangents[m] is None else _inner(u, tangents[m])
            else:
                analytical, again = (_inner(_gradients(output, [x], u)[0], v) for _ in range(2))
                if abs(analytical - again) > nondet_tol:
                    return fail(f"Backward is not reentrant: it gives different values for the same input and grad_output ({analytical} and {again}). "
                                f"The tolerance for nondeterminism was {nondet_tol}.")
            slack = atol * sum(map(abs, _real(u))) * sum(map(abs, _real(v)))
            if analytical != numerical and not abs(analytical - numerical) <= slack + rtol * abs(numerical):
                kind = "Jacobian computed with forward mode" if forward else "Jacobian"
                text = f"{kind} mismatch for output {m} with respect to input {n},\nnumerical:{numerical}\nanalytical:{analytical}\n{_FAST_NOTE}\n"
                return fail(text + _entries(func, inputs, x, m, output, eps, forward))
    return True


def _entries(func, inputs, x, m, output, eps, forward):
    """The entries of the Jacobian of output m and x, by differences and by the mode that is checked, as text."""
    numerical = [_real(row[0]) for row in _numerical(func, inputs, x, eps, [m])]
    if forward:
        tangents = [_tangents(func, inputs, x, _basis(x, *direction))[m] for direction in _directions(x)]
        analytical = [[0.0] * len(row) if t is None else _real(t) for t, row in zip(tangents, numerical)]
    else:
        analytical = _analytical(output, [x])[0]
    largest = max((abs(a - b) for row, other in zip(numerical, analytical) for a, b in zip(row, other)), default=0.0)
    return f"Numerical:\n{numerical}\nAnalytical:\n{analytical}\n\nThe max per-element difference (slow mode) is: {largest}.\n"


def _basis(x, index, unit):
    tangent = cresset.zeros_like(x.detach())
    tangent[index] = unit
    return tangent


def _tangents(func, inputs, x, tangent):
    """Tangent of each output that is a tensor when x has the given one."""
    with forward_ad.dual_level():
        dual = [forward_ad.make_dual(i.detach(), tangent) if i is x else i.detach() if isinstance(i, cresset.Tensor) else i for i in inputs]
        outputs = [o for o in _tuple(func(*dual)) if isinstance(o, cresset.Tensor)]
        return [forward_ad.unpack_dual(o).tangent for o in outputs]


def _all_outputs(func, inputs):
    """Positions of all outputs that are tensors."""
    return range(len(_evaluate(func, inputs, None)))


def gradcheck(
    func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False,
    check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False, masked=None,
):  # fmt: skip
    """Compare the gradients of func(*inputs) with differences of step eps, entry by entry; inputs should be of double precision.

    True when all agree; otherwise GradcheckError, or False with raise_exception=False. fast_mode compares one random projection of each
    Jacobian instead of its entries, and shows the entries where that differs.
    """
    if check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError("gradcheck: batched gradients are not supported; leave check_batched_grad and check_batched_forward_grad False.")
    inputs = _tuple(inputs)
    tensors = [(n, x) for n, x in enumerate(inputs) if isinstance(x, cresset.Tensor) and x.requires_grad]
    if not tensors:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True.")
    for n, x in tensors:
        if x.dtype not in (cresset.float64, cresset.complex128):
            warnings.warn(
                f"Input #{n} requires gradient and is not a double precision floating point or complex. This check will likely fail if all the "
                "inputs are not of double precision floating point or complex. ",
                stacklevel=2,
            )

    def fail(text):
        if raise_exception:
            raise GradcheckError(text)
        return False

    if check_forward_ad and fast_mode:
        every = _evaluate(func, inputs, None)
        moving = [(m, o) for m, o in enumerate(every) if o.is_floating_point() or o.is_complex()]
        if not _check_fast(func, inputs, tensors, moving, eps, rtol, atol, nondet_tol, fail, forward=True):
            return False
    elif check_forward_ad and not _check_forward(func, inputs, tensors, eps, rtol, atol, fail):
        return False
    if not check_backward_ad:
        return True
    every = [o for o in _tuple(func(*inputs)) if isinstance(o, cresset.Tensor)]
    outputs = [(m, o) for m, o in enumerate(every) if o.requires_grad]
    if not outputs:
        differences = [d for _, x in tensors for row in _numerical(func, inputs, x, eps, _all_outputs(func, inputs)) for o in row for d in _real(o)]
        if any(differences):
            return fail("Numerical gradient for function expected to be zero: no output requires grad, but the function depends on its inputs.")
        return True
    xs = [x for _, x in tensors]
    try:
        if fast_mode:
            passed = _check_fast(func, inputs, tensors, outputs, eps, rtol, atol, nondet_tol, fail, forward=False)
        else:
            passed = _check_slow(func, inputs, tensors, outputs, eps, rtol, atol, nondet_tol, fail)
    except _WrongShape as error:
        return fail(str(error))
    if not passed:
        return False
    for _, output in outputs if check_grad_dtypes else []:
        for (n, x), g in zip(tensors, cresset.autograd.grad(output, xs, cresset.ones_like(output), retain_graph=True, allow_unused=True)):
            if g is not None and g.dtype != x.dtype:
                return fail(f"the gradient of input {n} is {g.dtype}, the input {x.dtype}.")
    if check_undefined_grad and len(outputs) > 1:
        # Each output alone: the gradients of the others are undefined.
        for _, output in outputs:
            cresset.autograd.grad(output, xs, cresset.zeros_like(output), retain_graph=True, allow_unused=True)
    return True


def gradgradcheck(
    func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False, raise_exception=True, nondet_tol=0.0,
    check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False, check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False,
    masked=False,
):  # fmt: skip
    """gradcheck of the gradients themselves: second derivatives with respect to inputs and grad_outputs (random when not given)."""
    inputs = _tuple(inputs)
    outputs = _differentiable(func(*inputs))
    if grad_outputs is None:
        seeds = []
        for o in outputs:
            seed = cresset.randn(o.shape, dtype=o.dtype)
            if gen_non_contig_grad_outputs and o.dim() > 0:
                seed = cresset.stack([seed, seed], -1)[..., 0]
            seeds.append(seed.detach().requires_grad_())
    else:
        seeds = [g.detach().requires_grad_() for g in _tuple(grad_outputs)]
    count = len(seeds)

    def gradients(*args):
        values, given = args[: len(args) - count], args[len(args) - count:]
        with cresset.enable_grad():
            # Differences evaluate without recording; the first derivative needs its own leaves then.
            values = tuple(
                v.detach().requires_grad_() if isinstance(v, cresset.Tensor) and i.requires_grad and not v.requires_grad else v
                for v, i in zip(values, inputs)
            )
            xs = [v for v in values if isinstance(v, cresset.Tensor) and v.requires_grad]
            result = cresset.autograd.grad(_differentiable(func(*values)), xs, given, create_graph=True, allow_unused=True)
        return tuple(g for g in result if g is not None)

    return gradcheck(
        gradients, inputs + tuple(seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode,
    )  # fmt: skip
