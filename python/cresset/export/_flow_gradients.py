"""Gradients through cond, map and scan while operators are recorded: what backward does is a branch, a map or a scan too, of gradients and the operands."""

import cresset
from cresset.utils import _pytree as pytree

from ._control_flow import _Probe, _recorded
from ._scans import _copy, _first

__all__ = ["DIFFERENTIABLE", "tensors_of"]


def tensors_of(values):
    """The tensors among the leaves of values."""
    return [x for x in pytree.tree_leaves(values) if isinstance(x, cresset.Tensor)]


def _again(name, *arguments):
    """Record what backward does, with gradients if it is asked to keep its graph."""
    return cresset._rare_functions._recorders[name](*arguments)


def _refuse_again(name):
    """The carried tensors that backward uses follow from the arguments too."""
    if cresset.is_grad_enabled():
        raise NotImplementedError(f"make_fx: gradients of gradients through {name} are not recorded. Call torch.autograd.grad without create_graph.")


def _is_differentiable(x):
    return isinstance(x, cresset.Tensor) and (x.is_floating_point() or x.is_complex())


class _Flow(cresset.autograd.Function):
    """forward() → a flat tuple; backward(gradients of all results) → gradients of the tensors."""

    @staticmethod
    def forward(ctx, forward, backward, *tensors):
        """What `forward` gives; numbers without gradients among it are marked."""
        ctx.back = backward
        ctx.set_materialize_grads(False)
        results = tuple(forward())
        ctx.mark_non_differentiable(*(x for x in results if not _is_differentiable(x)))
        return results

    @staticmethod
    def backward(ctx, *gradients):
        """What `backward` gives, for the tensors."""
        return (None, None, *ctx.back(gradients))


def _from_outside(recorder, function, operands, initial):
    """Tensors that need a gradient and that the function uses without getting them."""
    with recorder.switched(False):
        tracer, _ = _recorded(recorder, function, operands, initial, _Probe)
    known = {id(x) for x in (*operands, *initial)}
    return [x for x, *_ in tracer.operands.values() if x.requires_grad and id(x) not in known]


def _gradients(outputs, inputs, given, again):
    """Gradients of tensors by those of outputs: zeros where they are not used. again: are gradients of them wanted?"""
    pairs = [(o, g) for o, g in zip(outputs, given) if o.requires_grad]
    if not pairs:
        return [cresset.zeros_like(x) for x in inputs]
    found = cresset.autograd.grad([o for o, _ in pairs], inputs, [g for _, g in pairs], allow_unused=True, create_graph=again)
    return [cresset.zeros_like(x) if g is None else g for g, x in zip(found, inputs)]


def _own(x):
    """A tensor that needs a gradient."""
    return x if x.requires_grad else x.detach().requires_grad_()


def _applied(forward, backward, wanted):
    """The tree that `forward` gives, with gradients of the wanted tensors. backward(gradients of its tensors that can have one)."""
    spec, places = [], []

    def run():
        leaves, tree = pytree.tree_flatten(forward())
        spec.append((tree, leaves))
        places[:] = [i for i, x in enumerate(leaves) if isinstance(x, cresset.Tensor)]
        return [leaves[i] for i in places]

    def back(gradients):
        leaves = [spec[0][1][i] for i in places]
        return backward([cresset.zeros_like(x) if g is None else g for x, g in zip(leaves, gradients) if _is_differentiable(x)])

    results = _Flow.apply(run, back, *wanted)
    tree, leaves = spec[0]
    leaves = list(leaves)
    for i, x in zip(places, results):
        leaves[i] = x
    return pytree.tree_unflatten(leaves, tree)


def _cond(recorder, record, pred, true_fn, false_fn, operands):
    given, branches = tensors_of(operands), (true_fn, false_fn)
    wanted = [x for x in given if x.requires_grad]
    for fn in branches:
        known = {id(x) for x in wanted}
        wanted += [x for x in _from_outside(recorder, lambda *_: fn(*operands), given, given) if id(x) not in known]  # noqa: B023
    if not wanted:
        return record(pred, true_fn, false_fn, operands)

    def joint(fn):
        def run(*gradients):
            again = cresset.is_grad_enabled()
            with cresset.enable_grad():
                outputs = [x for x in pytree.tree_leaves(fn(*operands)) if _is_differentiable(x)]
                return tuple(_gradients(outputs, wanted, gradients, again))

        return run

    return _applied(lambda: record(pred, true_fn, false_fn, operands), lambda gs: _again("cond", pred, *map(joint, branches), tuple(gs)), wanted)


def _map(recorder, record, f, xs, *args):
    leaves, spec = pytree.tree_flatten(xs)
    given, count = tensors_of(args), len(leaves)

    def flat(*values):
        return f(pytree.tree_unflatten(list(values[:count]), spec), *args)

    with recorder.switched(False):
        parts = _first(recorder, leaves)
    outside = [x for x in given if x.requires_grad] + _from_outside(recorder, flat, (*parts, *given), (*leaves, *given))
    inside = [i for i, x in enumerate(leaves) if x.requires_grad]
    if not inside and not outside:
        return record(f, xs, *args)

    def joint(values):
        again = cresset.is_grad_enabled()
        with cresset.enable_grad():
            values = [_own(x) if i in inside else x for i, x in enumerate(values)]
            outputs = [x for x in pytree.tree_leaves(flat(*values)) if _is_differentiable(x)]
            return tuple(_gradients(outputs, [*(values[i] for i in inside), *outside], values[count:], again))

    def backward(gradients):
        found = _again("map", joint, [*leaves, *gradients])
        return (*found[: len(inside)], *(g.sum(0) for g in found[len(inside) :]))

    return _applied(lambda: record(f, xs, *args), backward, [*(leaves[i] for i in inside), *outside])


