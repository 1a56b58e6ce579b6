"""Runs one of the workloads of neighbours.py: `cases.py MODULE THREADS NAME SECONDS`; prints {"one": steps a second with one thread,
"several": with THREADS}. The two take turns every 50 ms, so that what else runs on the machine meets both."""

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
    step = CASES[name](T)
    rates = {}
    for count in (1, threads):
        T.set_num_threads(count)
        step()
        step()
        rates[count] = [0, 0.0]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for count, rate in rates.items():
            T.set_num_threads(count)
            start = now = time.perf_counter()
            while now - start < 0.05:
                step()
                rate[0] += 1
                now = time.perf_counter()
            rate[1] += now - start
    one, several = (steps / spent for steps, spent in rates.values())
    print(json.dumps({"one": one, "several": several}))


if __name__ == "__main__":
    main()
