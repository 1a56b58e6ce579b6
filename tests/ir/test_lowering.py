"""The lowering phase: freezing, attributes as inputs, fallback marks, the runner, loggers, passes from outside."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

import cresset
from cresset import _C, lowering, nn


def script(module):
    return cresset.jit.script(module.eval())


def values(steps):
    return {step.name for step in steps if step.changed}


class Block(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        return cresset.relu(self.fc(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(Block(), Block())
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.layer1(x))


class Counter(nn.Module):
    count: int

    def __init__(self):
        super().__init__()
        self.count = 0
        self.scale = 2

    def forward(self, x):
        self.count += 1
        return x * self.scale + self.count


class Written(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", cresset.zeros(3))
        self.register_buffer("other", cresset.ones(3))

    def forward(self, x):
        view = self.state[0:2]
        view.add_(1)
        return x + self.state + self.other


class Optional_(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = None
        self.training_only = nn.Dropout(0.5)

    def forward(self, x):
        if self.bias is not None:
            x = x + 1
        return self.training_only(x)


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x, flag: bool):
        if flag:
            for block in self.blocks:
                x = block(x)
        return x


# ---- freezing


@pytest.mark.parametrize("make, inputs", [(Net, (3, 3)), (Counter, (3,)), (Written, (3,)), (Optional_, (3,))], ids=lambda v: getattr(v, "__name__", ""))
def test_frozen_modules_answer_the_same(make, inputs):
    module = script(make())
    reference = script(make())
    reference.load_state_dict(module.state_dict())
    frozen = lowering.freeze(module._c)
    x = cresset.randn(*inputs)
    for _ in range(3):
        assert cresset.allclose(frozen._get_method("forward")(x), reference(x))


def test_all_attributes_of_an_inference_module_become_constants():
    frozen = lowering.freeze(script(Net())._c)
    text = str(frozen._get_method("forward").graph)
    assert "prim::GetAttr" not in text and "prim::CallMethod" not in text
    assert "self.layer1.0.fc.weight" in text
    assert frozen._attributes() == []
    assert frozen._method_names() == ["forward"]


def test_the_given_module_stays_as_it_is():
    module = script(Net())
    before = str(module.graph), {k: v.clone() for k, v in module.state_dict().items()}
    once = str(lowering.freeze(module._c)._get_method("forward").graph)
    assert str(lowering.freeze(module._c)._get_method("forward").graph) == once
    assert str(module.graph) == before[0]
    assert all(cresset.equal(v, before[1][k]) for k, v in module.state_dict().items())
    written = script(Written())
    lowering.freeze(written._c)._get_method("forward")(cresset.ones(3))
    assert cresset.equal(written.state, cresset.zeros(3))


def test_what_is_written_stays_an_attribute():
    frozen = lowering.freeze(script(Counter())._c)
    text = str(frozen._get_method("forward").graph)
    assert 'prim::SetAttr[name="count"]' in text and 'name="scale"' not in text
    frozen = lowering.freeze(script(Written())._c)
    text = str(frozen._get_method("forward").graph)
    assert 'prim::GetAttr[name="state"]' in text and 'name="other"' not in text


def test_none_folds_an_if():
    text = str(lowering.freeze(script(Optional_())._c)._get_method("forward").graph)
    assert "prim::If" not in text


def test_preserved_names():
    frozen = lowering.freeze(script(Net())._c, ["head.weight"])
    assert [name for name, *_ in frozen._attributes()] == ["head"]
    with pytest.raises(RuntimeError, match="freeze: there is no attribute or method 'nothing' to preserve"):
        lowering.freeze(script(Net())._c, ["nothing"])


def test_training_modules_keep_their_parameters():
    module = cresset.jit.script(Optional_().train())
    text = str(lowering.freeze(module._c)._get_method("forward").graph)
    assert 'name="training"' in text
    module = cresset.jit.script(Net().train())
    assert 'name="weight"' in str(lowering.freeze(module._c)._get_method("forward").graph)


# ---- attributes as inputs


def test_lower_graph():
    module = script(Net())
    graph, parameters = lowering.lower_graph(module._c)
    names = [v.debugName() for v in graph.inputs()]
    assert names[1:3] == ["self.layer1.0.fc.weight", "self.layer1.0.fc.bias"] and len(names) == 7 and len(parameters) == 6
    x = cresset.randn(2, 3)
    assert cresset.allclose(_C._jit_run_graph(graph, [x, *parameters])[0], module(x))


def test_lower_graph_refuses_state():
    with pytest.raises(RuntimeError, match="lower_graph: attribute 'self.count' is written; a module may only be used to read attributes"):
        lowering.lower_graph(script(Counter())._c)


def test_lower_graph_of_attributes_in_blocks():
    module = script(Listed())
    graph, parameters = lowering.lower_graph(module._c)
    assert len(parameters) == 4
    x = cresset.randn(2, 3)
    for flag in (True, False):
        assert cresset.allclose(_C._jit_run_graph(graph, [x, flag, *parameters])[0], module(x, flag))


class Reads(nn.Module):
    """Two reads of one attribute, one that nobody reads, a fork, a second method."""

    def __init__(self):
        super().__init__()
        self.inner = Block()
        self.scale = nn.Parameter(cresset.full((3,), 2.0))
        self.unused = nn.Parameter(cresset.ones(3))

    def work(self, x):
        return x * self.scale

    @cresset.jit.export
    def twice(self, x):
        return self.inner(self.inner(x))

    def forward(self, x):
        future = cresset.jit.fork(self.work, x)
        return x * self.scale + cresset.jit.wait(future)


@pytest.mark.parametrize("method, names", [("forward", ["self.scale"]), ("twice", ["self.inner.fc.weight", "self.inner.fc.bias"])])
def test_lower_graph_has_an_input_for_each_attribute_that_is_read(method, names):
    module = script(Reads())
    graph, parameters = lowering.lower_graph(module._c, method)
    assert [v.debugName() for v in graph.inputs()][1:] == names
    x = cresset.randn(2, 3)
    assert cresset.allclose(_C._jit_run_graph(graph, [x, *parameters])[0], getattr(module, method)(x))


def test_lower_graph_of_a_tensor_with_two_names():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Parameter(cresset.ones(3))
            self.second = self.first

        def forward(self, x):
            return x * self.first + self.second

    module = script(Tied())
    graph, parameters = lowering.lower_graph(module._c)
    # They stay one tensor.
    assert [v.debugName() for v in graph.inputs()][1:] == ["self.first"] and parameters[0].data_ptr() == module.second.data_ptr()
    x = cresset.randn(2, 3)
    assert cresset.equal(_C._jit_run_graph(graph, [x, *parameters])[0], module(x))


def test_lower_graph_without_attributes():
    class Plain(nn.Module):
        def forward(self, x):
            return x + 1

    graph, parameters = lowering.lower_graph(script(Plain())._c)
    assert len(list(graph.inputs())) == 1 and len(parameters) == 0


# ---- tuples with names, loops that are written out, merging switched off


class Pair(NamedTuple):
    first: cresset.Tensor
    second: int


def test_named_tuples_are_lowered():
    def choose(x, c: bool):
        if c:
            pair = Pair(x, 1)
        else:
            pair = Pair(x + 1, 2)
        return pair.first * pair.second

    graph = cresset.jit.script(choose).graph.copy()
    before = graph.copy()
    lowering.run_pass("lower-all-tuples", graph)
    assert "prim::Tuple" not in str(graph)
    for c in (True, False):
        assert _C._jit_run_difference(before, graph, [cresset.randn(2), c]) is None


@pytest.mark.parametrize("trips, loops", [(62, 0), (63, 0), (64, 1), (65, 2)])
def test_how_many_iterations_are_written_out(trips, loops):
    graph = _C.parse_ir(f"""graph(%x : int):
  %n : int = prim::Constant[value={trips}]()
  %go : bool = prim::Constant[value=1]()
  %r : int = prim::Loop(%n, %go, %x)
    block0(%i : int, %v : int):
      %p : int = aten::add(%v, %i)
      -> (%go, %p)
  return (%r)""")
    before = graph.copy()
    lowering.run_pass("unroll-loops", graph)
    found = str(graph).count("prim::Loop(")
    assert (found == 0) == (loops == 0) and found <= 2, graph
    assert _C._jit_run_difference(before, graph, [3]) is None


def test_a_list_of_modules_is_written_out_when_it_is_frozen():
    text = str(lowering.freeze(script(Listed())._c)._get_method("forward").graph)
    assert "prim::Loop" not in text and text.count("aten::relu") == 2


def test_merging_can_be_switched_off():
    for switch, sums in ((False, 1), (True, 2)):
        lowered = lowering.lower(_C.parse_ir(SUM), disable_cse=switch)
        assert str(lowered.graph).count("aten::neg") == sums


# ---- marks


def marked(graph):
    out = []

    def walk(block):
        for n in block.nodes():
            if n.hasAttribute("to_compile"):
                out.append(n.kind())
            for b in n.blocks():
                walk(b)

    walk(graph.block())
    return out


@pytest.mark.parametrize("unfreeze", [False, True])
@pytest.mark.parametrize("name, count", [("layer1.0", 1), ("layer1", 2), ("Block", 2), ("head", 0), ("nothing", 0)])
def test_fallback_marks(name, count, unfreeze):
    module = script(Net())
    if name == "Block":
        name = next(m for p, m in module._c.named_modules() if p == "layer1.0").qualified_name
    with lowering.logging.capture("warning") as lines:
        lowered = lowering.lower(module._c, torch_executed_modules=[name], unfreeze=unfreeze)
    found = marked(lowered.graph)
    assert found.count("aten::relu") == count
    # Marked linear layers are not rewritten, others are.
    text = str(lowered.graph)
    expected = count if name != "head" else 1
    assert text.count("aten::linear[to_compile=0]") == expected
    assert text.count("aten::linear(") == 0
    assert any("no module of class or path 'nothing'" in line for _, line in lines) == (name == "nothing")
    x = cresset.randn(2, 3)
    assert cresset.allclose(lowered(x), module(x), atol=1e-6)


def test_marks_in_arms_and_after_compiling_twice():
    module = script(Listed())
    for _ in range(2):
        lowered = lowering.lower(module._c, torch_executed_modules=["blocks.1"])
        assert marked(lowered.graph).count("aten::relu") == 1
    assert "to_compile" not in str(module.graph)


class Rewritten(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.drop = nn.Conv1d(2, 2, 1), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(nn.functional.gelu(self.conv(x)))


def test_marks_survive_rewrites_and_nest():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept, self.other = nn.Sequential(Rewritten()), Rewritten()

        def forward(self, x):
            return self.other(self.kept(x))

    module = script(Outer())
    lowered = lowering.lower(module._c, torch_executed_modules=["kept", "kept.0"])
    text = str(lowered.graph)
    # The other module is rewritten.
    for name, count in (("conv1d", 1), ("gelu", 1), ("dropout", 1), ("_convolution", 0)):
        assert text.count(f"aten::{name}[to_compile=0]") == count, name
        assert (f"aten::{name}(" in text) == (name == "_convolution")
    x = cresset.randn(1, 2, 5)
    assert cresset.allclose(lowered(x), module(x), atol=1e-6)


# ---- attributes in loops, numbers among them, modules called in loops


class InLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.shift = nn.Parameter(cresset.ones(3))
        self.factor, self.words, self.dims = 2.5, "sum", [1, 2]

    def forward(self, x, n: int):
        x = x + self.shift
        for i in range(n):
            x = cresset.relu(self.fc(x)) * self.factor + self.dims[1]
        return x, self.words


def test_lower_graph_of_attributes_in_loops_and_of_numbers():
    module = script(InLoop())
    graph, parameters = lowering.lower_graph(module._c)
    # In the order of their first use; what is no tensor is a constant.
    assert [v.debugName() for v in graph.inputs()][2:] == ["self.shift", "self.fc.weight", "self.fc.bias"]
    text = str(graph)
    assert "prim::GetAttr" not in text and "value=2.5" in text and 'value="sum"' in text and "value=[1, 2]" in text
    x = cresset.randn(2, 3)
    for n in (0, 3):
        found, words = _C._jit_run_graph(graph, [x, n, *parameters])[0]
        assert cresset.allclose(found, module(x, n)[0]) and words == "sum"


def test_marks_of_a_module_that_is_called_in_a_loop():
    module = script(InLoop())
    lowered = lowering.lower(module._c, torch_executed_modules=["fc"])
    text = str(lowered.graph)
    assert text.count("aten::linear[to_compile=0]") == 1 and "aten::relu(" in text
    assert text.index("prim::Loop") < text.index("aten::linear[to_compile=0]")


def test_exactly_the_nodes_of_the_named_module_are_marked():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.rest = nn.Sequential(nn.Conv1d(1, 1, 1, padding=0), nn.ReLU()), nn.Sequential(nn.Conv1d(1, 1, 1), nn.ReLU())

        def forward(self, x):
            return self.rest(self.first(x))

    module = script(Layers())
    frozen = lowering.freeze(module)._get_method("forward").graph
    assert str(frozen).count("aten::conv1d") == 2
    graph = lowering.lower(module, torch_executed_modules=["first"]).graph
    assert sorted(marked(graph)) == ["aten::conv1d", "aten::relu"]


def test_delimiters_survive_freezing():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.rest = nn.Sequential(nn.Conv1d(1, 1, 1), nn.ReLU()), nn.Sequential(nn.Conv1d(1, 1, 1), nn.ReLU())

        def forward(self, x):
            return self.rest(self.first(x))

    module = script(Layers())
    lowering.run_pass("notate-module-for-fallback", module.graph, torch_executed_modules=["first"])
    frozen = lowering.freeze(module)._get_method("forward").graph
    assert lowering.run_pass("mark-nodes-for-fallback", frozen).changed
    assert sorted(marked(frozen)) == ["aten::conv1d", "aten::relu"]
    kinds = [n.kind() for n in frozen.nodes() if n.kind().startswith("aten::")]
    assert kinds == ["aten::conv1d", "aten::relu"] * 2
    assert [n.hasAttribute("to_compile") for n in frozen.nodes() if n.kind().startswith("aten::")] == [True, True, False, False]


# ---- dead code, with its options


PRINTS = """graph(%x : Tensor, %c : bool):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::abs(%x)
   = prim::Print(%a)
  %r : Tensor = prim::If(%c)
    block0():
      %d : Tensor = aten::relu(%b)
      %e : Tensor = aten::relu(%a)
      -> (%d)
    block1():
      -> (%x)
  return (%r)
