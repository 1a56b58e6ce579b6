"""The verifier, alias analysis, moves, side effects and the pattern rewriter, as data."""

import pytest

from cresset import _C


def graph_and_values(text):
    graph = _C.parse_ir(text)
    values = {}

    def collect(block):
        for v in block.inputs():
            values[v.debugName()] = v
        for n in block.nodes():
            for v in n.outputs():
                values[v.debugName()] = v
            for b in n.blocks():
                collect(b)

    collect(graph.block())
    return graph, values


# ---- the verifier: how to break a graph, and what is said


def break_arity(g):
    g.findNode("prim::If").addOutput()


def break_condition(g):
    n = g.findNode("prim::If")
    n.replaceInput(0, next(g.inputs()))


def break_blocks(g):
    g.findNode("prim::If").addBlock()


def break_block_inputs(g):
    next(g.findNode("prim::If").blocks()).addInputToBlock()


def break_scope(g):
    n = g.findNode("prim::If")
    inner = next(next(n.blocks()).nodes())
    g.registerOutput(inner.output())


def break_order(g):
    add = g.findNode("aten::add")
    add.moveBefore(next(g.nodes()))


def break_constant(g):
    g.findNode("prim::Constant").addInput(next(g.inputs()))


def break_loop(g):
    g.findNode("prim::Loop").addInput(next(g.inputs()))


def break_trip_count(g):
    g.findNode("prim::Loop").replaceInput(0, next(g.inputs()))


WHOLE = """graph(%x : Tensor,
      %c : bool,
      %n : int):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%x)
      -> (%a)
    block1():
      -> (%x)
  %z : Tensor = prim::Loop(%n, %c, %y)
    block0(%i : int, %w : Tensor):
      %v : Tensor = aten::add(%w, %x, %i)
      -> (%c, %v)
  %s : Tensor = aten::add(%z, %y, %one)
  return (%s)
"""
BROKEN = [
    (break_arity, "an If has 2 outputs and a block that returns 1"),
    (break_condition, "the condition of an If is a bool"),
    (break_blocks, "a node of kind prim::If has 2 blocks; this one has 3"),
    (break_block_inputs, "the blocks of an If have no inputs"),
    (break_scope, "%a is not in scope where it is used"),
    (break_order, "is not in scope where it is used"),
    (break_constant, "a node of kind prim::Constant has 0 inputs; this one has 1"),
    (break_loop, "a Loop carries 2 values; it has 1 outputs, and its block takes 2 and returns 2"),
    (break_trip_count, "the trip count of a Loop is an int"),
]


@pytest.mark.parametrize("broken, message", BROKEN, ids=[f.__name__ for f, _ in BROKEN])
def test_lint(broken, message):
    graph = _C.parse_ir(WHOLE)
    graph.lint()
    broken(graph)
    with pytest.raises(RuntimeError, match="lint: ") as e:
        graph.lint()
    assert message in str(e.value)


def test_destroyed_parts_raise():
    graph = _C.parse_ir("graph(%x):\n  %y = aten::relu(%x)\n  return (%x)")
    node = next(graph.nodes())
    value = node.output()
    node.destroy()
    for use in (node.kind, value.debugName, lambda: graph.appendNode(node)):
        with pytest.raises(RuntimeError, match="was destroyed"):
            use()
    with pytest.raises(RuntimeError, match="still has uses"):
        g, v = graph_and_values("graph(%x):\n  %y = aten::relu(%x)\n  return (%y)")
        v["y"].node().destroy()


def test_names():
    graph, v = graph_and_values("graph(%x, %y):\n  %z = aten::relu(%x)\n  return (%z)")
    with pytest.raises(RuntimeError, match="Invalid name: '12'"):
        v["z"].setDebugName("12")
    v["z"].setDebugName("x")  # the old owner is renamed
    assert v["x"].debugName() == "x.1" and v["z"].debugName() == "x"
    v["y"].setDebugName("x")
    assert v["z"].debugName() == "x.2"


def test_sparse_order_is_renumbered():
    graph = _C.Graph()
    x = graph.addInput("x")
    first = graph.appendNode(graph.create("aten::relu", [x]))
    last = graph.appendNode(graph.create("aten::relu", [x]))
    for _ in range(200):  # always in the same place: gaps run out
        last = graph.create("aten::relu", [x]).insertBefore(last)
    nodes = list(graph.nodes())
    assert all(a.isBefore(b) and b.isAfter(a) for a, b in zip(nodes, nodes[1:]))
    assert first == nodes[0]
    graph.lint()


# ---- alias analysis: a graph, pairs that may alias, pairs that may not, values with writers

