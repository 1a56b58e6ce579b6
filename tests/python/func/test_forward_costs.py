"""A derivative of several results is computed once: how many products, solves and factorisations a forward derivative of a decomposition takes."""

from collections import Counter

import pytest

import cresset as torch
from cresset.profiler import profile

torch.manual_seed(0)
TALL, TALL_T = torch.randn(6, 4, dtype=torch.double), torch.randn(6, 4, dtype=torch.double)
SQUARE, SQUARE_T = TALL[:4] @ TALL[:4].mT, TALL_T[:4] + TALL_T[:4].mT
L = torch.linalg

# what PyTorch 2.13 takes, or one product more: (function, input, tangent, {operator: at most})
COSTS = {
    "svd": (lambda a: L.svd(a, full_matrices=False), TALL, TALL_T, {"aten::mm": 8, "aten::_linalg_svd": 1}),
    "eigh": (L.eigh, SQUARE, SQUARE_T, {"aten::mm": 3, "aten::_linalg_eigh": 1}),
    "eig": (L.eig, SQUARE, SQUARE_T, {"aten::mm": 3, "aten::linalg_eig": 1}),
    "qr": (L.qr, TALL, TALL_T, {"aten::mm": 3, "aten::linalg_qr": 1, "aten::linalg_solve_triangular": 1}),
    "lu": (L.lu, SQUARE, SQUARE_T, {"aten::mm": 6, "aten::linalg_lu_factor_ex": 1, "aten::linalg_solve_triangular": 4}),
    "inv_ex": (L.inv_ex, SQUARE, SQUARE_T, {"aten::mm": 2, "aten::linalg_inv_ex": 1}),
    "cholesky_ex": (L.cholesky_ex, SQUARE, SQUARE_T, {"aten::mm": 1, "aten::linalg_solve_triangular": 2}),
}


@pytest.mark.parametrize("name", COSTS)
def test_each_part_is_computed_once(name):
    function, x, tangent, allowed = COSTS[name]
    with profile() as prof:
        torch.func.jvp(function, (x,), (tangent,))
    took = Counter(e.name for e in prof.events())
    assert {k: took[k] for k in allowed if took[k] > allowed[k]} == {}
    assert any(took[k] for k in allowed)
