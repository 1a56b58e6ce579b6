"""What torch.ops takes for a number: tensors of one element, NumPy's scalars and arrays. Recorded with PyTorch 2.13."""

import numpy as np
import pytest

import cresset

T = cresset.tensor
REFUSED = "Expected a value of type"


@pytest.fixture(scope="module")
def call():
    with cresset.library._scoped_library("numbers_in_tensors", "DEF") as lib:
        for i, kind in enumerate(KINDS):
            lib.define(f"f{i}({kind} x) -> str")
            lib.impl(f"f{i}", lambda x: repr(x), "CompositeExplicitAutograd")
        yield lambda kind, value: getattr(cresset.ops.numbers_in_tensors, f"f{KINDS.index(kind)}")(value)


KINDS = ["float", "float?", "int", "int?", "bool", "complex", "int[]", "float[]"]


@pytest.mark.parametrize(
    "kind, value, shown",
    [
        ("float", T([1.5]), "1.5"), ("float", T([2]), "2.0"), ("float?", T([[1.5]]), "1.5"), ("float", np.array(3), "3.0"), ("float", np.float32(1.5), "1.5"),
        ("int", T(1.5), "1"), ("int", T([2]), "2"), ("int?", T([1.5]), "1"), ("int", np.float32(1.5), "1"), ("int", np.bool_(True), "1"), ("int", np.array(3), "3"),
        ("int", T(1.5, requires_grad=True), "1"), ("bool", np.array(3), "True"), ("bool", np.array([0]), "False"), ("complex", T([1.5]), "(1.5+0j)"),
        ("complex", np.array(3), "(3+0j)"), ("int[]", np.array([3]), "[3]"), ("int[]", [np.int64(3)], "[3]"), ("float[]", np.array([3]), "[3.0]"),
    ],
)  # fmt: skip
def test_taken(call, kind, value, shown):
    assert call(kind, value) == shown


@pytest.mark.parametrize(
    "kind, value",
    [("float", T(1j)), ("float?", T([1j])), ("float", T([1.0, 2.0])), ("int", np.array([3])), ("int", T([1, 2])), ("int", 1.5), ("int[]", np.array(3)), ("float[]", np.array(3))],
)  # fmt: skip
def test_refused(call, kind, value):
    with pytest.raises(RuntimeError, match=REFUSED):
        call(kind, value)
