"""gradcheck and gradgradcheck: derivative formulas against differences.

A Jacobian here has a row for each element of the input and a column for each element of the output. Complex outputs are checked as
two real functions, real and imaginary part. The gradient of a real function s of z = x + iy is ds/dx + i ds/dy, as backward gives it.
"""

import itertools
import warnings

import cresset
from cresset._vmap_internals import _vmap

from . import forward_ad
from .function import Function

__all__ = [
    "gradcheck", "gradgradcheck", "GradcheckError", "get_numerical_jacobian", "get_analytical_jacobian", "get_numerical_jacobian_wrt_specific_input",
]  # fmt: skip


class GradcheckError(RuntimeError):
    """A derivative does not agree with differences."""


_FAST_MODE = """
The above quantities relating the numerical and analytical jacobians are computed in fast mode: they are products of the Jacobians with \
random vectors. Below, numerical and analytical jacobians are recomputed in slow mode:

Numerical:
 {numerical}
Analytical:
{analytical}

The max per-element difference (slow mode) is: {difference}.
"""
_FAST_ALONE = """
Fast gradcheck failed but element-wise differences are small. The check might pass in slow mode: compare the tolerances with the size of \
the gradients, or use fast_mode=False.
"""
_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, although "
    "analytical gradient matches numerical gradient. The tolerance for nondeterminism was {}."
)
_BATCHED = """
gradcheck or gradgradcheck failed while testing batched gradient computation: backward is run under vmap, so that many gradients are taken \
at once (as jacobian and hessian do). An operation of this backward has no rule for batches, or a wrong one. \
check_batched_grad=False leaves this check out.
"""
_BATCHED_FORWARD = """
gradcheck failed while testing batched tangents in forward mode: the function is run under vmap. check_batched_forward_grad=False leaves \
this check out.
"""
_UNDEFINED_RAISED = "Expected backward function to handle undefined output grads; it raised: {}"
_UNDEFINED_IS_CHECKED = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing callers of this "
    'function. If this is true for you, you can call this function with "check_undefined_grad=False" to disable the feature'
)
_UNDEFINED_NOT_ZERO = (
    "Expected all input grads to be undefined or zero when all output grads are undefined or zero; the gradient of input {} is not."
)


def _tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _is_differentiable(value):
    return isinstance(value, cresset.Tensor) and (value.is_floating_point() or value.is_complex())


def _tensors(outputs):
    """The tensors among the outputs; ValueError for those of other layouts."""
    tensors = [o for o in _tuple(outputs) if isinstance(o, cresset.Tensor)]
    for o in tensors:
        if o.layout not in (cresset.strided, cresset.jagged):
            kind = "MKLDNN" if o.is_mkldnn else "Sparse"
            raise ValueError(f"{kind} output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for gradcheck.")
    return tensors


def _differentiable(outputs):
    """The outputs that require grad."""
    return tuple(o for o in _tensors(outputs) if o.requires_grad)


def _checked_inputs(inputs):
    """(place, tensor) of each input to differentiate by."""
    tensors = [(n, x) for n, x in enumerate(inputs) if isinstance(x, cresset.Tensor) and x.requires_grad]
    if not tensors:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")
    for n, x in tensors:
        if x.dtype not in (cresset.float64, cresset.complex128):
            warnings.warn(
                f"Input #{n} requires gradient and is not a double precision floating point or complex. This check will likely fail if all the "
                "inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if any(stride == 0 and size > 1 for size, stride in zip(x.shape, x.stride())):
            raise RuntimeError(
                f"The {n}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to compute "
                "the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
            )
    return tensors


# --- differences ---------------------------------------------------------------------------------------------------------------


class _Differences:
    """Central differences of func at inputs, for the outputs at the given places among all tensors that func gives."""

    def __init__(self, func, inputs, places, eps):
        self.func, self.inputs, self.places, self.eps = func, inputs, places, eps

    def _evaluate(self):
        outputs = _tensors(self.func(*self.inputs))
        return [outputs[place].detach().clone() for place in self.places]

    def along(self, x, direction):
        """The derivative of each output along a direction (a tensor like x)."""
        data = x.data  # with a version counter of its own: saved tensors stay valid
        before = data.clone()
        step = direction * self.eps
        try:
            data.copy_(before + step)
            plus = self._evaluate()
            data.copy_(before - step)
            minus = self._evaluate()
        finally:
            data.copy_(before)
        for p, m in zip(plus, minus):
            for what, a, b in (("shape", m.shape, p.shape), ("dtype", m.dtype, p.dtype)):
                if a != b:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when inputs are perturbed by {self.eps}, but got: {what}s {a} and {b}."
                    )
        return [(p - m) / (2 * self.eps) for p, m in zip(plus, minus)]

    def columns(self, x, unit=1.0):
        """For each output a Jacobian with respect to x, whose elements move by `unit` (1, or 1j)."""
        rows = []
        for index in itertools.product(*(range(n) for n in x.shape)):
            direction = cresset.zeros_like(x.detach())
            direction[index] = unit
            rows.append([d.reshape(-1) for d in self.along(x, direction)])
        return [cresset.stack([row[k] for row in rows]) if rows else None for k in range(len(self.places))]

    def jacobians(self, x):
        """For each (real) output the Jacobian with respect to x in the convention of backward."""
        real = self.columns(x)
        if not x.is_complex():
            return real
        return [r if r is None else r + 1j * i for r, i in zip(real, self.columns(x, 1j))]


