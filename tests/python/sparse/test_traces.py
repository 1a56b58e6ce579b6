"""Traces of sparse tensors: what is recorded computes with other inputs. Nodes are those of PyTorch 2.13; the results are those of strided tensors."""

import pytest

import cresset as torch

X = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0], [4.0, 0.0, 0.0]])
PLACES = torch.tensor([[0, 1], [1, 2]])


def softmax(x):
    return torch.where(x == 0, torch.tensor(float("-inf")), x).softmax(1)


def placed(x):
    return torch.zeros(3, 3).index_put((PLACES[0], PLACES[1]), x[0, :2])


CASES = {
    "coordinates": (lambda x: x.to_sparse().to_dense(), "to_sparse to_dense", lambda x: x),
    "times": (lambda x: (x.to_sparse() * 2).to_dense(), "to_sparse mul to_dense", lambda x: x * 2),
    "values": (lambda x: x.to_sparse().coalesce().values(), "to_sparse coalesce values", lambda x: x[x != 0]),
    "parts": (lambda x: x.to_sparse(1)._values(), "to_sparse _values", lambda x: x),
    "rows": (lambda x: x.to_sparse_csr().crow_indices(), "to_sparse_csr crow_indices", lambda x: torch.tensor([0, *(x != 0).sum(1).cumsum(0).tolist()])),
    "columns": (lambda x: x.to_sparse_csc().to_dense(), "to_sparse_csc to_dense", lambda x: x),
    "blocks": (lambda x: x.to_sparse_bsr((1, 3)).to_dense(), "to_sparse_bsr to_dense", lambda x: x),
    "product": (lambda x: torch.sparse.mm(x.to_sparse(), x), "to_sparse _sparse_mm", lambda x: x @ x),
    "operator": (lambda x: x.to_sparse() @ x, "to_sparse matmul", lambda x: x @ x),
    "smm": (lambda x: torch.smm(x.to_sparse(), x).to_dense(), "to_sparse smm to_dense", lambda x: x @ x),
    "hspmm": (lambda x: torch.hspmm(x.to_sparse(), x).to_dense(), "to_sparse hspmm to_dense", lambda x: x @ x),
    "sspaddmm": (
        lambda x: torch.sspaddmm(x.to_sparse(), x.to_sparse(), x).to_dense(), "to_sparse to_sparse sspaddmm to_dense", lambda x: x + x @ x,
    ),
    "addmm": (lambda x: torch.sparse.addmm(x, x.to_sparse(), x), "to_sparse _sparse_addmm", lambda x: x + x @ x),
    "sampled": (
        lambda x: torch.sparse.sampled_addmm(x.to_sparse_csr(), x, x).to_dense(), "to_sparse_csr sparse_sampled_addmm to_dense",
        lambda x: (x + x @ x) * (x != 0),
    ),
    "sum": (lambda x: torch.sparse.sum(x.to_sparse(), 0).to_dense(), "to_sparse _sparse_sum to_dense", lambda x: x.sum(0)),
    "sum of all": (lambda x: torch.sparse.sum(x.to_sparse()), "to_sparse _sparse_sum", lambda x: x.sum()),
    "softmax": (lambda x: torch.sparse.softmax(x.to_sparse(), 1).to_dense(), "to_sparse _sparse_softmax to_dense", softmax),
    "made of parts": (
        lambda x: torch.sparse_coo_tensor(PLACES, x[0, :2], (3, 3)).to_dense(), "select slice sparse_coo_tensor to_dense", placed,
    ),
    "made of compressed parts": (
        lambda x: torch.sparse_csr_tensor(torch.tensor([0, 1, 2, 2]), PLACES[1], x[0, :2], (3, 3)).to_dense(),
        "select select slice sparse_compressed_tensor to_dense", placed,
    ),
}  # fmt: skip
LEFT_OUT = ("Constant", "ListConstruct", "to", "detach")  # how the indices came to be


@pytest.mark.parametrize("case", CASES)
def test_another_input_gives_its_own_result(case):
    call, expected_nodes, expected = CASES[case]
    traced = torch.jit.trace(call, (torch.eye(3),))
    kinds = [n.kind().partition("::")[2] for n in traced.graph.nodes()]
    assert [k for k in kinds if k not in LEFT_OUT] == expected_nodes.split()
    torch.testing.assert_close(traced(X), expected(X))


def test_a_trace_takes_and_gives_sparse_tensors():
    one, other = torch.eye(3).to_sparse(), X.to_sparse()
    assert torch.equal(torch.jit.trace(lambda s: s.to_dense(), (one,))(other), X)
    assert torch.equal(torch.jit.trace(lambda s: s.coalesce().values(), (one,))(other), X[X != 0])
    out = torch.jit.trace(lambda x: x.to_sparse(), (torch.eye(3),), check_trace=False)(X)
    assert out.layout is torch.sparse_coo and torch.equal(out.to_dense(), X)
