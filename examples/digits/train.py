"""Trains the digits network, prints its accuracy on a held-out quarter and a confusion table, and saves the weights."""

import argparse
import sys
import time
from pathlib import Path

import cresset
from cresset import nn, optim
from cresset.utils.data import DataLoader, TensorDataset

from data import load
from model import DigitsNet

EPOCHS = 20
REQUIRED = 0.98


def progress(epoch, batch, batches, loss):
    """A bar that redraws itself on a terminal; one plain line an epoch otherwise."""
    done = batch == batches
    if sys.stdout.isatty():
        filled = 30 * batch // batches
        print(f"\repoch {epoch:2d}/{EPOCHS} [{'#' * filled}{'.' * (30 - filled)}] loss {loss:.4f}", end="\n" if done else "", flush=True)
    elif done:
        print(f"epoch {epoch:2d}/{EPOCHS}  loss {loss:.4f}", flush=True)


def train(net, images, labels):
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
    optimizer = optim.Adam(net.parameters(), lr=2e-3)
    net.train()
    for epoch in range(1, EPOCHS + 1):
        total, seen = 0.0, 0
        for batch, (x, y) in enumerate(loader, 1):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            total, seen = total + loss.item() * len(y), seen + len(y)
            progress(epoch, batch, len(loader), total / seen)


def evaluate(net, images, labels):
    """Accuracy and the 10 x 10 table of counts, rows the true digit, columns the predicted one."""
    net.eval()
    with cresset.no_grad():
        predicted = net(images).argmax(1)
    table = cresset.zeros(10, 10, dtype=cresset.int64)
    table.index_put_((labels, predicted), cresset.ones_like(labels), accumulate=True)
    return (predicted == labels).float().mean().item(), table


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for the weights and the test data")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    cresset.manual_seed(0)
    train_images, train_labels, test_images, test_labels = load()
    net = DigitsNet()
    start = time.perf_counter()
    train(net, train_images, train_labels)
    seconds = time.perf_counter() - start

    accuracy, table = evaluate(net, test_images, test_labels)
    print("\nconfusion on the held-out quarter (rows: truth, columns: prediction)")
    print("     " + " ".join(f"{d:3d}" for d in range(10)))
    for digit, row in enumerate(table.tolist()):
        print(f"  {digit}: " + " ".join(f"{n:3d}" if n else "  ." for n in row))
    print(f"\naccuracy {accuracy:.4f} on {len(test_labels)} scans; training took {seconds:.1f} s")

    cresset.save(net.state_dict(), args.out / "digits.safetensors")
    cresset.save({"images": test_images, "labels": test_labels}, args.out / "digits_test.safetensors")
    (args.out / "accuracy.txt").write_text(f"{accuracy:.4f}\n")
    if accuracy < REQUIRED:
        sys.exit(f"the accuracy should be at least {REQUIRED}")


if __name__ == "__main__":
    main()