def _parts(outputs):
    """The real functions to check: (prefix of messages, part of an output)."""
    if not any(o.is_complex() for o in outputs):
        return [("", lambda o: o)]
    return [
        ("While considering the imaginary part of complex outputs only, ", lambda o: cresset.imag(o) if o.is_complex() else None),
        ("While considering the real part of complex outputs only, ", lambda o: cresset.real(o) if o.is_complex() else o),
    ]


# --- derivatives by backward -----------------------------------------------------------------------------------------------------


def _gradients(output, xs, seed, check_dtypes):
    """Gradients of one output, zeros where there is none; checked for size and dtype."""
    grads = cresset.autograd.grad(output, xs, seed, retain_graph=True, allow_unused=True)
    for g, x in zip(grads, xs):
        if g is not None and g.shape != x.shape:
            raise GradcheckError(f"Analytical gradient has incorrect size: {tuple(g.shape)} for an input of size {tuple(x.shape)}.")
        if g is not None and check_dtypes and g.dtype != x.dtype:
            raise GradcheckError(f"Gradient has dtype mismatch: {g.dtype} for an input of {x.dtype}.")
    return [cresset.zeros_like(x) if g is None else g for g, x in zip(grads, xs)]


def _analytical(output, xs, check_dtypes=False):
    """For each x the Jacobian of a real output."""
    columns = [[] for _ in xs]
    for index in itertools.product(*(range(n) for n in output.shape)):
        seed = cresset.zeros_like(output)
        seed[index] = 1
        for column, g in zip(columns, _gradients(output, xs, seed, check_dtypes)):
            column.append(g.detach().resolve_conj().reshape(-1))
    return [cresset.stack(column, 1) if column else None for column in columns]


def _close(analytical, numerical, rtol, atol):
    if numerical.is_complex() and not analytical.is_complex():
        analytical = analytical + 0j
    if analytical.is_complex() and not numerical.is_complex():
        numerical = numerical + 0j
    numerical = numerical.to(analytical.dtype)
    same = analytical == numerical
    return bool((same | ((analytical - numerical).abs() <= atol + rtol * numerical.abs())).all())


def _mismatch(prefix, output, input, numerical, analytical, forward=False):
    what = "Jacobian computed with forward mode mismatch" if forward else "Jacobian mismatch"
    text = f"{what} for output {output} with respect to input {input},\nnumerical:{numerical}\nanalytical:{analytical}\n"
    return prefix + text


def _slow_details(numerical, analytical, rtol, atol):
    """What fast mode adds to its message: the full Jacobians."""
    difference = (numerical - analytical).abs().max() if numerical.numel() else 0.0
    text = _FAST_MODE.format(numerical=numerical, analytical=analytical, difference=difference)
    return text + (_FAST_ALONE if _close(analytical, numerical, rtol, atol) else "")


def _check_repeats(first, second, nondet_tol):
    for a, b in zip(first, second):
        if a is not None and a.numel() and not bool(((a - b).abs() <= nondet_tol).all()):
            raise GradcheckError(_REENTRANT.format(nondet_tol))