"""


@pytest.mark.parametrize("options, live", [({}, "x c a b r d"), ({"delete_effects": True}, "x c b r d")])
def test_values_that_are_needed(options, live):
    graph, seen = _C.parse_ir(PRINTS), []

    def look(values):
        # Nothing is gone yet.
        assert "%e : " in str(graph)
        seen.append({v.debugName() for v in values})

    assert lowering.eliminate_dead_code(graph, live_values=look, **options)
    assert seen == [set(live.split())]
    assert ("prim::Print" in str(graph)) == (not options) and "%e" not in str(graph)
    assert not lowering.eliminate_dead_code(graph, **options)


def test_an_error_of_the_function_that_looks_at_values():
    def look(values):
        raise KeyError("not today")

    graph = _C.parse_ir(PRINTS)
    before = str(graph)
    with pytest.raises(KeyError, match="not today"):
        lowering.eliminate_dead_code(graph, live_values=look)
    assert str(graph) == before


def test_without_aliases_every_write_stays():
    graph = _C.parse_ir("graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %w : Tensor = aten::relu_(%a)\n  return (%x)")
    assert not lowering.eliminate_dead_code(graph, with_aliases=False) and lowering.eliminate_dead_code(graph)


@pytest.mark.parametrize("name, plain", [("__torch__.foo.___torch_mangle_605.Bar", "foo.Bar"), ("__torch__.Bar", "Bar"),
                                         ("__torch__.a.___torch_mangle_1.b.___torch_mangle_2.Bar", "a.b.Bar")])
def test_class_names_without_their_mangle(name, plain):
    assert _C._jit_unmangle(name) == plain


def test_a_mangle_segment_at_the_end_is_refused():
    with pytest.raises(RuntimeError, match="unmangle: a name behind the mangle segment was required"):
        _C._jit_unmangle("__torch__.foo.___torch_mangle_605")


QUANTISED = """graph(%x : Tensor, %w : Tensor, %scale : float):
  %low : int = prim::Constant[value=-128]()
  %high : int = prim::Constant[value=127]()
  %a : Tensor = aten::div(%x, %scale)
  %qa : Tensor = aten::clamp(%a, %low, %high)
  %p : Tensor = aten::matmul(%qa, %w)
  %b : Tensor = aten::div(%x, %scale)
  %qb : Tensor = aten::clamp(%b, %low, %high)
  %q : Tensor = aten::mul(%qb, %w)
  %r : (Tensor, Tensor) = prim::TupleConstruct(%p, %q)
  return (%r)
