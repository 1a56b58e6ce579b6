"""Tensors whose text is recorded in printing.json; shared by the recorder and the tests. Each is an expression in `t`."""

CASES = [
    "t.tensor(1.)", "t.tensor(1.5)", "t.tensor(3)", "t.tensor(True)", "t.tensor(1+2j)", "t.tensor(float('nan'))",
    "t.tensor([])", "t.empty(0, 3)", "t.empty(2, 0, dtype=t.int64)", "t.tensor([], dtype=t.float64)",
    "t.tensor([1., 2., 3.])", "t.tensor([1., 2.5, -3.])", "t.tensor([1, -20, 300])", "t.tensor([True, False])",
    "t.tensor([0., float('nan'), float('inf'), -float('inf')])", "t.tensor([1., float('inf')])", "t.tensor([1.5, float('nan')])",
    "t.tensor([0., 0.])", "t.tensor([-0.])", "t.tensor([1e-5, 1.])", "t.tensor([1e-4])", "t.tensor([9e-5])", "t.tensor([1e8])",
    "t.tensor([1e9])", "t.tensor([100000001.], dtype=t.float64)", "t.tensor([1e5, 1.5])", "t.tensor([1000., 1.])",
    "t.tensor([1001., 1.])", "t.tensor([1e300, 1e-300], dtype=t.float64)", "t.tensor([123456.75])",
    "t.arange(6.).reshape(2, 3)", "t.arange(24).reshape(2, 3, 4)", "t.arange(16).reshape(2, 2, 2, 2)", "t.arange(40)",
    "t.arange(1000)", "t.arange(1001)", "t.arange(1001.) / 7", "t.arange(3000).reshape(30, 100)",
    "t.arange(8000).reshape(20, 20, 20)", "t.arange(2400.).reshape(2, 3, 400) - 1200", "t.arange(1200).reshape(1200, 1)",
    "t.ones(2, dtype=t.float64)", "t.ones(2, dtype=t.float16)", "t.ones(2, dtype=t.bfloat16) / 3", "t.ones(2, dtype=t.int32)",
    "t.ones(2, dtype=t.uint8)", "t.ones(2, dtype=t.int8)", "t.ones(2, dtype=t.int16)", "t.tensor([1+2j, 3.5-1e5j])",
    "t.tensor([1+2j, -3-4j])", "t.tensor([1j], dtype=t.complex128)", "t.zeros(30, dtype=t.complex64)",
    "t.empty(2, 2, device='meta')", "t.empty(2, dtype=t.int64, device='meta')", "t.empty(0, device='meta')",
    "t.ones(2, requires_grad=True)", "t.ones(2, requires_grad=True) * 2", "t.ones(2, requires_grad=True).exp()",
    "t.arange(20.).requires_grad_()", "t.zeros(3, 5, dtype=t.float64).requires_grad_().sum()", "t.empty(0, 2, requires_grad=True)",
    "t.empty(2, requires_grad=True, device='meta')", "t.nn.Parameter(t.ones(2))", "t.nn.Parameter(t.ones(2), requires_grad=False)",
    "t.arange(4.).reshape(2, 2).t()", "t.ones(1).expand(3, 4)", "t.arange(10)[::3]", "-t.arange(12.).reshape(3, 4) / 3",
]  # fmt: skip

OPTIONS = [
    {"precision": 2}, {"profile": "short"}, {"profile": "full"}, {"sci_mode": True}, {"sci_mode": False}, {"linewidth": 40},
    {"threshold": 5}, {"edgeitems": 1, "threshold": 3},
]  # fmt: skip

UNDER_OPTIONS = ["t.arange(12.).reshape(3, 4) / 7", "t.tensor([1e-6, 1.])", "t.arange(40)", "t.zeros(2)"]


def texts(t):
    """Text by expression, under the default options and under each of OPTIONS."""
    out = {expression: repr(eval(expression, {"t": t})) for expression in CASES}
    for options in OPTIONS:
        t.set_printoptions(profile="default")
        t.set_printoptions(**options)
        for expression in UNDER_OPTIONS:
            out[f"{options}: {expression}"] = repr(eval(expression, {"t": t}))
    t.set_printoptions(profile="default")
    return out
