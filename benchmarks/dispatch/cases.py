"""Overhead of single calls from Python. Run with the module to measure: `cases.py cresset` or `cases.py torch`.

Prints one JSON object: nanoseconds a call by name (the best of several repetitions, which is what load disturbs least).
"""

import importlib
import json
import sys
import timeit

T = importlib.import_module(sys.argv[1])
T.set_num_threads(1)

x, y = T.ones(1), T.ones(1)
g = T.ones(1, requires_grad=True)
m = T.ones(2, 2)


def chain(t):
    """Ten operators on a small tensor."""
    return ((((((((((t + 1) * 2) - 3) / 4).exp()).log1p()).tanh()) * t).sigmoid()) + t).sum()


def chain_backward(t=T.ones(8, requires_grad=True)):
    chain(t).backward()


def noop_operator():
    library = importlib.import_module(sys.argv[1] + ".library").Library("bench", "DEF")
    library.define("noop(Tensor x) -> Tensor")
    library.impl("noop", lambda t: t, "CPU")
    globals()["keep"] = library  # registrations live as long as the object
    return T.ops.bench.noop.default


noop = noop_operator()
CASES = {
    "py: x + y, one element": lambda: x + y,
    "py: x + 1": lambda: x + 1,
    "py: x + y, requires grad": lambda: g + y,
    "py: add(x, y)": lambda: T.add(x, y),
    "py: view(-1)": lambda: x.view(-1),
    "py: x[0]": lambda: x[0],
    "py: item()": lambda: x.item(),
    "py: empty(1)": lambda: T.empty(1),
    "py: mm 2x2": lambda: m.mm(m),
    "py: no-op custom operator": lambda: noop(x),
    "py: ten-op chain, no grad": lambda: chain(x),
    "py: ten-op chain, forward and backward": chain_backward,
}


def measure(f):
    timer = timeit.Timer(f)
    timer.timeit(1000)
    number = 20000 if timer.timeit(2000) / 2000 < 5e-6 else 2000
    return min(timer.repeat(repeat=5, number=number)) / number * 1e9


print(json.dumps({name: measure(f) for name, f in CASES.items()}))
