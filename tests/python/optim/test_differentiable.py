"""Steps that are differentiated through: every tensor of the state counts."""

import cresset as torch
import pytest
from cresset.optim import NAdam


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "decoupled_weight_decay": True}])
def test_nadam_through_the_product_of_its_weights(options):
    def step(p, grad, average, square, product):
        p = p.clone()
        p.grad = grad
        optimizer = NAdam([p], lr=0.9, differentiable=True, **options)
        optimizer.state[p].update(step=torch.tensor(10.0), exp_avg=average.clone(), exp_avg_sq=square.clone(), mu_product=product.clone())
        optimizer.step()
        return (p, *(v for v in optimizer.state[p].values() if v.requires_grad))

    def leaf(*sizes):
        return torch.rand(*sizes, dtype=torch.float64).add(0.1).requires_grad_()

    product = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(step, (leaf(4), leaf(4), leaf(4), leaf(4), product))


@pytest.mark.parametrize("first, word", [(False, "with"), (True, "without")])
def test_groups_agree_about_names(first, word):
    p, q = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.AdamW([("p", p)] if first else [p])
    with pytest.raises(ValueError, match=f"cannot add param group {word} names to the optimizer"):
        optimizer.add_param_group({"params": [q] if first else [("q", q)]})
