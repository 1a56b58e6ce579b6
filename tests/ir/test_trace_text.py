"""What a trace writes: every slice that the program has, and the names of its variables. Expected lines are those of PyTorch 2.13."""

import textwrap

import pytest

import cresset
from cresset import nn

torch = cresset


def told(graph):
    """A line for each node but constants: results and operands by their names (without the number that tells equal ones apart), `_` for those without, constants as their values."""

    def name(v):
        return "_" if v.debugName().isdigit() else v.debugName().split(".")[0]

    def operand(v):
        if v.node().kind() != "prim::Constant" or not name(v).startswith("_"):
            return name(v)
        value = v.toIValue()
        return "tensor" if hasattr(value, "dtype") else "MAX" if value == 2**63 - 1 else repr(value)

    return [f"{', '.join(name(o) for o in n.outputs())} = {n.kind().split('::')[1]}({', '.join(operand(i) for i in n.inputs())})" for n in graph.nodes() if n.kind() != "prim::Constant"]


def slices(x):
    a = x[:, 1:3]
    b = a[:]
    c = b[..., :, 0]
    d = x[:, None, :]
    e = x[0:3, 0:9]
    return c, d, e


def assigned(x):
    y = x + 1
    y[:, 1:3] += 1
    y[:] = 2
    y[0, :] = 3
    return y


def inner(a):
    b = a * 2
    c = b + 1
    return c


def variables(x):
    y = x + 1
    t, u = inner(y).chunk(2)
    held = [t * 3]
    q = held[0] + u
    out = q.exp()
    out.add_(1)
    out = torch.cat([out, q])
    return out * 2


def constants(x):
    _, k = x.max(0)
    y = k + 1
    y = y * 2
    return y * y


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        x = x * self.w
        k = x.exp()
        return k * self.w


CASES = {
    "slices": (slices, (3, 4)),
    "assigned": (assigned, (3, 4)),
    "variables": (variables, (4,)),
    "constants": (constants, (3, 4)),
    "module": (Scaled(), (4,)),
}

