"""Rewrites written as two small graphs in Python, which C++ runs; how two graphs differ."""

import time

import pytest

import cresset
from cresset import _C, lowering

GRAPH = """graph(%x : Tensor, %y : Tensor):
  %o : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%a)
  %c : Tensor = aten::add(%b, %y, %o)
  %d : Tensor = aten::relu(%c)
  return (%d)
"""


def test_a_rewrite():
    rule = lowering.pattern("%a : Tensor = aten::relu(%x)", "%a : Tensor = aten::sigmoid(%x)")
    graph = _C.parse_ir(GRAPH)
    assert rule(graph) == 1 and rule(graph) == 0
    assert "aten::sigmoid" in str(graph) and "aten::relu" not in str(graph)


def test_a_whole_graph_and_a_guard():
    asked = []

    def guard(values):
        asked.append(sorted(values))
        return values["x"].debugName() == "c"

    rule = lowering.pattern("graph(%x):\n  %r = aten::relu(%x)\n  return (%r)\n", "graph(%x):\n  %r = aten::tanh(%x)\n  return (%r)\n", guard=guard)
    graph = _C.parse_ir(GRAPH)
    assert rule(graph) == 1 and asked == [["r", "x"]]
    refusing = lowering.pattern("%r = aten::tanh(%x)", "%r = aten::relu(%x)", guard=lambda values: False)
    assert refusing(graph) == 0 and len(refusing.matches(graph)) == 1


