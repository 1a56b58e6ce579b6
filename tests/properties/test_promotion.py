"""Type promotion: every pair of operands against the recorded table, and arithmetic in the promoted type against NumPy."""

import json
import operator
import sys
from pathlib import Path

import cresset
import numpy as np
import pytest
from arrays import ELEMENTS, arrays, same, tensor
from hypothesis import given
from hypothesis import strategies as st

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))

import promotion_cases  # noqa: E402

WANT = json.loads((GOLDEN / "promotion.json").read_text())
OPERANDS = promotion_cases.operands(cresset)


def wanted(left, right):
    return next(dtype for dtype, operands in WANT[left].items() if right in operands)


def name(dtype):
    return str(dtype).split(".")[-1]


@pytest.mark.parametrize("left", WANT)
def test_every_pair(left):
    assert list(WANT) == list(OPERANDS)
    for right, b in OPERANDS.items():
        a = OPERANDS[left]
        want = wanted(left, right)
        assert promotion_cases.result(cresset, a, b) == want, (left, right)
        if not isinstance(a, cresset.Tensor) and not isinstance(b, cresset.Tensor):
            continue
        for operation in (operator.add, operator.mul):
            if not hasattr(cresset, want):
                with pytest.raises(RuntimeError, match=want):
                    operation(a, b)
            elif operation is operator.mul or want not in promotion_cases.STORED or want == "complex32":
                assert name(operation(a, b).dtype) == want, (left, right)
            else:
                with pytest.raises(NotImplementedError, match="not implemented for"):
                    operation(a, b)


def test_promotion_of_dtypes_is_that_of_tensors():
    for left in promotion_cases.DTYPES:
        for right in promotion_cases.DTYPES:
            result = cresset.promote_types(getattr(cresset, left), getattr(cresset, right))
            assert name(result) == wanted(f"{left}[1]", f"{right}[1]")


@given(arrays(shape=(3,)), arrays(shape=(3,)), st.sampled_from(["add", "subtract", "multiply"]))
def test_arithmetic_of_two_types(a, b, operation):
    if operation == "subtract" and bool in (a.dtype, b.dtype):
        with pytest.raises(RuntimeError, match="bool"):
            cresset.subtract(tensor(a), tensor(b))
        return
    dtype = wanted(f"{a.dtype.name}[1]", f"{b.dtype.name}[1]")
    same(getattr(cresset, operation)(tensor(a), tensor(b)), getattr(np, operation)(a.astype(dtype), b.astype(dtype)))


@given(arrays(dtypes=[d for d in ELEMENTS if d.kind != "c"]), st.sampled_from(["int8", "int64", "float16", "bfloat16", "float64"]))
def test_comparison_is_made_in_the_promoted_type(a, other):
    zero = cresset.zeros((), dtype=getattr(cresset, other))
    same(tensor(a) < zero, a < 0)
    same(zero == tensor(a), a == 0)
