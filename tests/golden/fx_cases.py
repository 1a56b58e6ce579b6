"""Programs whose graphs and generated code are recorded in fx.json; shared by the recorder and the tests."""

import math
import operator


def _modules(t):
    nn, F = t.nn, t.nn.functional

    class Everything(nn.Module):
        def __init__(self):
            super().__init__()
            self.param = nn.Parameter(t.zeros(3, 4))
            self.linear = nn.Linear(4, 5)
            self.seq = nn.Sequential(nn.ReLU(), nn.ReLU())
            self.register_buffer("buf", t.ones(5))

        def forward(self, x: t.Tensor, y: int = 2, *rest, k=t.float32, **options) -> t.Tensor:
            z = self.seq(self.linear(x + self.param)).clamp(min=0.0, max=1.0)
            z = z[0:1, ..., None] + z[y]
            w = t.add(z, self.buf).to(t.float64)
            w += 1
            return w, {"a": z.shape, "b": [w.size(0), -w]}, t.device("cpu"), float("inf"), t.rand(2) + w, float("nan")

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(1, 1)
            self.register_buffer("b", t.ones(1))
            self.w = nn.Parameter(t.ones(2))
            self.d = nn.ModuleDict({"x y": nn.ReLU()})

        def forward(self, x):
            return self.a(x) + self.a(x) + self.b + self.a.weight + self.w + self.d["x y"](x) + self.w + t._assert(x > 1, "foo")

    class Branches(nn.Module):
        def forward(self, x, flag=True):
            return x if flag else 2 * x

    def functions(x):
        return (
            F.relu(x), t.linalg.norm(x), t.fft.fft(x), t.einsum("ii", x), F.linear(x, x), F.softmax(x, 1), t.zeros_like(x), F.gelu(x),
            F.batch_norm(x, x, x), F.conv1d(x, x), F.pad(x, (1, 2)), F.interpolate(x), F.cross_entropy(x, x), F.dropout(x), F.max_pool2d(x, 2),
            t.flatten(x, 1), t.norm(x), t.stack([x, x]), F.avg_pool2d(x, 1), t.ops.aten.add(x, 1), t.ops.aten.add.Tensor(x, 1),
        )  # fmt: skip

    def operators(x, y):
        return (
            x + y, x - 1, 2 * x, x / y, x // y, x % 2, x**2, 2**x, x << 1, x >> 1, x & y, x | y, x ^ 1, x @ y, x < y, x <= y, x > y, x >= y, x == y,
            x != y, -x, +x, ~x, abs(x), x[1:, None], x.T, x.grad.data, x.foo(1, a=y), 1 - x, 3 | x, x(1), math.floor(x),
        )  # fmt: skip

    return {"Everything": Everything(), "Shared": Shared(), "functions": functions, "operators": operators, "Branches": Branches()}


def _by_hand(t):
    g = t.fx.Graph()
    x, y = g.placeholder("x", type_expr=list[int]), g.placeholder("input", int, default_value=None)
    a = g.call_function(len, (x,))
    b = g.call_function(operator.iadd, (a, 1))
    c = g.call_function(operator.abs, (b,), type_expr=t.Tensor)
    g.call_function(getattr, (c, "not a name"))
    f = g.call_method("__add__", (y, slice(x, None, y)))
    g.call_module("a.b.0", (f,), {"q": f})
    w = g.get_attr("a.b.0.w")
    g.call_function(operator.setitem, (w, 0, 1))
    g.call_function(t.nn.Linear, (1, 2))
    d = g.call_function(t.device, ("cpu",))
    g.output([d, w, t.float16, range(3), t.strided, 1 + 2j, (x,), "text", None])
    return g


