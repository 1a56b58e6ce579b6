"""Jacobians of Jacobians (`func.jacrev` and `jacfwd`, one in the other) of every row: those of the plain graph, which is walked twice."""

import tomllib
from pathlib import Path

import cresset
import numpy as np
import op_samples
import pytest
from cresset.func import jacfwd, jacrev
from op_samples import array, flat

EXCEPTIONS = tomllib.loads((Path(__file__).parent / "no_forward_over_reverse.toml").read_text())
MOST = 12  # elements of a leaf: there is a pass for each of them
ROWS = [row for row in op_samples.rows() if row.differentiable and not row.random]
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
NESTED = {
    "reverse in reverse": lambda f: jacrev(jacrev(f)),
    "reverse in forward": lambda f: jacfwd(jacrev(f)),
    "forward in reverse": lambda f: jacrev(jacfwd(f)),
    "forward in forward": lambda f: jacfwd(jacfwd(f)),
}


def loss_of(row, call, leaf):
    """A number as a function of one leaf of a call, with an interesting second derivative; None where the leaf does not reach a result."""

    def outputs(x):
        moved = call.map(lambda t: x if t is leaf else t.detach())
        return [o for o in flat(row.op()(*moved.args, **moved.kwargs)) if o.is_floating_point() or o.is_complex()]

    def loss(x):
        total = 0
        for k, out in enumerate(outputs(x)):
            out = cresset.view_as_real(out).square() if out.is_complex() else out
            weights = np.random.default_rng(k).uniform(0.5, 1.5, tuple(out.shape))
            total = total + (out * cresset.from_numpy(np.asarray(weights)).to(out.dtype)).square().sum().double()
        return total

    found = outputs(leaf)
    return loss if found and any(o.requires_grad for o in found) else None


def walked_twice(loss, leaf):
    x = leaf.detach().requires_grad_()
    (first,) = cresset.autograd.grad(loss(x), x, create_graph=True)
    if not first.requires_grad:
        return np.zeros((*leaf.shape, *leaf.shape))
    rows = [cresset.autograd.grad(g, x, retain_graph=True, allow_unused=True)[0] for g in first.reshape([-1])]
    return np.stack([array(r) if r is not None else np.zeros(tuple(leaf.shape)) for r in rows]).reshape((*leaf.shape, *leaf.shape))


@each_row
def test_second_derivatives(row):
    """All four nestings, for a leaf that is recorded outside of the transforms, too."""
    problems = []
    for index, call in row.calls():
        for leaf in call.leaves():
            if leaf.is_complex() or not 0 < leaf.numel() <= MOST:
                continue
            loss = loss_of(row, call, leaf)
            if loss is None:
                continue
            try:
                want = walked_twice(loss, leaf)
            except (RuntimeError, NotImplementedError):  # no second derivative
                continue
            for name, nested in NESTED.items():
                for recorded in (False, True):
                    try:
                        have = array(nested(loss)(leaf.detach().requires_grad_(recorded)).detach())
                    except Exception as error:
                        if row.id in EXCEPTIONS or "vmap" in str(error) or "forward AD" in str(error) or "mutate a captured" in str(error):
                            continue
                        problems.append(f"{name}, recorded {recorded}, {row['samples'][index]}: {type(error).__name__}: {str(error)[:150]}")
                        continue
                    if not np.allclose(have, want, rtol=1e-5, atol=1e-7 * (1 + np.abs(want).max(initial=0)), equal_nan=True):
                        problems.append(f"{name}, recorded {recorded}, {row['samples'][index]}: {np.abs(have - want).max()} of {np.abs(want).max()}")
    assert not problems, "\n".join(problems)
