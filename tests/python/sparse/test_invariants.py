"""What the parts of sparse tensors have to satisfy, in PyTorch's words; out= of sparse operators; zeros that share one element."""

import cresset as torch
import pytest

T = torch.tensor


@pytest.mark.parametrize(
    ("crow", "col", "size", "words"),
    [
        ([1, 1, 2], [0, 1], (2, 2), "`crow_indices[..., 0] == 0` is not satisfied."),
        ([0, 1, 3], [0, 1], (2, 2), "`crow_indices[..., -1] == nnz` is not satisfied."),
        ([0, 3, 2], [0, 1], (2, 2), "`0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not satisfied."),
        ([0, 1, 2], [0, 2], (2, 2), "`0 <= col_indices < ncols` is not satisfied."),
        ([0, 1, 2], [0, -1], (2, 2), "`0 <= col_indices < ncols` is not satisfied."),
        ([0, 2, 2], [1, 0], (2, 2), "are sorted and distinct along the last dimension values` is not satisfied."),
        ([0, 2, 2], [1, 1], (2, 2), "are sorted and distinct along the last dimension values` is not satisfied."),
        ([0, 1], [0, 1], (2, 2), "crow_indices.shape[-1] must be equal to the number of rows + 1 (=3), but got 2"),
        ([0, 1, 2], [0, 1, 1], (2, 2), "col_indices.shape[-1] must be equal to nnz (=2) as defined by values.shape[0], but got 3"),
        ([0, 1, 2], [0, 1], (2,), "tensor dimensionality must be sum of batch, base, and dense dimensionalities (=0 + 2 + 0) but got 1"),
    ],
)
def test_compressed_parts(crow, col, size, words):
    parts = T(crow), T(col), T([1.0, 2.0]), size
    with pytest.raises(RuntimeError) as error:
        torch.sparse_csr_tensor(*parts, check_invariants=True)
    assert words in str(error.value)
    with pytest.raises(RuntimeError) as error:
        torch._validate_sparse_csr_tensor_args(*parts)
    assert words in str(error.value)


def test_parts_that_fit():
    for x in (torch.eye(4), torch.ones(4, 6), torch.zeros(4, 4), torch.arange(12.0).view(3, 4)):
        for layout in (torch.sparse_csr, torch.sparse_csc):
            s = x.to_sparse(layout=layout)
            plain, other = (s.crow_indices(), s.col_indices()) if layout is torch.sparse_csr else (s.ccol_indices(), s.row_indices())
            torch._validate_sparse_compressed_tensor_args(plain, other, s.values(), s.shape, layout)
    b = torch.ones(4, 4).to_sparse_bsr((2, 2))
    torch._validate_sparse_bsr_tensor_args(b.crow_indices(), b.col_indices(), b.values(), b.shape)
    with torch.sparse.check_sparse_tensor_invariants():
        batch = torch.sparse_csr_tensor(T([[0, 1, 2], [0, 0, 2]]), T([[0, 1], [0, 1]]), torch.ones(2, 2), (2, 2, 2))
    assert batch.to_dense().tolist() == [[[1, 0], [0, 1]], [[0, 0], [1, 1]]]


def test_coordinates():
    torch._validate_sparse_coo_tensor_args(T([[0, 1]]), torch.ones(2), (2,), True)
    for indices, coalesced, words in (
        ([[0, 1, 2]], None, "size is inconsistent with indices: for dim 0, size is 2 but found index 2"),
        ([[0, 1, -2]], None, "found negative index -2 for dim 0"),
        ([[0, 1, 0]], True, "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"),
    ):
        with pytest.raises(RuntimeError) as error:
            torch._validate_sparse_coo_tensor_args(T(indices), torch.ones(3), (2,), coalesced)
        assert words in str(error.value)


@pytest.mark.parametrize("name", ["log1p", "sqrt", "neg", "round", "rad2deg"])
def test_out(name):
    x = T([[0.0, 4.0], [9.0, 0.0]])
    for layout in (torch.sparse_coo, torch.sparse_csr):
        out = torch.zeros(2, 2).to_sparse(layout=layout)
        function = getattr(torch, name)
        assert function(x.to_sparse(layout=layout), out=out) is out and out.to_dense().equal(function(x))


def test_zeros_that_share_one_element():
    z = torch._efficientzerotensor((2, 3), dtype=torch.float64)
    assert z.equal(torch.zeros(2, 3, dtype=torch.float64)) and z.untyped_storage().nbytes() == 8
    with pytest.raises(RuntimeError, match="more than one element"):
        z.add_(1)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc])
def test_methods_by_their_name_in_tensor(layout):
    x = torch.eye(4)
    s = x.to_sparse(layout=layout, blocksize=(2, 2)) if layout in (torch.sparse_bsr, torch.sparse_bsc) else x.to_sparse(layout=layout)
    T = torch.Tensor
    assert T.to_dense(s).equal(x) and T.values(s).equal(s.values()) and (T.sparse_dim(s), T.dense_dim(s)) == (s.sparse_dim(), s.dense_dim())
    if layout is torch.sparse_csr:
        assert T.crow_indices(s).equal(s.crow_indices()) and T.col_indices(s).equal(s.col_indices())
    for name in ("values", "crow_indices"):
        with pytest.raises(RuntimeError, match=f"{name} expected .* but got Strided"):
            getattr(T, name)(x)


class Spoofed:
    def __init__(self, layout, *parts):
        self.value = layout, parts

    def __reduce_ex__(self, protocol):
        return torch._utils._rebuild_sparse_tensor, self.value


@pytest.mark.parametrize("weights_only", [True, False])
def test_damaged_files(tmp_path, weights_only):
    for spoofed, words in (
        (Spoofed(torch.sparse_csr, T([3, 0, 1, 1]), T([1]), T([1.0]), torch.Size((3, 3))), r"`crow_indices\[..., 0\] == 0` is not satisfied"),
        (Spoofed(torch.sparse_csc, T([3, 0, 1, 1]), T([1]), T([1.0]), torch.Size((3, 3))), r"`ccol_indices\[..., 0\] == 0` is not satisfied"),
        (Spoofed(torch.sparse_coo, T([[3]]), T([1.0]), torch.Size((2,))), "size is inconsistent with indices"),
    ):
        torch.save({"x": spoofed}, tmp_path / "x.pt")
        with pytest.raises(RuntimeError, match=words):
            torch.load(tmp_path / "x.pt", weights_only=weights_only)


def test_invariants_are_checked_when_the_size_is_inferred():
    with pytest.raises(RuntimeError, match=r"^`crow_indices\[..., -1\] == nnz` is not satisfied.$"):
        torch.sparse_csr_tensor([0, 1, 3], [0, 1], [1.0, 2.0], check_invariants=True)
    with pytest.raises(RuntimeError, match="^`0 <= col_indices < ncols` is not satisfied.$"):
        torch.sparse_csr_tensor([0, 1, 2], [0, -1], [1.0, 2.0], check_invariants=True)
