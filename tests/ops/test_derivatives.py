"""Reverse, second and forward derivatives of every row against central differences."""

import cresset
import gradcheck
import numpy as np
import op_samples
import pytest

ROWS = [row for row in op_samples.rows() if row.differentiable and not row.random]
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


def rng():
    return np.random.default_rng(7)


def double(call):
    """Rows with a result in lower precision are not accurate enough for differences."""
    return call.leaves() and cresset.float32 not in [*call.args, *call.kwargs.values()]


# Their tensors belong together (a result of one operator on another argument), which samples cannot say.
# Second derivatives of the operators that use them cover them.
WITHOUT_SAMPLES = {"aten::log_sigmoid_backward", "aten::native_batch_norm_backward", "aten::native_layer_norm_backward"}


def test_every_formula_has_a_sample():
    missing = {
        op_samples.qualified(r)
        for r in op_samples.operators()
        if r["differentiable"] == "formula" and not r["derived"] and not r["alias_of"] and not r["mutates"] and not r["samples"]
        and "nondeterministic_seeded" not in r["tags"]
    }
    assert missing == WITHOUT_SAMPLES


def test_known_differences_name_samples():
    rows = {row.id: row for row in op_samples.rows()}
    for entry in op_samples.KNOWN:
        assert entry["reason"] and entry.get("sample", 0) < len(rows[entry["op"]]["samples"]), entry


@each_row
def test_reverse(row):
    def check(call):
        if double(call):
            gradcheck.check_reverse(lambda: row.op()(*call.args, **call.kwargs), call.leaves(), rng())

    op_samples.check_samples("reverse", row, check)


@each_row
def test_reverse_complex(row):
    """The same samples with an imaginary part, where the operator takes complex numbers: the conjugate convention."""

    def check(call):
        if not double(call) or any(t.is_complex() for t in call.tensors()):
            return
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
            return
        gradcheck.check_reverse(lambda: row.op()(*call.args, **call.kwargs), call.leaves(), rng())

    op_samples.check_samples("reverse_complex", row, check)


@each_row
def test_second_order(row):
    def check(call):
        if double(call):
            gradcheck.check_second(lambda: row.op()(*call.args, **call.kwargs), call.leaves(), rng())

    op_samples.check_samples("second", row, check)


@each_row
def test_forward(row):
    def check(call):
        if not double(call):
            return
        leaves = call.leaves()

        def f(*inputs):
            now = dict(zip(map(id, leaves), inputs))
            moved = call.map(lambda t: now.get(id(t), t))
            return row.op()(*moved.args, **moved.kwargs)

        if row["differentiable"] == "formula" and row["jvp"] is None:
            with pytest.raises(NotImplementedError, match="forward"):
                gradcheck.check_forward(f, leaves, rng())
        else:
            gradcheck.check_forward(f, leaves, rng())

    op_samples.check_samples("forward", row, check)
