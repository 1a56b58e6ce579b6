"""First-class dimensions (functorch.dim). Values and words are PyTorch 2.13's where it has them; it does not look at sizes that differ."""

import pytest

import cresset as torch
from cresset.functorch.dim import Dim, DimensionBindError, DimList, Tensor, cat, dimlists, dims, softmax, split, stack

# `Tensor.index` is a method once functorch.dim is there, as in PyTorch; tests of what tensors have do not know it.
INDEX = torch.Tensor.index
del torch.Tensor.index


@pytest.fixture(autouse=True)
def index_method(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "index", INDEX, raising=False)


A, B = torch.arange(12.0).view(3, 4).sin(), torch.arange(20.0).view(4, 5).cos()


def same(got, expected):
    torch.testing.assert_close(got, expected)


def test_names():
    i, j = dims()
    k = dims()
    x, b = dims(2), dimlists()

    class Holder:
        pass

    h = Holder()
    z, h.y, q = dims(3)
    assert [str(d) for d in (i, j, k, *x, z, h.y, q)] == ["i", "j", "k", "d0", "d1", "z", "d1", "d2"] and isinstance(b, DimList) and str(b) == "*b"
    m, n = dims(sizes=[3, None])
    assert m.size == 3 and m.is_bound and not n.is_bound and f"{n:>3}" == "  n"
    assert [str(d) for d in (*dims(2), *dims(sizes=[1, 2]))] == ["d0", "d1", "d0", "d1"]
    with pytest.raises(ValueError, match="dimension n is unbound"):
        n.size
    with pytest.raises(DimensionBindError, match="Dim 'm' previously bound to a dimension of size 3 cannot bind to a dimension of size 5"):
        m.size = 5
    with pytest.raises(ValueError, match="expected 3 sizes but found 2"):
        dims(3, sizes=[1, 2])
    with pytest.raises(SyntaxError, match=r"dims\(\) must be assigned to a sequence of variable names or have argument n specified"):
        [dims()]
    four = dimlists(sizes=[4])
    sized = dimlists(sizes=[[4, 5]])
    assert len(four) == 4 and [d.size for d in sized] == [4, 5] and hash(i) == hash(i)


def test_index_and_order():
    i, j, k = dims()
    x = A[i, j]
    assert isinstance(x, Tensor) and not isinstance(x, torch.Tensor) and x.dims == (i, j) and (x.shape, x.ndim, x.dtype) == ((), 0, torch.float32)
    assert (i.size, j.size) == (3, 4) and repr(x).endswith("with dims=(i, j) sizes=(3, 4)") and repr(A[k]).endswith("with dims=(k, 0) sizes=(3, 4)")
    same(x.order(j, i), A.t())
    same(x.order((j, i)), A.t().reshape(12))
    assert x.order(i).dims == (j,) and x.order(i).shape == (3,)
    same(torch.arange(60.0).view(3, 4, 5)[k].order(1, k), torch.arange(60.0).view(3, 4, 5).permute(2, 0, 1))
    same(A[..., j].order(j), A.t())
    for bad in (lambda: x.order(i, j, k), lambda: x.order(i, i)):
        with pytest.raises(ValueError, match="tensor does not contain dim [ki] or it was specified twice"):
            bad()
    with pytest.raises(ValueError, match="at least 3 indices were supplied but the tensor only has 2 dimensions"):
        A[i, j, k]
    with pytest.raises(TypeError):
        x.order(wrong=3)
    with pytest.raises(DimensionBindError, match="previously bound"):
        A.t()[i, j]
    with pytest.raises(RuntimeError, match="no single truth"):
        bool(i == j)


def test_dimensions_taken_apart():
    i, j, k, h = dims()
    k.size = 2
    same(A[i, [j, k]].order(i, [j, k]), A)
    same(A[i, [j, k]].order(k, j, i), A.view(3, 2, 2).permute(2, 1, 0))
    p, q = dims()
    with pytest.raises(DimensionBindError, match="cannot infer the sizes of two dimensions at once p and q"):
        A[h, [p, q]]
    p.size = 3
    with pytest.raises(DimensionBindError, match=r"inferred dimension does not evenly fit into larger dimension: 4 vs \(3, '\?'\)"):
        A[h, [p, q]]