def test_a_guard_that_raises():
    rule = lowering.pattern("%r = aten::relu(%x)", "%r = aten::tanh(%x)", guard=lambda values: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rule(_C.parse_ir(GRAPH))


def test_find():
    found = lowering.find("%a = aten::neg(%x)\n%b = aten::neg(%a)", _C.parse_ir(GRAPH))
    assert [{k: v.debugName() for k, v in m.items()} for m in found] == [{"x": "x", "a": "a", "b": "b"}]


@pytest.mark.parametrize("text, error", [("", ValueError), ("aten::relu(%x)", ValueError), ("%r = aten::relu(%x", RuntimeError)])
def test_no_patterns(text, error):
    with pytest.raises(error):
        lowering.pattern(text, "%r = aten::relu(%x)")


def test_patterns_as_passes():
    first = lowering.pattern("%r = aten::relu(%x)", "%r = aten::tanh(%x)", summary="relu to tanh")
    second = lowering.pattern("%r = aten::tanh(%x)", "%r = aten::sin(%x)", summary="tanh to sin")
    lowering.register_pass("two_rules", [first, second], after="peephole")
    try:
        lowered = lowering.lower(_C.parse_ir(GRAPH))
        assert "aten::sin" in str(lowered.graph)
        assert next(s for s in lowered.steps if s.name == "two_rules").changed
        assert not lowering.run_pass("two_rules", lowered.graph).changed
        assert next(p for p in lowering.passes() if p.name == "two_rules").summary == "relu to tanh; tanh to sin"
    finally:
        lowering.unregister_pass("two_rules")


def test_a_function_may_say_whether_it_changed_something():
    said = {}
    lowering.register_pass("says", lambda graph: said["answer"])
    try:
        for said["answer"] in (True, False):
            assert lowering.run_pass("says", _C.parse_ir(GRAPH)).changed is said["answer"]
        said["answer"] = None
        assert lowering.run_pass("says", _C.parse_ir(GRAPH)).changed is False
    finally:
        lowering.unregister_pass("says")


def chain(n, kind="neg"):
    lines = [f"  %v{i + 1} : Tensor = aten::{kind}(%v{i})" for i in range(n)]
    return "graph(%v0 : Tensor):\n" + "\n".join(lines) + f"\n  return (%v{n})\n"


def test_as_quick_as_a_pass_in_cpp():
    """A rule over a long graph beside a pass of the library that looks at every node as well."""
    rule, n = lowering.pattern("%r = aten::relu(%x)", "%r = aten::tanh(%x)"), 3000
    graph, timed = _C.parse_ir(chain(n)), []
    for run in (lambda: rule(graph), lambda: lowering.run_pass("cse", graph)):
        run()
        start = time.perf_counter()
        run()
        timed.append(time.perf_counter() - start)
    assert timed[0] < 5 * timed[1] + 0.01, timed


# ---- differences


def test_equal_graphs():
    renamed = GRAPH.replace("%a ", "%first ").replace("(%a)", "(%first)")
    diff = lowering.diff(_C.parse_ir(GRAPH), _C.parse_ir(renamed))
    assert diff.equal and (diff.same, diff.changed, diff.gone, diff.new) == (5, 0, 0, 0)


@pytest.mark.parametrize("change, counts, lines", [
    (("aten::relu(%c)", "aten::tanh(%c)"), (4, 0, 1, 1), ["-   %d : Tensor = aten::relu(%c)", "+   %d.new : Tensor = aten::tanh(%c)"]),
    (("value=1", "value=2"), (4, 1, 0, 0), ["-   %o : int = prim::Constant[value=1]()", "+   %o : int = prim::Constant[value=2]()"]),
    (("aten::relu(%c)", "aten::relu[to_compile=0](%c)"), (4, 1, 0, 0), ["-   %d : Tensor = aten::relu(%c)", "+   %d : Tensor = aten::relu[to_compile=0](%c)"]),
    (("aten::neg(%a)", "aten::neg(%y)"), (4, 1, 0, 0), ["-   %b : Tensor = aten::neg(%a)", "+   %b : Tensor = aten::neg(%y)"]),
    (("  %b : Tensor = aten::neg(%a)\n", "  %b : Tensor = aten::neg(%a)\n   = prim::Print(%b)\n"), (5, 0, 0, 1), ["+    = prim::Print(%b)"]),
], ids=["another kind", "another constant", "a mark", "another operand", "a new node"])  # fmt: skip
def test_differences(change, counts, lines):
    diff = lowering.diff(_C.parse_ir(GRAPH), _C.parse_ir(GRAPH.replace(*change)))
    assert not diff.equal and (diff.same, diff.changed, diff.gone, diff.new) == counts, str(diff)
    if lines:
        assert [line for line in str(diff).splitlines() if line[0] in "+-" and "return" not in line] == lines


def test_blocks_types_and_contents():
    loop = """graph(%x : Tensor, %n : int):
  %go : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %go, %x)
    block0(%i : int, %v : Tensor):
      %w : Tensor = aten::neg(%v)
      -> (%go, %w)
  return (%r)
"""
    inner = lowering.diff(_C.parse_ir(loop), _C.parse_ir(loop.replace("aten::neg", "aten::abs")))
    assert not inner.equal and (inner.gone, inner.new) == (1, 1)
    results = lowering.diff(_C.parse_ir(loop), _C.parse_ir(loop.replace("-> (%go, %w)", "-> (%go, %v)").replace("      %w : Tensor = aten::neg(%v)\n", "")))
    assert not results.equal
    typed = lowering.diff(_C.parse_ir(loop), _C.parse_ir(loop.replace("%x : Tensor", "%x : Float(2, 3)")))
    assert not typed.equal and typed.changed == 0
    swapped = "graph(%x : Tensor, %y : Tensor):\n  return (%x, %y)\n"
    assert not lowering.diff(_C.parse_ir(swapped), _C.parse_ir(swapped.replace("return (%x, %y)", "return (%y, %x)"))).equal
    graphs = []
    for value in (1.0, 2.0):
        graph = _C.Graph()
        weight = cresset.ones(40, 40)
        weight[39, 39] = value
        graph.registerOutput(graph.insertConstant(weight))
        graphs.append(graph)
    assert not lowering.diff(*graphs).equal and lowering.diff(graphs[0], graphs[0].copy()).equal
