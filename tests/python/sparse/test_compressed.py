"""Compressed sparse matrices in batches and with dense dimensions, the types of their indices, and their in-place functions."""

import re
import subprocess
import sys

import pytest

import cresset

LAYOUTS = {cresset.sparse_csr: {}, cresset.sparse_csc: {}, cresset.sparse_bsr: {"blocksize": (2, 2)}, cresset.sparse_bsc: {"blocksize": (2, 2)}}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("form", ["plain", "batch", "hybrid", "both"])
def test_batches_and_dense_dimensions_of_compressed_matrices(layout, form):
    d = cresset.tensor([[1.0, 0, 2, 0], [0, 0, 0, 3], [4, 0, 0, 0], [0, 5, 0, 0]], dtype=cresset.double)
    x = {"plain": d, "batch": cresset.stack([d, d.t()]), "hybrid": d[:, :, None] * cresset.tensor([1.0, 2]), "both": None}[form]
    if x is None:
        x = cresset.stack([d[:, :, None] * 2, d.t()[:, :, None]])
    dense = 1 if form in ("hybrid", "both") else None
    s = x.to_sparse(layout=layout, dense_dim=dense, **LAYOUTS[layout])
    assert s.layout is layout and cresset.equal(s.to_dense(), x) and (s.sparse_dim(), s.dense_dim()) == (2, dense or 0)
    assert cresset.equal(s.to_sparse_coo().to_dense(), x)
    for name in ("ones_like", "empty_like", "randn_like"):
        assert getattr(cresset, name)(s).values().shape == s.values().shape
    assert cresset.zeros_like(s)._nnz() == 0
    if form == "plain":
        assert cresset.zeros_like(s, layout=cresset.sparse_coo).layout is cresset.sparse_coo
        y = x.clone().requires_grad_()
        y.to_sparse(layout=layout, **LAYOUTS[layout]).to_dense().pow(2).sum().backward()
        assert cresset.equal(y.grad, 2 * x)
    leaf = s.detach().requires_grad_()
    leaf.to_dense().pow(2).sum().backward()
    assert leaf.grad.layout is layout and cresset.equal(leaf.grad.to_dense(), 2 * x)
    assert cresset.autograd.gradcheck(lambda t: t.to_dense(), s.detach().requires_grad_(), masked=True)


def test_indices_of_int32_stay_so():
    part = lambda *v: cresset.tensor(v, dtype=cresset.int32)
    s = cresset.sparse_csr_tensor(part(0, 1, 2), part(0, 1), cresset.ones(2), (2, 2))
    assert s.to_sparse_csc().ccol_indices().dtype is s.to_sparse_bsr((1, 1)).crow_indices().dtype is cresset.int32
    assert s.to_sparse_coo().indices().dtype is cresset.int64


def test_in_place_functions_check_the_type():
    s = cresset.eye(3, dtype=cresset.int8).to_sparse_csr()
    for name in ("rad2deg_", "sqrt_", "sin_"):
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Char"):
            getattr(s.clone(), name)()


def test_methods_of_tensor_by_their_name_under_the_alias():
    code = "import cresset.as_torch as a; a.install()\nimport torch\ns = torch.eye(3).to_sparse_csr()\nassert torch.Tensor.crow_indices(s).tolist() == [0, 1, 2, 3]\nassert torch.Tensor.sparse_dim(s) == 2"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize("one", [False, True])
def test_sampled_products_write_out_and_take_batches(batch, one):
    pattern = cresset.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse_csr()
    if batch and not one:
        pattern = pattern.to_dense().expand(*batch, 2, 3).to_sparse_csr()
    a, b = cresset.randn(*batch, 2, 4), cresset.randn(*batch, 4, 3)
    result = cresset.sparse.sampled_addmm(pattern, a, b, alpha=0.5, beta=2.0)
    dense = pattern.to_dense()
    assert cresset.allclose(result.to_dense(), (0.5 * (a @ b) + 2 * dense) * (dense != 0), atol=1e-5)
    out = cresset.sparse_csr_tensor(result.crow_indices().clone(), result.col_indices().clone(), cresset.zeros_like(result.values()), result.shape)
    assert cresset.sparse.sampled_addmm(pattern, a, b, alpha=0.5, beta=2.0, out=out) is out
    assert cresset.equal(out.to_dense(), result.to_dense())


def test_elements_are_not_assigned():
    for s in (cresset.eye(3).to_sparse(), cresset.eye(3).to_sparse_csr()):
        with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
            s[0, 0] = 9.0