"""


@pytest.mark.parametrize("disable_cse, pairs", [(False, 1), (True, 2)])
def test_equal_quantisers_survive_where_merging_is_off(disable_cse, pairs):
    lowered = lowering.lower(_C.parse_ir(QUANTISED), disable_cse=disable_cse)
    assert str(lowered.graph).count("aten::clamp") == pairs


# ---- the runner

SUM = "graph(%x : Tensor):\n  %one : int = prim::Constant[value=1]()\n  %a = aten::neg(%x)\n  %b = aten::neg(%x)\n  %c : Tensor = aten::add(%a, %b, %one)\n  return (%c)\n"


def test_steps():
    lowered = lowering.lower(_C.parse_ir(SUM))
    assert [s.name for s in lowered.steps] == lowering.pipeline()
    assert "cse" in values(lowered.steps) and all(s.seconds >= 0 for s in lowered.steps)
    assert "cse" not in values(lowering.lower(_C.parse_ir(SUM), disabled_passes=["eliminate-common-subexpression"]).steps)
    assert [s.name for s in lowering.lower(_C.parse_ir(SUM), only=["cse", "dce"]).steps] == ["cse", "dce", "dce"]
    assert [s.name for s in lowering.lower(_C.parse_ir(SUM), stop_after="peephole").steps][-1] == "peephole"


def broken(graph):
    """Replaces neg by exp."""
    for n in list(graph.nodes()):
        if n.kind() == "aten::neg":
            new = graph.create("aten::exp", list(n.inputs()), 1)
            new.insertBefore(n)
            n.output().replaceAllUsesWith(new.output())
            n.destroy()


@pytest.fixture
def registered():
    names = []

    def register(name, function, **position):
        lowering.register_pass(name, function, **position)
        names.append(name)

    yield register
    for name in names:
        assert lowering.unregister_pass(name)


def test_passes_from_python(registered):
    registered("swap_neg", broken, after="cse")
    order = lowering.pipeline()
    assert order[order.index("cse") + 1] == "swap_neg"
    assert next(p for p in lowering.passes() if p.name == "swap_neg").summary == "Replaces neg by exp."
    step = lowering.run_pass("swap-neg", graph := _C.parse_ir(SUM))
    assert step.changed and "aten::exp" in str(graph)
    with pytest.raises(RuntimeError, match="pass 'swap_neg' is registered twice"):
        lowering.register_pass("swap_neg", broken)
    with pytest.raises(ValueError, match="'unroll_loops' is not in the order of lowering|there is no pass"):
        lowering.register_pass("other", broken, before="unroll_loops")


def test_passes_for_a_device(registered):
    registered("chip_only", broken, after="cse", device="chip")
    assert "chip_only" not in {s.name for s in lowering.lower(_C.parse_ir(SUM)).steps}
    assert "chip_only" in {s.name for s in lowering.lower(_C.parse_ir(SUM), stop_after="chip_only", target_device="chip:0").steps}


def test_check_and_bisect_name_the_culprit(registered):
    registered("swap_neg", broken, before="dce")
    x = cresset.randn(3)
    found = lowering.bisect(_C.parse_ir(SUM), [x])
    assert found.name == "swap_neg" and found.what == "result 0: tensors of other values"
    with pytest.raises(RuntimeError, match="the pass changes the answer: result 0: tensors of other values") as e:
        lowering.lower(_C.parse_ir(SUM), check_with=[x])
    assert "'swap_neg'" in str(e.value)
    assert lowering.bisect(_C.parse_ir(SUM), [x], disabled_passes=["swap_neg"]) is None


def test_a_broken_graph_is_found_behind_the_pass(registered):
    def unsound(graph):
        last = list(graph.nodes())[-1]
        last.moveBefore(next(graph.nodes()))

    registered("unsound", unsound, after="cse")
    with pytest.raises(RuntimeError, match="not in scope") as e:
        lowering.lower(_C.parse_ir(SUM))
    assert "'unsound'" in str(e.value)


# ---- loggers


def test_graphs_are_dumped_at_the_loudest_level_only():
    with lowering.logging.capture("graph") as lines:
        lowering.lower(_C.parse_ir(SUM))
    dumps = [line for level, line in lines if level == "graph"]
    assert len(dumps) == len(lowering.pipeline())
    assert dumps[0].startswith("# after 0 eliminate_redundant_guards (unchanged)\n") and _C.parse_ir(dumps[0])
    with lowering.logging.capture("debug") as lines:
        lowering.lower(_C.parse_ir(SUM))
    assert not lines


def test_contexts_prefixes_and_levels(capfd):
    log = lowering.logging
    with log.context(prefix="model A: ", level="info") as logger:
        assert log.current().level() == "info"
        logger.log("info", "heard")
        logger.log("debug", "not heard")
        with log.debug():
            logger.log("debug", "heard too")
        logger.set_colour(True)
        logger.log("error", "loud")
    log.current().log("info", "not heard either")
    err = capfd.readouterr().err.splitlines()
    assert err == ["model A: info: heard", "model A: debug: heard too", "\033[1;31mmodel A: error: loud\033[0m"]
    with log.errors():
        assert log.current().level() == "error"
    assert log.current().level() == "warning"
    with pytest.raises(ValueError, match="log level: one of internal_error"):
        log.set_level("loud")


# ---- the guide's table


def test_each_line_of_the_phase_has_tests():
    root = Path(__file__).resolve().parents[2]
    table = (root / "docs/guide/lowering.md").read_text().split("## The passes, line by line")[1]
    paths = re.findall(r"`(tests/[^`]+)`", "".join(line for line in table.splitlines() if line.startswith("|")))
    assert len(paths) > 20
    for path in paths:
        place = root / path
        assert place.is_file() or any(place.glob("*.ir")), path


def test_inlined_functions_leave_nothing_behind():
    graph = cresset.jit.CompilationUnit("def inner(x):\n    return x.relu()\n\ndef f(x):\n    return inner(x) + inner(x)\n").f.graph.copy()
    assert 'name="inner"' in str(graph)
    cresset._C._jit_pass_inline(graph)
    assert "inner" not in str(graph) and [n.kind() for n in graph.nodes() if n.kind() != "prim::Constant"] == ["aten::relu", "aten::relu", "aten::add"]


def test_pytorchs_name_lowers_any_graph_of_a_module():
    module = cresset.jit.script(Net().eval())
    graph = module.graph.copy()
    cresset._C._jit_pass_inline(graph)
    lowered, values = cresset._C._jit_pass_lower_graph(graph, module._c)
    assert len(list(lowered.inputs())) == 1 + len(values) and len(values) == len(list(module.parameters()))
    x = cresset.randn(2, 3)
    cresset.testing.assert_close(cresset._C._jit_run_graph(lowered, [x, *values])[0], module(x))
    assert [v.type().kind() for v in graph.inputs()] == ["ClassType", "TensorType"]  # the given one stays
    with pytest.raises(RuntimeError, match="first input is the module"):
        cresset._C._jit_pass_lower_graph(lowered, module._c)


class Writes(nn.Module):
    """Keeps what it saw in a dictionary and a list."""

    def __init__(self):
        super().__init__()
        self.sizes = {"a": 1, "b": 7}
        self.seen = [1]

    def forward(self, x):
        self.sizes["b"] = x.size(0)
        self.seen.append(x.size(1))
        return x + self.sizes["a"] + self.sizes["b"] + self.seen[-1] + len(self.seen)


@pytest.mark.parametrize("unfreeze", [False, True])
def test_containers_that_the_graph_writes(unfreeze):
    """A list or dictionary is one value in the lowered graph, so that reads see the writes."""
    lowered = lowering.lower(cresset.jit.script(Writes().eval()), unfreeze=unfreeze)
    model = Writes()
    for shape in ((2, 3), (4, 5)):
        assert cresset.equal(lowered(cresset.zeros(shape)), model(cresset.zeros(shape)))
