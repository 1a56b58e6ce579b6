"""index_add and index_reduce beside PyTorch 2.13: which types they take, what they refuse and in which words."""

import cresset
import pytest

X = [[1, 0], [0, 1], [3, 2]]
SOURCE = [[1, 0], [1, 4], [0, 2]]
RESULTS = {
    (cresset.bool, "prod"): [[1, 0], [0, 1], [1, 1]],
    (cresset.bool, "amax"): [[1, 1], [0, 1], [1, 1]],
    (cresset.bool, "amin"): [[1, 0], [0, 1], [1, 1]],
    (cresset.complex64, "prod"): [[1, 0], [0, 2], [3, 2]],
    (cresset.complex64, "mean"): [[1, 4 / 3], [0, 1.5], [3, 2]],
    (cresset.int8, "mean"): [[1, 1], [0, 1], [3, 2]],
}


def made(rows, dtype):
    return cresset.tensor(rows).to(dtype)


@pytest.mark.parametrize("dtype, reduce", RESULTS, ids=str)
def test_values(dtype, reduce):
    out = made(X, dtype).index_reduce(0, cresset.tensor([0, 0, 1]), made(SOURCE, dtype), reduce)
    assert out.dtype is dtype and cresset.allclose(out.to(cresset.complex64), made(RESULTS[dtype, reduce], cresset.complex64))


@pytest.mark.parametrize(
    "dtype, reduce, include_self, name",
    [
        (cresset.bool, "prod", False, "index_reduce_func_exclude_input_init"),
        (cresset.complex64, "mean", False, "index_reduce_func_exclude_input_init"),
        (cresset.bool, "mean", True, "div_floor_cpu"),
        (cresset.complex64, "amax", True, "maximum_cpu"),
        (cresset.complex64, "amin", True, "minimum_cpu"),
    ],
)
def test_refused_types(dtype, reduce, include_self, name):
    x = made(X, dtype)
    with pytest.raises(NotImplementedError, match=f'"{name}" not implemented for'):
        x.index_reduce_(0, cresset.tensor([0]), made(SOURCE[:1], dtype), reduce, include_self=include_self)
    assert cresset.equal(x, made(X, dtype))


def index(*places):
    return cresset.tensor(places)


X4, ONE = cresset.ones(2, 3), cresset.ones(1, 3)
WORDS = [
    (lambda: X4.index_reduce(0, index(0), cresset.ones(2, 3), "prod"), RuntimeError, "index_reduce_(): Number of indices (1) should be equal to source.size(dim): (2), for dim: 0"),
    (lambda: X4.index_reduce(0, cresset.tensor([0.0]), ONE, "prod"), RuntimeError, "index_reduce_(): Expected dtype int32/int64 for index but got: Float"),
    (lambda: X4.index_reduce(0, index(0), ONE.double(), "prod"), RuntimeError, "index_reduce_(): self (Float) and source (Double) must have the same scalar type"),
    (lambda: X4.index_reduce(0, index(5), ONE, "prod"), IndexError, "index out of range in self"),
    (lambda: X4.index_reduce(0, index(-1), ONE, "prod"), IndexError, "index out of range in self"),
    (lambda: X4[0].index_add(0, index(3), cresset.ones(1)), IndexError, "index out of range in self"),
    (lambda: X4.index_add(0, index(5), ONE), RuntimeError, "index 5 is out of bounds for dimension 0 with size 2"),
]


@pytest.mark.parametrize("call, kind, words", WORDS, ids=[w[2] for w in WORDS])
def test_words(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == words


@pytest.mark.parametrize("combined", [lambda x, i, s: x.index_add(0, i, s), lambda x, i, s: x.index_reduce(0, i, s, "prod")])
@pytest.mark.parametrize("size, source", [((), (2,)), ((), (1,)), ((1,), ()), ((1, 2), ()), ((1, 2), (1,))])
def test_a_source_of_other_dimensions_is_refused(combined, size, source):
    """Before, the elements of a slice that source does not have were read from beyond its memory."""
    values = cresset.ones(source)
    with pytest.raises(RuntimeError, match="source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "):
        combined(cresset.ones(size), cresset.zeros(max(1, values.numel()), dtype=cresset.int64), values)
    assert combined(cresset.tensor(2.0), index(0), cresset.tensor(3.0)).dim() == 0
