"""Derivatives against central differences in double precision.

A complex number counts as its two parts; the gradient of a real function f is df/dRe + i df/dIm, the conjugate
convention of autograd. Results enter through one random projection, inputs element by element."""

import cresset
import numpy as np
from op_samples import Failure, array, flat

STEP = 1e-6


def floating(tensors):
    return [t for t in tensors if t.is_floating_point() or t.is_complex()]


def random_like(t, rng):
    """Standard normal numbers of the tensor's shape and type."""
    values = rng.standard_normal(tuple(t.shape))
    if t.is_complex():
        values = values + 1j * rng.standard_normal(tuple(t.shape))
    return cresset.from_numpy(np.ascontiguousarray(values)).reshape(t.shape).to(t.dtype)


def inner(a, b):
    """The real inner product of two lists of arrays."""
    return sum(float(np.sum(x.real * y.real)) + (float(np.sum(x.imag * y.imag)) if np.iscomplexobj(x) else 0.0) for x, y in zip(a, b))


def steps(x):
    """Each element of x in turn and each of its parts: (index, unit)."""
    for index in np.ndindex(tuple(x.shape)):
        yield index, 1.0
        if x.is_complex():
            yield index, 1j


def numeric_gradient(value, x):
    """d value() / dx, where value() reads x, which is changed in place for the moment."""
    result = np.zeros(tuple(x.shape), dtype=array(x).dtype)
    memory = x.detach().numpy()
    for index, unit in steps(x):
        kept = memory[index]
        memory[index] = kept + STEP * unit
        up = value()
        memory[index] = kept - STEP * unit
        down = value()
        memory[index] = kept
        result[index] += unit * (up - down) / (2 * STEP)
    return result


def compare(what, have, want, tolerance):
    if have.shape != want.shape:
        raise Failure(f"{what}: shape {list(have.shape)}, differences give {list(want.shape)}")
    wrong = ~np.isclose(have, want, rtol=tolerance, atol=tolerance)
    if wrong.any():
        raise Failure(f"{what}: {wrong.sum()} of {wrong.size} elements differ, {have[wrong][0]:.6g} where differences give {want[wrong][0]:.6g}")


def check_reverse(f, leaves, rng, tolerance=1e-5):
    """backward of f() with respect to the leaves it reads. False when no output requires grad."""
    outputs = [t for t in floating(flat(f())) if t.requires_grad]
    if not outputs:
        return False
    weights = [random_like(t, rng) for t in outputs]
    numbers = [array(w) for w in weights]
    differentiable = [t.requires_grad for t in floating(flat(f()))]
    have = cresset.autograd.grad(outputs, leaves, weights, allow_unused=True)

    def value():
        with cresset.no_grad():
            return inner(numbers, [array(t) for t, d in zip(floating(flat(f())), differentiable) if d])

    for number, (x, gradient) in enumerate(zip(leaves, have)):
        if gradient is not None and (gradient.dtype != x.dtype or gradient.shape != x.shape):
            raise Failure(f"gradient {number} is {gradient.dtype} {list(gradient.shape)} of an input {x.dtype} {list(x.shape)}")
        have_values = np.zeros(tuple(x.shape)) if gradient is None else array(gradient)
        compare(f"gradient {number}", have_values, numeric_gradient(value, x), tolerance)
    return True


def check_second(f, leaves, rng, tolerance=1e-4):
    """backward of the gradient of f(), with respect to the leaves and to the incoming gradients. False when there is none."""
    outputs = [t for t in floating(flat(f())) if t.requires_grad]
    if not outputs:
        return False
    weights = [random_like(t, rng).requires_grad_() for t in outputs]

    def gradients(create_graph):
        now = [t for t in floating(flat(f())) if t.requires_grad]
        return cresset.autograd.grad(now, leaves, weights, create_graph=create_graph, allow_unused=True)

    first = gradients(True)
    used = [i for i, g in enumerate(first) if g is not None and g.requires_grad]
    if not used:
        return False
    directions = [random_like(first[i], rng) for i in used]
    numbers = [array(d) for d in directions]
    inputs = [*leaves, *weights]
    have = cresset.autograd.grad([first[i] for i in used], inputs, directions, allow_unused=True)

    def value():
        now = gradients(False)
        return inner(numbers, [array(now[i]) for i in used])

    for number, (x, gradient) in enumerate(zip(inputs, have)):
        have_values = np.zeros(tuple(x.shape)) if gradient is None else array(gradient)
        compare(f"second gradient {number}", have_values, numeric_gradient(value, x), tolerance)
    return True


def check_forward(f, leaves, rng, tolerance=1e-5):
    """Tangents of those outputs of f(*inputs) that have a gradient: all inputs moving at once, and each alone. False when no output
    has a gradient."""
    forward_ad = cresset.autograd.forward_ad
    tracked = [t.requires_grad for t in floating(flat(f(*leaves)))]
    if not any(tracked):
        return False

    def results(*inputs):
        return [t for t, wanted in zip(floating(flat(f(*inputs))), tracked) if wanted]

    choices = [range(len(leaves))] + [[i] for i in range(len(leaves)) if len(leaves) > 1]
    for moving in choices:
        tangents = {i: random_like(leaves[i], rng) for i in moving}
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(x.detach(), tangents[i]) if i in tangents else x.detach() for i, x in enumerate(leaves)]
            pairs = [forward_ad.unpack_dual(t) for t in results(*duals)]
        have = [None if p.tangent is None else array(p.tangent) for p in pairs]

        def moved(step):
            return [array(t) for t in results(*[x.detach() + step * tangents[i] if i in tangents else x.detach() for i, x in enumerate(leaves)])]

        with cresset.no_grad():
            for number, (tangent, up, down) in enumerate(zip(have, moved(STEP), moved(-STEP))):
                want = (up - down) / (2 * STEP)
                compare(f"tangent {number} with inputs {list(moving)} moving", np.zeros_like(want) if tangent is None else tangent, want, tolerance)
    return True