def test_lists_of_dimensions():
    b = dimlists()
    last = dims()
    with pytest.raises(DimensionBindError, match="DimList not bound"):
        len(b)
    x = torch.arange(24.0).view(2, 3, 4)
    y = x[b, last]
    assert len(b) == 2 and repr(b) == "(b0, b1)" and [d.size for d in b] == [2, 3] and b[:1] == (b[0],)
    same(y.order(last, b), x.permute(2, 0, 1))
    same(x[b].order(*b), x)
    with pytest.raises(DimensionBindError, match="Dimlist has size 2 but it is being bound to size 3"):
        b.bind_len(3)


def test_arithmetic_and_reductions():
    i, j, k = dims()
    same((A[i, k] * B[k, j]).sum(k).order(i, j), A @ B)
    same((i + k - 1).order(i, k), torch.arange(3)[:, None] + torch.arange(4) - 1)
    assert (i == i).order(i).tolist() == [True] * 3 and (i < k).order(i, k).sum().item() == 6
    same((A[i] + i).order(i), A + torch.arange(3)[:, None])
    same(A[i, k].max(i)[0].order(k), A.max(0)[0])
    assert type(A[i, k].max(dim=i)).__name__ == "max" and A[i, k].argmax(i).order(k).tolist() == A.argmax(0).tolist()
    same(A[i].std(i, True), A.std(0, True))
    same(A[i].sum((0, i)), A.sum())
    same(A[i].sum(0, keepdim=True).sum((-1, i)), A.sum())
    same(A[i].sum().order(i), A.sum(1))
    same(A[i, k].cumsum(k).order(i, k), A.cumsum(1))
    same(A[i, k].sort(k, descending=True)[0].order(i, k), A.sort(1, descending=True)[0])
    same(softmax(A[i, k], dim=i).order(i, k), A.softmax(0))
    same(A[i].renorm(1, i, 0.5).order(i), A.renorm(1, 0, 0.5))
    same(torch.where(i <= k, A[i, k], torch.tensor(0.0)).order(i, k), A.triu())
    same(A[i].max().order(i), A.max(1)[0])
    same(torch.max(A[i], A[i] * 2).order(i), torch.max(A, A * 2))
    same((A[i] / 2 % 0.3).order(i), A / 2 % 0.3)
    assert float(A[i, k].sum((i, k))) == A[i].sum((0, i)).item()
    with pytest.raises(ValueError, match="does not contain j"):
        A[i].sum(j)
    with pytest.raises(ValueError, match="cannot preserve first-class dimensions with keepdim=True"):
        A[i, k].sum(i, keepdim=True)


def test_functions_of_positional_dimensions():
    i, j = dims()
    x, y = torch.arange(24.0).view(2, 3, 4).sin(), torch.ones(4, 2)
    out = torch.mm(torch.mm(x[i], y).T, torch.mm(x[j], y))
    assert out.order(i, j).shape == (2, 2, 2, 2)
    same(out.order(i, j)[0, 1], (x[0] @ y).T @ (x[1] @ y))
    assert x[i].view(4, 3).order(i).shape == (2, 4, 3) and x[i].unsqueeze(0).shape == (1, 3, 4) and x[i].permute(dims=(1, 0)).shape == (4, 3)
    assert {str(d) for d in torch.rand_like(x[i]).dims} == {"i"} and [p.shape for p in x[i].split(2, 1)] == [(3, 2), (3, 2)] and len(x[i]) == 3
    assert torch.nn.functional.dropout(x[i]).dims == (i,) and [r.dims for r in x[i]] == [(i,)] * 3 and x[i][0].shape == (4,)
    assert Tensor.clamp.__doc__ == torch.Tensor.clamp.__doc__ and "sum" in dir(x[i])


