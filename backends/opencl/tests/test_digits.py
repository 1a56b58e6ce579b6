"""The convolutional network of examples/digits, trained on the device and on the CPU."""

import sys
from pathlib import Path

import cresset
import pytest
from cresset import nn, optim

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples/digits"))

EPOCHS = 8


def train(device):
    """Accuracy on the held-out quarter; the batches are the same on every device."""
    from data import load
    from model import DigitsNet

    cresset.manual_seed(0)
    train_x, train_y, test_x, test_y = (t.to(device) for t in load())
    net = DigitsNet().to(device)
    optimizer = optim.Adam(net.parameters(), lr=2e-3)
    order = cresset.Generator().manual_seed(3)
    for _ in range(EPOCHS):
        for batch in cresset.randperm(len(train_y), generator=order).to(device).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(train_x[batch]), train_y[batch]).backward()
            optimizer.step()
    net.eval()
    with cresset.no_grad():
        return (net(test_x).argmax(1) == test_y).float().mean().item()


def test_training_reaches_the_accuracy_of_the_cpu(fallbacks):
    pytest.importorskip("sklearn")
    on_device = train("opencl")
    report = cresset._C._fallback_report(20)
    assert on_device >= 0.96 and abs(on_device - train("cpu")) < 0.02, report
    assert fallbacks() == [], report
