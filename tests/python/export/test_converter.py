"""TS2EPConverter: scripts and traces as exported programs, which give what these give."""

import copy
from typing import Any, Dict, List, Optional

import pytest

import cresset as torch
from cresset._export.converter import TS2EPConverter
from cresset.utils import _pytree as pytree


def same(got, expected):
    got, expected = (pytree.tree_flatten(x) for x in (got, expected))
    assert len(got[0]) == len(expected[0])
    for a, b in zip(got[0], expected[0]):
        assert type(a) is type(b)
        torch.testing.assert_close(a, b) if isinstance(a, torch.Tensor) else None
        assert isinstance(a, torch.Tensor) or a == b


def check(program, *calls):
    """The program of the script gives what that gives for each call, of which the first are the example inputs."""
    script = torch.jit.script(program)
    converted = TS2EPConverter(script, copy.deepcopy(calls[0])).convert()
    for inputs in calls:
        same(converted.module()(*copy.deepcopy(inputs)), script(*copy.deepcopy(inputs)))
    return converted


X, Y = torch.arange(6.0).reshape(3, 2).sin(), torch.arange(6.0).reshape(3, 2).cos()


def numbers(x, n: int, scale: float):
    a, b = divmod(n, 2)
    m = min(n, int(scale * 2.0)) + max([a, b]) + len(x) + x.dim() + x.size(0) // 2
    return x * m + torch.ones(x.size(0), 1) * scale, m, [n, m], x.dtype == torch.float32, x.dtype in [torch.int8]


def containers(x, xs: List[torch.Tensor], d: Dict[str, torch.Tensor]):
    out: List[torch.Tensor] = []
    out.append(x + xs[0])
    out = out + xs
    out[0] = out[-1] * 2
    out.extend([x])
    d["new"] = x
    a, b = torch.split(x, [1, 2])
    total = torch.zeros(2)
    for k in d.keys():
        total = total + d[k].sum(0)
    for i, v in enumerate(out[1:]):
        total += v.sum(0) * i
    return out, {"a": a, "b": b}, total, "new" in d, len(out)


def loops(x, n: int):
    y = x
    for i in range(1, n, 2):
        for k in range(3):
            y = y + i * k
        if i == 5:
            break
    i = 0
    while i < n:
        i += 2
        if i == 4:
            continue
        y = y * i
    return y


def optional(x, y: Optional[torch.Tensor]):
    if y is not None:
        x = x + y
    assert x.size(1) == 2, "two columns"
    return x, x is y, x is not y, not (x is y)  # noqa: E714


def options(x):
    y = torch.zeros_like(x, dtype=torch.float64, memory_format=torch.contiguous_format)
    z = torch.ones(x.shape[0], dtype=x.dtype, device=x.device)
    return y + x.to(torch.int32), z, torch.tensor([1, 2, 3]), torch.tensor([x.shape[0], 2]), torch.tensor(x.size(0)), x.shape


@pytest.mark.parametrize(
    "program, inputs",
    [
        (numbers, (X, 5, 1.5)), (containers, (X, [X, Y], {"y": Y})), (loops, (X, 7)), (optional, (X, Y)), (optional, (X, None)), (options, (X,)),
    ],
)  # fmt: skip
def test_values_that_are_no_tensors(program, inputs):
    check(program, inputs)


@pytest.mark.parametrize("program", [lambda x, y: x // 2 + y[0] * x.shape[0], lambda x, y: (torch.max(x, 0), torch.sort(y)), lambda x, y: x + torch.tensor([3])])
def test_traces(program):
    trace = torch.jit.trace(program, (X, Y))
    converted = TS2EPConverter(trace, (X, Y)).convert()
    same(converted.module()(X, Y), trace(X, Y))
    assert [s.arg.name for s in converted.graph_signature.input_specs if s.target is None] == ["x", "y"]


def chosen(x, y):
    z = y * y
    if x.sum() > 0:
        a, b = z * z, y
    else:
        a, b = z, [y * 3][0]
        if y.max() > 0.5:
            b = b + 1
    return a + b, (a, [b])


def test_branches_on_tensors():
    calls = [(X, Y), (-X.abs(), Y), (-X.abs(), Y * 0.1)]
    converted = check(chosen, *calls)
    assert "cond" in {str(n.target) for n in converted.graph.nodes}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.data, self.count = torch.nn.Linear(2, 2), torch.ones(3, 2), 0
        self.other = torch.ones(2)
        self.register_buffer("seen", torch.zeros(1))
        self.parts = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.ReLU()])

    def forward(self, x, n: int):
        self.data = self.data + x
        self.seen += 1
        self.count += n
        for part in self.parts:
            x = part(x)
        if x.sum() > 0:
            y = self.layer(x)
        else:
            y = -self.layer(x) * self.count
        return {"y": y + self.data + self.other, "n": [x.size(0), n]}


