"""Arrays over tensors answer as NumPy's do, and share memory with tensors."""

import numpy
import pytest

import cresset
import cresset._numpy as np
from cresset._numpy import fft, linalg, random, testing

A = np.array([[1.0, 2, 3], [4, 5, 7]])

CALLS = [
    lambda np, a: np.sum(a, axis=1),
    lambda np, a: np.einsum("ij,kj->ik", a, a),
    lambda np, a: np.concatenate([a, a[:1]]),
    lambda np, a: np.where(a > 2, a, 0),
    lambda np, a: np.histogram(a, bins=3),
    lambda np, a: np.percentile(a, [10, 50]),
    lambda np, a: np.meshgrid(a[0], a[1]),
    lambda np, a: np.linalg.svd(a, full_matrices=False)[1],
    lambda np, a: np.fft.rfft(a),
    lambda np, a: np.divmod(a, 2),
    lambda np, a: a[::-1, [0, 2]] ** 2 // 3 - a.T[:2, :2],
    lambda np, a: a.argsort(axis=0),
    lambda np, a: a @ a.T,
]


@pytest.mark.parametrize("i", range(len(CALLS)))
def test_functions_answer_as_numpy(i):
    got, expected = CALLS[i](np, A), CALLS[i](numpy, numpy.array([[1.0, 2, 3], [4, 5, 7]]))
    for g, e in zip(got, expected) if isinstance(expected, (tuple, list)) else [(got, expected)]:
        assert isinstance(g, np.ndarray) and isinstance(g.tensor, cresset.Tensor) and g.dtype.name == e.dtype.name
        numpy.testing.assert_allclose(numpy.asarray(g), e)


def test_arrays_and_tensors_share_memory():
    x = np.zeros(3)
    x[1:] = 4
    x += 1
    assert x.tensor.tolist() == [1, 5, 5]
    x.tensor[0] = 9
    assert x[0] == 9 and x[:2].tolist() == [9, 5] and x.sum().shape == ()
    x[:2].fill(2)
    assert x.tolist() == [2, 2, 5] and cresset.as_tensor(x).tolist() == [2, 2, 5]
    assert np.sum(cresset.ones(2)).item() == 2 and np.asarray(x) is x and np.array(x) is not x
    out = np.empty(3)
    assert np.add(x, 1, out=out) is out and out.tolist() == [3, 3, 6]


def test_types():
    assert np.float32(3).dtype == np.dtype("f4") == np.array([1], dtype=cresset.float32).dtype == np.dtype(numpy.float32)
    assert np.dtype(float).name == "float64" and np.dtype("f4").torch_dtype is cresset.float32 and repr(np.dtype(bool)) == 'dtype("bool")'
    assert np.issubdtype(np.float32, np.floating) and not np.issubdtype(np.int8, np.floating)
    assert np.result_type("f4", np.int64).name == "float64" and np.can_cast("f4", "f8") and not np.can_cast("f4", "i8")
    assert np.finfo(np.float32).eps == numpy.finfo("f4").eps and np.iinfo(np.int8).max == 127
    assert isinstance(np.int16(3), np.ndarray) and np.isscalar(np.int16(3)) and int(np.int16(3)) == 3
    assert repr(np.array([1, 2])) == "torch.ndarray([1, 2])"


def test_what_is_refused():
    with pytest.raises(TypeError, match="data type 'u2' not understood"):
        np.dtype("u2")
    with pytest.raises(NotImplementedError, match="failed to convert"):
        np.array(["a"])
    with pytest.raises(AssertionError):
        testing.assert_equal(A, A + 1)
    with pytest.raises(AssertionError, match="dtypes differ: float64 and float32"):
        testing.assert_allclose(A, A.astype("f4"), check_dtype=True)
    with pytest.raises(linalg.LinAlgError):
        linalg.inv(np.zeros((2, 2)))
    with pytest.raises(TypeError, match="unsized"):
        len(np.array(1))


def test_random_numbers_come_from_the_generator():
    random.seed(3)
    first = random.rand(4)
    cresset.manual_seed(3)
    assert first.tolist() == cresset.rand(4, dtype=cresset.float64).tolist() and 0 <= random.random() < 1
    assert random.randint(5, size=3).dtype.name == "int64" and sorted(random.choice(4, 4, replace=False).tolist()) == [0, 1, 2, 3]
    x = np.arange(5)
    random.shuffle(x)
    assert sorted(x.tolist()) == [0, 1, 2, 3, 4] and fft.fft(x).dtype.name == "complex128"


def test_numbers_of_numpys_generator():
    with cresset._dynamo.config.patch(use_numpy_random_stream=True):
        random.seed(5)
        got = random.uniform(0, 1, size=3), random.random()
    numpy.random.seed(5)
    assert got[0].tolist() == numpy.random.uniform(0, 1, size=3).tolist() and got[1] == numpy.random.random()
    with pytest.raises(NotImplementedError, match="lists"):
        random.shuffle([1, 2])


def test_whole_numbers_wrap_around_and_one_number_is_a_scalar():
    assert np.array([301], np.uint8).tolist() == [45]
    assert [np.isscalar(x) for x in (3, [[4]], np.array([1]), "s", int, (), [1, 2])] == [True] * 3 + [False] * 4


def test_an_array_that_is_given_for_the_result_is_the_result():  # as NumPy's
    x, y = np.arange(8, 15), np.arange(4, 11)
    outs = np.empty_like(x), np.empty_like(x)
    quotient, rest = np.divmod(x, y, out=outs)
    assert quotient is outs[0] and rest is outs[1] and rest.tolist() == [0, 4, 4, 4, 4, 4, 4]
    assert np.divmod(x, y, *outs)[1] is outs[1]
    assert np.add(x, y, outs[0]) is outs[0] and outs[0].tolist() == [12, 14, 16, 18, 20, 22, 24]
    assert np.sum(A, axis=0, out=(total := np.empty(3))) is total and total.tolist() == [5, 7, 10]
    with pytest.raises(TypeError, match="Return arrays must be of ArrayType"):
        np.add(x, y, out=outs[0].tensor)


def test_functions_of_elements_are_listed_by_pytorchs_names():
    assert {"divmod", "ldexp", "matmul"} < set(np._ufuncs._binary) and {"fix", "sin"} < set(np._ufuncs._unary)
    assert all(callable(getattr(np, name)) for name in np._ufuncs._unary + np._ufuncs._binary)


def test_whose_memory_it_is():
    a = np.arange(6).reshape(2, 3).copy()
    owners, views = (a, a + 1, a.copy(), a.T.ravel(), np.flip(a), np.array(a), np.asarray(a)), (a.T, a[0], a.ravel(), a.swapaxes(0, 1))
    assert all(x.flags["OWNDATA"] and x.flags.owndata for x in owners) and not any(x.flags["OWNDATA"] or x.flags.owndata for x in views)


def test_texts_may_name_types_of_python():
    assert np.dtype("float") == np.float64 and np.dtype("int") == np.int64 and np.ones(2, "bool").dtype == np.bool_
    assert np.issubdtype("float", "float64") and not np.issubdtype("int", float)
