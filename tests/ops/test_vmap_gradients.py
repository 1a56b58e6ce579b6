"""Derivatives through vmap: of every differentiable row, gradients of the batched call against those of the calls one by one, and one
backward pass for a batch of gradients against several passes."""

import tomllib
from pathlib import Path

import cresset
import numpy as np
import op_samples
import pytest
from op_samples import array, flat
from test_vmap import expected as no_batch

EXCEPTIONS = tomllib.loads((Path(__file__).parent / "vmap_exceptions.toml").read_text()).get("gradient_exception", [])
BATCH = 2
each_row = pytest.mark.parametrize("row", [r for r in op_samples.rows() if r.differentiable and not r.random], ids=lambda row: row.id)


def known(check, row, index):
    return next((e for e in EXCEPTIONS if e["check"] == check and e["op"] == row.id and e.get("sample", index) == index), None)


def differentiable(outputs):
    return [o for o in outputs if o.requires_grad and (o.is_floating_point() or o.is_complex())]


def weights(outputs):
    rng = np.random.default_rng(7)
    return [cresset.from_numpy(np.asarray(rng.random(tuple(o.shape)))).to(o.dtype) for o in outputs]


def function_of(row, call):
    def f(*values):
        given = iter(values)
        c = call.map(lambda _: next(given))
        return flat(row.op()(*c.args, **c.kwargs))

    return f


def same(have, want, what):
    for i, (h, w) in enumerate(zip(have, want, strict=True)):
        if h is None or w is None:
            left = h if w is None else w
            assert left is None or not array(left).any(), f"{what} {i}: a gradient on one side only"
            continue
        assert h.shape == w.shape, f"{what} {i}: {list(h.shape)}, wanted {list(w.shape)}"
        assert np.allclose(array(h), array(w), rtol=1e-6, atol=1e-8, equal_nan=True), f"{what} {i}: values differ"


def run(row, check, test):
    problems = []
    for index, call in row.calls():
        problem, ran = None, False
        try:
            ran = test(row, index, call)
        except Exception as error:
            problem = error
        entry = known(check, row, index)
        if problem is not None and entry is None:
            problems.append(f"{row.id}({row['samples'][index]}): {type(problem).__name__}: {problem}")
        elif problem is None and ran and entry is not None:
            problems.append(f"{row.id}({row['samples'][index]}) holds, but is listed as an exception: {entry['reason']}")
    assert not problems, "\n".join(problems)


def batched_call(row, index, call):
    """Gradients through vmap(f), all leaves batched."""
    f, tensors = function_of(row, call), call.tensors()
    leaf = [t.requires_grad for t in tensors]
    if not any(leaf) or no_batch(row, index, leaf, 0):
        return False
    inputs = [cresset.stack([t.detach(), t.detach() * 0.9]).requires_grad_() if g else t for t, g in zip(tensors, leaf)]
    one_by_one = [f(*(x[k] if g else x for x, g in zip(inputs, leaf))) for k in range(BATCH)]
    want = [cresset.stack(c) for c in zip(*one_by_one, strict=True)]
    have = list(cresset.vmap(lambda *a: tuple(f(*a)), in_dims=tuple(0 if g else None for g in leaf))(*inputs))
    xs = [x for x, g in zip(inputs, leaf) if g]
    # A rule may record an output that the operator itself does not, never the other way round.
    recorded = [i for i, w in enumerate(want) if differentiable([w])]
    if not recorded:
        return False
    seeds = weights([want[i] for i in recorded])
    grads = [cresset.autograd.grad([o[i] for i in recorded], xs, seeds, allow_unused=True) for o in (have, want)]
    same(*grads, "gradient of input")
    return True


def batched_gradients(row, index, call):
    """is_grads_batched against one pass for each gradient."""
    f = function_of(row, call)
    xs = call.leaves()
    outputs = differentiable(f(*call.tensors())) if xs else []
    if not outputs:
        return False
    seeds = [weights(outputs) for _ in range(BATCH)]
    for k in range(1, BATCH):
        seeds[k] = [s * (k + 1) for s in seeds[k]]
    rows = [cresset.autograd.grad(outputs, xs, s, allow_unused=True, retain_graph=True) for s in seeds]
    have = cresset.autograd.grad(
        outputs, xs, [cresset.stack(c) for c in zip(*seeds, strict=True)], allow_unused=True, retain_graph=True, is_grads_batched=True
    )
    same(have, [None if c[0] is None else cresset.stack(c) for c in zip(*rows, strict=True)], "gradient of input")
    return True


@each_row
@pytest.mark.filterwarnings("ignore")
def test_through_vmap(row):
    run(row, "through", batched_call)


@each_row
@pytest.mark.filterwarnings("ignore")
def test_batch_of_gradients(row):
    run(row, "batch", batched_gradients)
