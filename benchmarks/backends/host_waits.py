"""How often the host waits for a device in one training step, and in copies and fills: python benchmarks/backends/host_waits.py

The device is `simulated` (backends/simulated, through CRESSET_BACKEND_PATH), which counts; its queue is kept full. Only item() needs to wait.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "backends/simulated"), str(ROOT / "tests/backends")]

import cresset  # noqa: E402
from cresset import nn  # noqa: E402
from waiting import CALLS, MADE, OPTIMISERS, _step, faults, waits  # noqa: E402

DEVICE = "simulated"


def training_step(name):
    """(waits of a step, waits of its item())."""
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)).to(DEVICE)
    x, target = cresset.randn(5, 6).to(DEVICE), cresset.randn(5, 3).to(DEVICE)
    optimiser = OPTIMISERS[name](model.parameters())
    _step(model, optimiser, x, target, nn.functional.mse_loss)  # states are made
    count, loss = waits(DEVICE, lambda: _step(model, optimiser, x, target, nn.functional.mse_loss))
    return count, waits(DEVICE, loss.item)[0]


def main():
    x = MADE.to(DEVICE)
    cresset.accelerator.synchronize(DEVICE)
    print(f"{'waits':>5}  call")
    with faults.fault("delay", 500, DEVICE):
        for name, call in CALLS.items():
            print(f"{waits(DEVICE, lambda: call(x))[0]:5}  {name}")
        for name in OPTIMISERS:
            count, item = training_step(name)
            print(f"{count:5}  training step with {name} (item(): {item})")
    cresset.accelerator.synchronize(DEVICE)


if __name__ == "__main__":
    main()
