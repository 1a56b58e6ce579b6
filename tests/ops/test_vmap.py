"""Every row of the operator table under vmap against the loop over examples."""

import tomllib
from pathlib import Path

import cresset
import numpy as np
import op_samples
import pytest
from op_samples import Failure, array, flat

# [[exception]] op, reason; optionally sample (its number), tensor (the number of the one that cannot be batched), alone (only while others are not), dim (of the batch).
EXCEPTIONS = tomllib.loads((Path(__file__).parent / "vmap_exceptions.toml").read_text())["exception"]
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
    if len(have) != len(want):
        raise Failure(f"{len(have)} results, {len(want)} wanted")
    for h, w in zip(have, want):
        h = array(h)
        if h.shape != w.shape or h.dtype != w.dtype:
            raise Failure(f"{h.dtype}{list(h.shape)}, wanted {w.dtype}{list(w.shape)}")
        if not np.allclose(h, w, rtol=1e-6, atol=1e-9, equal_nan=True):
            raise Failure("values differ")
    return True


def expected(row, index, batched, dims):
    """The exception for one choice, or None."""
    for e in EXCEPTIONS:
        hit = e["op"] == row.id and e.get("sample", index) == index and e.get("dim", dims) == dims
        if hit and ("tensor" not in e or batched[e["tensor"]]) and not (e.get("alone") and all(batched)):
            return e
    return None


def opened(row, call):
    """The tensors of a call, and the operator as a function of them."""

    def f(*values):
        given = iter(values)
        c = call.map(lambda _: next(given))
        return flat(row.op()(*c.args, **c.kwargs))

    return call.tensors(), f


def run_sample(row, index, call):
    """All choices of batched tensors: each alone, all of them, and all of them along the last dimension. Gives what went wrong."""
    tensors, f = opened(row, call)
    n = len(tensors)
    choices = [([i == j for j in range(n)], 0) for i in range(n)] if n > 1 else []
    if tensors:
        choices += [([True] * n, 0), ([True] * n, -1)]
    for batched, dims in choices:
        known, problem, ran = expected(row, index, batched, dims), None, False
        try:
            ran = check(f, tensors, batched, dims, True) or check(f, tensors, batched, dims, False)
        except Exception as error:
            problem = error
        what = f"{row.id}({row['samples'][index]}) batched {[int(b) for b in batched]}, dimension {dims}"
        if problem is not None and known is None:
            yield f"{what}: {type(problem).__name__}: {problem}"
        elif problem is None and ran and known is not None:
            yield f"{what} holds, but is listed as an exception: {known['reason']}"


def check_nested(f, tensors, outer, inner):
    """vmap(vmap(f)) against two loops: tensors batched by the outer level (in front), by the inner one (behind), by both or by none. Which
    of the examples are equal does not matter here, so integers stay the same. False when the loop itself cannot run."""

    def example(t, *numbers):
        for k in numbers:
            t = examples(t, False)[k]
        return t

    def arguments(k, j):
        return [example(t, *([k] if o else []), *([j] if i else [])) for t, o, i in zip(tensors, outer, inner)]

    try:
        want = stacked([[cresset.from_numpy(a) for a in stacked([f(*arguments(k, j)) for j in range(2)])] for k in range(BATCH)])
    except Exception:
        return False
    inputs = []
    for t, o, i in zip(tensors, outer, inner):
        rows = [[example(t, *([k] if o else []), *([j] if i else [])) for j in range(2 if i else 1)] for k in range(BATCH if o else 1)]
        whole = cresset.stack([cresset.stack(row, -1) if i else row[0] for row in rows]) if o else cresset.stack(rows[0], -1) if i else rows[0][0]
        inputs.append(whole.detach())

    def dims(chosen, dim):
        return tuple(dim if c else None for c in chosen)

    have = cresset.vmap(cresset.vmap(lambda *a: tuple(f(*a)), in_dims=dims(inner, -1)), in_dims=dims(outer, 0))(*inputs)
    for h, w in zip(have, want, strict=True):
        h = array(h)
        if h.shape != w.shape or h.dtype != w.dtype:
            raise Failure(f"{h.dtype}{list(h.shape)}, wanted {w.dtype}{list(w.shape)}")
        if not np.allclose(h, w, rtol=1e-6, atol=1e-9, equal_nan=True):
            raise Failure("values differ")
    return True


def run_nested_sample(row, index, call):
    """Everything batched twice, and one tensor batched by the outer level while the others are by the inner one."""
    tensors, f = opened(row, call)
    n = len(tensors)
    choices = [([True] * n, [True] * n)] if tensors else []
    if n > 1:
        choices += [([i == j for j in range(n)], [i != j for j in range(n)]) for i in range(n)]
    for outer, inner in choices:
        try:
            check_nested(f, tensors, outer, inner)
        except Exception as error:
            if not any(e["op"] == row.id and e.get("sample", index) == index for e in EXCEPTIONS):
                levels = [2 * o + i for o, i in zip(outer, inner)]
                yield f"{row.id}({row['samples'][index]}) levels {levels}: {type(error).__name__}: {error}"


@each_row
@pytest.mark.filterwarnings("ignore")
def test_row_nested(row):
    problems = [p for index, call in row.calls() for p in run_nested_sample(row, index, call)]
    assert not problems, "\n".join(problems)


@each_row
@pytest.mark.filterwarnings("ignore")
def test_row(row):
    problems = [p for index, call in row.calls() for p in run_sample(row, index, call)]
    assert not problems, "\n".join(problems)


def test_exceptions_name_rows():
    assert {e["op"] for e in EXCEPTIONS} <= {r.id for r in op_samples.rows()}