def test_indices_alone_are_checked():
    part = lambda *v: cresset.tensor(v)
    check = cresset._validate_compressed_sparse_indices
    check(True, part(0, 1, 2), part(0, 1), 2, 2, 2)
    with pytest.raises(RuntimeError, match=r"`crow_indices\[..., -1\] == nnz` is not satisfied"):
        check(True, part(0, 1, 1), part(0, 1), 2, 2, 2)
    with pytest.raises(RuntimeError, match=r"`0 <= row_indices < nrows` is not satisfied"):
        check(False, part(0, 1, 2), part(0, 2), 2, 2, 2)


ARRANGED = cresset.arange(1.0, 1 + 2 * 3 * 4 * 6).reshape(2, 3, 4, 6) * (cresset.arange(24).reshape(4, 6) % 3 == 0)
_TURNED_NAMES = {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr"}


@pytest.mark.parametrize("name", _TURNED_NAMES)
@pytest.mark.parametrize("batch", [0, 1, 2])
def test_dimensions_of_batches_are_swapped_and_selected(name, batch):
    plain = ARRANGED[(0,) * (2 - batch)]
    sparse = getattr(plain, f"to_sparse_{name}")(*([(2, 2)] if name[0] == "b" else []))
    for a in range(plain.dim()):
        for b in range(plain.dim()):
            if a != b and (a < batch) != (b < batch):
                with pytest.raises(RuntimeError, match=r"can only transpose dimensions of the same type \(Batch, Sparse, Dense\)"):
                    sparse.transpose(a, b)
                continue
            turned = sparse.transpose(a, b)
            assert cresset.equal(turned.to_dense(), plain.transpose(a, b))
            assert str(turned.layout).endswith(_TURNED_NAMES[name] if a != b and a >= batch else name)
        for index in (0, -1):
            if batch and a >= batch:
                with pytest.raises(RuntimeError, match="selecting sparse dimensions is not supported for batched sparse compressed tensors"):
                    sparse.select(a, index)
                continue
            chosen = sparse.select(a, index)
            assert cresset.equal(chosen.to_dense() if chosen.layout is not cresset.strided else chosen, plain.select(a, index))
            assert chosen.layout is (sparse.layout if a < batch else cresset.sparse_coo)


def test_dense_dimensions_of_compressed_tensors():
    hybrid = cresset.sparse_csr_tensor(cresset.tensor([0, 1, 2]), cresset.tensor([0, 1]), cresset.arange(10.0).reshape(2, 5), (2, 3, 5))
    assert cresset.equal(hybrid.transpose(0, 1).to_dense(), hybrid.to_dense().transpose(0, 1))
    assert cresset.equal(hybrid.select(2, 3).to_dense(), hybrid.to_dense().select(2, 3)) and hybrid.select(2, 3).layout is cresset.sparse_csr


def test_products_of_two_dtypes_are_refused():
    eye, double = cresset.eye(3), cresset.eye(3).double()
    for sparse in (cresset.Tensor.to_sparse, cresset.Tensor.to_sparse_csr):
        with pytest.raises(RuntimeError, match="mat1 dtype Float does not match mat2 dtype Double"):
            cresset.mm(sparse(eye), sparse(double))
        for call in (lambda s: cresset.mm(s, double), lambda s: s @ double, lambda s: cresset.mv(s, double[0])):
            with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
                call(sparse(eye))


def test_half_complex_numbers_become_dense():
    plain = cresset.eye(3).to(cresset.complex32)
    for sparse in (plain.to_sparse(), plain.to_sparse_csr()):
        assert sparse.to_dense().dtype is cresset.complex32 and cresset.equal(sparse.to_dense().to(cresset.complex64), plain.to(cresset.complex64))


_PLAIN = cresset.eye(4)
CONVERSIONS = [
    ("blocksize argument given is not supported", lambda: _PLAIN.to_sparse(blocksize=(2, 2))),
    ("dense_to_sparse: conversion from Strided to SparseCsr with blocksize", lambda: _PLAIN.to_sparse(layout=cresset.sparse_csr, blocksize=(2, 2))),
    ("dense_to_sparse: conversion from Strided to SparseBsr without blocksize", lambda: _PLAIN.to_sparse(layout=cresset.sparse_bsr)),
    ("sparse_dim argument must be in >0", lambda: _PLAIN.to_sparse(0)),
    (r"sparse_dim argument must be in \[0,2\] range, but 3 is given", lambda: _PLAIN.to_sparse(3)),
    (r"dense_dim argument must be in \[0,0\] range, but 1 is given", lambda: _PLAIN.to_sparse_csr(dense_dim=1)),
    ("to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim", lambda: _PLAIN.to_sparse().to_sparse(1)),
    ("sparse_coo_to_sparse: conversion from Sparse to SparseCsr with dense_dim", lambda: _PLAIN.to_sparse().to_sparse_csr(dense_dim=0)),
    ("sparse_compressed_to_sparse: conversion from SparseCsr to Sparse with sparse_dim argument !=2", lambda: _PLAIN.to_sparse_csr().to_sparse(1)),
    ("sparse_compressed_to_sparse: conversion from SparseCsr to SparseBsc without", lambda: _PLAIN.to_sparse_csr().to_sparse(layout=cresset.sparse_bsc)),
    ("to_sparse: conversion from SparseBsr to SparseBsr without", lambda: _PLAIN.to_sparse_bsr((2, 2)).to_sparse(layout=cresset.sparse_bsr)),
    ("empty_like with different sparse layout is not supported .self is SparseCsr but you requested SparseCsc.",
     lambda: cresset.empty_like(_PLAIN.to_sparse_csr(), layout=cresset.sparse_csc)),
    ("empty_like with different sparse layout is not supported .self is SparseBsr but you requested Strided.",
     lambda: cresset.empty_like(_PLAIN.to_sparse_bsr((2, 2)), layout=cresset.strided)),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(CONVERSIONS)))
