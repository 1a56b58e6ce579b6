"""gradcheck and gradgradcheck: derivative formulas against differences."""

import itertools
import warnings

import cresset

from . import forward_ad

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError"]


class GradcheckError(RuntimeError):
    """A derivative does not agree with differences."""


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


def _analytical(output, inputs, xs):
    """Rows by direction of each x, columns by direction of the output: d output = Re(conj(gradient) * d x)."""
    columns = [[] for _ in xs]
    for index, unit in _directions(output):
        seed = cresset.zeros_like(output)
        seed[index] = unit
        grads = cresset.autograd.grad(output, xs, seed, retain_graph=True, allow_unused=True)
        for column, x, g in zip(columns, xs, grads):
            if g is None:
                g = cresset.zeros_like(x)
            if g.shape != x.shape:
                raise GradcheckError(f"the gradient has the shape {tuple(g.shape)}, the input {tuple(x.shape)}.")
            column.append(_real(g))
    return [[list(row) for row in zip(*column)] if column else [] for column in columns]


def _check_forward(func, inputs, tensors, eps, rtol, atol, fail):
    for n, x in tensors:
        for (index, unit), row in zip(_directions(x), _numerical(func, inputs, x, eps, _all_outputs(func, inputs))):
            tangent = cresset.zeros_like(x.detach())
            tangent[index] = unit
            with forward_ad.dual_level():
                dual = [forward_ad.make_dual(i.detach(), tangent) if i is x else i.detach() if isinstance(i, cresset.Tensor) else i for i in inputs]
                outputs = [o for o in _tuple(func(*dual)) if isinstance(o, cresset.Tensor)]
                tangents = [forward_ad.unpack_dual(o).tangent for o in outputs]
            for m, (t, want) in enumerate(zip(tangents, row)):
                got = [0.0] * len(_real(want)) if t is None else _real(t)
                if (outputs[m].is_floating_point() or outputs[m].is_complex()) and not _jacobians_close([_real(want)], [got], rtol, atol):
                    return fail(
                        f"Jacobian computed with forward mode mismatch for output {m} with respect to input {n},\nnumerical:{_real(want)}\nanalytical:{got}\n"
                    )
    return True


def _all_outputs(func, inputs):
    """Positions of all outputs that are tensors."""
    return range(len(_evaluate(func, inputs, None)))


def gradcheck(
    func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False,
    check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False, masked=None,
):  # fmt: skip
    """Compare the gradients of func(*inputs) with differences of step eps, entry by entry; inputs should be of double precision.

    True when all agree; otherwise GradcheckError, or False with raise_exception=False. fast_mode is accepted and runs the full check.
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

    if check_forward_ad and not _check_forward(func, inputs, tensors, eps, rtol, atol, fail):
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
    numerical = [_numerical(func, inputs, x, eps, [m for m, _ in outputs]) for x in xs]
    for k, (m, output) in enumerate(outputs):
        try:
            analytical = _analytical(output, inputs, xs)
            again = _analytical(output, inputs, xs)
        except GradcheckError as error:
            return fail(f"Backward of output {m}: {error}")
        for i, (n, x) in enumerate(tensors):
            want = [_real(row[k]) for row in numerical[i]]
            if output.numel() and x.numel() and not _jacobians_close(want, analytical[i], rtol, atol):
                return fail(f"Jacobian mismatch for output {m} with respect to input {n},\nnumerical:{want}\nanalytical:{analytical[i]}\n")
            if not _jacobians_close(again[i], analytical[i], 0.0, nondet_tol):
                return fail(
                    f"Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
                    f"although analytical gradient matches numerical gradient. The tolerance for nondeterminism was {nondet_tol}."
                )
        if check_grad_dtypes:
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
