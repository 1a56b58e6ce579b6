"""Sparse tensors: each operator as the strided one on to_dense(), gradients where elements are kept, texts as PyTorch prints them."""

import copy
import io
import pickle

import pytest

import cresset as torch

LAYOUTS = {"coo": {}, "csr": {"layout": torch.sparse_csr}, "csc": {"layout": torch.sparse_csc}, "bsr": {"layout": torch.sparse_bsr, "blocksize": (2, 2)}, "bsc": {"layout": torch.sparse_bsc, "blocksize": (2, 1)}}  # fmt: skip


def matrix(rows=4, columns=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, columns, generator=generator) * (torch.rand(rows, columns, generator=generator) < 0.5)


def uncoalesced():
    return torch.sparse_coo_tensor([[0, 1, 0, 2], [1, 0, 1, 2]], [1.0, 2.0, 3.0, -4.0], (3, 3))


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_and_back(name):
    dense = matrix()
    sparse = dense.to_sparse(**LAYOUTS[name])
    assert sparse.layout is LAYOUTS[name].get("layout", torch.sparse_coo) and sparse.shape == dense.shape and sparse.dtype == dense.dtype
    assert sparse.is_sparse == (name == "coo") and sparse.is_sparse_csr == (name == "csr")
    assert torch.equal(sparse.to_dense(), dense)
    for other in LAYOUTS.values():
        # Blocks become other layouts over coordinates (test_compressed.py has what is refused).
        source = sparse.to_sparse_coo() if name in ("bsr", "bsc") and other is not LAYOUTS[name] else sparse
        assert torch.equal(source.to_sparse(**other or {"layout": torch.sparse_coo}).to_dense(), dense)


OPERATORS = {
    "neg": lambda a: -a, "abs": torch.abs, "sin": torch.sin, "sqrt": lambda a: torch.sqrt(a.abs()), "relu": torch.relu, "sign": torch.sign,
    "mul number": lambda a: a * 2.5, "div number": lambda a: a / 4, "pow": lambda a: a**2, "add": lambda a: a + a, "sub": lambda a: a - a * 0.25,
    "t": lambda a: a.t(), "transpose": lambda a: a.transpose(0, 1), "double": lambda a: a.double(), "clone": lambda a: a.clone(),
    "sum": torch.sum, "sum rows": lambda a: a.sum(0), "sum columns": lambda a: a.sum(1), "index_select": lambda a: a.index_select(0, torch.tensor([2, 0, 2])),
    "select": lambda a: a[1], "element": lambda a: a[1, 2], "slice": lambda a: a[1:3], "cat": lambda a: torch.cat([a, a], 1), "norm": lambda a: a.norm(),
    "mm": lambda a: a @ torch.arange(12.0).reshape(6, 2), "mv": lambda a: a @ torch.arange(6.0), "left": lambda a: torch.ones(3, 4) @ a,
    "sparse product": lambda a: a @ a.t(), "addmm": lambda a: torch.addmm(torch.ones(4, 2), a, torch.ones(6, 2), beta=2, alpha=3),
    "times strided": lambda a: a * torch.arange(24.0).reshape(4, 6), "to strided": lambda a: torch.ones(4, 6) + a,
}  # fmt: skip


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_as_on_strided(name, layout):
    dense = matrix()
    result = OPERATORS[name](dense.to_sparse(**LAYOUTS[layout]))
    torch.testing.assert_close(result.to_dense(), OPERATORS[name](dense))


def test_uncoalesced():
    a = uncoalesced()
    assert a._nnz() == 4 and not a.is_coalesced() and a.coalesce().values().tolist() == [4.0, 2.0, -4.0]
    assert torch.equal((a * a).to_dense(), a.to_dense() ** 2) and torch.equal(a.abs().to_dense(), a.to_dense().abs())
    for name in ("indices", "values"):
        with pytest.raises(RuntimeError, match=f"Cannot get {name} on an uncoalesced tensor"):
            getattr(a, name)()
    a.mul_(2)
    assert a.to_dense()[0, 1].item() == 8.0


@pytest.mark.parametrize("name", ["asin_", "sqrt_", "abs_", "sgn_", "relu_", "nan_to_num_", "frac_"])
def test_in_place_functions_do_not_coalesce(name):
    a = uncoalesced()
    with pytest.raises(RuntimeError, match=f"{name} requires coalesced input"):
        getattr(a, name)()
    assert a._nnz() == 4 and not a.is_coalesced()
    assert a.neg_()._nnz() == 4 and torch.equal(a.to_dense(), -uncoalesced().to_dense())