def test_arguments_of_conversions_that_say_nothing(at):
    words, call = CONVERSIONS[at]
    with pytest.raises(RuntimeError, match=words):
        call()


def test_a_number_of_dimensions_and_a_layout():
    with pytest.raises(TypeError, match="takes 0 positional arguments but 1 was given"):
        _PLAIN.to_sparse(2, layout=cresset.sparse_coo)
    assert _PLAIN.to_sparse().to_sparse(2).layout is cresset.sparse_coo and _PLAIN.to_sparse_csr().to_sparse(2).layout is cresset.sparse_coo


SQUARE = cresset.eye(4) + cresset.ones(4, 4).tril()


def _made(layout, batch=False):
    x = cresset.stack([SQUARE, SQUARE]) if batch else SQUARE
    return x.to_sparse(layout=layout, **LAYOUTS[layout])


# What PyTorch 2.13 refuses, word for word: {from, to, blocksize, batch?: words}.
REFUSED = [
    ("sparse_bsr", "sparse_csr", None, False, "sparse_compressed_to_sparse_csr: expected SparseCsr or SparseCsc layout but got SparseBsr"),
    ("sparse_bsc", "sparse_csc", None, True, "sparse_compressed_to_sparse_csc: expected SparseCsr or SparseCsc layout but got SparseBsc"),
    ("sparse_bsr", "sparse_bsr", (1, 1), False, "to_sparse: conversion from SparseBsr to SparseBsr with blocksize changed from [2, 2] to [1, 1] is not supported"),
    ("sparse_bsc", "sparse_bsr", (4, 2), False, "sparse_compressed_to_sparse: conversion from SparseBsc to SparseBsr with blocksize changed from [2, 2] to [4, 2] is not supported"),
    ("sparse_csr", "sparse_bsr", (2, 2), True, "sparse_compressed_to_sparse: conversion from SparseCsr to SparseBsr for batched inputs is not supported"),
    ("sparse_csc", "sparse_bsc", None, True, "sparse_compressed_to_sparse: conversion from SparseCsc to SparseBsc for batched inputs is not supported"),
]


@pytest.mark.parametrize("source, target, blocksize, batch, words", REFUSED, ids=[r[4] for r in REFUSED])
def test_conversions_that_are_refused(source, target, blocksize, batch, words):
    sparse = _made(getattr(cresset, source), batch)
    with pytest.raises(RuntimeError) as caught:
        sparse.to_sparse(layout=getattr(cresset, target), blocksize=blocksize)
    assert str(caught.value) == words
    if not batch:  # the way round
        other = sparse.to_sparse_coo().to_sparse(layout=getattr(cresset, target), blocksize=blocksize)
        assert cresset.equal(other.to_dense(), SQUARE) and other.layout is getattr(cresset, target)


