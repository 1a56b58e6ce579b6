"""Sparse tensors of other sizes: broadcast ones, copies of a row or column, room for entries. Values and words are PyTorch 2.13's."""

import itertools

import pytest

import cresset as torch

X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 3.0]])


def test_entries_are_repeated_along_new_dimensions():
    found = torch._sparse_broadcast_to(X.to_sparse(), (2, 3, 2))
    assert found._indices().tolist() == [[0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1]] and found._values().tolist() == [1, 1, 2, 2, 3, 3]
    found = torch._sparse_broadcast_to(X[:, :1].to_sparse(1), (3, 2))
    assert found._indices().tolist() == [[0]] and found._values().tolist() == [[1.0, 1.0]]
    assert torch._sparse_broadcast_to(torch.tensor([3.0]).to_sparse(), (2, 2)).is_coalesced()
    assert torch._sparse_broadcast_to(torch.tensor(3.0).to_sparse(), (2,)).to_dense().tolist() == [3.0, 3.0]
    schema = "aten::_sparse_broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)"
    assert str(torch.ops.aten._sparse_broadcast_to.default._schema) == schema


def test_broadcast_tensors_agree_with_dense_ones():
    sizes = [(1,), (2,), (1, 1), (3, 1), (3, 2), (4, 1, 1), (4, 3, 2), (0, 2), (1, 0, 2)]
    for old, new in itertools.permutations(sizes, 2):
        x = torch.arange(1.0, 1 + torch.Size(old).numel()).reshape(old)
        for sparse_dims in range(1, len(old) + 1):
            sparse = x.to_sparse(sparse_dims)
            try:
                expected = x.broadcast_to(new)
            except RuntimeError:
                with pytest.raises(RuntimeError, match="does not broadcast|fewer dimensions"):
                    torch._sparse_broadcast_to(sparse, new)
                continue
            found = torch._sparse_broadcast_to(sparse, new)
            assert torch.equal(found.to_dense(), expected) and found.dense_dim() == sparse.dense_dim()
            torch._validate_sparse_coo_tensor_args(found._indices(), found._values(), found.shape, found.is_coalesced())


def test_what_cannot_be_broadcast():
    sparse = X.to_sparse()
    with pytest.raises(RuntimeError, match="The input's length 2 at dimension 1 does not broadcast over the requested shape of length 3 at dimension 1"):
        torch._sparse_broadcast_to(sparse, (3, 3))
    with pytest.raises(RuntimeError, match="the requested broadcast shape has fewer dimensions than the input"):
        torch._sparse_broadcast_to(sparse, (2,))
    for other, backend in ((X, "CPU"), (X.to_sparse_csr(), "SparseCsrCPU")):
        with pytest.raises(NotImplementedError, match=f"Could not run 'aten::_sparse_broadcast_to' with arguments from the '{backend}' backend"):
            torch._sparse_broadcast_to(other, (3, 2))


def test_copies_of_a_row_or_column():
    csr = X.to_sparse_csr()
    for dim, index, expected in ((0, 1, [0.0, 2.0]), (1, 1, [0.0, 2.0, 3.0]), (1, -2, [1.0, 0.0, 0.0])):
        assert torch.select_copy(csr, dim, index).to_dense().tolist() == expected
    bsr = torch.arange(16.0).reshape(4, 4).to_sparse_bsr((2, 2))
    assert torch.select_copy(bsr, 0, 1)._indices().tolist() == [[0, 1, 2, 3]] and torch.select_copy(bsr, 0, 1)._values().tolist() == [4, 5, 6, 7]
    batch = torch.stack([X, X]).to_sparse_csr()
    row = torch.select_copy(batch, 0, 1)
    assert row.layout is torch.sparse_csr and torch.equal(row.to_dense(), X)
    row.values().zero_()
    assert torch.equal(batch.to_dense()[1], X)  # a copy
    with pytest.raises(IndexError, match=r"select_copy\(\): index 5 out of range for tensor of size \[3, 2\] at dimension 1"):
        torch.select_copy(csr, 1, 5)
    with pytest.raises(RuntimeError, match=r"select_copy\(\): selecting sparse dimensions is not supported for batched sparse compressed tensors"):
        torch.select_copy(batch, 1, 1)


def test_room_for_entries():
    make = torch.ops.aten._sparse_compressed_tensor_with_dims
    made = make(3, 1, (2, 4, 8, 5), (2, 4), torch.int32, dtype=torch.float64, layout=torch.sparse_bsc)
    assert (made.layout, made.dtype, tuple(made.shape)) == (torch.sparse_bsc, torch.float64, (2, 4, 8, 5))
    assert (tuple(made.ccol_indices().shape), tuple(made.row_indices().shape), tuple(made.values().shape)) == ((2, 3), (2, 3), (2, 3, 2, 4, 5))
    assert made.ccol_indices().dtype is torch.int32
    made = make(3, 0, (4, 6), (), torch.int64, dtype=torch.float32, layout=torch.sparse_csr)
    assert made.crow_indices().shape == (5,) and made.values().shape == (3,)
    with pytest.raises(RuntimeError, match="a sparse compressed layout was required; got"):
        make(3, 0, (4, 6), (), torch.int64, layout=torch.sparse_coo)