EXPECTED = {
    "slices": """
        _ = slice(x, 0, 0, MAX, 1)
        a = slice(_, 1, 1, 3, 1)
        b = slice(a, 0, 0, MAX, 1)
        _ = slice(b, 0, 0, MAX, 1)
        _ = select(_, 1, 0)
        _ = slice(x, 0, 0, MAX, 1)
        _ = unsqueeze(_, 1)
        _ = slice(_, 2, 0, MAX, 1)
        _ = slice(x, 0, 0, 3, 1)
        _ = slice(_, 1, 0, 9, 1)
        _ = TupleConstruct(_, _, _)
    """,
    "assigned": """
        y = add(x, 1, 1)
        _ = slice(y, 0, 0, MAX, 1)
        _ = slice(_, 1, 1, 3, 1)
        _ = add_(_, 1, 1)
        _ = slice(y, 0, 0, MAX, 1)
        _ = slice(_, 1, 1, 3, 1)
        _ = copy_(_, _, False)
        _ = slice(y, 0, 0, MAX, 1)
        _ = fill_(_, tensor)
        _ = select(y, 0, 0)
        _ = slice(_, 0, 0, MAX, 1)
        _ = fill_(_, tensor)
    """,
    "variables": """
        a = add(x, 1, 1)
        b = mul(a, 2)
        _ = add(b, 1, 1)
        _ = chunk(_, 2, 0)
        t, u = ListUnpack(_)
        _ = mul(t, 3)
        q = add(_, u, 1)
        out = exp(q)
        out = add_(out, 1, 1)
        _ = ListConstruct(out, q)
        out = cat(_, 0)
        _ = mul(out, 2)
    """,
    "constants": """
        _, k = max(x, 0, False)
        y = add(k, 1, 1)
        y = mul(y, 2)
        _ = mul(y, y)
    """,
    "module": """
        w = GetAttr(self)
        x = mul(x, w)
        k = exp(x)
        _ = mul(k, w)
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_text(case):
    program, shape = CASES[case]
    traced = torch.jit.trace(program, torch.ones(shape))
    assert told(traced.graph) == textwrap.dedent(EXPECTED[case]).strip().splitlines()


GRAPHS = [
    (
        lambda x: x.view(x.size(0), -1),
        """graph(%x : Float(2, 3, 4, strides=[12, 4, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = aten::Int(%3)
  %5 : int = prim::Constant[value=-1]()
  %6 : int[] = prim::ListConstruct(%4, %5)
  %7 : Float(2, 12, strides=[12, 1], requires_grad=0, device=cpu) = aten::view(%x, %6)
  return (%7)
""",
    ),
    (
        lambda x: x.add_(1).relu(),
        """graph(%x.1 : Float(2, 3, 4, strides=[12, 4, 1], requires_grad=0, device=cpu)):
  %1 : Long(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %2 : int = prim::Constant[value=1]()
  %x : Float(2, 3, 4, strides=[12, 4, 1], requires_grad=0, device=cpu) = aten::add_(%x.1, %1, %2)
  %4 : Float(2, 3, 4, strides=[12, 4, 1], requires_grad=0, device=cpu) = aten::relu(%x)
  return (%4)
""",
    ),
    (
        lambda x: x[:, 0],
        """graph(%x : Float(2, 3, 4, strides=[12, 4, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = prim::Constant[value=0]()
  %3 : int = prim::Constant[value=9223372036854775807]()
  %4 : int = prim::Constant[value=1]()
  %5 : Float(2, 3, 4, strides=[12, 4, 1], requires_grad=0, device=cpu) = aten::slice(%x, %1, %2, %3, %4)
  %6 : int = prim::Constant[value=1]()
  %7 : int = prim::Constant[value=0]()
  %8 : Float(2, 4, strides=[12, 1], requires_grad=0, device=cpu) = aten::select(%5, %6, %7)
  return (%8)
""",
    ),
]


@pytest.mark.parametrize(("f", "text"), GRAPHS)
def test_graph_text(f, text):
    assert torch.jit.trace(f, torch.ones(2, 3, 4)).graph.str(False) == text


def test_slices_hold_for_other_sizes():
    traced = torch.jit.trace(lambda x: x[0:3, 0:2], torch.ones(3, 2))
    assert traced(torch.ones(5, 4)).shape == (3, 2)


def test_inlined_bodies_have_sizes_as_numbers():
    # As PyTorch's: converters take Int(NumToTensor(size)) for a conversion of their own.
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.LSTM(4, 3)

        def forward(self, x):
            return self.inner(x)[0]

    traced = torch.jit.trace(Outer(), torch.ones(5, 2, 4))
    kinds = [n.kind() for n in traced.inlined_graph.nodes()]
    assert "aten::size" in kinds and "prim::NumToTensor" not in kinds and "aten::Int" not in kinds
    assert [n.kind() for n in traced.inner.graph.nodes()].count("prim::NumToTensor") == 1
    assert traced(torch.ones(7, 3, 4)).shape == (7, 3, 3)


def test_nodes_stay_one_a_call():
    # Patterns of converters count the uses of a list: equal ones of two operators are two, as in PyTorch's traces of modules.
    class Sums(nn.Module):
        def forward(self, x):
            return x.sum(-1), x.amax(-1)

    kinds = [n.kind() for n in torch.jit.trace(Sums(), torch.ones(2, 3)).graph.nodes()]
    assert kinds.count("prim::ListConstruct") == 2


def test_a_float_is_no_default_of_a_number(tmp_path):
    # elu's alpha is `Scalar alpha=1`: PyTorch writes torch.elu(x, 1.), and readers tell 1. from 1.
    traced = torch.jit.trace(nn.Sequential(nn.ELU(), nn.Softplus()), torch.ones(3))
    traced.save(str(tmp_path / "m.pt"))
    code = getattr(torch.jit.load(str(tmp_path / "m.pt")), "0").code + getattr(traced, "1").code
    assert "torch.elu(x, 1.)" in code.replace("argument_1", "x").replace("input", "x")
    assert "torch.softplus(x, 1., 20.)" in code.replace("argument_1", "x").replace("input", "x")


def test_a_constant_without_value_stays_none():
    # Passes of programs write a device into the node of a None, which then still is one: its type says so.
    graph = torch._C.parse_ir("graph(%x : Tensor):\n  %n : NoneType = prim::Constant()\n  return (%n)")
    constant = next(graph.nodes())
    constant.s_("value", "cpu")
    assert constant.output().toIValue() is None


def test_padding_of_a_traced_stft_holds_for_other_sizes():
    def program(x):
        return torch.stft(x, 8, window=torch.ones(8), return_complex=True), torch.stft(x, 8, window=torch.ones(8), center=False, return_complex=True)

    traced = torch.jit.trace(program, torch.ones(2, 40))
    kinds = [n.kind() for n in traced.graph.nodes()]
    assert kinds.count("aten::pad") == 1 and kinds.count("aten::stft") == 2
    assert [len(list(n.inputs())) for n in traced.graph.nodes() if n.kind() == "aten::stft"] == [9, 9]
    x = torch.sin(torch.arange(3 * 64.0)).view(3, 64)
    for a, b in zip(traced(x), program(x)):
        torch.testing.assert_close(a, b)


def test_results_of_a_method_stand_in_the_order_of_their_uses():
    # The first that is used is made last: PyTorch's method gives it first, and readers of call nodes count on that.
    class Both(nn.Module):
        def forward(self, x):
            second = x * 2
            return (second + x).exp(), second

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.both = Both()

        def forward(self, x):
            a, b = self.both(x)
            return a, b

    traced = torch.jit.trace(Outer(), torch.ones(2))
    unpack = next(n for n in traced.graph.nodes() if n.kind() == "prim::TupleUnpack")
    result = next(n for n in traced.graph.nodes() if n.kind() == "prim::TupleConstruct")
    assert [v.debugName() for v in unpack.outputs()] == [v.debugName() for v in result.inputs()]
    a, b = traced(torch.ones(2))
    assert a.shape == b.shape and b.tolist() == [2.0, 2.0]