def test_modules():
    module = Net()
    script, other = torch.jit.script(module), torch.jit.script(copy.deepcopy(module))
    converted = TS2EPConverter(script, (X, 2)).convert()
    assert sorted(converted.state_dict) == sorted([*script.state_dict(), "data"])  # what the graph assigns is a buffer
    assert list(converted.constants) == ["other"] and converted.state_dict["layer.weight"] is script.layer.weight
    flat = converted.module()
    for i in range(3):
        other.count = 0  # what is no tensor stays as it was for the example
        same(flat(X * (-1) ** i, 2), other(X * (-1) ** i, 2))
    assert flat.seen.item() == 3.0 and torch.equal(flat.data, other.data)
    with pytest.raises(RuntimeError, match=r"to be equal to 2, but got 3"):
        flat(X, 3)
    again = TS2EPConverter(script, (X,), {"n": 2}).convert()
    assert again.module()(X, n=2)["n"] == [3, 2]


class Counting:
    def __init__(self):
        self.count = 3

    def __enter__(self):
        self.count += 1
        return self.count

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.count -= 1


def test_objects():
    def inside(x):
        held = Counting()
        with held as n:
            y = x * n + held.count
        return y + held.count

    check(inside, (X,))


def test_refusals():
    def grows(x):
        while x.sum() < 10:
            x = x + 1
        return x

    def outside(x):
        found = [x]
        if x.sum() < 10:
            found.append(x + 1)
        return found

    def lengths(x):
        if x.sum() < 10:
            y = [x]
        else:
            y = [x, x]
        return y

    def unequal(x):
        y, n = x, 1
        if x.sum() < 10:
            y, n = x + 1, 2
        return y, n

    def raises(x, n: int):
        if n > 0:
            raise ValueError("positive")
        return x

    class Assigns(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            if x.sum() > 0:
                self.seen = self.seen + 1
            return x + self.seen

    convert = lambda program, *inputs: TS2EPConverter(torch.jit.script(program), inputs).convert()  # noqa: E731
    with pytest.raises(NotImplementedError, match="the end of a loop depends on a tensor"):
        convert(grows, X)
    with pytest.raises(NotImplementedError, match="aten::append: a branch on a tensor changes a list from outside"):
        convert(outside, X)
    with pytest.raises(torch._dynamo.exc.UserError, match="the branches give different results"):
        convert(lengths, X)
    with pytest.raises(NotImplementedError, match="different values that are no tensors"):
        convert(unequal, X)
    with pytest.raises(NotImplementedError, match="a branch on a tensor assigns the attribute seen"):
        convert(Assigns(), X)
    with pytest.raises(torch.jit.Error, match="builtins.ValueError: positive"):
        convert(raises, X, 1)
    same(convert(raises, X, 0).module()(X, 0), X)
    with pytest.raises(TypeError, match="a script module, a script function or a trace was required; a Net was given"):
        TS2EPConverter(Net(), (X, 2))


def test_explain(capsys):
    assert TS2EPConverter(torch.jit.script(loops), (X, 3)).explain() == "" and "nothing of the graph is known" in capsys.readouterr().out
    graph = torch._C.parse_ir("graph(%x : Tensor):\n  %f : Future(Tensor) = prim::fork(%x)\n    block0():\n      -> (%x)\n  %y : Tensor = aten::wait(%f)\n  return (%y)")
    script = torch._C._create_function_from_graph("forks", graph)
    assert "prim::fork" in TS2EPConverter(script, (X,)).explain(print_output=False)


def test_numbers_of_dtypes():
    from cresset._export import _script_interpreter as interpreter

    for number, name in enumerate(interpreter._DTYPES):
        if not name.startswith("q"):
            assert torch.ops.prim.dtype.default(torch.empty(0, dtype=getattr(torch, name), device="meta")) == number


@pytest.mark.parametrize("order", [False, True])
def test_assigned_buffers_are_written(order):
    """`self.buffer = …` in forward; PyTorch 2.13 has a copy_ at the end too."""

    class Assigns(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(2))
            self.register_buffer("b", torch.ones(2))

        def forward(self, x):
            if order:  # each gets what the other had
                self.a, self.b = self.b, self.a
            else:
                self.a = self.a + x
            return x + self.a

    program = torch.export.export(Assigns(), (torch.ones(2),))
    for made in (program, program.run_decompositions()):
        flat, plain = made.module(), Assigns()
        for _ in range(2):
            plain.a, plain.b = flat.a.clone(), flat.b.clone()
            assert torch.equal(flat(torch.ones(2)), plain(torch.ones(2))) and torch.equal(flat.a, plain.a) and torch.equal(flat.b, plain.b)
