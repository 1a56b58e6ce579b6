"""Operators with two names: graphs have one of them (row keys `aliases` and `canonical` of the operator table)."""

import pytest

import cresset as torch

# Call, the operator its graph has. The names are PyTorch's second names of these operators.
CASES = [
    ("torch.absolute(x)", "aten::abs"),
    ("torch.det(x)", "aten::linalg_det"),
    ("torch.inverse(x)", "aten::linalg_inv"),
    ("torch.concat([x, x])", "aten::cat"),
    ("torch.concatenate([x, x])", "aten::cat"),
    ("torch.clip(x, 0., 1.)", "aten::clamp"),
    ("torch.true_divide(x, x)", "aten::div"),
    ("torch.special.psi(x)", "aten::digamma"),
    ("torch.special.round(x)", "aten::round"),
    ("torch.special.softmax(x, 0)", "aten::softmax"),
    ("torch.swapaxes(x, 0, 1)", "aten::transpose"),
    ("x.multiply_(x)", "aten::mul_"),
    ("x.adjoint()", "aten::mH"),
]


@pytest.mark.parametrize(("call", "operator"), CASES, ids=[call for call, _ in CASES])
def test_graphs_have_the_canonical_name(call, operator):
    unit = torch.jit.CompilationUnit(f"def f(x: Tensor):\n    return {call}\n")
    kinds = {node.kind() for node in unit.f.graph.nodes()}
    assert operator in kinds
    assert {kind for kind in kinds if kind.startswith("aten::")} == {operator}
