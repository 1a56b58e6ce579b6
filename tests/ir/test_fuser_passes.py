"""Passes that put graphs into the forms that fusers and exporters take. The graphs behind them are what PyTorch 2.13 prints, names aside."""

import pytest

import cresset
from cresset import _C, jit

ONE = "%one : int = prim::Constant[value=1]()"
SUM_OF_PRODUCTS = "graph({inputs}):\n  " + ONE + "\n{body}\n  return ({result})\n"


def sum_of_products(n, result=None):
    inputs = ", ".join(f"%a{i} : Tensor, %b{i} : Tensor" for i in range(n))
    products = [f"  %m{i} : Tensor = aten::mm(%a{i}, %b{i})" for i in range(n)]
    sums = [f"  %s{i} : Tensor = aten::add(%{'m0' if i == 1 else f's{i - 1}'}, %m{i}, %one)" for i in range(1, n)]
    return f"graph({inputs}):\n  {ONE}\n" + "\n".join(products + sums) + f"\n  return ({result or f'%s{n - 1}'})\n"


CASES = {
    "remove_expands": ("""graph(%x : Tensor, %s : int[]):
  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %a : Tensor = aten::expand(%x, %s, %t)
  %b : Tensor = aten::expand(%a, %s, %f)
  return (%b)
""", """graph(%x : Tensor, %s : int[]):
  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %b : Tensor = aten::expand(%x, %s, %f)
  return (%b)
"""),
    "canonicalize_graph_fuser_ops": (f"""graph(%x : Tensor):
  %c : Float(requires_grad=0, device=cpu) = prim::Constant[value={{2.5}}]()
  {ONE}
  %two : int = prim::Constant[value=2]()
  %a : Tensor = aten::mul(%x, %c)
  %s : Tensor = aten::sub(%c, %a, %one)
  %l : Tensor[] = aten::chunk(%s, %two, %one)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%l)
  %r : Tensor = aten::add(%p, %q, %one)
  return (%r)
""", f"""graph(%x : Tensor):
  %c : Float(requires_grad=0, device=cpu) = prim::Constant[value={{2.5}}]()
  {ONE}
  %two : int = prim::Constant[value=2]()
  %n : float = prim::Constant[value=2.5]()
  %a : Tensor = aten::mul(%x, %n)
  %s : Tensor = aten::sub(%c, %a, %one)
  %p : Tensor, %q : Tensor = prim::ConstantChunk[chunks=2, dim=1](%s)
  %r : Tensor = aten::add(%p, %q, %one)
  return (%r)
"""),
    "decompose_ops": (f"""graph(%x : Tensor, %y : Tensor, %z : Tensor):
  {ONE}
  %two : int = prim::Constant[value=2]()
  %a : Tensor = aten::addmm(%x, %y, %z, %one, %one)
  %b : Tensor = aten::addmm(%x, %y, %z, %two, %one)
  return (%a, %b)
""", f"""graph(%x : Tensor, %y : Tensor, %z : Tensor):
  {ONE}
  %two : int = prim::Constant[value=2]()
  %m : Tensor = aten::mm(%y, %z)
  %i : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %m, %i)
  %b : Tensor = aten::addmm(%x, %y, %z, %two, %one)
  return (%a, %b)
"""),
    "batch_mm": (sum_of_products(4), f"""graph({", ".join(f"%a{i} : Tensor, %b{i} : Tensor" for i in range(4))}):
  {ONE}
  %r : Tensor = prim::MMTreeReduce(%a0, %a1, %a2, %a3, %b0, %b1, %b2, %b3)
  return (%r)
"""),
}


def graph_after(name, text):
    graph = _C.parse_ir(text)
    getattr(_C, "_jit_pass_" + name)(graph)
    graph.lint()
    return graph


def canonical(graph):
    return str(_C._jit_pass_canonicalize(graph, False))


@pytest.mark.parametrize("name", CASES)
def test_pass_gives_pytorchs_graph(name):
    before, after = CASES[name]
    assert canonical(graph_after(name, before)) == canonical(_C.parse_ir(after))


@pytest.mark.parametrize("text", [
    sum_of_products(3),
    sum_of_products(4, "%m1, %s3"),  # a product that something else needs
    sum_of_products(4).replace("  return", "  %w : Tensor = aten::relu_(%m2)\n  return"),  # and one that is written
], ids=["few", "needed", "written"])
def test_sums_of_products_that_stay(text):
    assert canonical(graph_after("batch_mm", text)) == canonical(_C.parse_ir(text))


