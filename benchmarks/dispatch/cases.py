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


class Product(importlib.import_module(sys.argv[1] + ".autograd").Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, None


def python_operators():
    """Operators with kernels in Python: (overload without arguments but a tensor, its packet, one with several arguments)."""
    library = importlib.import_module(sys.argv[1] + ".library").Library("bench", "DEF")
    library.define("noop(Tensor x) -> Tensor")
    library.impl("noop", lambda t: t, "CPU")
    library.define("several(Tensor x, Tensor y, int n, float p, bool b=True, *, int[]? dims=None) -> Tensor")
    library.impl("several", lambda x, y, n, p, b=True, dims=None: x, "CPU")
    globals()["keep"] = library  # registrations live as long as the object
    bench = T.ops.bench
    return bench.noop.default, bench.noop, bench.several.default


def custom_operator():
    custom_op = importlib.import_module(sys.argv[1] + ".library").custom_op

    @custom_op("bench::fresh", mutates_args=())
    def fresh(x: T.Tensor) -> T.Tensor:
        return y

    return fresh


noop, noop_packet, several = python_operators()
custom = custom_operator()
question = importlib.import_module(sys.argv[1] + ".overrides").has_torch_function_variadic
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
    "py: Python operator by its name": lambda: noop_packet(x),
    "py: Python operator, six arguments": lambda: several(x, y, 1, 2.0, dims=[1, 2]),
    "py: custom_op": lambda: custom(x),
    "py: ten-op chain, no grad": lambda: chain(x),
    "py: ten-op chain, forward and backward": chain_backward,
    "py: custom Function, forward and backward": lambda: Product.apply(g, y).backward(),
}
# What one argument costs in the question whether any overrides __torch_function__: the slope from 2 to 18 arguments.
FEW, MANY = "py: 2 arguments", "py: 18 arguments"
SLOPES = {
    "py: __torch_function__, an argument": {
        FEW: lambda: question(x, y),
        MANY: lambda: question(x, y, x, y, x, y, x, y, x, y, x, y, x, y, x, y, x, y),
    }
}


def measure(f):
    timer = timeit.Timer(f)
    timer.timeit(1000)
    number = 20000 if timer.timeit(2000) / 2000 < 5e-6 else 2000
    return min(timer.repeat(repeat=5, number=number)) / number * 1e9


figures = {name: measure(f) for name, f in CASES.items()}
for name, cases in SLOPES.items():
    figures[name] = (measure(cases[MANY]) - measure(cases[FEW])) / 16
print(json.dumps(figures))