ALIAS = {
    "inputs of one type": ("graph(%a : Tensor, %b : Tensor, %l : int[], %i : int):\n  return (%a)", "a~b", "a!l a!i", ""),
    "fresh values": ("graph(%a : Tensor):\n  %b = aten::relu(%a)\n  %c = aten::relu(%a)\n  return (%b, %c)", "", "a!b b!c", ""),
    "views share": ("graph(%a : Tensor):\n  %b = aten::relu(%a)\n  %c = aten::t(%b)\n  %d = aten::t(%c)\n  return (%d)", "b~c b~d c~d", "a!d", ""),
    "in place": (
        "graph(%a : Tensor, %o : int):\n  %b = aten::relu(%a)\n  %c = aten::t(%b)\n  %d = aten::add_(%c, %a, %o)\n  return (%b)",
        "c~d b~d", "a!b", "b c d"),
    "write to an input reaches all inputs": (
        "graph(%a : Tensor, %b : Tensor, %o : int):\n  %c = aten::add_(%a, %b, %o)\n  return (%c)", "a~c b~c", "", "a b c"),
    "if joins both arms": (
        "graph(%c : bool, %a : Tensor):\n  %p = aten::relu(%a)\n  %q = aten::relu(%a)\n  %r = aten::relu(%a)\n"
        "  %x : Tensor = prim::If(%c)\n    b():\n      -> (%p)\n    b():\n      -> (%q)\n  return (%x)", "x~p x~q", "p!q x!r", ""),
    "loop carries": (
        "graph(%n : int, %c : bool, %a : Tensor, %o : int):\n  %p = aten::relu(%a)\n  %q = aten::relu(%a)\n  %x : Tensor = prim::Loop(%n, %c, %p)\n"
        "    b(%i : int, %w : Tensor):\n      %v = aten::add_(%w, %q, %o)\n      -> (%c, %v)\n  return (%x)", "x~p w~p v~p", "p!q x!q", "p x w v"),
    "loop takes another value in": (
        "graph(%n : int, %c : bool, %a : Tensor):\n  %p = aten::relu(%a)\n  %q = aten::relu(%a)\n  %x : Tensor = prim::Loop(%n, %c, %p)\n"
        "    b(%i : int, %w : Tensor):\n      -> (%c, %q)\n  return (%x)", "x~p x~q w~q", "p!q", ""),
    "list holds its elements": (
        "graph(%a : Tensor, %z : int):\n  %p = aten::relu(%a)\n  %q = aten::relu(%a)\n  %l : Tensor[] = prim::ListConstruct(%p)\n"
        "  %e : Tensor = aten::__getitem__(%l, %z)\n  return (%e)", "e~p", "q!e q!p", ""),
    "list for cat keeps its elements": (
        "graph(%a : Tensor, %z : int):\n  %p = aten::relu(%a)\n  %l : Tensor[] = prim::ListConstruct(%p)\n  %e = aten::cat(%l, %z)\n  return (%e)",
        "", "e!p p!a", ""),
    "tuples taken apart are exact": (
        "graph(%a : Tensor):\n  %p = aten::relu(%a)\n  %q = aten::relu(%a)\n  %t : (Tensor, Tensor) = prim::TupleConstruct(%p, %q)\n"
        "  %x : Tensor, %y : Tensor = prim::TupleUnpack(%t)\n  return (%x)", "x~p y~q", "x!q y!p x!y", ""),
    "append lets elements out": (
        "graph(%l : Tensor[], %a : Tensor):\n  %p = aten::relu(%a)\n  %m : Tensor[] = aten::append(%l, %p)\n  return (%l)", "p~a l~m", "", "l m"),
    "attribute reads": (
        'graph(%self : __torch__.M, %a : Tensor):\n  %w : Tensor = prim::GetAttr[name="w"](%self)\n  %p = aten::relu(%w)\n  return (%p)', "w~a", "p!w", ""),
    "attribute writes": (
        'graph(%self : __torch__.M, %a : Tensor):\n  %p = aten::relu(%a)\n  prim::SetAttr[name="w"](%self, %p)\n  return (%p)', "p~a", "", "self"),
    "constants are apart": (
        "graph(%a : Tensor):\n  %k : Long(requires_grad=0, device=cpu) = prim::Constant[value={8}]()\n  %n : NoneType = prim::Constant()\n  return (%k)",
        "", "k!a n!k", ""),
    "batch norm that may train": (
        "graph(%x : Tensor, %a : Tensor, %t : bool, %f : float):\n  %m = aten::relu(%a)\n"
        "  %y = aten::batch_norm(%x, %a, %a, %m, %m, %t, %f, %f, %t)\n  return (%y)", "", "m!x y!m", "m"),
    "batch norm that does not": (
        "graph(%x : Tensor, %a : Tensor, %f : float):\n  %m = aten::relu(%a)\n  %t : bool = prim::Constant[value=0]()\n"
        "  %y = aten::batch_norm(%x, %a, %a, %m, %m, %t, %f, %f, %t)\n  return (%y)", "", "m!x", ""),
    "unknown operators write everything": ("graph(%x : Tensor):\n  %a = aten::relu(%x)\n  %y : Tensor = my::op(%a)\n  return (%y)", "y~x a~x", "", "x a y"),
    "regions are looked into": (
        "graph(%x : Tensor, %o : int):\n  %a = aten::relu(%x)\n  %y : Tensor = prim::FunctionalGraph_0(%a, %o)\n  return (%y)\n"
        "with prim::FunctionalGraph_0 = graph(%p : Tensor, %q : int):\n  %r = aten::add_(%p, %q, %q)\n  return (%r)\n", "y~a", "a!x", "a y"),
    "dropout may give its operand": (
        "graph(%a : Tensor, %f : float, %t : bool):\n  %p = aten::relu(%a)\n  %q = aten::dropout(%p, %f, %t)\n  %r = aten::relu_(%q)\n  return (%r)", "q~p r~p", "p!a", "p q r"),
    "casts hand on": ("graph(%x : Tensor?):\n  %a : Tensor = prim::unchecked_unwrap_optional(%x)\n  return (%a)", "a~x", "", ""),
    "scalars never alias": ("graph(%x : int, %s : str):\n  %y = aten::add(%x, %x)\n  return (%y)", "", "x!y x!s", ""),
}