def test_elements_with_dimensions():
    dense = torch.arange(24.0).reshape(4, 3, 2) * torch.tensor([0.0, 1, 0, 1])[:, None, None]
    hybrid = dense.to_sparse(1)
    assert (hybrid.sparse_dim(), hybrid.dense_dim(), hybrid._nnz()) == (1, 2, 2)
    assert torch.equal(hybrid.to_dense(), dense) and torch.equal(hybrid.sum(2).to_dense(), dense.sum(2)) and torch.equal(hybrid[3], dense[3])
    assert torch.equal(torch.stack([hybrid, hybrid], 0).to_dense(), torch.stack([dense, dense], 0))


GRADIENTS = {
    "to_dense": lambda a: a.to_dense(), "values": lambda a: a.coalesce().values(), "torch.sum": torch.sum, "sparse.sum": torch.sparse.sum,
    "sparse.sum rows": lambda a: torch.sparse.sum(a, 0).to_dense(), "mm": lambda a: a @ torch.arange(6.0).reshape(3, 2),
    "sparse.mm": lambda a: torch.sparse.mm(a, torch.arange(6.0).reshape(3, 2)), "sparse by sparse": lambda a: torch.sparse.mm(a, uncoalesced()).to_dense(),
    "mul": lambda a: (a * a).to_dense(), "csr": lambda a: (a.to_sparse_csr() @ torch.arange(6.0).reshape(3, 2)),
    "softmax": lambda a: torch.sparse.softmax(a, 1).to_dense() * torch.arange(9.0).reshape(3, 3),
    "log_softmax": lambda a: torch.sparse.log_softmax(a, 0).to_dense(), "strided": lambda a: torch.ones(3, 3) + a,
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_values(name):
    place = torch.tensor([[0, 0, 1, 2], [0, 1, 1, 2]])

    def function(values):
        return (GRADIENTS[name](torch.sparse_coo_tensor(place, values, (3, 3))).double() ** 2).sum()

    values = torch.tensor([1.0, 2.0, -3.0, 0.5], requires_grad=True)
    function(values).backward()
    step = 1e-2
    for i in range(4):
        unit = torch.zeros(4).index_fill(0, torch.tensor([i]), step)
        with torch.no_grad():
            expected = (function(values + unit) - function(values - unit)) / (2 * step)
        assert values.grad[i].item() == pytest.approx(expected.item(), rel=1e-2, abs=1e-2)


def test_gradients_are_sparse():
    x = uncoalesced().coalesce().requires_grad_()
    w = torch.ones(3, 2, requires_grad=True)
    torch.sparse.mm(x, w).sum().backward()
    assert x.grad.is_sparse and x.grad.coalesce().values().tolist() == [2.0, 2.0, 2.0] and w.grad.shape == (3, 2)
    torch.sparse.mm(x, w).sum().backward()
    assert x.grad.coalesce().values().tolist() == [4.0, 4.0, 4.0]
    dense = torch.eye(3, requires_grad=True)
    dense.sparse_mask(uncoalesced().coalesce()).to_dense().sum().backward()
    assert dense.grad.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, lr=0.5), lambda p: torch.optim.SparseAdam(p, lr=0.5)])
def test_tables_of_rows(make):
    table = torch.nn.Embedding(5, 2, padding_idx=3, sparse=True)
    before = table.weight.detach().clone()
    table(torch.tensor([[1, 2], [1, 3]])).sum().backward()
    grad = table.weight.grad
    assert grad.is_sparse and grad._indices().tolist() == [[1, 2, 1]] and grad.to_dense()[:, 0].tolist() == [0, 2, 1, 0, 0]
    make(table.parameters()).step()
    changed = (table.weight != before).any(1).tolist()
    assert changed == [False, True, True, False, False]
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        p = torch.nn.Parameter(torch.ones(2))
        p.grad = torch.ones(2)
        torch.optim.SparseAdam([p]).step()


def test_sparse_adam_is_adam_where_all_elements_are_kept():
    a, b = (torch.nn.Parameter(torch.arange(1.0, 7.0).reshape(3, 2)) for _ in range(2))
    first, second = torch.optim.SparseAdam([a], lr=0.1), torch.optim.Adam([b], lr=0.1)
    for k in range(3):
        b.grad = torch.full((3, 2), k + 1.0)
        a.grad = b.grad.to_sparse()
        first.step()
        second.step()
    torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", LAYOUTS)
