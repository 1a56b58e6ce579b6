"""Reverse, second and forward derivatives of every row against central differences."""

import tomllib
from pathlib import Path

import cresset
import gradcheck
import numpy as np
from cresset.testing.samples import draws
import op_samples
import pytest

ROWS = [row for row in op_samples.rows() if row.differentiable and not row.random]
EXCUSED = Path(__file__).resolve().parent / "rows_without_derivatives.toml"
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


def rng():
    return np.random.default_rng(7)


def double(call):
    """Rows with a result in lower precision are not accurate enough for differences."""
    return call.leaves() and cresset.float32 not in [*call.args, *call.kwargs.values()]


@pytest.fixture
def tally(count):
    """tally(line, samples) counts a row and its samples in the totals after the run."""
    return lambda line, samples: count("derivatives against differences, in double precision", line, rows=int(samples > 0), samples=samples)


def differentiable(data):
    """Whether a row of the table promises derivatives: it has a formula or is composed, and maps tensors to tensors."""
    inherited = data["derived"] or data["alias_of"] or data["mutates"] or data["nondiff"] is True
    tensors = all(any("Tensor" in v["type"] for v in data[side]) for side in ("arguments", "returns"))
    return data["differentiable"] in ("formula", "composite") and not inherited and tensors and not draws(data)


def checked(row):
    """Whether differences check a derivative of at least one sample."""
    return any(bool(double(call)) and differentiable_part(row, call) is not None for _, call in row.calls())


def test_every_differentiable_row_is_checked():
    with_checks = {row.id for row in ROWS if checked(row)}
    promised = {op_samples.Row(data, {}).id for data in op_samples.operators() if differentiable(data)}
    excused = [op for ops in tomllib.loads(EXCUSED.read_text()).values() for op in ops]
    assert sorted(promised - with_checks - set(excused)) == [], "rows without a sample that differences check"
    assert sorted(set(excused) - (promised - with_checks)) == [], f"rows that {EXCUSED.name} excuses needlessly"


def test_known_differences_name_samples():
    rows = {row.id: row for row in op_samples.rows()}
    for entry in op_samples.KNOWN:
        assert entry["reason"] and entry.get("sample", 0) < len(rows[entry["op"]]["samples"]), entry


@each_row
def test_reverse(row, tally):
    def check(call):
        return bool(double(call)) and gradcheck.check_reverse(lambda: row.op()(*call.args, **call.kwargs), call.leaves(), rng())

    tally("reverse", op_samples.check_samples("reverse", row, check))


@each_row
def test_reverse_complex(row, tally):
    """The same samples with an imaginary part, where the operator takes complex numbers: the conjugate convention."""

    def check(call):
        if not double(call) or any(t.is_complex() for t in call.tensors()):
            return False
        imaginary = rng()

        def complex_number(t):
            if not t.is_floating_point():
                return t
            values = np.array(op_samples.array(t) + 1j * imaginary.uniform(0.2, 0.8, tuple(t.shape)))
            return cresset.from_numpy(values).reshape(t.shape).requires_grad_(t.requires_grad)

        call = call.map(complex_number)
        try:
            row.op()(*call.args, **call.kwargs)
        except (RuntimeError, TypeError):
            return False
        return gradcheck.check_reverse(lambda: row.op()(*call.args, **call.kwargs), call.leaves(), rng())

    tally("reverse, complex", op_samples.check_samples("reverse_complex", row, check))


@each_row
def test_second_order(row, tally):
    def check(call):
        return bool(double(call)) and gradcheck.check_second(lambda: row.op()(*call.args, **call.kwargs), call.leaves(), rng())

    tally("second order", op_samples.check_samples("second", row, check))


def without_forward(row):
    """Whether forward mode raises: a formula of its own is missing."""
    return row["differentiable"] == "formula" and row["jvp"] is None


def by_leaves(row, call):
    """The call as a function of its leaves."""
    leaves = call.leaves()

    def f(*inputs):
        now = dict(zip(map(id, leaves), inputs))
        moved = call.map(lambda t: now.get(id(t), t))
        return row.op()(*moved.args, **moved.kwargs)

    return f


@each_row
def test_forward(row, tally):
    def check(call):
        if not double(call):
            return False
        if not without_forward(row):
            return gradcheck.check_forward(by_leaves(row, call), call.leaves(), rng())
        with pytest.raises(NotImplementedError, match="forward"):
            gradcheck.check_forward(by_leaves(row, call), call.leaves(), rng())
        return False

    tally("forward", op_samples.check_samples("forward", row, check))


def differentiable_part(row, call):
    """The call as a function of its leaves that returns the outputs with a gradient; None when there are none."""
    f = by_leaves(row, call)
    tracked = [t.requires_grad for t in op_samples.flat(f(*call.leaves()))]
    return (lambda *inputs: tuple(t for t, wanted in zip(op_samples.flat(f(*inputs)), tracked) if wanted)) if any(tracked) else None


@each_row
@pytest.mark.parametrize("mode", ["fast", "slow"])
def test_public_gradcheck(row, mode, tally):
    """The package's own checkers in both modes: a projection of each Jacobian, and all its entries."""
    fast = mode == "fast"

    def checker(run):
        def check(call):
            f = differentiable_part(row, call) if double(call) else None
            return f is not None and run(f, tuple(call.leaves()))

        return check

    def reverse(f, leaves):
        return cresset.autograd.gradcheck(f, leaves, fast_mode=fast)

    def forward(f, leaves):
        return cresset.autograd.gradcheck(f, leaves, fast_mode=fast, check_forward_ad=True, check_backward_ad=False)

    def second(f, leaves):
        cresset.manual_seed(0)
        return cresset.autograd.gradgradcheck(f, leaves, fast_mode=fast, atol=1e-4)

    tally(f"gradcheck, {mode}", op_samples.check_samples("reverse", row, checker(reverse)))
    if not without_forward(row):
        tally(f"gradcheck, {mode}, forward", op_samples.check_samples("gradcheck forward", row, checker(forward)))
    tally(f"gradgradcheck, {mode}", op_samples.check_samples("second", row, checker(second)))
