"""Programs with sparse tensors, and fakes of sparse tensors: graphs and forms are those of PyTorch 2.13."""

import pytest

import cresset
from cresset import nn
from cresset._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensor, FakeTensorMode
from cresset.export import export

COO, CSR, BSR = cresset.eye(4).to_sparse(), cresset.eye(4).to_sparse_csr(), cresset.eye(4).to_sparse_bsr((2, 2))


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def same(a, b):
    assert a.layout is b.layout
    return cresset.equal(*(t if t.layout is cresset.strided else t.to_dense() for t in (a, b)))


ONES = cresset.ones(4, 4)
CASES = {  # function, inputs, the operators, the layouts of all values
    "nothing": (lambda x: x, (COO,), "", "coo"),
    "elements": (lambda x: nn.functional.relu(2 * cresset.abs(-x)), (COO,), "neg abs mul relu", "coo coo coo coo coo"),
    "elements of blocks": (lambda x: nn.functional.relu(2 * cresset.abs(-x)), (BSR,), "neg abs mul relu", "bsr bsr bsr bsr bsr"),
    "to_dense": (lambda x: x.to_dense(), (CSR,), "to_dense", "csr strided"),
    "sum": (lambda x: x.sum(), (CSR,), "sum", "csr strided"),
    "add": (cresset.add, (CSR, ONES), "add", "csr strided strided"),
    "to_sparse": (lambda x: x.to_sparse(), (ONES,), "to_sparse", "strided coo"),
    "to_sparse_csr": (lambda x: x.to_sparse_csr(), (ONES,), "to_sparse_csr", "strided csr"),
    "product": (lambda x, y: x @ y, (COO, ONES), "matmul", "coo strided strided"),
    "sparse.mm": (lambda x: cresset.sparse.mm(x, x), (CSR,), "_sparse_mm", "csr csr"),
    "values": (lambda x: x.coalesce().values(), (COO,), "coalesce values", "coo coo strided"),
}


@pytest.mark.parametrize("case", CASES)
def test_programs(case):
    function, inputs, operators, layouts = CASES[case]
    program = export(Calls(function), inputs)
    nodes = [n for n in program.graph.nodes if n.op != "output"]
    assert [n.target._schema.name.partition("::")[2] for n in nodes if n.op == "call_function"] == operators.split()
    values = [n.meta["val"] for n in nodes]
    assert [str(v.layout).rpartition(".")[2].removeprefix("sparse_") for v in values] == layouts.split()
    assert all(isinstance(v, FakeTensor) for v in values)
    others = [x * 3 for x in inputs]
    assert same(program.module()(*others), function(*others))


def test_fakes_keep_no_elements():
    mode = FakeTensorMode()
    fake = mode.from_tensor(COO)
    assert repr(fake) == ("FakeTensor(indices=tensor(..., size=(2, 0)),\n           values=tensor(..., size=(0,)),\n           size=(4, 4), layout=cresset.sparse_coo)")
    assert (fake._nnz(), fake.sparse_dim(), fake.dense_dim(), fake.is_coalesced(), fake.is_sparse) == (0, 2, 0, True, True)
    compressed = mode.from_tensor(BSR)
    assert compressed.crow_indices().shape == (3,) and compressed.values().shape == (0, 2, 2) and isinstance(compressed.values(), FakeTensor)
    for x in (fake, compressed):
        assert isinstance(x * 2, FakeTensor) and (x * 2).layout is x.layout
        assert x.to_dense().layout is cresset.strided and x.to_dense().shape == (4, 4) and x.sum().shape == ()
    large = mode.from_tensor(cresset.sparse_coo_tensor([[0], [0]], [1.0], (10**7, 10**7)))
    assert large.to_dense().shape == (10**7, 10**7)  # nothing is allocated
    values = mode.from_tensor(cresset.ones(2))
    made = cresset.sparse_coo_tensor(mode.from_tensor(cresset.zeros(2, 2, dtype=cresset.int64)), values, (3, 3))
    assert isinstance(made, FakeTensor) and made.layout is cresset.sparse_coo and made.shape == (3, 3)
    with pytest.raises(DynamicOutputShapeException):
        cresset.sparse_coo_tensor(mode.from_tensor(cresset.zeros(2, 2, dtype=cresset.int64)), values)


@pytest.mark.parametrize("x", [COO, CSR, BSR, cresset.ones(2, 3, 4).to_sparse(1)])
def test_meta_tensors_keep_no_elements(x):
    meta = x.to("meta")
    assert meta._nnz() == 0 and meta.shape == x.shape and meta.layout is x.layout
    assert all(part.device.type == "meta" for part in meta._parts() if isinstance(part, cresset.Tensor))