def test_files_and_copies(name):
    sparse = matrix().to_sparse(**LAYOUTS[name])
    buffer = io.BytesIO()
    torch.save({"a": sparse}, buffer)
    buffer.seek(0)
    for other in (torch.load(buffer)["a"], pickle.loads(pickle.dumps(sparse)), copy.deepcopy(sparse), copy.copy(sparse)):
        assert other.layout is sparse.layout and torch.equal(other.to_dense(), sparse.to_dense())


def test_texts():
    assert repr(uncoalesced()) == (
        "tensor(indices=tensor([[0, 1, 0, 2],\n                       [1, 0, 1, 2]]),\n       values=tensor([ 1.,  2.,  3., -4.]),\n"
        f"       size=(3, 3), nnz=4, layout={torch.sparse_coo})"
    )
    assert repr(torch.sparse_coo_tensor((2, 3), dtype=torch.float64)) == (
        "tensor(indices=tensor([], size=(2, 0)),\n       values=tensor([], size=(0,)),\n"
        f"       size=(2, 3), nnz=0, dtype={torch.float64}, layout={torch.sparse_coo})"
    )
    text = repr(torch.eye(2).to_sparse_csc())
    assert text.startswith("tensor(ccol_indices=tensor([0, 1, 2]),\n       row_indices=tensor([0, 1]),\n       values=tensor([1., 1.]), size=(2, 2), nnz=2,")


REFUSED = {
    "indices and values must have same nnz, but got nnz from indices: 2, nnz from values: 3": lambda: torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2, 3], (2, 2)),
    "found negative index -1 for dim 0": lambda: torch.sparse_coo_tensor([[-1]], [1.0]),
    "len\\(size\\) = 1, sparse_dim = 2, dense_dim = 0": lambda: torch.sparse_coo_tensor([[0], [1]], [1.0], (2,)),
    "size is inconsistent with indices: for dim 0, size is 2 but found index 5": lambda: torch.sparse_coo_tensor([[5]], [1.0], (2,), check_invariants=True),
    "add\\(sparse, dense\\) is not supported": lambda: uncoalesced() + torch.ones(3, 3),
    "Could not run 'aten::exp' with arguments from the 'SparseCPU' backend": lambda: uncoalesced().exp(),
    "mat1 and mat2 shapes cannot be multiplied \\(3x3 and 2x2\\)": lambda: uncoalesced() @ torch.ones(2, 2),
    "coalesce expected sparse coordinate tensor layout but got Strided": lambda: torch.eye(2).coalesce(),
    "crow_indices expected sparse row compressed tensor layout but got Sparse": lambda: uncoalesced().crow_indices(),
    "must be divisible by given blocksize": lambda: torch.eye(3).to_sparse_bsr((2, 2)),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refusals(words):
    with pytest.raises((RuntimeError, NotImplementedError), match=words):
        REFUSED[words]()


def test_diagonals_and_samples():
    made = torch.sparse.spdiags(torch.tensor([[1.0, 2, 3], [4, 5, 6]]), torch.tensor([0, 1]), (3, 3))
    assert made.to_dense().tolist() == [[1, 5, 0], [0, 2, 6], [0, 0, 3]]
    pattern, a, b = matrix(3, 3).to_sparse_csr(), torch.arange(6.0).reshape(3, 2), torch.arange(6.0).reshape(2, 3)
    sampled = torch.sparse.sampled_addmm(pattern, a, b, beta=0.5, alpha=2)
    torch.testing.assert_close(sampled.to_dense(), (2 * (a @ b) + 0.5 * pattern.to_dense()) * (pattern.to_dense() != 0))
    assert torch.sparse.mm(pattern, a, "amax").shape == (3, 2)


def test_checks_of_indices():
    with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match="size is inconsistent"):
        torch.sparse_coo_tensor([[5]], [1.0], (2,))
    assert not torch.sparse.check_sparse_tensor_invariants.is_enabled()


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_a_sparse_gradient_keeps_its_places(kind):
    """Indices that change after backward must not change a gradient that was made from them."""
    layer, index = getattr(torch.nn, kind)(10, 3, sparse=True), torch.tensor([[7, 1, 3]])
    layer(index).sum().backward()
    index[0, 0] = 8
    layer(index).sum().backward()
    assert layer.weight.grad._indices().tolist() == [[7, 1, 3, 8, 1, 3]]


