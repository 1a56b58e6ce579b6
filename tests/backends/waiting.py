"""Nobody waits that need not: on `simulated`, whose queue is kept full, the host waits for nothing but item().

Run by tests/extensions/test_backends.py.
"""

import contextlib
import sys
from pathlib import Path

import cresset
import pytest
from cresset import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "backends/simulated"))
from cresset_simulated import faults  # noqa: E402

DEVICES = ("simulated", "opaque")


@contextlib.contextmanager
def full_queue(device):
    """Every task is late, so that whoever waits waits long; nothing may run on the CPU."""
    cresset.accelerator.synchronize(device)
    with faults.fault("delay", 2_000, device), cresset.accelerator.set_fallback_mode("forbid"):
        yield
    cresset.accelerator.synchronize(device)


def waits(device, run):
    """(how often the host waited in run(), its result)."""
    before = faults.calls("host_wait", device)
    result = run()
    return faults.calls("host_wait", device) - before, result


MADE = cresset.arange(24.0).reshape(4, 6)
CALLS = {
    "clone": lambda x: x.clone(),
    "clone of a transposed tensor": lambda x: x.t().clone(memory_format=cresset.contiguous_format),
    "contiguous": lambda x: x.t().contiguous(),
    "clone of a slice": lambda x: x[1:, ::2].clone(),
    "copy_": lambda x: cresset.empty_like(x).copy_(x),
    "copy_ into a slice": lambda x: _into(x, lambda y: y[:, 1:3].copy_(x[:, 2:4])),
    "copy_ within a tensor": lambda x: _into(x, lambda y: y[:, :2].copy_(y[:, 1:3])),
    "fill_": lambda x: cresset.empty_like(x).fill_(2.5),
    "fill_ of a slice": lambda x: _into(x, lambda y: y[:, ::2].fill_(7.0)),
    "zero_": lambda x: _into(x, lambda y: y[1:3].zero_()),
    "full": lambda x: cresset.full((3, 5), 1.25, device=x.device),
    "ones": lambda x: cresset.ones(7, device=x.device, dtype=cresset.int64),
    "to another type": lambda x: x.to(cresset.float64),
    "to another type, strided": lambda x: x.t().to(cresset.int32),
    "to bool": lambda x: x.bool(),
    "expand and clone": lambda x: x[:1].expand(5, 6).clone(),
}  # fmt: skip


def _into(x, change):
    y = x.clone()
    change(y)
    return y


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CALLS)
def test_copies_and_fills(device, name):
    x = MADE.to(device)
    with full_queue(device):
        count, result = waits(device, lambda: CALLS[name](x))
    assert cresset.equal(result.cpu(), CALLS[name](MADE))
    assert count == 0


def _step(model, optimiser, x, target, loss):
    optimiser.zero_grad()
    found = loss(model(x), target)
    found.backward()
    optimiser.step()
    return found


OPTIMISERS = {
    "SGD": lambda parameters: cresset.optim.SGD(parameters, lr=0.05),
    "SGD with momentum": lambda parameters: cresset.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.01),
    "Adam": lambda parameters: cresset.optim.Adam(parameters, lr=0.01),
    "AdamW": lambda parameters: cresset.optim.AdamW(parameters, lr=0.01),
}


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_training_step(optimiser):
    """Forward, backward with its seed gradient, AccumulateGrad, optimiser: the steps are the CPU's, and only item() waits."""
    device, losses = "simulated", {}
    for place in ("cpu", device):
        cresset.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
        x, target = cresset.randn(5, 6), cresset.randn(5, 3)
        model, x, target = model.to(place), x.to(place), target.to(place)
        chosen = OPTIMISERS[optimiser](model.parameters())
        losses[place] = [_step(model, chosen, x, target, nn.functional.mse_loss).item()]  # states are made
        if place == device:
            with full_queue(device):
                count, found = waits(device, lambda: [_step(model, chosen, x, target, nn.functional.mse_loss) for _ in range(3)])
                assert count == 0
                assert waits(device, found[-1].item)[0] == 1
        else:
            found = [_step(model, chosen, x, target, nn.functional.mse_loss) for _ in range(3)]
        losses[place] += [v.item() for v in found]
    assert losses[device] == pytest.approx(losses["cpu"], rel=1e-5)


def test_gradients_are_added():
    """A second backward adds to the gradients that are there."""
    device = "simulated"
    w = cresset.ones(3, device=device, requires_grad=True)
    x = cresset.arange(3.0, device=device)
    with full_queue(device):
        count, _ = waits(device, lambda: [(w * x).sum().backward() for _ in range(3)])
    assert count == 0 and w.grad.tolist() == [0.0, 3.0, 6.0]


def test_round_trips_are_counted_and_forbidden():
    """`minimal` has neither entry: a copy of many short rows goes through the host, which the report says and `forbid` refuses."""
    x = cresset.arange(600.0).reshape(200, 3).to("minimal")
    cresset.accelerator.reset_fallback_counts()
    assert cresset.equal(x.t().contiguous().cpu(), cresset.arange(600.0).reshape(200, 3).t())
    report = {op: calls for op, calls, *_ in cresset.accelerator.fallback_counts()}
    assert report == {"aten::_copy_from": 1}
    with cresset.accelerator.set_fallback_mode("forbid"):
        assert x[3:7].clone().tolist() == x[3:7].cpu().tolist(), "few rows are copied by the device"
        assert cresset.full((3,), 1.5, device="minimal").tolist() == [1.5] * 3
        with pytest.raises(NotImplementedError, match="aten::_copy_from"):
            x.t().contiguous()
        with pytest.raises(NotImplementedError, match="aten::_copy_from"):
            x.long()
        with pytest.raises(NotImplementedError, match="aten::fill_"):
            x[:, ::2].fill_(1.0)