def test_coordinates_of_three_dimensions_are_not_compressed():
    coo = cresset.stack([SQUARE, SQUARE]).to_sparse()
    for layout, blocksize in (("csr", None), ("bsr", (2, 2)), ("bsc", None)):
        with pytest.raises(RuntimeError, match=r"conversion from Sparse to Sparse\w+ for input tensors with sparse_dim\(\)!=2 is not supported"):
            coo.to_sparse(layout=getattr(cresset, f"sparse_{layout}"), blocksize=blocksize)


def test_blocks_that_do_not_fit():
    with pytest.raises(RuntimeError) as caught:
        cresset.ones(4, 3).to_sparse(layout=cresset.sparse_bsr, blocksize=(2, 2))
    assert str(caught.value) == "dense_to_sparse: tensor sparse size (4,3) must be divisible by given blocksize (2,2)"


def test_dense_dimensions_of_coordinates():
    x = cresset.stack([SQUARE, 2 * SQUARE], -1)
    coo = x.to_sparse(layout=cresset.sparse_coo, dense_dim=1)
    assert (coo.sparse_dim(), coo.dense_dim()) == (2, 1) and coo._values().shape == (10, 2) and cresset.equal(coo.to_dense(), x)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_addmv(layout):
    mat, vec, added = _made(layout), cresset.arange(4.0), cresset.tensor([1.0, cresset.nan, 3.0, 4.0])
    want = SQUARE @ vec
    assert cresset.equal(cresset.addmv(added, mat, vec, beta=0), want)
    assert cresset.equal(cresset.addmv(cresset.ones(4), mat, vec, beta=0.5, alpha=2), want * 2 + 0.5)
    assert cresset.equal(cresset.ones(4).addmv_(mat, vec), want + 1)
    out = cresset.empty(0)
    assert cresset.addmv(cresset.ones(4), mat, vec, out=out) is out and cresset.equal(out, want + 1)


def test_sums_of_coordinates_do_not_grow_without_end():
    step = cresset.sparse_coo_tensor([[0, 0, 1]], [1.0, 2, 3], (4,))
    total = step
    for _ in range(10):
        total = total + step
    assert total._nnz() <= 4 + 3 and total.to_dense().tolist() == [33, 33, 0, 0]


@pytest.mark.parametrize("dims, words", [((1, 0), "does not match the length"), ((1, 1, 1), "duplicate dims are not allowed"), ((), "does not match the length")])
def test_permutations_that_are_none(dims, words):
    with pytest.raises(RuntimeError, match=words):
        cresset.ones(3, 3, 3).to_sparse().permute(dims)
    assert cresset.ones(()).to_sparse().permute(()).to_dense() == 1


SPDIAGS = [
    ((cresset.ones(1, 3), cresset.tensor([0]), (3, 2, 3)), "Output shape must be 2d"),
    ((cresset.ones(2, 3), cresset.tensor([[1, 2], [0, 3]]), (3, 3)), "Offsets must be scalar or vector"),
    ((cresset.ones(2, 3, 4), cresset.tensor([0, 1]), (3, 3)), "Diagonals must be vector or matrix"),
    ((cresset.ones(3), cresset.tensor([0, 1]), (3, 3)), r"Number of diagonals \(1\) does not match the number of offsets \(2\)"),
    ((cresset.ones(1, 3), cresset.tensor([0], dtype=cresset.int32), (3, 3)), "Offset Tensor must have dtype Long but got Int"),
    ((cresset.ones(1, 3), cresset.tensor([0]), (3, 3), cresset.strided), r"Only output layouts \(Sparse, SparseCsc, SparseCsr\) are supported, got Strided"),
]


@pytest.mark.parametrize("given, words", SPDIAGS, ids=[w for _, w in SPDIAGS])
def test_spdiags_refuses(given, words):
    with pytest.raises(RuntimeError, match=words):
        cresset.sparse.spdiags(*given)


def test_spdiags_without_diagonals():
    assert not cresset.sparse.spdiags(cresset.ones(0, 3), cresset.tensor([], dtype=cresset.int64), (3, 3)).to_dense().any()


def test_texts_have_no_types_of_indices_and_break_as_printed_tensors():
    csr = cresset.arange(16.0).reshape(4, 4).to_sparse_csr()
    short = cresset.sparse_csr_tensor(csr.crow_indices().int(), csr.col_indices().int(), csr.values(), (4, 4))
    assert repr(short).replace("cresset.", "torch.") == (
        "tensor(crow_indices=tensor([ 0,  3,  7, 11, 15]),\n"
        "       col_indices=tensor([1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]),\n"
        "       values=tensor([ 1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11.,\n"
        "                      12., 13., 14., 15.]), size=(4, 4), nnz=15,\n"
        "       layout=torch.sparse_csr)"
    )


