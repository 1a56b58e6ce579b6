"""Uses the trained network with an operator and on a device that were both built outside of Cresset."""

import argparse
import sys
from pathlib import Path

import cresset
from cresset import nn

from model import DigitsNet


def accuracy(net, images, labels):
    net.eval()
    with cresset.no_grad():
        return (net(images).cpu().argmax(1) == labels.cpu()).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder with the weights and the test data")
    parser.add_argument("--operator", type=Path, required=True, help="library that registers demo::hardswish_scaled")
    parser.add_argument("--backend", type=Path, required=True, help="library that registers the device `tin` on PrivateUse1")
    args = parser.parse_args()
    test = cresset.load(args.out / "digits_test.safetensors")
    images, labels = test["images"], test["labels"]
    weights = cresset.load(args.out / "digits.safetensors")

    # An operator from outside: its gradient, then a few steps of training with it inside the network.
    cresset.ops.load_library(str(args.operator))
    hardswish_scaled = cresset.ops.demo.hardswish_scaled
    x = cresset.linspace(-4, 4, 9, dtype=cresset.float64).requires_grad_()
    y = hardswish_scaled(x, 2.0)
    (gradient,) = cresset.autograd.grad(y.sum(), x)
    (reference,) = cresset.autograd.grad((2.0 * nn.functional.hardswish(x)).sum(), x)
    assert cresset.allclose(gradient, reference), (gradient, reference)
    print(f"demo::hardswish_scaled: value {y[6].item():.4f} at x = 2, gradient {gradient[6].item():.4f}")

    net = DigitsNet(activation=lambda t: hardswish_scaled(t, 1.0))
    net.load_state_dict(weights)
    before = accuracy(net, images, labels)
    net.train()
    optimizer = cresset.optim.Adam(net.parameters(), lr=1e-3)
    from data import load

    train_images, train_labels, _, _ = load()
    for _ in range(20):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(train_images), train_labels).backward()
        optimizer.step()
    after = accuracy(net, images, labels)
    print(f"network with hardswish_scaled: accuracy {before:.4f} before and {after:.4f} after 20 steps of training")

    # A device from outside: one inference, every operator through the CPU fallback.
    cresset.ops.load_library(str(args.backend))
    net = DigitsNet()
    net.load_state_dict(weights)
    on_cpu = accuracy(net, images, labels)
    net.to("tin")
    on_device = accuracy(net, images.to("tin"), labels)
    print(f"inference on device `tin` (PrivateUse1): accuracy {on_device:.4f}, on the CPU {on_cpu:.4f}")
    if on_device != on_cpu:
        sys.exit("the device gives another answer than the CPU")


if __name__ == "__main__":
    main()
