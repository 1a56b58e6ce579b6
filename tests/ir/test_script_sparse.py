"""Sparse tensors in scripts, graphs and archives; archives/sparse_*.pt were written by PyTorch 2.13."""

from pathlib import Path
from typing import List

import pytest

import cresset as torch
from cresset import jit, nn

RECORDED = Path(__file__).with_name("sparse_archives")
DENSE = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])


def facts(x: torch.Tensor):
    return x.is_sparse, x.is_sparse_csr, x.layout == torch.sparse_coo, x.layout == torch.sparse_csr, x.layout == torch.strided


@pytest.mark.parametrize("convert", ["clone", "to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_scripts_know_layouts(convert):
    x = getattr(DENSE, convert)()
    assert jit.script(facts)(x) == facts(x)


def parts(x: torch.Tensor):
    y = x.coalesce()
    return y.indices(), y.values(), y._nnz(), y.sparse_dim(), y.dense_dim(), y.is_coalesced()


def test_parts_of_coordinates():
    sparse = DENSE.to_sparse()
    indices, values, nnz, sparse_dim, dense_dim, coalesced = jit.script(parts)(sparse)
    assert indices.tolist() == [[0, 0, 1], [1, 2, 0]] and values.tolist() == [1.0, 2.0, 3.0]
    assert (nnz, sparse_dim, dense_dim, coalesced) == (3, 2, 0, True)


def converted(x: torch.Tensor):
    return [x.to_sparse().to_dense(), x.to_sparse(1).to_dense(), x.to_sparse_csr().to_dense(), x.to_sparse_csc().to_dense()]


def test_conversions():
    assert all(torch.equal(y, DENSE) for y in jit.script(converted)(DENSE))


def made(indices: torch.Tensor, values: torch.Tensor, size: List[int]):
    return torch.sparse_coo_tensor(indices, values, size), torch.sparse_coo_tensor(indices, values), torch.sparse_coo_tensor(size, dtype=torch.float64)


def made_rows(starts: torch.Tensor, columns: torch.Tensor, values: torch.Tensor):
    return torch.sparse_csr_tensor(starts, columns, values, [2, 3], dtype=torch.float64)


def test_constructors():
    indices, values = torch.tensor([[0, 0], [1, 1]]), torch.tensor([1.0, 2.0])
    sized, fitted, empty = jit.script(made)(indices, values, [2, 3])
    assert sized.to_dense().tolist() == [[0, 3, 0], [0, 0, 0]] and fitted.to_dense().tolist() == [[0, 3]]
    assert empty.dtype is torch.float64 and empty.shape == (2, 3) and empty._nnz() == 0
    rows = jit.script(made_rows)(torch.tensor([0, 1, 2]), torch.tensor([2, 0]), values)
    assert rows.is_sparse_csr and rows.dtype is torch.float64 and rows.to_dense().tolist() == [[0, 0, 1], [2, 0, 0]]


def products(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor):
    return torch.sparse.mm(a, b), torch.sparse.addmm(c, a, b, beta=2.0), torch.mm(a, b), torch.sparse.sum(a), torch.sparse.sum(a, dim=[0]).to_dense(), (a + a).to_dense()


def test_products_and_sums():
    b, c = torch.arange(6.0).reshape(3, 2), torch.ones(2, 2)
    product, added, plain, total, columns, doubled = jit.script(products)(DENSE.to_sparse(), b, c)
    assert torch.equal(product, DENSE @ b) and torch.equal(added, 2 * c + DENSE @ b) and torch.equal(plain, DENSE @ b)
    assert total.item() == 6 and columns.tolist() == [3.0, 1.0, 2.0] and torch.equal(doubled, 2 * DENSE)


def test_gradients_pass():
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    sized, _, _ = jit.script(made)(torch.tensor([[0, 1], [1, 0]]), values, [2, 2])
    (sized.to_dense() * torch.tensor([[1.0, 10.0], [100.0, 1.0]])).sum().backward()
    assert values.grad.tolist() == [10.0, 100.0]


class Holder(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return x + self.weight.to_dense()


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_archives(layout, tmp_path):
    weight = getattr(DENSE, f"to_sparse_{layout}")()
    module = jit.script(Holder(weight))
    module.save(str(tmp_path / "m.pt"))
    loaded = jit.load(str(tmp_path / "m.pt"))
    assert loaded.weight.layout is weight.layout and torch.equal(loaded(torch.ones(2, 3)), 1 + DENSE)
    frozen = jit.freeze(module.eval())
    assert torch.equal(frozen(torch.ones(2, 3)), 1 + DENSE)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_archives_of_pytorch(layout):
    loaded = jit.load(str(RECORDED / f"{layout}.pt"))
    assert loaded.weight.layout is getattr(torch, f"sparse_{layout}") and torch.equal(loaded(torch.ones(2, 3)), 1 + DENSE)


def test_other_layouts_are_refused_in_archives(tmp_path):
    with pytest.raises(RuntimeError, match="archive: module.weight is a tensor without storage, which archives cannot hold"):
        jit.script(Holder(DENSE.to_sparse_csc())).save(str(tmp_path / "m.pt"))


def test_indices_in_archives_are_checked(tmp_path):
    sparse = torch.sparse_coo_tensor(torch.tensor([[0], [7]]), torch.tensor([1.0]), (2, 8))
    module = jit.script(Holder(sparse))
    module.save(str(tmp_path / "m.pt"))
    written = (tmp_path / "m.pt").read_bytes()
    assert written.count(b"\x01(K\x02K\x08t") == 1, "layout 1, sizes (2, 8)"
    import zipfile

    source, damaged = zipfile.ZipFile(tmp_path / "m.pt"), tmp_path / "damaged.pt"
    with zipfile.ZipFile(damaged, "w") as out:
        for name in source.namelist():
            out.writestr(name, source.read(name).replace(b"\x01(K\x02K\x08t", b"\x01(K\x02K\x03t"))
    with pytest.raises(RuntimeError, match="size is inconsistent with indices: for dim 1, size is 3 but found index 7"):
        jit.load(str(damaged))