NAMES = [
    "x", "x", "x_1", "x_1", "x_5", "x", "y_3", "y", "y_3", "y", "input", "torch", "inf", "device", "0a", "a.b", "ABc", "a_b", "class", "self", "print", "x_",
    "x_", "x__1", "_a", "_1", "__a__", "seq_0", "seq_0", "add.Tensor", "HTTPServer", "myMod2X",
]  # fmt: skip
CONCRETE = {
    "number": ("lambda x, y: x + y", {"y": 1}),
    "none": ("lambda x, y=True: x if y else 2 * x", {"y": None}),
    "tree": ("lambda x, d: (d['a'] + x, [d['b'], x])", {"d": {"a": "PH", "b": "PH"}}),
    "tree with a constant": ("lambda x, d: x + d['a']", {"d": {"a": "PH", "b": 3}}),
    "tuple": ("lambda x, y=True: x if y else 2 * x", ("PH", False)),
}
PROXIES = [
    "for i in x: pass", "if x: pass", "a, b = x", "a, *b = x", "{**x}", "int(x)", "1 in x", "x[0] = 1", "x in [1, 2]", "range(x)", "not x", "len(x)",
    "x.keys()", "hash(x)", "x(1)", "sum([x, x])", "max(x, 1)", "iter(x)", "round(x)", "x.a = 3", "f'{x}'", "x += 'a'", "t.relu({x: 1})", "t.relu(object())",
]  # fmt: skip
TRACED = {
    "sums": "lambda x: t.relu(x).sum() + t.ones(2) * x[0]",
    "in place": "lambda x: x.view(-1).add_(1)",
    "linear": "lambda x: t.nn.functional.linear(x.view(1, 2), x.neg().unsqueeze(0)) + t.tensor(3.)",
    "split": "lambda x: t.rand(2) + x.split(1)[0]",
    "max": "lambda x: t.max(x, 0)[0]",
    "value": "lambda x: x.sum().item() + x",
    "condition": "lambda x: x if x.sum() > 1 else -x",
    "constant's value": "lambda x: x * t.tensor(3).item()",
    "gradient": "lambda x: t.autograd.grad((x.sin() * w).sum(), w)[0]",
}


def _replaced(value, ph):
    if isinstance(value, dict):
        return {k: _replaced(v, ph) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(_replaced(v, ph) for v in value)
    return ph if value == "PH" else value


def _said(make):
    try:
        return make()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def texts(t):
    """{case: text}"""
    fx, rows = t.fx, {}
    for name, program in _modules(t).items():
        if name == "Branches":
            continue
        traced = fx.symbolic_trace(program)
        rows[f"{name}: code"], rows[f"{name}: graph"] = traced.code, str(traced.graph)
        rows[f"{name}: readable"] = traced.print_readable(print_output=False)
        rows[f"{name}: module"] = str(traced) if not callable(getattr(program, "__code__", None)) else ""
        rows[f"{name}: lines"] = str(traced.graph.python_code("self")._lineno_map)
    rows["by hand: code"], rows["by hand: graph"] = _by_hand(t).python_code("self").src, str(_by_hand(t))
    rows["empty: code"] = fx.Graph().python_code("self").src
    g = fx.Graph()
    rows["names"] = " ".join(g.placeholder(n).name for n in NAMES)
    for name, (program, concrete) in CONCRETE.items():
        rows[f"concrete {name}"] = fx.symbolic_trace(eval(program), _replaced(concrete, fx.PH)).code
    for statement in PROXIES:
        variables = {"t": t}
        exec(f"def f(x):\n    {statement}\n    return x", variables)
        rows[f"proxy {statement}"] = _said(lambda f=variables["f"]: fx.symbolic_trace(f).code)
    rows |= _traced(t) | _passes(t)
    return rows


def _traced(t):
    from importlib import import_module

    make_fx = import_module(f"{t.__name__}.fx.experimental.proxy_tensor").make_fx
    rows = {}
    for name, program in TRACED.items():
        f = eval(program, {"t": t, "w": t.ones(2, requires_grad=True)})
        rows[f"make_fx {name}"] = _said(lambda f=f: make_fx(f)(t.ones(2)).code)
    traced = make_fx(lambda x, y: (x["a"] + y[0], {"r": x["a"]}))({"a": t.ones(1)}, [t.ones(1)])
    rows["make_fx trees"] = traced.code
    rows["make_fx readable"] = traced.print_readable(print_output=False, include_stride=True, include_device=True)
    return rows


def _passes(t):
    from importlib import import_module

    split_module = import_module(f"{t.__name__}.fx.passes.split_module").split_module
    rows = {}

    class M(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.p = t.nn.Parameter(t.ones(2))
            self.l = t.nn.Linear(2, 2)

        def forward(self, x, y):
            z = self.l(x + self.p).clamp(min=0)
            w = t.sigmoid(y)
            return (z + w) * self.p, w

    m = M()
    traced = t.fx.symbolic_trace(m)
    parts = {"add": 0, "l": 0, "clamp": 0, "sigmoid": 1}
    rows["split"] = split_module(traced, m, lambda n: parts.get(n.name, 2)).print_readable(print_output=False)
    rows["split in order"] = split_module(traced, m, lambda n: parts.get(n.name, 2), keep_original_order=True).code
    rows["split in two"] = split_module(traced, m, lambda n: 0 if n.name in ("add", "l") else 1, partition_affix="pp").code
    t.fx.replace_pattern(traced, lambda a, b: a.clamp(min=0) + b, lambda a, b: t.relu(a) - b)
    rows["replace_pattern"] = traced.code
    import_module(f"{t.__name__}.fx.passes.shape_prop").ShapeProp(traced).propagate(t.ones(1, 2), t.ones(1, 2))
    rows["shapes"] = traced.print_readable(print_output=False)
    return rows
