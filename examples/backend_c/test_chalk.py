"""The device `chalk`, found through CRESSET_BACKEND_PATH: what its kernels do, and what is left to the CPU."""

import cresset
import pytest


@pytest.fixture
def x():
    return cresset.arange(12.0).reshape(3, 4) - 5


def fallbacks(run):
    """The operators that ran on the CPU in run()."""
    cresset.accelerator.reset_fallback_counts()
    run()
    return {op for op, *_ in cresset.accelerator.fallback_counts()}


def test_its_own_kernels(x):
    d = x.to("chalk")
    with cresset.accelerator.set_fallback_mode("forbid"):
        results = {"relu": d.relu(), "add": d.add(d, alpha=3), "mm": d @ d.t(), "fill": cresset.full((5,), 2.5, device="chalk"), "transposed": d.t().contiguous(),
                   "in place": d.clone().relu_()}
    assert results["relu"].tolist() == results["in place"].tolist() == x.relu().tolist()
    assert results["add"].tolist() == x.add(x, alpha=3).tolist()
    assert results["mm"].tolist() == (x @ x.t()).tolist()
    assert results["fill"].tolist() == [2.5] * 5 and results["transposed"].tolist() == x.t().tolist()


def test_what_is_left_to_the_cpu(x):
    d = x.to("chalk")
    assert fallbacks(lambda: d.exp()) == {"aten::exp.out"} or fallbacks(lambda: d.exp()) == {"aten::exp"}
    assert fallbacks(lambda: d.long().relu()) >= {"aten::relu.out"}
    assert (d + d[0]).tolist() == (x + x[0]).tolist()
    assert cresset.relu(d, out=cresset.zeros(4, 3, device="chalk").t()).tolist() == x.relu().tolist()


def test_it_trains(x):
    cresset.manual_seed(0)
    model = cresset.nn.Sequential(cresset.nn.Linear(4, 8), cresset.nn.ReLU(), cresset.nn.Linear(8, 1)).to("chalk")
    optimiser, losses = cresset.optim.SGD(model.parameters(), lr=0.01), []
    for _ in range(10):
        optimiser.zero_grad()
        loss = model(x.to("chalk")).pow(2).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