@pytest.mark.parametrize("call", [lambda w, i: torch.nn.functional.embedding(i, w, sparse=True), lambda w, i: torch.nn.functional.embedding_bag(i[None], w, sparse=True)])
def test_indices_that_change_before_backward_are_noticed(call):
    weight, index = torch.rand(10, 3, requires_grad=True), torch.tensor([7, 1, 3])
    out = call(weight, index)
    index[0] = 8
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize("changed", ["sparse", "dense"])
def test_factors_of_a_sparse_product_that_change_are_noticed(changed):
    sparse, dense = torch.eye(3).to_sparse().requires_grad_(), torch.rand(3, 3, requires_grad=True)
    factor = dense * 1
    out = torch.sparse.mm(sparse, factor)
    with torch.no_grad():
        (sparse.detach() if changed == "sparse" else factor).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_gradients_of_two_leaves_are_apart():
    """A gradient is taken over as it is by one leaf at most, and not at all where its parts are expanded."""

    class Given(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, grad):
            ctx.grad = grad
            return a + b

        @staticmethod
        def backward(ctx, grad):
            return ctx.grad, ctx.grad, None

    a, b = (torch.ones(10, 3, requires_grad=True) for _ in range(2))
    given = torch.sparse_coo_tensor(torch.ones(1, 1, dtype=torch.int64).expand(1, 8), torch.rand(1, 3).expand(8, 3), (10, 3))
    for _ in range(2):
        Given.apply(a, b, given).sum().backward()
    assert len({t._values().data_ptr() for t in (a.grad, b.grad, given)}) == 3
    assert torch.allclose(a.grad.to_dense(), 2 * given.to_dense()) and torch.allclose(b.grad.to_dense(), a.grad.to_dense())


@pytest.mark.parametrize("rows", [0, 10])
@pytest.mark.parametrize("padding", [None, 2])
def test_rows_without_columns(rows, padding):
    """A table of width 0 has an empty gradient."""
    if rows == 0 and padding:
        return
    table = torch.nn.Embedding(rows, 0, padding_idx=padding, sparse=True)
    index = torch.tensor([[0, 2, 4], [4, 3, 0]] if rows else [], dtype=torch.int64)
    table(index).sum().backward()
    assert table.weight.grad.is_sparse and table.weight.grad.shape == (rows, 0) and table.weight.grad._values().shape[1] == 0
    if rows:
        bag = torch.nn.EmbeddingBag(rows, 0, sparse=True, mode="sum")
        bag(index).sum().backward()
        assert bag.weight.grad.shape == (rows, 0)


FACTORIES = [
    lambda size, layout: torch.zeros(size, layout=layout), lambda size, layout: torch.empty(size, layout=layout), lambda size, layout: torch.zeros_like(torch.ones(size), layout=layout),
    lambda size, layout: torch.ones(1).new_zeros(size, layout=layout), lambda size, layout: torch.ones(1).new_empty(size, layout=layout),
    lambda size, layout: torch.ones(2, 2).to_sparse(layout=layout).new_zeros(size), lambda size, layout: torch.ones(2, 2).to_sparse(layout=layout).new_empty(size),
]  # fmt: skip


@pytest.mark.parametrize("make", FACTORIES)
def test_new_tensors_of_a_sparse_layout(make):
    for layout, parts in ((torch.sparse_csr, ("crow_indices", "col_indices")), (torch.sparse_csc, ("ccol_indices", "row_indices"))):
        for size in ((3, 4), (2, 3, 4), (0, 3)):
            made = make(size, layout)
            length = size[-2 if layout is torch.sparse_csr else -1] + 1
            assert made.layout is layout and made.shape == size and made._nnz() == 0 and torch.equal(made.to_dense(), torch.zeros(size))
            assert [tuple(getattr(made, name)().shape) for name in (*parts, "values")] == [(*size[:-2], n) for n in (length, 0, 0)]
        with pytest.raises(RuntimeError, match="torch.empty: Only batched sparse compressed .non-block. tensors are supported, but got size .5."):
            make((5,), layout)
    for size in ((3, 4), (), (2, 0, 2)):
        made = make(size, torch.sparse_coo)
        assert made.layout is torch.sparse_coo and made.shape == size and made._nnz() == 0 and made.sparse_dim() == len(size)


