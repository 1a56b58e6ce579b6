"""Sparse gradients: Adagrad and SGD take them, LBFGS makes them dense, the others refuse before they change anything."""

import cresset
import pytest
from cresset import nn, optim


def after_steps(name, steps=2, **options):
    """Rows 1 and 3 of a table of which row 1 was used twice and row 3 once in each step, and the optimiser."""
    table = nn.Embedding(4, 2, sparse=True)
    with cresset.no_grad():
        table.weight.copy_(cresset.tensor([[1.5410, -0.2934], [-2.1788, 0.5684], [-1.0845, -1.3986], [0.4033, 0.8380]]))
    optimizer = getattr(optim, name)(table.parameters(), **options)

    def closure():
        optimizer.zero_grad()
        loss = table(cresset.tensor([1, 1, 3])).pow(2).sum()
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    assert table.weight[[0, 2]].tolist() == cresset.tensor([[1.5410, -0.2934], [-1.0845, -1.3986]]).tolist()
    return table.weight[[1, 3]].tolist(), optimizer


# Run with PyTorch 2.13.
@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"lr": 0.1}, [[-2.00978, 0.40480], [0.24318, 0.67190]]),
        ({"lr": 0.1, "foreach": True}, [[-2.00978, 0.40480], [0.24318, 0.67190]]),
        ({"lr": 0.1, "lr_decay": 0.1}, [[-2.01604, 0.41059], [0.24866, 0.67792]]),
        ({"lr": 0.1, "initial_accumulator_value": 2.0}, [[-2.01151, 0.42493], [0.31390, 0.70453]]),
        ({"lr": 0.1, "maximize": True}, [[-2.35108, 0.74458], [0.58134, 1.01257]]),
    ],
)
def test_adagrad_steps_the_rows_it_is_given(options, want):
    rows, optimizer = after_steps("Adagrad", **options)
    assert cresset.allclose(cresset.tensor(rows), cresset.tensor(want), atol=2e-5)
    (state,) = optimizer.state.values()
    assert not state["sum"].is_sparse and (state["sum"][[0, 2]] == options.get("initial_accumulator_value", 0)).all()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_on_lists_takes_sparse_gradients(momentum):
    assert after_steps("SGD", lr=0.1, momentum=momentum, foreach=True)[0] == after_steps("SGD", lr=0.1, momentum=momentum)[0]


def test_lbfgs_makes_them_dense():
    rows, _ = after_steps("LBFGS", steps=1)
    assert cresset.tensor(rows).abs().max() < 1e-3


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("Adam", {}, "Adam does not support sparse gradients, please consider SparseAdam instead"),
        ("Adam", {"foreach": True}, "Adam does not support sparse gradients, please consider SparseAdam instead"),
        ("AdamW", {"fused": True}, "Adam does not support sparse gradients, please consider SparseAdam instead"),
        *((name, {}, f"{name} does not support sparse gradients") for name in "NAdam RAdam Adadelta Adamax ASGD Rprop RMSprop Adafactor Muon".split()),
        ("RMSprop", {"foreach": True}, "RMSprop does not support sparse gradients"),
        ("SGD", {"fused": True}, "`_fused_sgd` does not support sparse gradients"),
        ("SGD", {"weight_decay": 0.1}, "sparse"),
        ("Adagrad", {"fused": True}, "`fused` does not support sparse grad or complex param"),
        ("Adagrad", {"weight_decay": 0.1}, "weight_decay option is not compatible with sparse gradients"),
    ],
)
def test_others_refuse(name, options, text):
    with pytest.raises(RuntimeError, match=text):
        after_steps(name, **options)


def test_nothing_is_changed_before_the_refusal():
    dense, sparse = cresset.ones(2, 2, requires_grad=True), cresset.ones(2, 2, requires_grad=True)
    dense.grad, sparse.grad = cresset.ones(2, 2), cresset.eye(2).to_sparse()
    optimizer = optim.Adam([dense, sparse])
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        optimizer.step()
    assert (dense == 1).all() and not optimizer.state