@pytest.mark.parametrize("name", ALIAS)
def test_alias(name):
    text, same, apart, written = ALIAS[name]
    graph, values = graph_and_values(text)
    graph.lint()
    db = _C._jit_alias_db(graph)
    for pair in same.split():
        a, b = pair.split("~")
        assert db.may_alias(values[a], values[b]), f"{pair}\n{db}"
    for pair in apart.split():
        a, b = pair.split("!")
        assert not db.may_alias(values[a], values[b]), f"{pair}\n{db}"
    assert {n for n, v in values.items() if db.has_writers(v)} == set(written.split()), str(db)


def test_strict_alias_analysis_names_the_operator():
    graph = _C.parse_ir("graph(%x : Tensor):\n  %y : Tensor = aten::no_such_thing(%x)\n  return (%y)")
    _C._jit_alias_db(graph)
    for strict in (lambda: _C._jit_alias_db(graph, True), graph.check_operators):
        with pytest.raises(RuntimeError, match="Unknown builtin op: aten::no_such_thing") as e:
            strict()
        assert "%y : Tensor = aten::no_such_thing(%x)" in str(e.value)
    wrong = _C.parse_ir("graph(%x : str):\n  %y : Tensor = aten::relu(%x) # a.py:3:4\n  return (%y)")
    with pytest.raises(RuntimeError, match=r"No overload of aten::relu fits the arguments \(str\)") as e:
        wrong.check_operators()
    assert "a.py" in str(e.value)


def test_containment_and_escape():
    graph, v = graph_and_values(
        "graph(%a : Tensor, %z : int):\n  %p = aten::relu(%a)\n  %l : Tensor[] = prim::ListConstruct(%p)\n  %m : Tensor[][] = prim::ListConstruct(%l)\n"
        "  %q = aten::relu(%a)\n  %r = aten::neg(%q)\n  return (%r)")
    db = _C._jit_alias_db(graph)
    assert db.may_contain_alias(v["m"], v["p"]) and not db.may_alias(v["m"], v["p"])
    assert not db.escapes_scope([v["q"]]) and db.escapes_scope([v["r"]]) and db.escapes_scope([v["a"]])
    assert db.safe_to_change_aliasing(v["q"], v["r"]) and not db.safe_to_change_aliasing(v["a"], v["r"])


# ---- moves: text with one node a line; the node, the target, whether it may, and the order of results afterwards

CHAIN = "graph(%x : Tensor, %o : int):\n{}  return (%x)"


def lines(*nodes):
    return CHAIN.format("".join(f"  {n}\n" for n in nodes))


