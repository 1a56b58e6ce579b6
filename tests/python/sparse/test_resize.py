"""Sizes of sparse tensors that change in place, and copies of their parts, beside what PyTorch 2.13 does."""

import cresset as torch
import pytest


def square():
    return torch.eye(4).to_sparse()


def rows():
    return torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 3), (4, 3))


def facts(t):
    return tuple(t.shape), t._nnz(), t.sparse_dim(), t.dense_dim()


def test_sizes_grow():
    t = square()
    assert t.sparse_resize_((5, 6), 2, 0) is t and facts(t) == ((5, 6), 4, 2, 0) and t.to_dense().shape == (5, 6) and t.to_dense().sum() == 4
    assert facts(rows().sparse_resize_((6, 5), 1, 1)) == ((6, 5), 2, 1, 1) and rows().sparse_resize_((4, 5), 1, 1).to_dense().sum() == 6
    grown = torch.sparse_coo_tensor([[0, 1]], torch.arange(4.0).view(2, 2), (2, 2)).sparse_resize_((2, 3), 1, 1)
    assert grown.to_dense().tolist() == [[0, 1, 2], [3, 0, 0]]  # the values in their old order, as PyTorch has them
    t = square()
    assert t.sparse_resize_and_clear_((3, 2), 1, 1) is t and facts(t) == ((3, 2), 0, 1, 1) and t._values().shape == (0, 2)
    assert facts(square().resize_as_sparse_(torch.zeros(6, 6).to_sparse())) == ((6, 6), 4, 2, 0)
    empty = torch.sparse_coo_tensor(torch.empty(2, 0, dtype=torch.int64), torch.empty(0), (2, 2))
    assert facts(empty.sparse_resize_((3,), 1, 0)) == ((3,), 0, 1, 0)


REFUSED = [
    (lambda: square().sparse_resize_((3, 3), 2, 0), "shrinking the size of sparse dimensions (from [4, 4] to [3, 3]) on a non-empty sparse tensor"),
    (lambda: rows().sparse_resize_((4, 2), 1, 1), "shrinking the size of dense dimensions (from [3] to [2]) on a non-empty sparse tensor"),
    (lambda: square().sparse_resize_((4,), 1, 0), "changing the number of sparse dimensions (from 2 to 1) on a non-empty sparse tensor"),
    (lambda: square().sparse_resize_((4, 4), 1, 0), "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = 2, sparse_dim = 1, dense_dim = 0"),
    (lambda: torch.crow_indices_copy(torch.ones(2)), "crow_indices expected sparse row compressed tensor layout but got Strided"),
    (lambda: torch.ones(2).sparse_resize_((2,), 1, 0), "Could not run 'aten::sparse_resize_' with arguments from the 'CPU' backend"),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refused(i):
    with pytest.raises(RuntimeError) as error:
        REFUSED[i][0]()
    assert REFUSED[i][1] in str(error.value)


def test_compressed_rows_grow():
    """As PyTorch 2.13, where fewer rows give rows that hold what was in others; here they are refused."""
    a = torch.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse_csr()
    assert a.resize_(4, 5) is a and a.shape == (4, 5)
    assert a.crow_indices().tolist() == [0, 2, 3, 3, 3] and a.col_indices().tolist() == [0, 2, 1] and a.values().tolist() == [1, 2, 3]
    assert a.to_dense()[:2, :3].tolist() == [[1, 0, 2], [0, 3, 0]] and a.to_dense().sum() == 6
    with pytest.raises(RuntimeError, match=r"torch.resize_: Only batched sparse CSR matrices are supported, but got size \[2\]"):
        a.resize_((2,))
    with pytest.raises(RuntimeError, match="Resizing columns of sparse CSR tensors to a smaller value is not supported. The original number of columns is 5 while .* is 2"):
        a.resize_(4, 2)
    for other, size in ((a, (3, 5)), (a, (2, 4, 5)), (torch.eye(2).to_sparse_csc(), (3, 3))):
        with pytest.raises(NotImplementedError, match="resize_"):
            other.resize_(size)
    assert a.shape == (4, 5)


def test_copies_of_parts():
    row, column = torch.eye(3).to_sparse_csr(), torch.eye(3).to_sparse_csc()
    for tensor, parts in ((row, ("values", "crow_indices", "col_indices")), (column, ("values", "ccol_indices", "row_indices")), (square(), ("values", "indices"))):
        for part in parts:
            copy = getattr(torch, part + "_copy")(tensor)
            assert torch.equal(copy, getattr(tensor, part)()) and copy.data_ptr() != getattr(tensor, part)().data_ptr()


def test_resize_as():
    """Of any layout, as PyTorch 2.13."""
    x = torch.sparse_coo_tensor(size=(2, 2))
    assert x.resize_as_(torch.eye(3).to_sparse()) is x and (x.shape, x._nnz()) == ((3, 3), 0)
    rows = torch.eye(2).to_sparse_csr().resize_as_(torch.eye(3).to_sparse_csr())
    assert rows.crow_indices().tolist() == [0, 1, 2, 2] and rows.shape == (3, 3)
    assert torch.ones(2, 2).resize_as_(torch.eye(3).to_sparse()).shape == (3, 3)
    with pytest.raises(NotImplementedError, match="aten::resize_' with arguments from the 'SparseCPU' backend"):
        x.resize_as_(torch.ones(2, 2))


@pytest.mark.parametrize("dtype, number, expected", [("int16", 2, "int16"), ("int16", 2.0, "float32"), ("float16", 2.0, "float16")])
def test_a_product_with_a_sparse_number_has_the_dtype_of_one_with_a_number(dtype, number, expected):
    matrix, number = torch.eye(2, dtype=getattr(torch, dtype)).to_sparse(), torch.tensor(number).to_sparse()
    assert (matrix * number).dtype is (number * matrix).dtype is getattr(torch, expected) and (matrix * number).to_dense().tolist() == [[2, 0], [0, 2]]
