"""What a new device must do from the first day."""

import copy

import cresset
import pytest

DEVICE = "minimal"


@pytest.fixture
def x():
    return cresset.arange(12.0).reshape(3, 4)


def same(on_device, expected):
    assert on_device.device.type == DEVICE
    assert cresset.equal(on_device.cpu(), expected)


def test_there_and_back(x):
    same(x.to(DEVICE), x)
    same(x.t().to(DEVICE), x.t())
    assert x.to(f"{DEVICE}:1").device.index == 1


def test_operators(x):
    d = x.to(DEVICE)
    same(d + 1, x + 1)
    same(d @ d.t(), x @ x.t())
    same(-d, -x)
    same(-d.long(), -x.long())
    assert d.sum().item() == x.sum().item()


def test_views(x):
    d = x.to(DEVICE)
    d[1:, ::2].mul_(10)
    expected = x.clone()
    expected[1:, ::2].mul_(10)
    same(d, expected)


def test_gradients(x):
    d = x.to(DEVICE).requires_grad_()
    (d.exp().sum() - d.sum()).backward()
    assert cresset.allclose(d.grad.cpu(), x.exp() - 1)


def test_module_and_optimiser(x):
    cresset.manual_seed(0)
    model = cresset.nn.Linear(4, 2).to(DEVICE)
    optimiser = cresset.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        optimiser.zero_grad()
        loss = model(x.to(DEVICE)).pow(2).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_save_and_load(x, tmp_path):
    cresset.save({"x": x.to(DEVICE)}, tmp_path / "file")
    same(cresset.load(tmp_path / "file")["x"], x)
    assert cresset.load(tmp_path / "file", map_location="cpu")["x"].device.type == "cpu"
    same(copy.deepcopy(x.to(DEVICE)), x)


def test_printing(x):
    assert repr(x[0].to(DEVICE)) == f"tensor([0., 1., 2., 3.], device='{DEVICE}:0')"


def test_what_runs_on_the_cpu(x):
    cresset.accelerator.reset_fallback_counts()
    x.to(DEVICE).exp()
    assert "aten::exp" in cresset.accelerator.fallback_report()
    with cresset.accelerator.set_fallback_mode("forbid"), pytest.raises(NotImplementedError, match="aten::exp"):
        x.to(DEVICE).exp()