def test_options_of_new_sparse_tensors():
    made = torch.zeros(2, 3, layout=torch.sparse_coo, dtype=torch.int32)
    made = made + torch.tensor([[0, 0, 5], [0, 0, 0]], dtype=torch.int32).to_sparse()
    assert made.dtype is torch.int32 and made.to_dense().tolist() == [[0, 0, 5], [0, 0, 0]]
    assert torch.zeros(2, 2, layout=torch.sparse_csr, requires_grad=True).requires_grad
    assert torch.eye(2).to_sparse().new_zeros((2,), layout=torch.strided).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="expected sparse compressed .non-block. tensor layout but got SparseBsr"):
        torch.zeros(2, 2, layout=torch.sparse_bsr)
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.zeros(2, -2, layout=torch.sparse_coo)
    for full in (lambda: torch.ones(2, layout=torch.sparse_coo), lambda: torch.ones(1).new_ones(2, layout=torch.sparse_coo), lambda: torch.full((2, 2), 3.0, layout=torch.sparse_csr)):
        with pytest.raises(NotImplementedError, match="new tensors are strided here; given layout sparse_"):
            full()
    with pytest.raises(NotImplementedError, match="absent elements are zero"):
        torch.eye(2).to_sparse().new_ones(2)


def test_rows_of_sparse_tensors():
    dense = torch.tensor([[1.0, 0, 2], [0, 0, 3]])
    for sparse in (dense.to_sparse(), dense.to_sparse_csr()):
        assert [row.layout for row in sparse] == [torch.sparse_coo] * 2
        assert [row.to_dense().tolist() for row in sparse] == dense.tolist()
        assert [column.to_dense().tolist() for column in sparse.unbind(1)] == dense.mT.tolist()
    assert [x.item() for x in dense[0].to_sparse()] == [1, 0, 2]
    hybrid = torch.arange(12.0).view(2, 3, 2).to_sparse(2)
    assert [part.to_dense().tolist() for part in hybrid.unbind(-1)] == [part.tolist() for part in torch.arange(12.0).view(2, 3, 2).unbind(-1)]


def test_gradients_of_rows_of_sparse_tensors():
    x = torch.eye(3, requires_grad=True)
    sum((i + 1) * torch.sparse.sum(row * 2) for i, row in enumerate(x.to_sparse())).backward()
    assert x.grad.tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]  # PyTorch 2.13's


def test_products_take_the_largest_and_the_smallest_by_both_names():
    # The example of PyTorch's page of sparse.mm.
    a = torch.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse_csr()
    b = torch.tensor([[0, 1.0], [2, 0], [0, 0]])
    for names in (("amax", "max"), ("amin", "min")):
        first, second = (torch.sparse.mm(a, b, name) for name in names)
        assert torch.equal(first, second)
    assert torch.sparse.mm(a, b, "max").tolist() == [[0, 1], [6, 0]]
    with pytest.raises(RuntimeError, match="sparse_mm_reduce: reduce type of prod has not been enabled."):
        torch.sparse.mm(a, b, "prod")


PLACES = torch.tensor([[0, 2]])


@pytest.mark.parametrize(("first", "second", "alpha", "want"), [  # PyTorch's numbers
    (([1, -100], torch.int8), ([1, 200], torch.uint8), -1, [0, 0, -300]),
    (([300, 2], torch.int16), ([1, 200], torch.uint8), 3, [303, 0, 602]),
    (([300, 2], torch.int16), ([1, -100], torch.int8), 3, [303, 0, -298]),
    (([1, 200], torch.uint8), ([1, 200], torch.uint8), -1, [0, 0, 0]),
    (([1, 200], torch.uint8), ([True, False], torch.bool), 3, [4, 0, 200]),
])  # fmt: skip
def test_factors_are_in_the_common_type(first, second, alpha, want):
    (a, b) = (torch.sparse_coo_tensor(PLACES, torch.tensor(v, dtype=t), (3,)) for v, t in (first, second))
    common = torch.promote_types(a.dtype, b.dtype)
    for sum in (torch.add(a, b, alpha=alpha), torch.add(a.to_dense(), b, alpha=alpha), *([a - b, a.to_dense() - b] if alpha == -1 else [])):
        assert sum.dtype is common and sum.to_dense().tolist() == want
    if common is a.dtype:
        assert a.clone().add_(b, alpha=alpha).to_dense().tolist() == a.to_dense().add_(b, alpha=alpha).tolist() == want


