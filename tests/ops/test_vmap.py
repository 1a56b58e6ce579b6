"""Every row of the operator table under vmap against the loop over examples."""

import tomllib
from pathlib import Path

import cresset
import numpy as np
import op_samples
import pytest
from op_samples import Failure, array, flat

EXCEPTIONS = {e["op"]: e["reason"] for e in tomllib.loads((Path(__file__).parent / "vmap_exceptions.toml").read_text()).get("exception", [])}
BATCH = 3
each_row = pytest.mark.parametrize("row", [r for r in op_samples.rows() if not r.random], ids=lambda row: row.id)


def examples(t, vary_integers):
    """BATCH tensors of the kind of t: scaled values (which keep signs, domains and definiteness), rolled integers and masks."""
    t = t.detach()
    if t.is_floating_point() or t.is_complex():
        return [t * (1 - 0.1 * k) for k in range(BATCH)]
    if not vary_integers or t.dim() == 0:
        return [t.clone() for _ in range(BATCH)]
    return [t.roll(k, 0) for k in range(BATCH)]


def stacked(results):
    """The loop's results, example by example, as one list of batches."""
    return [np.stack([array(t) for t in column]) for column in zip(*results, strict=True)]


def check(f, tensors, batched, dims, vary_integers):
    """vmap(f) with some tensors batched against the loop. False when the loop itself cannot run."""
    columns = [examples(t, vary_integers) if b else None for t, b in zip(tensors, batched)]

    def example(k):
        return [t.detach() if c is None else c[k] for t, c in zip(tensors, columns)]

    try:
        want = stacked([f(*example(k)) for k in range(BATCH)])
    except Exception:
        return False
    inputs, in_dims = [], []
    for t, c in zip(tensors, columns):
        dim = None if c is None else dims % (t.dim() + 1)
        inputs.append(t.detach() if c is None else cresset.stack(c, dim))
        in_dims.append(dim)
    have = cresset.vmap(lambda *a: tuple(f(*a)), in_dims=tuple(in_dims))(*inputs)
    what = f"batched {[int(b) for b in batched]}, dimension {dims}"
    if len(have) != len(want):
        raise Failure(f"{what}: {len(have)} results, {len(want)} wanted")
    for h, w in zip(have, want):
        h = array(h)
        if h.shape != w.shape or h.dtype != w.dtype:
            raise Failure(f"{what}: {h.dtype}{list(h.shape)}, wanted {w.dtype}{list(w.shape)}")
        if not np.allclose(h, w, rtol=1e-6, atol=1e-9, equal_nan=True):
            raise Failure(f"{what}: values differ")
    return True


def run_sample(row, call):
    """All choices of batched tensors: each alone, all of them, and all of them along the last dimension."""
    tensors = call.tensors()
    if not tensors:
        return

    def f(*values):
        given = iter(values)
        c = call.map(lambda _: next(given))
        return flat(row.op()(*c.args, **c.kwargs))

    n = len(tensors)
    choices = [([i == j for j in range(n)], 0) for i in range(n)] if n > 1 else []
    choices += [([True] * n, 0), ([True] * n, -1)]
    for batched, dims in choices:
        if not check(f, tensors, batched, dims, True):
            check(f, tensors, batched, dims, False)


@each_row
@pytest.mark.filterwarnings("ignore")
def test_row(row):
    problems = []
    for index, call in row.calls():
        try:
            run_sample(row, call)
        except Exception as error:
            problems.append(f"{row.id}({row['samples'][index]}): {type(error).__name__}: {error}")
    if row.id in EXCEPTIONS:
        assert problems, f"{row.id} runs under vmap, but is listed as an exception: {EXCEPTIONS[row.id]}"
        return
    assert not problems, "\n".join(problems)


def test_exceptions_name_rows():
    assert EXCEPTIONS.keys() <= {r.id for r in op_samples.rows()}