def _scan(recorder, record, step, carried, leaves):
    count = len(carried)
    with recorder.switched(False):
        copies = [*(_copy(recorder, x, x) for x in carried), *_first(recorder, leaves)]
    outside = _from_outside(recorder, lambda *values: step(list(values[:count]), list(values[count:])), copies, (*carried, *leaves))
    if not outside and not any(x.requires_grad for x in (*carried, *leaves)):
        return record(step, carried, leaves)
    loose = [i for i, x in enumerate(carried) if _is_differentiable(x)]  # a carry may need a gradient from the second step on
    inside = [i for i, x in enumerate(leaves) if x.requires_grad]
    before = []

    def noting(carry, parts):
        new, outputs = step(carry, parts)
        return new, (outputs, list(carry))

    def forward():
        last, (outputs, carries) = record(noting, carried, leaves)
        before[:] = carries
        return last, outputs

    def back_step(sums, parts):
        x, c, given = parts[: len(leaves)], parts[len(leaves) : len(leaves) + count], parts[len(leaves) + count :]
        again = cresset.is_grad_enabled()
        with cresset.enable_grad():
            x, c = ([_own(v) if i in own else v for i, v in enumerate(values)] for values, own in ((x, inside), (c, loose)))
            new, outputs = step(c, x)
            results = [*(new[i] for i in loose), *(o for o in pytree.tree_leaves(outputs) if _is_differentiable(o))]
            found = _gradients(results, [*(c[i] for i in loose), *(x[i] for i in inside), *outside], [*sums[: len(loose)], *given], again)
        of_x = found[len(loose) : len(loose) + len(inside)]
        return [*found[: len(loose)], *(a + g for a, g in zip(sums[len(loose) :], found[len(loose) + len(inside) :]))], of_x

    def backward(gradients):
        _refuse_again("scan")
        start = [*gradients[: len(loose)], *(cresset.zeros_like(x) for x in outside)]
        sums, of_x = _again("scan", back_step, start, [x.flip(0) for x in (*leaves, *before, *gradients[len(loose) :])])
        of_carried = [g for i, g in zip(loose, sums) if carried[i].requires_grad]
        return (*of_carried, *(g.flip(0) for g in of_x), *sums[len(loose) :])

    wanted = [*(x for x in carried if x.requires_grad), *(leaves[i] for i in inside), *outside]
    return _applied(forward, backward, wanted)


def _associative_scan(recorder, record, combine, leaves):
    """Backward goes through the results as a loop would have made them."""
    count = len(leaves)
    with recorder.switched(False):
        pairs = [*_first(recorder, leaves), *_first(recorder, leaves)]
    outside = _from_outside(recorder, lambda *values: combine(list(values[:count]), list(values[count:])), pairs, (*leaves, *leaves))
    if not outside and not any(x.requires_grad for x in leaves):
        return record(combine, leaves)
    loose, found = [i for i, x in enumerate(leaves) if _is_differentiable(x)], []

    def forward():
        found[:] = record(combine, leaves)
        return list(found)

    def back_step(sums, parts):
        x, y, given = parts[:count], parts[count : 2 * count], parts[2 * count :]
        again = cresset.is_grad_enabled()
        with cresset.enable_grad():
            x, y = ([_own(v) if i in loose else v for i, v in enumerate(values)] for values in (x, y))
            new = combine(y, x)
            grads = _gradients([new[i] for i in loose], [*(y[i] for i in loose), *(x[i] for i in loose), *outside], sums[: len(loose)], again)
        of_y, of_x, rest = grads[: len(loose)], grads[len(loose) : 2 * len(loose)], grads[2 * len(loose) :]
        return [g + h for g, h in zip([*of_y, *rest], [*given, *sums[len(loose) :]])], of_x

    def backward(gradients):
        _refuse_again("associative_scan")
        sums, of_x = [*(g[-1] for g in gradients), *(cresset.zeros_like(x) for x in outside)], []
        if leaves[0].shape[0] > 1:
            rows = [*(x[1:] for x in leaves), *(y[:-1] for y in found), *(g[:-1] for g in gradients)]
            sums, of_x = _again("scan", back_step, sums, [x.flip(0) for x in rows])
        firsts = [g[None] for g in sums[: len(loose)]]
        firsts = [cresset.cat([g, x.flip(0)]) for g, x in zip(firsts, of_x)] if of_x else firsts
        return (*(g for i, g in zip(loose, firsts) if leaves[i].requires_grad), *sums[len(loose) :])

    return _applied(forward, backward, [*(x for x in leaves if x.requires_grad), *outside])


# {name: function of the recorder, the function that records, and what that gets}.
DIFFERENTIABLE = {"cond": _cond, "map": _map, "scan": _scan, "associative_scan": _associative_scan}