def test_sums_that_dense_tensors_refuse():
    whole, bits = (torch.sparse_coo_tensor(PLACES, torch.ones(2, dtype=t), (3,)) for t in (torch.int16, torch.bool))
    for a, b, words in ((whole, bits, "Subtraction, the `-` operator, with a bool tensor is not supported."), (bits, bits, "with two bool tensors is not supported")):
        for difference in (lambda a=a, b=b: a - b, lambda a=a, b=b: a.clone().sub_(b), lambda a=a, b=b: a.to_dense() - b):
            with pytest.raises(RuntimeError, match=words):
                difference()
    with pytest.raises(RuntimeError, match="For integral input tensors, argument alpha must not be a floating point number."):
        torch.add(whole, whole, alpha=0.5)
    with pytest.raises(RuntimeError, match="^Can't convert result type Short to output Bool in add operation$"):
        bits.clone().add_(whole)
    assert torch.result_type(whole, torch.tensor([1.0])) is torch.float32
    assert torch.result_type(torch.ones(1, dtype=torch.int8), whole) is torch.int16


def test_new_makes_sparse_tensors():
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    s = torch.sparse_coo_tensor(indices, values, (3, 3))
    for made, shape, nnz in (
        (s.new(), (0,), 0), (s.new(2, 3), (2, 3), 0), (s.new(torch.Size([2, 3])), (2, 3), 0), (s.new(indices, values), (2, 2), 2),
        (s.new(indices, values, (4, 4)), (4, 4), 2), (torch.zeros((2, 3), out=s.new()), (2, 3), 0), (torch.empty((2, 3), out=s.new(indices, values)), (2, 3), 0),
    ):  # fmt: skip
        assert made.layout is torch.sparse_coo and made.shape == shape and made._nnz() == nnz
    for like in (torch.empty_like, torch.zeros_like):
        with pytest.raises(RuntimeError, match="^memory format option is only supported by strided tensors$"):
            like(s, memory_format=torch.contiguous_format)
        assert like(s, layout=torch.strided, memory_format=torch.contiguous_format).layout is torch.strided


