"""Types that are stored rather than computed with (uint16, float8_e5m2, complex32, …), against what PyTorch said."""

import json
import sys
import warnings
from pathlib import Path

import cresset
import pytest

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
sys.path.insert(0, str(GOLDEN))

import stored_cases  # noqa: E402

WANT = json.loads((GOLDEN / "stored.json").read_text())
# PyTorch lacks a kernel for some of these; here they go by the size of elements, whatever the type is.
MOVES = ("t.eye(2", ".flip(0)", ".index_select(", ".masked_select(", ".index_put_(", ".equal(", "functional.pad(")
# A number beyond int64 reaches operators that take tensors; those that take a Scalar refuse it.
REFUSED = ()


def is_as_wanted(expression, got, want):
    if expression in REFUSED:
        return got == "RuntimeError"
    if want.endswith("Error") and any(move in expression for move in MOVES):
        return got == "True" or got.startswith("tensor(")
    return got == want


@pytest.mark.parametrize("dtype", WANT["texts"])
def test_expressions(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = {expression: stored_cases.said(cresset, expression, dtype or None) for expression in WANT["texts"][dtype]}
    wrong = {e: (text, WANT["texts"][dtype][e]) for e, text in got.items() if not is_as_wanted(e, text, WANT["texts"][dtype][e])}
    assert not wrong


def test_moved_elements():
    for dtype in stored_cases.STORED:
        x = cresset.tensor([1, 2, 4], dtype=getattr(cresset, dtype))
        at = cresset.tensor([2, 0])
        for moved in (x.flip(0), x.index_select(0, at), x.masked_select(x != 2), cresset.zeros(3, dtype=x.dtype).index_put_((at,), x[:2])):
            assert moved.dtype == x.dtype
        assert x.flip(0).to(cresset.complex64).tolist() == [4, 2, 1]
        assert x.index_select(0, at).to(cresset.complex64).tolist() == [4, 1]
        assert x.masked_select(x != 2).to(cresset.complex64).tolist() == [1, 4]


def test_sums_and_orders_of_unsigned_numbers():
    x = cresset.tensor([2**64 - 1, 0, 2**63], dtype=cresset.uint64)
    assert x.sort().values.tolist() == [0, 2**63, 2**64 - 1] and x.argsort().tolist() == [1, 2, 0] and x.unique().tolist() == [0, 2**63, 2**64 - 1]
    small = cresset.tensor([60000, 60000], dtype=cresset.uint16)
    assert small.sum().dtype is cresset.int64 and small.sum().item() == 120000 and small.prod().item() == 3600000000
    assert x.any().item() and not x.all().item()
    cresset.manual_seed(0)
    want = cresset.randint(0, 50000, (5,)).tolist()
    cresset.manual_seed(0)
    assert cresset.randint(0, 50000, (5,), dtype=cresset.uint16).tolist() == want


@pytest.mark.parametrize("dtype", stored_cases.FLOAT8)
def test_every_code_widens(dtype):
    want = cresset.tensor(WANT["values"][dtype], dtype=cresset.int32).view(cresset.float32)
    got = cresset.tensor(stored_cases.values(cresset, dtype), dtype=cresset.int32).view(cresset.float32)
    assert cresset.equal(want.isnan(), got.isnan())
    number = ~want.isnan()
    assert cresset.equal(want[number].view(cresset.int32), got[number].view(cresset.int32))


@pytest.mark.parametrize("dtype", stored_cases.FLOAT8)
def test_every_float_narrows(dtype):
    """Codes rise with the floats, so the first float of each code and the float before it tell about all of them."""
    steps = {int(code): bits for code, bits in WANT["steps"][dtype].items()}
    order = list(steps)
    assert stored_cases.codes(cresset, dtype, list(steps.values())) == order
    assert stored_cases.codes(cresset, dtype, [bits - 1 for bits in steps.values() if bits]) == order[:-1]
    # In strides and through other types: the same.
    floats = cresset.tensor(list(steps.values()), dtype=cresset.int32).view(cresset.float32)
    narrowed = floats.to(getattr(cresset, dtype))
    assert cresset.equal(floats[::3].to(getattr(cresset, dtype)).view(cresset.uint8), narrowed.view(cresset.uint8)[::3].contiguous())
    assert cresset.equal(floats.double().to(getattr(cresset, dtype)).view(cresset.uint8), narrowed.view(cresset.uint8))


@pytest.mark.parametrize("dtype", stored_cases.FLOAT8[:4])
def test_signs(dtype):
    floats = cresset.tensor(list(WANT["steps"][dtype].values()), dtype=cresset.int32).view(cresset.float32)
    positive, negative = (x.to(getattr(cresset, dtype)).float() for x in (floats, -floats))
    assert cresset.equal(positive.nan_to_num(7.0), (-negative).nan_to_num(7.0))


@pytest.mark.parametrize("dtype", stored_cases.STORED)
def test_what_has_no_kernel_says_so(dtype):
    x = cresset.ones(3, dtype=getattr(cresset, dtype))
    for operation in (lambda: cresset.tril(x[None]), lambda: cresset.cumprod(x, 0, dtype=x.dtype), lambda: x < x):
        with pytest.raises(NotImplementedError, match="not implemented for '"):
            operation()


def test_arrays_both_ways():
    numpy = pytest.importorskip("numpy")
    for dtype in stored_cases.UNSIGNED:
        array = numpy.array([0, 1, numpy.iinfo(dtype).max], dtype)
        t = cresset.from_numpy(array)
        assert t.dtype == getattr(cresset, dtype) and t.tolist() == array.tolist()
        assert t.numpy().dtype == dtype and memoryview(t).tolist() == array.tolist()
    for dtype in (*stored_cases.FLOAT8, "complex32"):
        with pytest.raises(TypeError, match="Got unsupported ScalarType"):
            cresset.ones(2, dtype=getattr(cresset, dtype)).numpy()
