"""What is made without gradients is no view of memory that nobody else has: it takes results with gradients later."""

import pytest

import cresset
from cresset.nn import functional as F

X = cresset.arange(6.0).view(2, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cresset.stack([X, X]),
        lambda: cresset.stack([X, X], 1),
        lambda: X.repeat(2, 1),
        lambda: X.tile(2),
        lambda: F.embedding(cresset.tensor([[0, 1]]), X),
        lambda: F.affine_grid(cresset.ones(1, 2, 3), (1, 1, 2, 2), align_corners=False),
    ],
    ids=["stack", "stack in the middle", "repeat", "tile", "embedding", "affine_grid"],
)
def test_results_take_gradients(make):
    with cresset.no_grad():
        result = make()
    assert not result._is_view() and not make()._is_view()
    factor = cresset.full((1,), 2.0, requires_grad=True)
    total = result.sum().item()
    result.mul_(factor).sum().backward()
    assert factor.grad.item() == pytest.approx(total)


def test_computed_tensors_keep_their_flag():
    y = cresset.ones(1, requires_grad=True) * 2
    for wanted, more in ((True, ""), (False, " If you want to use a computed variable in a subgraph")):
        with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables." + more):
            y.requires_grad = wanted
    assert y.requires_grad
