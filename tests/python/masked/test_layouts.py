"""Masked reductions of sparse tensors: as of the strided ones, in the input's layout; and which elements of a result count."""

import pytest

import cresset
from cresset import masked

X = cresset.tensor([[1.0, 0, 3], [0, 0, 2]])
MASK = cresset.tensor([[True, False, True], [False, False, False]])
SPARSE = {"coo": cresset.sparse_coo, "csr": cresset.sparse_csr}


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize("mask", ["strided", "coo", "csr"])
def test_reductions(layout, name, mask):
    reduce, given = getattr(masked, name), X.to_sparse(layout=SPARSE[layout])
    kept = MASK if mask == "strided" else MASK.to_sparse(layout=SPARSE[mask])
    result = reduce(given, 1, keepdim=True, mask=kept)
    expected = cresset.where(MASK.any(1, True), reduce(X, 1, keepdim=True, mask=MASK), cresset.zeros(()))
    assert result.layout is SPARSE[layout] and cresset.equal(result.to_dense(), expected)
    assert cresset.equal(reduce(X, 1, mask=kept), reduce(X, 1, mask=MASK))


def test_words():
    assert cresset.equal(masked.sum(X.to_sparse(), 1, keepdim=True).to_dense(), X.sum(1, True))
    with pytest.raises(ValueError, match="masked prod expects explicit mask for sparse_coo tensor input"):
        masked.prod(X.to_sparse(), 1)
    with pytest.raises(ValueError, match=r"masked mean expects strided or sparse_csr tensor \(got \w+.sparse_coo tensor\)"):
        masked.mean(X.to_sparse(), 1, mask=MASK)
    with pytest.raises(ValueError, match=r"masked std/var expects strided tensor"):
        masked.var(X.to_sparse(), 1)


def test_masks_of_results():
    of = lambda op, *args, **kwargs: masked._output_mask(op, X, *args, mask=MASK, **kwargs).tolist()
    assert of(masked.sum, 1) == of(masked.var, 1) == of(masked.norm, 2.0, 1) == [True, False]
    assert of(masked.mean, dim=(0, 1)) is of(masked.sum) is True
    assert of(masked.sum, 0, keepdim=True) == [[True, False, True]]
    assert of(masked.softmax, 1) == of(masked.cumsum, 1) == MASK.tolist()
    with pytest.raises(ValueError, match="_input_mask requires explicit mask"):
        masked._input_mask(X)
    with pytest.raises(ValueError, match="_output_mask expected masked operation"):
        masked._output_mask(masked.logaddexp, X, X, mask=MASK)


def test_scalars_without_indices():
    for dtype in (cresset.bool, cresset.int32, cresset.float32):
        one = cresset.tensor(1).to(dtype)
        for pattern in (one.to_sparse(), cresset.zeros((), dtype=dtype).to_sparse()):
            assert one.sparse_mask(pattern)._values().shape == (pattern._nnz(),)
            assert pattern.to_dense().dtype is dtype and pattern.transpose(0, -1).shape == ()
        twice = cresset.sparse_coo_tensor(cresset.zeros(0, 2, dtype=cresset.int64), cresset.tensor([1, 1]).to(dtype), ())
        assert twice.to_dense() == cresset.tensor(2).to(dtype)


def test_reductions_of_everything_and_places_of_results():
    """Values and numbers of specified elements as PyTorch 2.13 has them."""
    x = cresset.tensor([[1, 0, 2], [0, 0, 3]])
    nothing, everything = cresset.zeros(2, 3, dtype=cresset.bool), cresset.ones(2, 3, dtype=cresset.bool)
    for dim in ((), None):
        assert cresset.masked.prod(x.to_sparse(), dim, mask=nothing).to_dense() == 1
        assert cresset.masked.amax(x.to_sparse(), dim, mask=nothing).to_dense() == cresset.iinfo(x.dtype).min
    products = cresset.masked.prod(x.to_sparse(), 0, mask=everything)
    assert products._nnz() == 3 and products.to_dense().tolist() == [0, 0, 6]
    assert cresset.masked.prod(x.to_sparse(), 0, mask=nothing)._nnz() == 0
