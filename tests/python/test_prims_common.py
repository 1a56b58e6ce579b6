"""Questions about dtypes and strides in cresset._prims_common; expected answers are PyTorch 2.13's."""

import cresset
import pytest
from cresset import _prims_common as common

KINDS = {  # dtype: (bool, integer, float, complex, low precision, with a gradient), Python type, what is computed in
    cresset.bool: ((1, 0, 0, 0, 0, 0), bool, cresset.bool),
    cresset.uint16: ((0, 1, 0, 0, 0, 0), int, cresset.uint16),
    cresset.int64: ((0, 1, 0, 0, 0, 0), int, cresset.int64),
    cresset.bfloat16: ((0, 0, 1, 0, 1, 1), float, cresset.float32),
    cresset.float16: ((0, 0, 1, 0, 1, 1), float, cresset.float32),
    cresset.float64: ((0, 0, 1, 0, 0, 1), float, cresset.float64),
    cresset.complex32: ((0, 0, 0, 1, 1, 1), complex, cresset.complex64),
    cresset.complex128: ((0, 0, 0, 1, 0, 1), complex, cresset.complex128),
}
QUESTIONS = [f"is_{kind}_dtype" for kind in ("boolean", "integer", "float", "complex", "low_precision", "grad")]


@pytest.mark.parametrize("dtype", KINDS)
def test_kinds_of_dtypes(dtype):
    answers, number, computed = KINDS[dtype]
    assert tuple(getattr(common, q)(dtype) for q in QUESTIONS) == answers
    assert common.dtype_to_type(dtype) is number and common.get_computation_dtype(dtype) is computed


def test_related_dtypes():
    assert [common.type_to_dtype(t) for t in (bool, int, float, complex)] == [cresset.bool, cresset.int64, cresset.float32, cresset.complex64]
    with pytest.raises(ValueError, match="Invalid type <class 'str'>!"):
        common.type_to_dtype(str)
    assert common.corresponding_complex_dtype(cresset.float64) is cresset.complex128 and common.corresponding_real_dtype(cresset.complex32) is cresset.float16
    with pytest.raises(KeyError):
        common.corresponding_real_dtype(cresset.float32)
    higher = common.get_higher_dtype
    assert higher(cresset.float16, cresset.bfloat16) is cresset.float32 and higher(cresset.uint8, cresset.int8) is cresset.int16
    assert higher(cresset.complex64, cresset.float64) is cresset.complex64 and higher(None, 1.5) is cresset.float32
    assert higher(cresset.ones(1, dtype=cresset.int8), True) is cresset.int8


def test_strides():
    a, b = cresset.empty(1, 3), cresset.empty_strided((1, 3), (99, 1))
    assert common.check_all_strides(a, b) == common.check_significant_strides(a, b, only_cuda=False) == (True, None)
    assert common.check_all_strides(a, b, only_cuda=False) == (False, 0)
    assert common.check_significant_strides(cresset.empty(2, 3), cresset.empty(3, 2).t(), only_cuda=False) == (False, 0)
