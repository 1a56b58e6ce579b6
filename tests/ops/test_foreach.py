"""Operators on lists: the in-place and out forms of every row, single elements, gradients, and refusals."""

import cresset
import numpy as np
import op_samples
import pytest
from op_samples import Failure, array, flat

ROWS = [row for row in op_samples.rows() if row["kind"] == "foreach"]
aten = cresset.ops.aten


def values(call):
    return call.map(lambda t: t.detach().clone())


def check_same(have, want):
    for number, (h, w) in enumerate(zip(have, want, strict=True)):
        if h.dtype != w.dtype or not np.array_equal(array(h), array(w), equal_nan=True):
            raise Failure(f"element {number}: {array(h)}, functional {array(w)}")


@pytest.mark.parametrize("row", [r for r in ROWS if r.inplace], ids=lambda row: row.id)
def test_inplace(row):
    def check(call):
        call = values(call)
        want = row.op()(*call.args, **call.kwargs)
        assert row.op(row.inplace)(*call.args, **call.kwargs) is None
        check_same(call.args[0], want)

    op_samples.check_samples("foreach_inplace", row, check)


@pytest.mark.parametrize("row", [r for r in ROWS if r.out], ids=lambda row: row.id)
def test_out(row):
    def check(call):
        call = values(call)
        want = row.op()(*call.args, **call.kwargs)
        for make in (lambda t: cresset.empty(0, dtype=t.dtype), lambda t: cresset.full_like(t, 7)):
            outs = [make(t) for t in want]
            row.op(row.out)(*call.args, **call.kwargs, out=outs)
            check_same(outs, want)

    op_samples.check_samples("foreach_out", row, check)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_each_element_alone(row):
    """A list gives what lists of one element give."""

    def check(call):
        call = values(call)
        want = flat(row.op()(*call.args, **call.kwargs))
        for i in range(len(want)):
            one = [a[i : i + 1] if isinstance(a, list) else a for a in call.args]
            check_same(flat(row.op()(*one, **call.kwargs)), want[i : i + 1])

    op_samples.check_samples("foreach_single", row, check)


def numbers(*lists):
    return [cresset.tensor(values, dtype=cresset.float64) for values in lists]


@pytest.mark.parametrize(
    "op, args, want",
    [
        ("add", ([1.0, 2.0],), [[3.0, 4.0], [8.0]]),
        ("sub", (2.0,), [[0.0, 1.0], [4.0]]),
        ("maximum", (2.5,), [[2.5, 3.0], [6.0]]),
        ("clamp_max", ([2.5, 7.0],), [[2.0, 2.5], [6.0]]),
        ("pow", (2,), [[4.0, 9.0], [36.0]]),
        ("norm", (), [13.0**0.5, 6.0]),
        ("powsum", (3,), [35.0, 216.0]),
        ("powsum", (0,), [2.0, 1.0]),
        ("max", (), [3.0, 6.0]),
        ("addcmul", (numbers([1, 1], [2]), numbers([2, 3], [4]), cresset.tensor([10.0, 0.5])), [[22.0, 33.0], [10.0]]),
        ("addcdiv", (numbers([1, 1], [2]), numbers([2, 4], [4]), [2.0, 4.0]), [[3.0, 3.5], [8.0]]),
        ("lerp", (numbers([4, 5], [8]), [0.5, 0.25]), [[3.0, 4.0], [6.5]]),
    ],
)
def test_values(op, args, want):
    self = numbers([2.0, 3.0], [6.0])
    result = getattr(cresset, f"_foreach_{op}")(self, *args)
    for have, expected in zip(result, want, strict=True):
        np.testing.assert_allclose(have.numpy(), expected, rtol=1e-15)


def test_in_place_gives_the_list_and_moves_versions():
    self = numbers([2.0, 3.0], [6.0])
    before = [t._version for t in self]
    assert cresset._foreach_mul_(self, 2) is self
    assert [t.tolist() for t in self] == [[4.0, 6.0], [12.0]]
    assert [t._version - b for t, b in zip(self, before)] == [1, 1]
    cresset._foreach_addcmul_(self, self, self, cresset.tensor([1.0, 2.0], dtype=cresset.float64))
    assert [t.tolist() for t in self] == [[20.0, 42.0], [300.0]]
    cresset._foreach_zero_(self)
    assert all(not t.any() for t in self)
    cresset._foreach_copy_(self, numbers([1.0, 2.0], [3.0]))
    assert [t.tolist() for t in self] == [[1.0, 2.0], [3.0]]


def test_gradients_in_place():
    leaves = [t.requires_grad_() for t in numbers([2.0, 3.0], [6.0])]
    self = [t * 1 for t in leaves]
    cresset._foreach_mul_(self, leaves)
    grads = cresset.autograd.grad([t.sum() for t in self], leaves)
    assert [g.tolist() for g in grads] == [[4.0, 6.0], [12.0]]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        cresset._foreach_add_([cresset.ones(2), leaves[0]], 1.0)


TWO, THREE = [cresset.ones(2), cresset.ones(2)], [cresset.ones(2)] * 3


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: cresset._foreach_add(TWO, THREE), "Tensor lists must have the same number of tensors, got 2 and 3"),
        (lambda: cresset._foreach_add_(TWO, THREE), "Tensor lists must have the same number of tensors, got 2 and 3"),
        (lambda: aten._foreach_abs.out(TWO, out=THREE), "Tensor lists must have the same number of tensors, got 2 and 3"),
        (lambda: cresset._foreach_abs([]), "Tensor list must have at least one tensor"),
        (lambda: cresset._foreach_zero_([]), "Tensor list must have at least one tensor"),
        (lambda: cresset._foreach_add(TWO, [1.0]), "Tensor list must have same number of elements as scalar list"),
        (lambda: cresset._foreach_mul(TWO, cresset.ones(1)), "scalar tensor expected to be 0 dim but it has 1 dimensions and 1 elements"),
        (lambda: cresset._foreach_addcmul(TWO, TWO, TWO, cresset.ones(3)), "Expected length of scalars to match input of length 2 but got 3"),
        (lambda: cresset._foreach_addcmul(TWO, TWO, TWO, cresset.ones(2, 1)), "Expected packed scalar Tensor to be of dimension 1. Got 2"),
        (lambda: cresset._foreach_addcmul(TWO, TWO, TWO, cresset.ones(4)[::2]), "Expected scalars to be contiguous"),
        (lambda: cresset._foreach_max([cresset.ones(0)]), "max over zero elements is undefined"),
        (lambda: cresset._foreach_norm([cresset.ones(0)], float("inf")), "cannot compute the infinity norm on an empty tensor"),
        (lambda: cresset._foreach_exp_([cresset.ones(2, dtype=cresset.int64)]), "result type Float can't be cast to the desired output type Long"),
        (lambda: cresset._foreach_mm(TWO, THREE), "_foreach_mm: self and mat2 must have the same number of tensors"),
    ],
)
def test_refusals(call, text):
    with pytest.raises(RuntimeError, match=text.replace("(", r"\(")):
        call()


def test_members_that_later_scalars_refuse_are_not_written():
    self = [cresset.ones(3), cresset.ones(2)]
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor is not supported"):
        cresset._foreach_sub_(self, [1e19, True])
    assert [t.tolist() for t in self] == [[1, 1, 1], [1, 1]]