def _random_unit(shape, dtype, device, generator):
    """A random vector of positive numbers of length 1: a sum of positive terms hides no term.

    It comes from a generator of the check's own, so that functions that put the usual one back draw the same numbers each time.
    """
    vector = cresset.rand(shape, dtype=dtype, generator=generator).to(device)
    return vector / vector.norm() if vector.numel() else vector


def _real_dtype(x):
    return x.real.dtype if x.is_complex() else x.dtype


class _BackwardCheck:
    """Compares backward with differences, for the outputs that require grad."""

    def __init__(self, func, inputs, tensors, eps, rtol, atol, nondet_tol, check_dtypes):
        self.func, self.inputs, self.tensors = func, inputs, tensors
        self.eps, self.rtol, self.atol, self.nondet_tol, self.check_dtypes = eps, rtol, atol, nondet_tol, check_dtypes
        self.generator = cresset.Generator()

    def run(self, fast):
        every = _tensors(self.func(*self.inputs))
        places = [place for place, o in enumerate(every) if o.requires_grad]
        if not places:
            self._check_independent(every)
            return
        outputs = [every[place] for place in places]
        for prefix, part in _parts(outputs):
            chosen = [(m, place, part(o)) for m, (place, o) in enumerate(zip(places, outputs))]
            chosen = [c for c in chosen if c[2] is not None]

            def real_func(*args, part=part):
                return tuple(part(o) if _is_differentiable(o) and part(o) is not None else o
                             for o in _tuple(self.func(*args)) if isinstance(o, cresset.Tensor))  # fmt: skip

            differences = _Differences(real_func, self.inputs, [place for _, place, _ in chosen], self.eps)
            (self._fast if fast else self._slow)(prefix, differences, [(m, o) for m, _, o in chosen])

    def _check_independent(self, every):
        places = [place for place, o in enumerate(every) if _is_differentiable(o)]
        differences = _Differences(self.func, self.inputs, places, self.eps)
        for _, x in self.tensors:
            for jacobian in differences.columns(x):
                if jacobian is not None and bool((jacobian.abs() > self.atol).any()):
                    raise GradcheckError("Numerical gradient for function expected to be zero: no output requires grad, but the function "
                                         "depends on its inputs.")  # fmt: skip

    def _slow(self, prefix, differences, outputs):
        xs = [x for _, x in self.tensors]
        numerical = [differences.jacobians(x) for x in xs]
        for k, (m, output) in enumerate(outputs):
            analytical = _analytical(output, xs, self.check_dtypes)
            _check_repeats(analytical, _analytical(output, xs), self.nondet_tol)
            for (n, _), a, by_output in zip(self.tensors, analytical, numerical):
                if a is not None and by_output[k] is not None and not _close(a, by_output[k], self.rtol, self.atol):
                    raise GradcheckError(_mismatch(prefix, m, n, by_output[k], a))

    def _fast(self, prefix, differences, outputs):
        """v J u for random u and v in place of J. The tolerance grows with the number of terms that the products add."""
        xs = [x for _, x in self.tensors]
        us = [_random_unit(x.shape, _real_dtype(x), x.device, self.generator) for x in xs]
        along = [differences.along(x, u.to(x.dtype)) for x, u in zip(xs, us)]
        along_imaginary = [differences.along(x, u * 1j) if x.is_complex() else None for x, u in zip(xs, us)]
        for k, (m, output) in enumerate(outputs):
            v = _random_unit(output.shape, output.dtype, output.device, self.generator)
            grads = _gradients(output, xs, v, self.check_dtypes)
            _check_repeats(grads, _gradients(output, xs, v, False), self.nondet_tol)
            for i, ((n, x), u, g) in enumerate(zip(self.tensors, us, grads)):
                numerical, analytical = (v * along[i][k]).sum(), (g.detach().real * u if g.is_complex() else g.detach() * u).sum()
                if x.is_complex():
                    numerical = numerical + 1j * (v * along_imaginary[i][k]).sum()
                    analytical = analytical + 1j * (g.detach().imag * u).sum()
                if not _close(analytical, numerical, self.rtol, self.atol * float(u.sum() * v.sum())):
                    text = _mismatch(prefix, m, n, numerical, analytical)
                    full = _analytical(output, [x])[0]
                    raise GradcheckError(text + _slow_details(differences.jacobians(x)[k], full, self.rtol, self.atol))


