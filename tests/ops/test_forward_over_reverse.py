"""Forward mode through backward, as hessian runs it: the tangents of gradients, of every row."""

import tomllib
from pathlib import Path

import cresset
import numpy as np
import op_samples
import pytest

gradcheck, gradgradcheck = cresset.autograd.gradcheck, cresset.autograd.gradgradcheck
REFUSED = tomllib.loads((Path(__file__).resolve().parent / "no_forward_over_reverse.toml").read_text())
ROWS = [row for row in op_samples.rows() if row.differentiable and not row.random]
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


def outputs_with_gradients(row, call):
    """The call as a function of its leaves, giving the outputs that require grad; None when no sample leaf reaches one."""
    leaves = call.leaves()

    def f(*inputs):
        now = dict(zip(map(id, leaves), inputs))
        moved = call.map(lambda t: now.get(id(t), t))
        results = op_samples.flat(row.op()(*moved.args, **moved.kwargs))
        if not places:  # the first call, with leaves: tangents come with tensors that require no gradient
            places.extend(i for i, t in enumerate(results) if t.requires_grad)
        return tuple(results[i] for i in places)

    places = []
    return f if leaves and cresset.float32 not in [*call.args, *call.kwargs.values()] and f(*leaves) else None


def with_imaginary_part(call):
    """The sample with complex numbers in place of real ones."""

    def complex_number(t):
        if not t.is_floating_point():
            return t
        values = op_samples.array(t) + 1j * np.random.default_rng(7).uniform(0.2, 0.8, tuple(t.shape))
        return cresset.from_numpy(np.array(values)).reshape(t.shape).requires_grad_(t.requires_grad)

    return call.map(complex_number)


def check(row, test, kinds=lambda call: call):
    """test(f, leaves) for every sample; an operator that is listed must say that it has no forward mode, and gives no number."""
    refused, problems = row.id in REFUSED, []
    for index, call in row.calls():
        call = kinds(call)
        f = None if call is None else outputs_with_gradients(row, call)
        if f is None:
            continue
        try:
            test(f, call.leaves())
            found = None
        except NotImplementedError as error:
            found = error if not refused or "forward AD" not in str(error) else None
        except Exception as error:
            found = error
        if found is not None:
            problems.append(f"{row.id}({row['samples'][index]}): {type(found).__name__}: {found}")
    assert not problems, "\n".join(problems)


def forward_over_reverse(f, leaves):
    gradgradcheck(f, leaves, check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False, fast_mode=True)


def forward(f, leaves):
    gradcheck(f, leaves, check_forward_ad=True, check_backward_ad=False, check_undefined_grad=False, fast_mode=True)


@each_row
def test_forward_over_reverse(row):
    """The tangent of the gradient is what differences give."""
    check(row, forward_over_reverse)


@each_row
def test_complex_numbers(row):
    """The same, and forward mode itself, with an imaginary part, where the operator takes complex numbers."""

    def made_complex(call):
        if any(t.is_complex() for t in call.tensors()):
            return call
        call = with_imaginary_part(call)
        try:
            row.op()(*call.args, **call.kwargs)
        except (RuntimeError, TypeError):
            return None
        return call

    check(row, forward, made_complex)
    check(row, forward_over_reverse, made_complex)


def test_refusals_are_rows():
    names = {row.id for row in ROWS}
    assert sorted(set(REFUSED) - names) == []
    assert all(reason for reason in REFUSED.values())
