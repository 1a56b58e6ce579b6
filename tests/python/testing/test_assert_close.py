"""assert_close and TestCase.assertEqual: what counts as close, and the words of a difference (as PyTorch has them)."""

import math
import re

import cresset
import numpy as np
import pytest
from cresset.testing import assert_allclose, assert_close
from cresset.testing._internal.common_utils import TestCase

T = cresset.tensor
LAST = "\nGreatest relative difference: "

DIFFERENT = [
    (T([1.0, 2.0]), T([1.0, 2.5]), {}, "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 0.5 at index (1,) "
     f"(up to 1e-05 allowed){LAST}0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)"),
    (T([[1.0, 2], [3, 4]]), T([[1.0, 2], [3, 8]]), {"rtol": 0, "atol": 0}, "Tensor-likes are not equal!\n\nMismatched elements: 1 / 4 (25.0%)\n"
     f"Greatest absolute difference: 4.0 at index (1, 1){LAST}0.5 at index (1, 1)"),
    (T([1, 2]), T([1, 4]), {}, f"Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 2 at index (1,){LAST}0.5 at index (1,)"),
    (T([True, False]), T([True, True]), {}, "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 1 at index (1,)"
     f"{LAST}1.0 at index (1,)"),
    (T(1.0), T(2.0), {}, "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-05 allowed)\n"
     "Relative difference: 0.5 (up to 1.3e-06 allowed)"),
    (1, 2, {}, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
    (True, False, {}, "Booleans mismatch: True is not False"),
    (1, 1.0, {}, "The (d)types do not match: <class 'int'> != <class 'float'>."),
    (T([1.0]), T([1]), {}, "The values for attribute 'dtype' do not match: cresset.float32 != cresset.int64."),
    (T([1.0]), T([1.0, 2]), {}, "The values for attribute 'shape' do not match: cresset.Size([1]) != cresset.Size([2])."),
    (T([1.0]), T([1.0], device="meta"), {}, "The values for attribute 'device' do not match: cpu != meta."),
    (cresset.ones(2, 3), cresset.ones(3, 2).t(), {"check_stride": True}, "The values for attribute 'stride()' do not match: (3, 1) != (1, 2)."),
    ([T(1.0), T(2.0)], [T(1.0), T(4.0)], {}, "Scalars are not close!\n\nExpected 4.0 but got 2.0.\nAbsolute difference: 2.0 (up to 1e-05 allowed)\n"
     "Relative difference: 0.5 (up to 1.3e-06 allowed)\n\nThe failure occurred for item [1]"),
    ([1, 2], [1], {}, "The length of the sequences mismatch: 2 != 1"),
    ({"a": 1}, {"b": 1}, {}, "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\nAdditional keys in the actual mapping: ['a']"),
    ({"a": [True]}, {"a": [False]}, {}, "Booleans mismatch: True is not False\n\nThe failure occurred for item ['a'][0]"),
    (T([math.nan]), T([math.nan]), {}, "Tensor-likes are not close!\n\nMismatched elements: 1 / 1 (100.0%)\nGreatest absolute difference: nan at index (0,) "
     f"(up to 1e-05 allowed){LAST}nan at index (0,) (up to 1.3e-06 allowed)"),
    (T([1.0]), T([2.0]), {"msg": "mine"}, "mine"),
    (T(True), T(False), {"msg": lambda text: "mine: " + text.splitlines()[0]}, "mine: Scalars are not equal!"),
]  # fmt: skip


@pytest.mark.parametrize("actual, expected, options, text", DIFFERENT, ids=range(len(DIFFERENT)))
def test_difference(actual, expected, options, text):
    with pytest.raises(AssertionError) as error:
        assert_close(actual, expected, **options)
    assert str(error.value) == text


@pytest.mark.parametrize("actual, expected, options", [
    (T([1.0]), T([1.0 + 1e-6]), {}), (T([1.0, math.inf]), T([1.0, math.inf]), {}), (T([math.nan]), T([math.nan]), {"equal_nan": True}),
    (T([1.0]), T([1.5]), {"rtol": 0.0, "atol": 0.6}), (T([1.0], device="meta"), T([2.0], device="meta"), {}), (np.array([1.0]), np.array([1.0]), {}),
    (T([1.0]), T([1.0], dtype=cresset.float64), {"check_dtype": False}), ((1, 2.0), [1, 2.0], {}), (None, None, {}), (cresset.empty(0), cresset.empty(0), {}),
    (T([1.0]).bfloat16(), T([1.01]).bfloat16(), {}), (T([1 + 1j]), T([1 + 1j]), {}),
], ids=range(12))  # fmt: skip
def test_close(actual, expected, options):
    assert_close(actual, expected, **options)


@pytest.mark.parametrize("actual, expected, words", [
    (None, 1, "None mismatch: None is not 1"), (T([1.0]), None, r"None mismatch: tensor\(\[1.\]\) is not None"),
    ([None], [1], r"None mismatch: None is not 1\n\nThe failure occurred for item \[0\]"),
])  # fmt: skip
def test_none_is_close_to_nothing_else(actual, expected, words):
    with pytest.raises(AssertionError, match=words):
        assert_close(actual, expected)


def test_refusals():
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol' must be either specified or omitted, but got no atol."):
        assert_close(1.0, 1.0, rtol=1)
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type <class 'str'> and <class 'str'>."):
        assert_close("a", "a")
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(cresset.nn.Parameter(T([1.0])), T([1.0]), allow_subclasses=False)
    with pytest.raises(AssertionError, match=r"up to 0.0001 allowed"):
        assert_allclose(T([1.0]), T([1.1]))


case = TestCase()


@pytest.mark.parametrize("x, y, options", [
    (1, T(1), {}), (T([1, 2]), [1, 2], {}), (1, 1.0, {}), (True, 1, {}), ([T(1)], [1], {}), (cresset.Size([1, 2]), (1, 2), {}), (math.nan, math.nan, {}),
    ("a", "a", {}), ({1}, {1}, {}), (cresset.float32, cresset.float32, {}), (T([1.0]), T([1.5]), {"atol": 1, "rtol": 0}), (T([1.0]), T([1.0]).double(), {"exact_dtype": False}),
], ids=range(12))  # fmt: skip
def test_equal(x, y, options):
    case.assertEqual(x, y, **options)


@pytest.mark.parametrize("x, y, text", [
    ("a", "b", "String comparison failed: 'a' != 'b'"), ({1}, {2}, "Set comparison failed: "), (None, 1, "None mismatch: None is not 1"),
    (cresset.float32, cresset.float64, "Object comparison failed: cresset.float32 != cresset.float64"), (T(1.0), 2, "Expected 2 but got 1.0."),
    (T([1.0]), T([1.0]).double(), "The values for attribute 'dtype' do not match"), (T([1.0]), T([2.0]), "\nmine"),
], ids=range(7))  # fmt: skip
def test_not_equal(x, y, text):
    with pytest.raises(AssertionError) as error:
        case.assertEqual(x, y, msg="mine")
    assert text in str(error.value)
    case.assertNotEqual(x, y)


def test_quantized_tensors():
    x = T([[0.0, 1.0], [2.0, 3.0]])

    def q(real, scale=0.1, dtype=cresset.quint8):
        return cresset.quantize_per_tensor(real, scale, 0, dtype)

    rows = cresset.quantize_per_channel(x, T([0.1, 0.2]), T([0, 0]), 0, cresset.quint8)
    assert_close(q(x), q(x, 0.05))
    assert_close(rows, rows)
    assert_close(q(x), q(x + 0.1), atol=0.2, rtol=0)
    for other, words in (
        (x, "The values for attribute 'is_quantized' do not match: True != False."),
        (q(x, dtype=cresset.qint8), "The values for attribute 'dtype' do not match: torch.quint8 != torch.qint8."),
        (rows, "The values for attribute 'qscheme()' do not match: torch.per_tensor_affine != torch.per_channel_affine."),
        (q(x + 0.1), "Quantized tensor-likes are not close!\n\nMismatched elements: 4 / 4 (100.0%)"),
    ):
        with pytest.raises(AssertionError, match=re.escape(words)):
            assert_close(q(x), other)
    with pytest.raises(AssertionError, match="Quantized scalars are not close!\n\nExpected 1.0 but got 0.0."):
        assert_close(q(x)[0, 0], q(x)[0, 1])


def test_assert_allclose_is_deprecated():
    with pytest.warns(FutureWarning, match="assert_allclose..` is deprecated since 1.12"):
        assert_allclose(cresset.ones(1), cresset.ones(1))


def _blocks(values):
    return values.to_sparse_bsr((2, 2))


E3, E4 = cresset.eye(3), cresset.eye(4)
_COUNT = "The number of specified values in sparse {} tensors does not match: {} != {}"


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("actual, expected, text", [
    (E3.to_sparse(), E3.to_sparse() * 2, "Sparse COO values are not close!\n\nMismatched elements: 3 / 3 (100.0%)\nGreatest absolute difference: 1.0 at "
     f"index (0,) (up to 1e-05 allowed){LAST}0.5 at index (0,) (up to 1.3e-06 allowed)"),
    (E3.to_sparse(), cresset.ones(3, 3).to_sparse(), _COUNT.format("COO", 3, 9)),
    (E3.to_sparse(), E3.flip(0).to_sparse(), "Sparse COO indices are not equal!\n\nMismatched elements: 2 / 6 (33.3%)\nGreatest absolute difference: 2 at "
     f"index (1, 0){LAST}inf at index (1, 2)"),
    (E3.int().to_sparse(), E3.int().to_sparse() * 2, "Sparse COO values are not equal!\n\nMismatched elements: 3 / 3 (100.0%)\nGreatest absolute difference: "
     f"1 at index (0,){LAST}0.5 at index (0,)"),
    (E3.to_sparse_csr(), T([[1.0, 1, 0], [0, 0, 0], [0, 0, 1]]).to_sparse_csr(), "Sparse CSR crow_indices are not equal!\n\nMismatched elements: 1 / 4 "
     f"(25.0%)\nGreatest absolute difference: 1 at index (1,){LAST}0.5 at index (1,)"),
    (E3.to_sparse_csc(), E3.flip(0).to_sparse_csc(), "Sparse CSC row_indices are not equal!\n\nMismatched elements: 2 / 3 (66.7%)\nGreatest absolute "
     f"difference: 2 at index (0,){LAST}inf at index (2,)"),
    (_blocks(E4), _blocks(E4 * 2), "Sparse BSR values are not close!\n\nMismatched elements: 4 / 8 (50.0%)\nGreatest absolute difference: 1.0 at index "
     f"(0, 0, 0) (up to 1e-05 allowed){LAST}0.5 at index (0, 0, 0) (up to 1.3e-06 allowed)"),
    (_blocks(E4), _blocks(cresset.ones(4, 4)), _COUNT.format("BSR", 2, 4)),
], ids=range(8))  # fmt: skip
def test_sparse_tensors_are_compared_by_their_parts(actual, expected, text):
    assert_close(actual, actual.clone(), check_stride=True)
    with pytest.raises(AssertionError) as error:
        assert_close(actual, expected)
    assert str(error.value) == text


def test_tensors_of_different_layouts_are_compared_by_their_elements():
    assert_close(E3.to_sparse(), E3, check_layout=False)
    with pytest.raises(AssertionError, match=r"Tensor-likes are not close!\n\nMismatched elements: 3 / 9"):
        assert_close(E3.to_sparse(), E3 * 2, check_layout=False)