A, B, C, D, E = (f"%{n} = aten::relu(%x)" for n in "abcde")
MOVES = {
    "plain": ((A, B, C), "a after c", True, "b c a"),
    "plain backwards": ((A, B, C), "c before a", True, "c a b"),
    "users travel along": ((A, "%b = aten::neg(%a)", C), "a after c", True, "c a b"),
    "producers travel along backwards": ((A, B, "%c = aten::neg(%b)"), "c before a", True, "b c a"),
    "unrelated ones stay": ((A, "%b = aten::neg(%a)", C, D), "a after d", True, "c d a b"),
    "not past its user": ((A, "%b = aten::neg(%a)"), "a after b", False, "a b"),
    "not past its producer": ((A, "%b = aten::neg(%a)"), "b before a", False, "a b"),
    "dependants make room": ((A, "%b = aten::neg(%a)", C), "a before c", True, "a c b"),
    "a chain that reaches the target": ((A, "%b = aten::neg(%a)", "%c = aten::neg(%b)"), "a before c", False, "a b c"),
    "beside itself": ((A, B), "a after a", True, "a b"),
    "nested use": (
        (A, "%b : Tensor = prim::If(%c0)\n    y():\n      %n = aten::neg(%a)\n      -> (%n)\n    z():\n      -> (%x)", C), "a after c", True, "c a b"),
    "not past a nested use": (
        (A, "%b : Tensor = prim::If(%c0)\n    y():\n      %n = aten::neg(%a)\n      -> (%n)\n    z():\n      -> (%x)"), "a after b", False, "a b"),
    "not past a write": ((A, "%b = aten::add_(%a, %x, %o)", "%c = aten::neg(%a)", D), "c before b", False, "a b c d"),
    "reader travels with the write": ((A, "%b = aten::add_(%a, %x, %o)", "%c = aten::neg(%a)", D), "b after d", True, "a d b c"),
    "two reads": ((A, "%b = aten::neg(%a)", "%c = aten::neg(%a)"), "c before b", True, "a c b"),
    "not past a write to a view": (
        (A, "%v = aten::t(%a)", "%b = aten::add_(%v, %x, %o)", "%c = aten::neg(%a)"), "c before b", False, "a v b c"),
    "not past a write to an element": (
        (A, "%l : Tensor[] = prim::ListConstruct(%a)", "%b = aten::add_(%a, %x, %o)", "%c : Tensor = aten::__getitem__(%l, %o)"), "c before b", False, "a l b c"),
    "not past a write to the container": (
        (A, "%l : Tensor[] = prim::ListConstruct(%a)", "%m : Tensor[] = aten::append(%l, %a)", "%c : int = aten::len(%l)"), "c before m", False, "a l m c"),
    "not past a wildcard write": (("%b = aten::add_(%x, %o, %o)", "%c = aten::neg(%y)"), "c before b", False, "b c"),
    "fresh values pass a wildcard write": ((A, "%b = aten::add_(%x, %o, %o)", "%c = aten::neg(%a)"), "c before b", True, "a c b"),
    "effects keep their order": (("prim::Print(%x)", "prim::Print(%o)", A), "1 before 0", False, "a"),
    "past an effect": ((A, "prim::Print(%x)", C), "c before a", True, "c a"),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    nodes, what, legal, order = MOVES[name]
    text = lines(*nodes).replace("%o : int)", "%o : int, %y : Tensor, %c0 : bool)")
    graph, values = graph_and_values(text)
    all_nodes = list(graph.nodes())

    def node(word):
        return all_nodes[int(word)] if word.isdigit() else values[word].node()

    mover, side, target = what.split()
    db = _C._jit_alias_db(graph)
    could = getattr(db, f"could_move_{side}_topologically")(node(mover), node(target))
    before = str(graph)
    moved = getattr(db, f"move_{side}_topologically_valid")(node(mover), node(target))
    assert could == moved == legal
    if not legal:
        assert str(graph) == before
    graph.lint()
    assert [v.debugName() for n in graph.nodes() for v in n.outputs()] == order.split()


# ---- side effects and non-determinism

FACTS = [
    ("%a = aten::relu(%x)", False, False),
    ("prim::Print(%x)", True, False),
    ("%a = aten::rand_like(%x, %n, %n, %n, %n, %n)", False, True),
    ("%a = aten::dropout(%x, %f, %t)", False, True),
    ("%a = aten::dropout(%x, %f, %no)", False, False),
    ("%a : Tensor = my::op(%x)", True, False),
    ('prim::RaiseException(%s, %n)', True, False),
    ('prim::SetAttr[name="a"](%m, %x)', True, False),
    ("%a : Tensor = prim::If(%t)\n    y():\n      prim::Print(%x)\n      -> (%x)\n    z():\n      -> (%x)", True, False),
    ("%a = aten::add_(%x, %x, %i)", False, False),
    ("%a : NoneType = prim::Enter(%m)", True, False),
]


@pytest.mark.parametrize("text, effects, random", FACTS, ids=[t.split("\n")[0] for t, _, _ in FACTS])
def test_facts(text, effects, random):
    graph = _C.parse_ir(
        "graph(%x : Tensor, %f : float, %t : bool, %s : str, %m : __torch__.M, %i : int):\n  %n : NoneType = prim::Constant()\n"
        f"  %no : bool = prim::Constant[value=0]()\n  {text}\n  return (%x)")
    node = list(graph.nodes())[2]
    assert (node.hasSideEffects(), node.isNondeterministic()) == (effects, random)


# ---- the rewriter: pattern, replacement, graph, number of rewrites, pieces of the result (with ! in front: not in it)

RELU = "graph(%x):\n  %y = aten::relu(%x)\n  return (%y)"
NEG = "graph(%x):\n  %y = aten::neg(%x)\n  return (%y)"
DROP = ("graph(%x, %m : int):\n  %y = aten::contiguous(%x, %m)\n  return (%y)", "graph(%x, %m : int):\n  return (%x)")
ADD_RELU = "graph(%a, %b, %o):\n  %s = aten::add(%a, %b, %o)\n  %y = aten::relu(%s)\n  return (%y)"
FUSED = "graph(%a, %b, %o):\n  %y = my::add_relu(%a, %b, %o)\n  return (%y)"


def body(text, inputs="%x : Tensor, %o : int, %c : bool"):
    return f"graph({inputs}):\n{text}"


REWRITES = {
    "every match": (RELU, NEG, body("  %a = aten::relu(%x)\n  %b = aten::relu(%a)\n  return (%b)"), 2, ["%a : Tensor = aten::neg(%x)", "!relu"]),
    "removed twice in a row": (*DROP, body("  %z = aten::neg(%x)\n  %a = aten::contiguous(%z, %o)\n  %b = aten::contiguous(%a, %o)\n  %d = aten::sigmoid(%b)\n  return (%d)"),
                               2, ["aten::sigmoid(%z)", "!contiguous"]),
    "stays in its arm": (RELU, NEG, body("  %r : Tensor = prim::If(%c)\n    y():\n      %a = aten::relu(%x)\n      -> (%a)\n    z():\n      -> (%x)\n  return (%r)"),
                         1, ["    block0():\n      %a : Tensor = aten::neg(%x)\n"]),
    "in a loop": (RELU, NEG, body("  %r : Tensor = prim::Loop(%o, %c, %x)\n    b(%i : int, %w : Tensor):\n      %a = aten::relu(%w)\n      -> (%c, %a)\n  return (%r)"),
                  1, ["      %a : Tensor = aten::neg(%w)\n"]),
    "intermediate with another user": (ADD_RELU, FUSED, body("  %s = aten::add(%x, %x, %o)\n  %y = aten::relu(%s)\n  return (%y, %s)"), 0, ["aten::relu"]),
    "chain of two": (ADD_RELU, FUSED, body("  %s = aten::add(%x, %x, %o)\n  %y = aten::relu(%s)\n  return (%y)"), 1, ["%y : Tensor = my::add_relu(%x, %x, %o)", "!aten::"]),
    "one value for two operands": ("graph(%a, %o):\n  %s = aten::add(%a, %a, %o)\n  return (%s)", "graph(%a, %o):\n  %s = my::twice(%a)\n  return (%s)",
                                   body("  %s = aten::add(%x, %x, %o)\n  %t = aten::add(%x, %s, %o)\n  return (%t)"), 1, ["my::twice(%x)", "aten::add(%x, %s"]),
    "numbers match exactly": ("graph(%x):\n  %k : int = prim::Constant[value=2]()\n  %y = aten::add(%x, %x, %k)\n  return (%y)", NEG,
                              body("  %k : int = prim::Constant[value=2]()\n  %l : int = prim::Constant[value=3]()\n  %a = aten::add(%x, %x, %k)\n  %b = aten::add(%a, %a, %l)\n  return (%b)"),
                              1, ["%a : Tensor = aten::neg(%x)", "aten::add(%a, %a, %l)"]),
    "shared constants": ("graph(%x):\n  %k : int = prim::Constant[value=2]()\n  %y = aten::add(%x, %x, %k)\n  return (%y)", NEG,
                         body("  %k : int = prim::Constant[value=2]()\n  %a = aten::add(%x, %x, %k)\n  %b = aten::add(%a, %a, %k)\n  return (%b, %k)"), 2, ["!aten::add", "value=2"]),
    "strings are expressions": ('graph(%x):\n  %y = my::op[name="a.*"](%x)\n  return (%y)', NEG,
                                body('  %a : Tensor = my::op[name="abc"](%x)\n  %b : Tensor = my::op[name="xabc"](%a)\n  return (%b)'), 1, ["%a : Tensor = aten::neg(%x)", "xabc"]),
    "marked nodes stay": (RELU, NEG, body("  %a = aten::relu[to_compile=0](%x)\n  return (%a)"), 0, ["aten::relu[to_compile=0]"]),
    "type and name are kept": (RELU, NEG, body("  %a : Float(2, 3) = my::src(%x)\n  %b : Float(2, 3) = aten::relu(%a)\n  return (%b)"), 1, ["%b : Float(2, 3) = aten::neg(%a)"]),
    "does not feed on itself": (RELU, "graph(%x):\n  %a = aten::relu(%x)\n  %y = aten::neg(%a)\n  return (%y)", body("  %a = aten::relu(%x)\n  return (%a)"), 1, ["aten::neg"]),
    "two results": ("graph(%x):\n  %a = aten::neg(%x)\n  %b = aten::relu(%a)\n  return (%a, %b)", "graph(%x):\n  %a, %b = my::both(%x)\n  return (%a, %b)",
                    body("  %a = aten::neg(%x)\n  %u = aten::sigmoid(%a)\n  %b = aten::relu(%a)\n  return (%u, %b)"), 1, ["%a : Tensor, %b : Tensor = my::both(%x)\n  %u : Tensor = aten::sigmoid(%a)"]),
    "a write between is respected": (ADD_RELU, FUSED,
                                     body("  %p = aten::neg(%x)\n  %s = aten::add(%p, %x, %o)\n  %w = aten::add_(%p, %x, %o)\n  %y = aten::relu(%s)\n  return (%y)"), 0, ["aten::relu"]),
    "a write that others see stays": ("graph(%x):\n  %y = aten::relu_(%x)\n  return (%y)", RELU,
                                      body("  %p = aten::neg(%x)\n  %a = aten::relu_(%p)\n  %q = aten::add(%p, %a, %o)\n  return (%q)"), 0, ["relu_"]),
    "a write to an input stays": ("graph(%x):\n  %y = aten::relu_(%x)\n  return (%y)", RELU, body("  %a = aten::relu_(%x)\n  return (%a)"), 0, ["relu_"]),
    "a write nobody sees may go": ("graph(%x):\n  %y = aten::relu_(%x)\n  return (%y)", RELU,
                                   body("  %p = aten::neg(%x)\n  %a = aten::relu_(%p)\n  %q = aten::neg(%a)\n  return (%q)"), 1, ["!relu_"]),
    "a copy that is written is no operand": (*DROP, body("  %p = aten::neg(%x)\n  %t = aten::t(%p)\n  %a = aten::contiguous(%t, %o)\n  %b = aten::add_(%a, %o, %o)\n  %q = aten::neg(%b)\n  return (%q)"),
                                             0, ["aten::contiguous"]),
    "matches that overlap: the first in the program": (ADD_RELU.replace("relu", "add_relu").replace("aten::add_relu(%s)", "aten::add(%s, %b, %o)"), FUSED,
                                                       body("  %p = aten::add(%x, %x, %o)\n  %q = aten::add(%p, %x, %o)\n  %r = aten::add(%q, %x, %o)\n  return (%r)"),
                                                       1, ["my::add_relu(%x, %x, %o)", "%r : Tensor = aten::add(%q, %x, %o)"]),
    "what a rewrite makes is found again": ("graph(%x):\n  %a = aten::neg(%x)\n  %y = aten::neg(%a)\n  return (%y)", "graph(%x):\n  %y = aten::abs(%x)\n  return (%y)",
                                            body("  %a = aten::neg(%x)\n  %b = aten::neg(%a)\n  %d = aten::neg(%b)\n  %e = aten::neg(%d)\n  return (%e)"),
                                            2, ["%b : Tensor = aten::abs(%x)\n  %e : Tensor = aten::abs(%b)"]),
    "an operand from outside of the block": (ADD_RELU, FUSED, body("  %p = aten::neg(%x)\n  %r : Tensor = prim::If(%c)\n    y():\n      %s = aten::add(%p, %x, %o)\n      %t = aten::relu(%s)\n"
                                                                   "      -> (%t)\n    z():\n      -> (%x)\n  return (%r)"), 1, ["    block0():\n      %t : Tensor = my::add_relu(%p, %x, %o)\n      -> (%t)"]),
    "nodes of two blocks are no match": (ADD_RELU, FUSED, body("  %s = aten::add(%x, %x, %o)\n  %r : Tensor = prim::If(%c)\n    y():\n      %t = aten::relu(%s)\n      -> (%t)\n    z():\n      -> (%x)\n  return (%r)"),
                                         0, ["aten::relu"]),
    "the result of the graph": (RELU, NEG, body("  %a = aten::relu(%x)\n  return (%a, %a)"), 1, ["return (%a, %a)", "%a : Tensor = aten::neg(%x)"]),
    "no new aliases of what the caller has": ("graph(%x):\n  %y = aten::neg(%x)\n  return (%y)", "graph(%x):\n  return (%x)",
                                              body("  %a = aten::neg(%x)\n  return (%a)"), 0, ["neg"]),
    "no new aliases of what is written": ("graph(%x):\n  %y = aten::neg(%x)\n  return (%y)", "graph(%x):\n  return (%x)",
                                          body("  %p = aten::relu(%x)\n  %a = aten::neg(%p)\n  %b = aten::add_(%a, %x, %o)\n  %q = aten::add(%p, %b, %o)\n  return (%q)"), 0, ["neg"]),
}


@pytest.mark.parametrize("name", REWRITES)
def test_rewriter(name):
    pattern, replacement, text, count, pieces = REWRITES[name]
    graph = _C.parse_ir(text)
    graph.lint()
    matched = _C._jit_pass_custom_pattern_based_rewrite_graph(pattern, replacement, graph, trust_rules=False)
    graph.lint()
    out = str(graph)
    assert matched == count, out
    for piece in pieces:
        assert (piece[1:] not in out) if piece[0] == "!" else (piece in out), out


# ---- dead code and constant propagation

DCE = {
    "chain": ("  %a = aten::neg(%x)\n  %b = aten::neg(%a)\n  return (%x)", "graph(%x : Tensor,\n      %o : int,\n      %c : bool):\n  return (%x)\n"),
    "dead list": ("  %l : int[] = prim::ListConstruct(%o)\n  %m : int[] = aten::append(%l, %o)\n  return (%x)", "!append"),
    "live list": ("  %l : int[] = prim::ListConstruct(%o)\n  %m : int[] = aten::append(%l, %o)\n  return (%l)", "append"),
    "write to an argument": ("  %a = aten::add_(%x, %o, %o)\n  return (%o)", "add_"),
    "write to a dead temporary": ("  %t = aten::neg(%x)\n  %a = aten::add_(%t, %o, %o)\n  return (%o)", "!neg"),
    "write through a view": ("  %t = aten::neg(%x)\n  %v = aten::t(%t)\n  %a = aten::add_(%v, %o, %o)\n  return (%t)", "add_"),
    "print in an if": ("  prim::If(%c)\n    y():\n      prim::Print(%x)\n      -> ()\n    z():\n      -> ()\n  return (%x)", "Print"),
    "one of two results": (
        "  %a : Tensor, %b : Tensor = prim::If(%c)\n    y():\n      %p = aten::neg(%x)\n      %q = aten::relu(%x)\n      -> (%p, %q)\n    z():\n      -> (%x, %x)\n  return (%b)", "!neg"),
    "dead carried pair": (
        "  %a : int, %b : int, %r : int = prim::Loop(%o, %c, %o, %o, %o)\n    l(%i : int, %p : int, %q : int, %s : int):\n"
        "      %t : int = aten::add(%s, %i)\n      -> (%c, %q, %p, %t)\n  return (%r)", "%r : int = prim::Loop(%o, %c, %o)\n    block0(%i : int, %s : int)"),
    "carried and used inside": (
        "  %a : int, %r : int = prim::Loop(%o, %c, %o, %o)\n    l(%i : int, %p : int, %s : int):\n      %n : int = aten::add(%p, %i)\n"
        "      %t : int = aten::add(%s, %n)\n      -> (%c, %n, %t)\n  return (%r)", "prim::Loop(%o, %c, %o, %o)"),
    "dead loop": ("  %r : int = prim::Loop(%o, %c, %o)\n    l(%i : int, %s : int):\n      -> (%c, %i)\n  return (%x)", "!Loop"),
    "contained": ("  %t = aten::neg(%x)\n  %l : Tensor[] = prim::ListConstruct(%t)\n  %a = aten::add_(%t, %o, %o)\n  return (%l)", "add_"),
    "capture of a fork": ("  %f : Future[Tensor] = prim::fork_0(%x, %o)\n  return (%f)\nwith prim::fork_0 = graph(%p : Tensor, %q : int):\n  return (%p)", "prim::fork_0(%x)"),
    "attribute": ('  %m : __torch__.M = my::module()\n  prim::SetAttr[name="a"](%m, %x)\n  return (%x)', "SetAttr"),
}


@pytest.mark.parametrize("name", DCE)
def test_dead_code(name):
    text, piece = DCE[name]
    graph = _C.parse_ir(body(text))
    _C._jit_pass_dce(graph)
    graph.lint()
    out = str(graph)
    assert (piece[1:] not in out) if piece[0] == "!" else (piece in out), out
    _C._jit_pass_dce(graph)
    assert str(graph) == out


CONSTANTS = {
    "arithmetic": ("  %a : int = prim::Constant[value=2]()\n  %b = aten::mul(%a, %a)\n  %d = aten::add(%b, %a)\n  return (%d)", "%d : int = prim::Constant[value=6]()\n  return (%d)"),
    "errors stay": ("  %a : int = prim::Constant[value=0]()\n  %b = aten::floordiv(%a, %a)\n  return (%b)", "floordiv"),
    "known arm": (
        "  %t : bool = prim::Constant[value=1]()\n  %r : Tensor = prim::If(%t)\n    y():\n      %p = aten::neg(%x)\n      -> (%p)\n    z():\n      %q = aten::relu(%x)\n      -> (%q)\n  return (%r)",
        "%p : Tensor = aten::neg(%x)\n  return (%p)"),
    "loop of no trips": ("  %z : int = prim::Constant[value=0]()\n  %r : Tensor = prim::Loop(%z, %c, %x)\n    l(%i : int, %w : Tensor):\n      %p = aten::neg(%w)\n      -> (%c, %p)\n  return (%r)", "return (%x)"),
    "invariant": ("  %r : Tensor, %s : int = prim::Loop(%o, %c, %x, %o)\n    l(%i : int, %w : Tensor, %q : int):\n      %t = aten::add(%q, %i)\n      -> (%c, %w, %t)\n  return (%r, %s)", "return (%x, %s)"),
    "equal arms": ("  %r : Tensor, %s : int = prim::If(%c)\n    y():\n      %p : int = prim::Constant[value=3]()\n      -> (%x, %p)\n    z():\n      %q : int = prim::Constant[value=3]()\n      -> (%x, %q)\n  return (%r, %s)", "!If"),
    "written results stay": ("  %k : int = prim::Constant[value=3]()\n  %l : int[] = prim::ListConstruct(%k)\n  %n : NoneType = prim::Constant()\n  %z = aten::zeros(%l, %n, %n, %n, %n)\n  %w = aten::add_(%z, %x, %k)\n  return (%w)", "aten::zeros"),
    "what the caller gets stays new": ("  %k : int = prim::Constant[value=3]()\n  %l : int[] = prim::ListConstruct(%k)\n  return (%l)", "ListConstruct"),
    "random stays": ("  %k : int = prim::Constant[value=3]()\n  %l : int[] = prim::ListConstruct(%k)\n  %n : NoneType = prim::Constant()\n  %z = aten::rand(%l, %n, %n, %n, %n)\n  %s = aten::add(%x, %z, %k)\n  return (%s)", "aten::rand"),
    "tensors": ("  %k : int = prim::Constant[value=3]()\n  %l : int[] = prim::ListConstruct(%k)\n  %n : NoneType = prim::Constant()\n  %z = aten::ones(%l, %n, %n, %n, %n)\n  %s = aten::add(%x, %z, %k)\n  return (%s)", "base64"),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_propagation(name):
    text, piece = CONSTANTS[name]
    graph = _C.parse_ir(body(text))
    _C._jit_pass_constant_propagation(graph)
    graph.lint()
    out = str(graph)
    assert (piece[1:] not in out) if piece[0] == "!" else (piece in out), out


def test_passes_are_listed_and_run_in_order():
    names = [name for name, *_ in _C._jit_passes()]
    assert {"dce", "constant_propagation", "inline"} <= set(names)
    graph = _C.parse_ir(body("  %a : int = prim::Constant[value=2]()\n  %b = aten::mul(%a, %a)\n  return (%x)"))
    report = _C._jit_run_passes(graph, ["constant_propagation", "dce"])
    assert [r.split("\n")[0] for r in report] == ["# after 0 constant_propagation (changed)", "# after 1 dce (unchanged)"]
    assert str(_C.parse_ir(report[0])) == str(graph)
    with pytest.raises(ValueError, match="there is no pass 'nothing'. Passes: "):
        _C._jit_run_passes(graph, ["nothing"])


def test_canonical_form():
    a = _C.parse_ir("graph(%x : Tensor, %c : bool):\n  %p : Tensor, %q : Tensor = prim::If(%c)\n    b():\n      %n = aten::neg(%x) # f.py:1:2\n      -> (%n, %x)\n    b():\n      -> (%x, %x)\n  %r = aten::relu(%q)\n  %s = aten::relu(%p)\n  return (%r, %s)")
    b = _C.parse_ir("graph(%7 : Tensor, %8 : bool):\n  %1 : Tensor, %2 : Tensor = prim::If(%8)\n    b():\n      %3 = aten::neg(%7)\n      -> (%7, %3)\n    b():\n      -> (%7, %7)\n  %4 = aten::relu(%1)\n  %5 = aten::relu(%2)\n  return (%4, %5)")
    assert _C._jit_graph_difference(a, b) is not None
    assert str(a.canonicalize()) == str(b.canonicalize())
    assert _C._jit_graph_difference(a.canonicalize(), b.canonicalize()) is None
    assert "%n : Tensor" in str(a.canonicalize(True))


DIFFERENCES = [
    ("  %a = aten::neg(%x)\n  return (%a)", "  %a = aten::relu(%x)\n  return (%a)", "different operators"),
    ("  return (%x)", "  return (%o)", "operand 0 is another value"),
    ("  %a : float = prim::Constant[value=0.]()\n  return (%a)", "  %a : float = prim::Constant[value=-0.]()\n  return (%a)", "attribute 'value' differs"),
    ("  %a : int = prim::Constant[value=1]()\n  return (%a)", "  %a : bool = prim::Constant[value=1]()\n  return (%a)", "have types 'int' and 'bool'"),
    ("  %a = aten::neg(%x)\n  return (%x)", "  return (%x)", "the first graph has one node more"),
]


@pytest.mark.parametrize("first, second, why", DIFFERENCES)
def test_differences_are_named(first, second, why):
    assert why in _C._jit_graph_difference(_C.parse_ir(body(first)), _C.parse_ir(body(second)))
    assert _C._jit_graph_difference(_C.parse_ir(body(first)), _C.parse_ir(body(first))) is None
