"""Runs one of the workloads of neighbours.py: `cases.py MODULE THREADS NAME SECONDS`; prints {"rate": steps a second}."""

import importlib
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))


def product(T):
    a, b = T.randn(768, 768), T.randn(768, 768)
    return lambda: a @ b


def pointwise(T, n):
    a, out = T.randn(n), T.empty(n)
    return lambda: T.exp(a, out=out)


def convolution(T):
    x, w = T.randn(1, 64, 56, 56), T.randn(64, 64, 3, 3)
    return lambda: T.conv2d(x, w, None, 1, 1)


def resnet(T):
    from networks import networks_of

    model, x = networks_of(T).ResNet([3, 4, 6, 3], 4).eval(), T.randn(1, 3, 224, 224)

    def step():
        with T.no_grad():
            model(x)

    return step


CASES = {
    "product 768": product,
    "exp 1e5": lambda T: pointwise(T, 100_000),
    "exp 1e6": lambda T: pointwise(T, 1_000_000),
    "convolution 64x56 3x3": convolution,
    "ResNet-50, batch 1": resnet,
}


def main() -> None:
    if sys.argv[1] == "--list":
        print(json.dumps(list(CASES)))
        return
    module, threads, name, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    T = importlib.import_module(module)
    T.set_num_threads(threads)
    step = CASES[name](T)
    for _ in range(2):
        step()
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        step()
        steps += 1
    print(json.dumps({"rate": steps / (time.perf_counter() - start)}))


if __name__ == "__main__":
    main()