class _Undefined(Function):
    """Passes tensors on and no gradient back."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.set_materialize_grads(False)
        return tuple(x.clone() for x in tensors)

    @staticmethod
    def backward(ctx, *grads):
        return (None,) * len(grads)


def _check_undefined_backward(func, inputs, tensors):
    """Backward copes with undefined gradients: all, and each alone."""
    xs = [x for _, x in tensors]
    count = len(_differentiable(func(*inputs)))

    def gradients(undefined):
        outputs = list(_differentiable(func(*inputs)))
        hidden = _Undefined.apply(*(outputs[k] for k in undefined))
        for k, o in zip(undefined, hidden):
            outputs[k] = o
        try:
            grads = cresset.autograd.grad(outputs, xs, [cresset.zeros_like(o) for o in outputs], allow_unused=True)
        except RuntimeError as error:
            warnings.warn(_UNDEFINED_IS_CHECKED, stacklevel=4)
            raise GradcheckError(_UNDEFINED_RAISED.format(error)) from error
        for (n, _), g in zip(tensors, grads):
            if g is not None and bool((g != 0).any()):
                warnings.warn(_UNDEFINED_IS_CHECKED, stacklevel=4)
                raise GradcheckError(_UNDEFINED_NOT_ZERO.format(n))

    if count:
        gradients(range(count))
    if count > 1:
        for k in range(count):
            gradients([k])


def _check_batched_backward(func, inputs, tensors, count=2):
    """autograd.grad with is_grads_batched gives what it gives one by one."""
    xs = [x for _, x in tensors]
    for m, output in enumerate(_differentiable(func(*inputs))):
        seeds = cresset.randn(count, *output.shape, dtype=output.dtype, device=output.device)
        try:
            batched = cresset.autograd.grad(output, xs, seeds, retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n{_BATCHED}") from error
        single = [cresset.autograd.grad(output, xs, seed, retain_graph=True, allow_unused=True) for seed in seeds]
        for i, (n, _) in enumerate(tensors):
            if batched[i] is not None and not cresset.allclose(batched[i], cresset.stack([row[i] for row in single])):
                raise GradcheckError(
                    f"For output {m} and input {n}: batched gradients differ from the gradients taken one by one.\n{_BATCHED}"
                )


def _check_batched_forward(func, inputs, tensors, count=2):
    """Tangents for several directions under vmap are what they are one by one."""
    for n, x in tensors:

        def push(direction, n=n):
            with forward_ad.dual_level():
                values = [v.detach() if isinstance(v, cresset.Tensor) else v for v in inputs]
                values[n] = forward_ad.make_dual(values[n], direction)
                parts = [forward_ad.unpack_dual(o) for o in _tuple(func(*values)) if _is_differentiable(o)]
                return tuple(cresset.zeros_like(p) if t is None else t for p, t in parts)

        directions = cresset.randn(count, *x.shape, dtype=x.dtype, device=x.device)
        try:
            batched = _vmap(push)(directions)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n{_BATCHED_FORWARD}") from error
        single = [push(d) for d in directions]
        for m, b in enumerate(batched):
            if not cresset.allclose(b, cresset.stack([row[m] for row in single])):
                raise GradcheckError(f"Batched tangents of output {m} along input {n} differ from the tangents taken one by one.")


# --- derivatives in forward mode -------------------------------------------------------------------------------------------------


class _ForwardCheck:
    """Compares the tangents of the outputs with differences."""

    def __init__(self, func, inputs, tensors, eps, rtol, atol, check_undefined):
        self.func, self.inputs, self.tensors = func, inputs, tensors
        self.eps, self.rtol, self.atol, self.check_undefined = eps, rtol, atol, check_undefined
        self.generator = cresset.Generator()

    def run(self, fast):
        every = _tensors(self.func(*self.inputs))
        self.places = [place for place, o in enumerate(every) if _is_differentiable(o)]
        differences = _Differences(self.func, self.inputs, self.places, self.eps)
        for n, x in self.tensors:
            parts = [("", 1.0)]
            if x.is_complex():
                parts = [("While considering the real part of complex inputs only, ", 1.0),
                         ("While considering the imaginary part of complex inputs only, ", 1j)]  # fmt: skip
            for prefix, unit in parts:
                (self._fast if fast else self._slow)(prefix, differences, n, x, unit)

    def _tangents(self, x, direction, others_undefined=False):
        """The tangent of each output along a direction of x; the other inputs' tangents are zero."""
        with forward_ad.dual_level():
            duals = []
            for value in self.inputs:
                if not (isinstance(value, cresset.Tensor) and value.requires_grad):
                    duals.append(value)
                    continue
                dual = value.detach()
                if value is x:
                    dual = forward_ad.make_dual(dual, direction)
                elif not others_undefined:
                    dual = forward_ad.make_dual(dual, cresset.zeros_like(dual))
                duals.append(dual)
            outputs = _tensors(self.func(*duals))
            unpacked = [forward_ad.unpack_dual(outputs[place]) for place in self.places]
            return [
                cresset.zeros_like(u.primal).detach() if u.tangent is None else u.tangent.detach().clone().resolve_conj() for u in unpacked
            ]

    def _columns(self, x, unit):
        rows = []
        for index in itertools.product(*(range(n) for n in x.shape)):
            direction = cresset.zeros_like(x.detach())
            direction[index] = unit
            rows.append([t.reshape(-1) for t in self._tangents(x, direction)])
        return [cresset.stack([row[k] for row in rows]) if rows else None for k in range(len(self.places))]

    def _slow(self, prefix, differences, n, x, unit):
        analytical = self._columns(x, unit)
        for m, (a, want) in enumerate(zip(analytical, differences.columns(x, unit))):
            if a is not None and not _close(a, want, self.rtol, self.atol):
                raise GradcheckError(_mismatch(prefix, m, n, want, a, forward=True))
        if self.check_undefined and x.numel():
            self._check_missing(n, x)

    def _fast(self, prefix, differences, n, x, unit):
        u = _random_unit(x.shape, _real_dtype(x), x.device, self.generator)
        direction = (u * unit).to(x.dtype)
        for m, (t, d) in enumerate(zip(self._tangents(x, direction), differences.along(x, direction))):
            v = _random_unit(d.shape, _real_dtype(d), d.device, self.generator)
            if not _close((v * t).sum(), (v * d).sum(), self.rtol, self.atol * float(u.sum() * v.sum())):
                text = _mismatch(prefix, m, n, (v * d).sum(), (v * t).sum(), forward=True)
                details = _slow_details(differences.columns(x, unit)[m], self._columns(x, unit)[m], self.rtol, self.atol)
                raise GradcheckError(text + details)
        if self.check_undefined and x.numel():
            self._check_missing(n, x)

    def _check_missing(self, n, x):
        """A missing tangent of another input counts as zeros."""
        direction = cresset.ones_like(x.detach())
        missing = self._tangents(x, direction, others_undefined=True)
        if len(self.tensors) == 1:  # no other input has one
            return
        for m, (a, b) in enumerate(zip(self._tangents(x, direction), missing)):
            if not _close(a, b, self.rtol, self.atol):
                raise GradcheckError(f"Tangents of output {m} along input {n} differ between missing and zero tangents of the other inputs: {b} "
                                     f"and {a}.")  # fmt: skip