def test_constants_that_would_promote_differently_stay_tensors():
    # An integer plus a double tensor is a double, plus a number it is of the default dtype.
    text = f"graph(%x : Tensor):\n  %c : Double(requires_grad=0, device=cpu) = prim::Constant[value={{2.5}}]()\n  {ONE}\n" \
           "  %r : Tensor = aten::add(%x, %c, %one)\n  return (%r)\n"
    assert canonical(graph_after("canonicalize_graph_fuser_ops", text)) == canonical(_C.parse_ir(text))
    known = text.replace("%x : Tensor", "%x : Float(*, *)")
    assert "value=2.5" in str(graph_after("canonicalize_graph_fuser_ops", known))
    # Of two tensors without dimensions the wider type wins: half + float is float, half plus a number is half.
    scalar = text.replace("Double", "Float").replace("%x : Tensor", "%x : Half(requires_grad=0, device=cpu)")
    assert canonical(graph_after("canonicalize_graph_fuser_ops", scalar)) == canonical(_C.parse_ir(scalar))


def test_constants_that_are_written_stay_tensors():
    text = f"graph(%x : Tensor):\n  %c : Float(requires_grad=0, device=cpu) = prim::Constant[value={{2.5}}]()\n  {ONE}\n" \
           "  %w : Tensor = aten::add_(%c, %one, %one)\n  %r : Tensor = aten::mul(%x, %c)\n  return (%r)\n"
    assert canonical(graph_after("canonicalize_graph_fuser_ops", text)) == canonical(_C.parse_ir(text))


@pytest.mark.parametrize("name, node", [
    ("canonicalize_graph_fuser_ops", "%r : Tensor[] = aten::chunk(%x)"),
    ("remove_expands", "%r : Tensor = aten::expand(%x)"),
    ("decompose_ops", "%r : Tensor = aten::addmm(%x)"),
    ("batch_mm", "%r : Tensor = aten::add(%x)"),
    ("inline_fork_wait", "%r : Future(Tensor) = prim::fork(%x)"),
])
def test_nodes_that_call_nothing_stay(name, node):
    text = f"graph(%x : Tensor):\n  {node}\n  return (%r)\n"
    assert canonical(graph_after(name, text)) == canonical(_C.parse_ir(text))


@pytest.mark.parametrize("rows", [[2, 2, 2, 2], [2, 3, 2, 2]], ids=["alike", "of different sizes"])
def test_sum_of_products_runs(rows):
    graph = graph_after("batch_mm", sum_of_products(4))
    function = _C._create_function_from_graph("f", graph)
    g = cresset.Generator().manual_seed(0)
    operands = [t for k in rows for t in (cresset.randn(3, k, generator=g), cresset.randn(k, 4, generator=g))]
    expected = sum(a.double() @ b.double() for a, b in zip(operands[::2], operands[1::2]))
    assert cresset.allclose(function(*operands).double(), expected, atol=1e-5)


def test_chunks_run():
    function = _C._create_function_from_graph("f", graph_after("canonicalize_graph_fuser_ops", CASES["canonicalize_graph_fuser_ops"][0]))
    # (2.5 - 2.5 * x) split in columns and added, for x = [[1, 2, 3, 4]].
    assert function(cresset.tensor([[1.0, 2.0, 3.0, 4.0]])).tolist() == [[-5.0, -10.0]]
    with pytest.raises(RuntimeError, match="prim::ConstantChunk: 2 chunks were expected; dimension 1 has 1"):
        function(cresset.ones(1, 1))


def double(x):
    return x * 2


def forked_twice(x):
    inner = jit.fork(double, x)
    return jit.wait(inner) + 1


def forks_a_fork(x):
    future = jit.fork(forked_twice, x)
    return jit.wait(future) * 3


def gives_a_future(x):
    return jit.fork(double, x)


def test_forks_stand_where_they_were_forked():
    scripted = jit.script(forks_a_fork)
    graph = scripted.graph.copy()
    for _ in range(2):  # a call in what was forked forks again
        _C._jit_pass_inline_fork_wait(graph)
        _C._jit_pass_inline(graph)
    graph.lint()
    assert "fork" not in str(graph) and "wait" not in str(graph)
    assert _C._create_function_from_graph("f", graph)(cresset.tensor([1.0, 2.0])).tolist() == [9.0, 15.0]


def test_fork_whose_future_goes_elsewhere_stays():
    graph = jit.script(gives_a_future).graph.copy()
    before = str(graph)
    _C._jit_pass_inline_fork_wait(graph)
    assert str(graph) == before