def test_copies_fit_what_is_there():
    dense = cresset.arange(24.0).reshape(4, 6) + 1
    csr, blocks = dense.to_sparse_csr(), dense.to_sparse_bsr((2, 3))
    values = csr.values()
    assert csr.copy_((dense * 2).to_sparse_csr()) is csr and values[0].item() == 2 and cresset.equal(csr.to_dense(), dense * 2)
    for target, source, words in (
        (csr, dense, "copy of sparse compressed tensors having different layouts is not supported. self layout is SparseCsr and src layout is Strided"),
        (csr, dense.to_sparse_csc(), "self layout is SparseCsr and src layout is SparseCsc"),
        (dense.to_sparse(), csr, "copy_sparse_compressed_ expected sparse compressed tensor layout but got Sparse"),
        (dense.clone(), csr, "copy_sparse_compressed_ expected sparse compressed tensor layout but got Strided"),
        (csr, cresset.eye(4, 6).to_sparse_csr(), "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported."),
        (csr, dense.t().to_sparse_csr(), "expected shapes of self and src to match along dimension 0 for SparseCsr layout but the corresponding dimensions of self and src are 4 and 6"),
        (blocks, dense.to_sparse_bsr((1, 6)), "copy of sparse compressed tensors having different block sizes is not supported"),
    ):  # fmt: skip
        before = target.to_dense().clone()
        with pytest.raises(RuntimeError, match=re.escape(words)):
            target.copy_(source)
        assert cresset.equal(target.to_dense(), before)


def test_one_number_as_a_size_of_blocks():
    t = cresset.arange(16.0).view(4, 4).requires_grad_()
    for made in (t.to_sparse_bsr(2), t.to_sparse_bsc(2), t.to_sparse(layout=cresset.sparse_bsr, blocksize=2), t.detach().to_sparse_csr().to_sparse_bsr(2)):
        assert made.values().shape == (4, 2, 2) and cresset.equal(made.to_dense(), t)
    (grad,) = cresset.autograd.grad(t.to_sparse_bsr(2).to_dense().sum(), t)
    assert cresset.equal(grad, cresset.ones(4, 4))
    for sizes, error, words in (
        ([2], RuntimeError, "blocksize needs to be a tuple of size 2, but got 1"), ((0, 1), RuntimeError, r"blocksize needs to be positive, but got \[0, 1\]"),
        (-1, RuntimeError, r"blocksize needs to be positive, but got \[-1, -1\]"), ("a", TypeError, "must be tuple of ints, not str"),
        (True, TypeError, "must be tuple of ints, not bool"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            t.to_sparse_bsr(sizes)


@pytest.mark.parametrize("layout", [*LAYOUTS, cresset.sparse_coo], ids=str)
def test_values_are_views(layout):
    s = cresset.eye(4).to_sparse(layout=layout, **LAYOUTS.get(layout, {}))
    s = s.coalesce() if layout is cresset.sparse_coo else s
    assert s.values()._is_view() and s.values() is not s.values()
    s.values().mul_(3)
    assert s.to_dense()[1, 1] == 3
    if layout is not cresset.sparse_coo:
        turned = s.transpose(0, 1)
        assert turned._base is s and turned.values()._is_view()
        turned.values().mul_(2)
        assert s.to_dense()[1, 1] == 6


def test_words_name_the_dimensions_as_they_were_asked_for():
    with pytest.raises(RuntimeError, match=r"got 2\(Sparse\) and 0\(Batch\)"):
        cresset.ones(2, 3, 4).to_sparse_csr().transpose(2, 0)


def test_words_of_compressed_tensors():
    a, b = cresset.ones(2, 2).to_sparse_csr(), cresset.ones(2, 1).to_sparse_csr()
    with pytest.raises(RuntimeError, match="Expected input tensors to have the same shape, but got tensor `self` with shape .2, 2. and"):
        cresset.add(a, b)
    with pytest.raises(NotImplementedError, match="Cannot access storage of SparseCsrTensorImpl"):
        a.untyped_storage()
    for made in (a.to(cresset.complex64), a.to_sparse_coo().to(cresset.complex64)):
        with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors."):
            made.abs_()