# --- the checks ------------------------------------------------------------------------------------------------------------------


def gradcheck(
    func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False,
    check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False, masked=None,
):  # fmt: skip
    """Compare the derivatives of func(*inputs) with differences of step eps; inputs should be of double precision.

    True when |derivative - difference| <= atol + rtol |difference| everywhere; otherwise GradcheckError with both Jacobians, or False with
    raise_exception=False. Each output that requires grad is checked against each input that does; results that are no tensors are
    passed over. fast_mode compares products of the Jacobians with random vectors. check_forward_ad also compares tangents. An input that is sparse, or of
    the layout `_mkldnn`, is checked by its values.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = _tuple(inputs)
    if check_forward_ad and any(isinstance(i, cresset.Tensor) and i.is_mkldnn for i in inputs):
        raise ValueError("MKLDNN inputs are not support for forward AD gradcheck.")
    if any(isinstance(i, cresset.Tensor) and i.layout not in (cresset.strided, cresset.jagged) for i in inputs):
        return cresset.sparse.as_sparse_gradcheck(gradcheck)(
            func, inputs, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
            check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad, check_batched_forward_grad=check_batched_forward_grad,
            check_forward_ad=check_forward_ad, check_backward_ad=check_backward_ad, fast_mode=fast_mode,
        )  # fmt: skip
    tensors = _checked_inputs(inputs)
    try:
        if check_backward_ad:
            _BackwardCheck(func, inputs, tensors, eps, rtol, atol, nondet_tol, check_grad_dtypes).run(fast_mode)
        if check_forward_ad:
            _ForwardCheck(func, inputs, tensors, eps, rtol, atol, check_undefined_grad).run(fast_mode)
        if check_backward_ad and check_undefined_grad:
            _check_undefined_backward(func, inputs, tensors)
        if check_backward_ad and check_batched_grad:
            _check_batched_backward(func, inputs, tensors)
        if check_forward_ad and check_batched_forward_grad:
            _check_batched_forward(func, inputs, tensors)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False, raise_exception=True, nondet_tol=0.0,
    check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False, check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False,
    masked=False,
):  # fmt: skip
    """gradcheck of the gradients themselves: second derivatives with respect to inputs and grad_outputs (random when not given)."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    inputs = _tuple(inputs)
    outputs = _differentiable(func(*inputs))
    if grad_outputs is None:
        seeds = []
        for o in outputs:
            real = _real_dtype(o)
            dtype = o.dtype if real == cresset.float64 else cresset.complex128 if o.is_complex() else cresset.float64
            options = {"dtype": dtype, "device": o.device, "low": -1, "high": 1, "requires_grad": True}
            seeds.append(cresset.testing.make_tensor(o.shape, noncontiguous=gen_non_contig_grad_outputs, **options))
    else:
        seeds = list(_tuple(grad_outputs))  # those that require no gradient are constants
    count = len(seeds)

    def gradients(*args):
        values, given = args[: len(args) - count], args[len(args) - count :]
        # Tangents are given to tensors that require no gradient.
        wanted = [isinstance(i, cresset.Tensor) and i.requires_grad for i in inputs]
        values = [v.requires_grad_() if want and not v.requires_grad else v for v, want in zip(values, wanted)]
        results = _differentiable(func(*values))
        xs = [v for v in values if isinstance(v, cresset.Tensor) and v.requires_grad]
        given = [g.to(o.dtype) for g, o in zip(given, results)]
        return tuple(g for g in cresset.autograd.grad(results, xs, given, create_graph=True, allow_unused=True) if g is not None)

    return gradcheck(
        gradients, inputs + tuple(seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode,
    )  # fmt: skip


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """Deprecated: for each input a matrix of differences of fn's first output, a row for each element of the input."""
    warnings.warn("`get_numerical_jacobian` was part of PyTorch's private API and not meant to be exposed: use gradcheck or "
                  "autograd.functional.jacobian.", FutureWarning, stacklevel=2)  # fmt: skip
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != 1.0.")
    given, inputs = inputs, _tuple(inputs)
    places = [0]
    differences = _Differences(lambda *args: fn(args if isinstance(given, (tuple, list)) else args[0]), inputs, places, eps)
    targets = inputs if target is None else _tuple(target)
    return [differences.jacobians(x)[0] for x in targets if isinstance(x, cresset.Tensor) and x.requires_grad]


def get_numerical_jacobian_wrt_specific_input(fn, input_idx, inputs, outputs, eps, input=None, is_forward_ad=False) -> tuple[cresset.Tensor, ...]:
    """For each of `outputs` (tensors that fn gives) a matrix of differences with respect to inputs[input_idx], a row for each of its elements, in
    backward's convention for complex inputs unless is_forward_ad. `input` is the tensor to move, where it is another one."""
    x = inputs[input_idx] if input is None else input
    differences = _Differences(fn, inputs, range(len(_tuple(outputs))), eps)
    return tuple(differences.columns(x) if is_forward_ad else differences.jacobians(x))


def get_analytical_jacobian(inputs, output, nondet_tol=0.0, grad_out=1.0):
    """Deprecated: (Jacobians by input, reentrant?, sizes right?, dtypes right?) of a recorded real output."""
    warnings.warn("`get_analytical_jacobian` was part of PyTorch's private API and not meant to be exposed: use gradcheck or "
                  "autograd.functional.jacobian.", FutureWarning, stacklevel=2)  # fmt: skip
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_analytical_jacobian no longer supports values of grad_out != 1.0.")
    xs = [x for x in _tuple(inputs) if isinstance(x, cresset.Tensor) and x.requires_grad]
    first, second = _analytical(output, xs), _analytical(output, xs)
    reentrant = all(bool(((a - b).abs() <= nondet_tol).all()) for a, b in zip(first, second))
    return tuple(first), reentrant, True, True
