"""Kernels that programs register for sparse and quantized tensors."""

import pytest

import cresset
from cresset.library import Library


@pytest.fixture
def library():
    library = Library("layout_kernels", "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: cresset.full((1,), 1.0), "CPU")
    yield library
    library._destroy()


def answer(x):
    return cresset.ops.layout_kernels.f(x).item()


def test_kernels_by_layout(library):
    coo, csr, plain = cresset.eye(2).to_sparse(), cresset.eye(2).to_sparse_csr(), cresset.eye(2)
    q = cresset.quantize_per_tensor(plain, 0.5, 0, cresset.qint8)
    for value, key in enumerate(("SparseCPU", "SparseCsrCPU", "QuantizedCPU"), 2):
        library.impl("f", lambda x, value=value: cresset.full((1,), float(value)), key)
    assert [answer(t) for t in (plain, coo, csr, q)] == [1, 2, 3, 4]


def test_they_go_with_their_library(library):
    other = Library("layout_kernels", "IMPL")
    other.impl("f", lambda x: cresset.full((1,), 9.0), "SparseCPU")
    coo = cresset.eye(2).to_sparse()
    assert answer(coo) == 9
    other._destroy()
    with pytest.raises(NotImplementedError, match="Could not run 'layout_kernels::f' with arguments from the 'SparseCPU' backend"):
        answer(coo)


def test_they_come_before_the_rules():
    library = Library("aten", "IMPL")
    library.impl("neg", lambda x: cresset.full((1,), 7.0), "SparseCPU")
    try:
        assert (-cresset.eye(2).to_sparse()).item() == 7
    finally:
        library._destroy()
    assert (-cresset.eye(2).to_sparse()).to_dense().tolist() == [[-1, 0], [0, -1]]