def test_tensors_as_indices():
    i, j, k, z = dims()
    table, ids = torch.arange(32.0).view(8, 4), torch.tensor([1, 0, 3])
    same(table[ids[i], j].order(i, j), table[ids])
    d = dims(sizes=[2])
    same(A[d + 1, d + 0].order(d), A[torch.arange(2) + 1, torch.arange(2)])
    same(torch.arange(16.0).view(4, 4)[k, k].order(k), torch.arange(16.0).view(4, 4).diagonal())
    m, n = dims(sizes=[2, 4])
    x = torch.arange(24.0).view(1, 2, 3, 4)
    same(x[:, m + 0, :, n + 0].order(m, n), x.permute(1, 3, 0, 2))
    a, c = dims()
    same(A[a, c].index(c, torch.arange(2)[z]).order(a, z), A[:, :2])


def test_index_method():
    i, k, o, p, x, y, f = dims()
    o.size = 2
    r = A[i, k].index(k, (o, p))
    same(r.order(i, o, p), A.view(3, 2, 2))
    same(r.index((o, p), k).order(i, k), A)
    t = torch.arange(60.0).view(3, 4, 5)
    same(t.index((0, 2), (x, y)).order(x, y), t.permute(0, 2, 1))
    same(t.index((0, -1), f).order(f), t.permute(0, 2, 1).reshape(15, 4))
    same(A[i, k].index(i, 1).order(k), A[1])
    z = dims()
    same(A[i, k].index([i], [torch.tensor([2, 0])[z]]).order(z, k), A[[2, 0]])


def test_expand_split_cat_stack():
    i, j, k, z = dims()
    k.size = 2
    assert A[i].expand(k).order(k, i).shape == (2, 3, 4) and A.expand(k, -1, -1).order(k).shape == (2, 3, 4) and A[i].expand(2, 4).order(i).shape == (3, 2, 4)
    with pytest.raises(ValueError, match="expanding dimension i already exists"):
        A[i].expand(i)
    C = torch.arange(28.0).view(4, 7)
    s, c, u, v, w = dims()
    for got, expected in zip(C[s, c].split((u, v, w), dim=c), C.split((3, 3, 1), dim=1)):
        assert got.dims[0].size == expected.shape[1]
        same(got.order(s, got.dims[0]), expected)
    e, g = dims()
    assert [x.order(x.dims[0]).shape for x in split(C, (e, g), 1)] == [(4, 4), (3, 4)]
    with pytest.raises(TypeError, match="split sizes must also be dimensions"):
        C[s, c].split(2, dim=c)
    p, q, new = dims()
    same(cat([A[p, q], A[p, q] * 2], q, new).order(p, new), torch.cat([A, A * 2], 1))
    assert new.size == 8
    same(stack([A[p, q], A[p, q] * 2], z).order(p, z, q), torch.stack([A, A * 2], 1))


def test_assignment_and_gradients():
    i, j, n, f = dims()
    table, ids, values = torch.zeros(5, 4), torch.tensor([1, 3]), torch.arange(8.0).view(2, 4)
    table[ids[n], f] += values[n, f]
    assert table[1].tolist() == [0, 1, 2, 3] and table[3].tolist() == [4, 5, 6, 7] and table.sum() == 28
    out = torch.zeros(3, 4)
    out[i, j] = A[i, j] * 2
    same(out, A * 2)
    out[:, j] = j
    same(out, torch.arange(4.0).expand(3, 4))
    out[i] = 7
    assert out.unique().tolist() == [7]
    k = dims()
    k.size = 3
    with pytest.raises(DimensionBindError, match="has the dimension k, which the index has not"):
        out[:, j] = k
    x = A.clone().requires_grad_()
    (x[i, j] * j).sum(j).order(i).sum().backward()
    same(x.grad, torch.arange(4.0).expand(3, 4))
    assert isinstance(i, Dim)