def test_dense_dimensions_of_coordinates():
    def made(*shape, dense_dim):
        return torch.ones(shape).to_sparse(layout=torch.sparse_coo, dense_dim=dense_dim)

    assert made(dense_dim=0)._nnz() == 1 and made(3, dense_dim=0).sparse_dim() == 1 and made(3, 3, dense_dim=1).dense_dim() == 1 and made(3, 3, 3, dense_dim=2).dense_dim() == 2
    for shape, dense_dim, words in (
        ((), 1, r"dense_dim argument must be in \[0,0\] range, but 1 is given"), ((3,), 1, r"dense_dim argument must be !=self.dim\(\) when self.dim\(\)>0"),
        ((3, 3), -1, r"dense_dim argument must be in \[0,2\] range, but -1 is given"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            made(*shape, dense_dim=dense_dim)


def test_dimensions_that_are_not_there():
    x = torch.eye(3).to_sparse()
    for wrong in (7, -4):
        with pytest.raises(IndexError, match=rf"expected to be in range of \[-3, 2\], but got {wrong}"):
            x.unsqueeze(wrong)
    for function in (torch.sparse.softmax, torch.sparse.log_softmax):
        with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 9"):
            function(x, 9)
    with pytest.raises(RuntimeError, match="Sparse CSR tensors do not have strides"):
        torch.eye(3).to_sparse_csr().unsqueeze(0)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_tensors_without_memory(layout):
    made = torch.empty((2, 3), layout=getattr(torch, layout), device="meta")
    assert made.is_meta and made.layout == getattr(torch, layout) and made.shape == (2, 3) and "tensor(..., size=(0,))" in repr(made) and "nnz" not in repr(made)
    assert torch.zeros_like(made).is_meta and made.clone().layout == made.layout


def test_coordinates_without_memory():
    places = torch.empty(2, 3, dtype=torch.int64, device="meta")
    made = torch.sparse_coo_tensor(places, torch.empty(3, device="meta"), (4, 5), check_invariants=True)
    lines = ["tensor(indices=tensor(..., size=(2, 3)),", "values=tensor(..., size=(3,)),", "device='meta', size=(4, 5), layout=torch.sparse_coo)"]
    assert [line.strip() for line in repr(made).replace("cresset", "torch").splitlines()] == lines  # what PyTorch 2.13 prints
    assert torch.ones(2, 3).to_sparse().to("meta").is_meta


def test_sums_of_sorted_coordinates_keep_each_place_once():
    a = torch.sparse_coo_tensor([[0, 1], [1, 2]], [1.0, 2.0], (2, 3))
    b = torch.sparse_coo_tensor([[0, 1], [1, 0]], [10.0, 20.0], (2, 3))
    for result, values in ((a + b, [11.0, 20.0, 2.0]), (a - b, [-9.0, -20.0, 2.0]), (torch.add(a, b, alpha=3), [31.0, 60.0, 2.0])):
        assert not result.is_coalesced() and result._indices().tolist() == [[0, 1, 1], [1, 0, 2]] and result._values().tolist() == values
    assert (a.coalesce() + b.coalesce()).is_coalesced()
    assert a.clone().add_(b)._nnz() == 3


def test_parts_of_complex_coordinates():
    z = torch.sparse_coo_tensor([[0, 1]], torch.tensor([1 + 2j, 3]), (2,))
    assert z.real.coalesce().values().tolist() == [1.0, 3.0] and z.imag.coalesce().values().tolist() == [2.0, 0.0]
    rows = torch.sparse_coo_tensor([[0, 1]], torch.tensor([[1 + 2j, 3], [1, 1j]]), (2, 2))
    assert rows.imag.shape == (2, 2) and rows.imag.to_dense().tolist() == [[2.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s: s.mv(torch.ones(2)), RuntimeError, "mv: expected self.size(-1) == vec.size(-1)"),
        (lambda s: s / s, RuntimeError, "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape [3, 3] for divisor)"),
        (lambda s: torch.ones(3, 3) / s, RuntimeError, "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape [3, 3] for divisor)"),
        (lambda s: s.sparse_mask(torch.ones(3, 3)), NotImplementedError, "'CPU' backend"),
        (lambda s: s.to_sparse_csr().sparse_mask(torch.ones(3, 3)), RuntimeError, "sparse_mask_sparse_compressed expects mask to have sparse compressed layout, got Strided"),
        (lambda s: torch.sparse.softmax(s.long(), 1), NotImplementedError, "\"softmax\" not implemented for 'Long'"),
        (lambda s: torch.sparse.log_softmax(s.cfloat(), 1), NotImplementedError, "\"log_softmax\" not implemented for 'ComplexFloat'"),
        (lambda s: torch.sparse.softmax(s.to_dense(), 1), NotImplementedError, "Could not run 'aten::_sparse_softmax' with arguments from the 'CPU' backend"),
        (lambda s: torch.sparse.softmax(s.to_sparse_csr(), 1), NotImplementedError, "Could not run 'aten::_sparse_softmax' with arguments from the 'SparseCsrCPU' backend"),
    ],
)  # fmt: skip
def test_what_sparse_operators_refuse(call, error, words):
    with pytest.raises(error) as raised:
        call(uncoalesced())
    assert words in str(raised.value)


def test_nodes_are_called_as_those_of_pytorch():
    """Names of PyTorch 2.13."""

    def name(result):
        assert type(result.grad_fn).__name__ == result.grad_fn.name() and result.grad_fn.name() in str(result)
        return result.grad_fn.name().replace("Backward", " ")

    dense, vector, place = torch.eye(4, requires_grad=True), torch.ones(2, requires_grad=True), torch.tensor([[0, 1], [1, 0]])
    coo, csr, csc = (made.detach().requires_grad_() for made in (dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse_csc()))
    made = torch.sparse_coo_tensor(place, vector, (2, 2))
    assert [name(made), name(made.coalesce()), name(torch.sparse_csr_tensor(torch.arange(3), place[1], vector, (2, 2)))] == [
        "SparseCooTensorWithDimsAndTensors 0", "Coalesce 0", "SparseCompressedTensor 0"
    ]  # fmt: skip
    assert [name(dense.to_sparse()), name(dense.to_sparse(1)), name(dense.to_sparse(layout=torch.sparse_csr))] == ["ToSparse 1", "ToSparse 0", "ToSparse 1"]
    assert [name(csr.to_sparse()), name(csr.to_sparse(2)), name(coo.to_sparse(layout=torch.sparse_csc))] == ["ToSparse 1", "ToSparse 0", "ToSparse 1"]
    assert [name(t.to_sparse_csr()) for t in (dense, coo, csc)] == ["ToSparseCsr 0"] * 3
    assert [name(t.to_sparse_csc()) for t in (dense, coo, csr)] == ["ToSparseCsc 0"] * 3
    assert [name(t.to_sparse_bsr((2, 2))) for t in (dense, coo, csr, csc)] == ["ToSparseBsr 0"] * 4
    assert [name(t.to_sparse_bsc((2, 2))) for t in (dense, coo, csr, csc)] == ["ToSparseBsc 0"] * 4
    for t in (coo, csr, csc):
        assert [name(t.to_dense()), name(t.coalesce().values() if t is coo else t.values()), name(dense.sparse_mask(t.detach()))] == ["ToDense 0", "Values 0", "SparseMask 0"]
        assert [name(torch.sparse.mm(t, dense)), name(torch.sparse.mm(t.detach(), dense))] == ["SparseAddmm 0"] * 2
    assert [name(torch.sparse.mm(coo, coo)), name(torch.sparse.mm(csr, csr)), name(torch.sparse.mm(csr, dense, "sum"))] == [
        "SparseSparseMatmul 0", "SparseAddmm 0", "SparseMmReduceImpl 0"
    ]  # fmt: skip
    assert [name(torch.sparse.sum(coo)), name(torch.sparse.sum(coo, 1)), name(torch.sparse.sum(coo, [0, 1]))] == ["Sum 0", "SparseSum 0", "SparseSum 0"]
    assert name(torch.nn.functional.embedding(torch.tensor([0]), dense, sparse=True)) == "Embedding 0"


def test_deep_copies_have_gradients():
    s = torch.zeros(3).to_sparse()
    s.grad = torch.ones(3).to_sparse()
    made = copy.deepcopy(s)
    assert made.grad is not s.grad and made.grad.to_dense().tolist() == [1.0, 1.0, 1.0]


def test_lists_of_sparse_tensors():
    dense = torch.tensor([[0.0, 4.0], [0.0, -9.0]])
    a, b = dense.to_sparse(), dense[0].to_sparse()
    assert [t.to_dense().tolist() for t in torch._foreach_abs([a, b])] == [[[0, 4], [0, 9]], [0, 4]]
    assert [t.to_dense().tolist() for t in torch._foreach_mul([a, b], [2.0, 3.0])] == [[[0, 8], [0, -18]], [0, 12]]
    torch._foreach_mul_([a, b], 0.5)
    assert (a.is_sparse, a.to_dense().tolist(), b.to_dense().tolist()) == (True, [[0, 2], [0, -4.5]], [0, 2])
    with pytest.raises(NotImplementedError, match="clamp_min"):
        torch._foreach_maximum([a], 1.0)
    with pytest.raises(RuntimeError, match="same number"):
        torch._foreach_mul([a, b], [a])


def test_products_are_added_in_place():
    a = torch.tensor([[0.0, 3.0], [0.0, 4.0]]).to_sparse()
    assert a.addcmul_(a, a) is a and a.to_dense().tolist() == [[0, 12], [0, 20]]


def test_powers_of_two_distances_and_fillings():
    a = torch.tensor([[0.0, 3.0], [0.0, 4.0]]).to_sparse()
    assert torch.ldexp(a, torch.tensor([1, 3])).to_dense().tolist() == [[0, 24], [0, 32]]
    assert a.ldexp_(torch.tensor(2)).to_dense().tolist() == [[0, 12], [0, 16]]
    assert torch.dist(a, torch.tensor([[0.0, 0.0], [5.0, 16.0]]).to_sparse()).item() == 13
    b = a.to_sparse_csr()
    assert b.fill_(2) is b and b.to_dense().tolist() == [[0, 2], [0, 2]]
    with pytest.raises(NotImplementedError):
        a.fill_(2)


@pytest.mark.parametrize("layout", ["strided", *LAYOUTS])
def test_what_beta_zero_drops_may_be_nan(layout):
    a, b, nan = matrix(3, 4), matrix(4, 2), torch.full((3, 2), float("nan"))
    options = LAYOUTS.get(layout, {}) | ({"blocksize": (1, 1)} if layout.startswith("bs") else {})
    kept = nan if layout == "strided" else nan.to_sparse(**options)
    found = torch.addmm(kept, a.to_sparse_csr(), b.to_sparse_csr(), beta=0, alpha=2)
    assert found.layout is kept.layout
    torch.testing.assert_close(found.to_dense(), 2 * a @ b)
    torch.testing.assert_close(torch.sparse.addmm(nan, a.to_sparse(), b, beta=0), a @ b)
