"""The page "Lowering Phase", line by line: what it says of each pass in a few words, its example as a graph before and after. Each example goes
through the pass by its name, from Python and on the command line."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import cresset
from cresset import _C, lowering, nn

COMMAND = Path(__file__).resolve().parents[2] / "build/dev/bin/cresset"


@dataclass
class Line:
    pass_name: str
    says: str
    before: str
    after: str
    options: dict = field(default_factory=dict)
    then: tuple = ()  # passes that clear away what the page does not draw


def graph(inputs, body, outputs="%r"):
    lines = "\n".join("  " + line for line in body.strip("\n").split("\n"))
    return f"graph({inputs}):\n{lines}\n  return ({outputs})\n"


ONE = "%one : int = prim::Constant[value=1]()\n"

LINES = [
    Line("eliminate-common-subexpression", "removes common subexpressions in the graph",
         graph("%x : Tensor", "%a : Tensor = aten::neg(%x)\n%b : Tensor = aten::neg(%x)\n%r : Tensor = aten::mul(%a, %b)"),
         graph("%x : Tensor", "%a : Tensor = aten::neg(%x)\n%r : Tensor = aten::mul(%a, %a)")),
    Line("eliminate-dead-code", "deletes a node unless it has side effects",
         graph("%x : Tensor", "%dead : Tensor = aten::neg(%x)\n = prim::Print(%x)\n%r : Tensor = aten::relu(%x)"),
         graph("%x : Tensor", " = prim::Print(%x)\n%r : Tensor = aten::relu(%x)")),
    # The page's graph as it stands there, places included.
    Line("eliminate-exception-or-pass-pattern", "removes dimension guards that raise where the input's dimension is not as expected", """
graph(%x : Tensor, %1012 : int, %24 : int, %23 : str):
  %1013 : bool = aten::ne(%1012, %24) # ~/.local/lib/python3.6/site-packages/torch/nn/modules/batchnorm.py:248:11
   = prim::If(%1013) # ~/.local/lib/python3.6/site-packages/torch/nn/modules/batchnorm.py:248:8
    block0():
       = prim::RaiseException(%23) # ~/.local/lib/python3.6/site-packages/torch/nn/modules/batchnorm.py:249:12
      -> ()
    block1():
      -> ()
  return (%x)
""", "graph(%x : Tensor, %1012 : int, %24 : int, %23 : str):\n  return (%x)\n", then=("eliminate-dead-code",)),
    Line("eliminate-redundant-guards", "removes a guard on an output when the inputs that determine it are guarded",
         graph("%x : Tensor", "%g : Float(2, 3) = prim::Guard(%x)\n%a : Tensor = aten::relu(%g)\n%r : Float(2, 3) = prim::Guard(%a)"),
         graph("%x : Tensor", "%g : Float(2, 3) = prim::Guard(%x)\n%r : Float(2, 3) = aten::relu(%g)")),
    # addmm takes matrices only. Where the page's x is one, this is the page's result; for others see below.
    Line("fuse-addmm-branches", "fuses the two forms of a linear layer in the arms of an If into one", """
graph(%self.fc.bias : Tensor, %x9.1 : Float(*, *), %3677 : Tensor, %622 : bool):
  %3 : int = prim::Constant[value=1]()
  %ret : Tensor = prim::If(%622)
    block0():
      %ret.1 : Tensor = aten::addmm(%self.fc.bias, %x9.1, %3677, %3, %3)
      -> (%ret.1)
    block1():
      %output.1 : Tensor = aten::matmul(%x9.1, %3677)
      %output0.1 : Tensor = aten::add_(%output.1, %self.fc.bias, %3)
      -> (%output0.1)
  return (%ret)
""", """
graph(%self.fc.bias : Tensor, %x9.1 : Float(*, *), %3677 : Tensor, %622 : bool):
  %3 : int = prim::Constant[value=1]()
  %ret : Tensor = aten::addmm(%self.fc.bias, %x9.1, %3677, %3, %3)
  return (%ret)
""", then=("eliminate-dead-code",)),
    Line("fuse-linear", "fuses addmm back to linear",
         graph("%x : Tensor, %w : Float(4, 3), %b : Float(4)",
               ONE + "%t : Tensor = aten::t(%w)\n%r : Tensor = aten::addmm(%b, %x, %t, %one, %one)"),
         graph("%x : Tensor, %w : Float(4, 3), %b : Float(4)", "%r : Tensor = aten::linear(%x, %w, %b)"), then=("eliminate-dead-code",)),
    Line("fuse-linear", "fuses matmul and add back to linear",
         graph("%x : Tensor, %w : Float(4, 3), %b : Float(4)",
               ONE + "%t : Tensor = aten::t(%w)\n%m : Tensor = aten::matmul(%x, %t)\n%r : Tensor = aten::add_(%m, %b, %one)"),
         graph("%x : Tensor, %w : Float(4, 3), %b : Float(4)", "%r : Tensor = aten::linear(%x, %w, %b)"), then=("eliminate-dead-code",)),
    Line("fuse-flatten-linear", "removes flatten in front of linear, where the backend's linear flattens",
         graph("%x : Tensor, %w : Tensor, %b : Tensor", ONE + "%end : int = prim::Constant[value=-1]()\n"
               "%f : Tensor = aten::flatten(%x, %one, %end)\n%r : Tensor = aten::linear(%f, %w, %b)"),
         graph("%x : Tensor, %w : Tensor, %b : Tensor", "%r : Tensor = aten::linear(%x, %w, %b)"), {"linear_flattens": True},
         ("eliminate-dead-code",)),
    Line("lower-simple-tuples", "removes a construct and an unpack that match",
         graph("%x : Tensor, %y : Tensor", "%t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)\n%a : Tensor, %b : Tensor = prim::TupleUnpack(%t)\n"
               "%r : Tensor = aten::mul(%a, %b)"),
         graph("%x : Tensor, %y : Tensor", "%r : Tensor = aten::mul(%x, %y)")),
    Line("lower-simple-tuples", "leaves tuples in place across an If, as inputs and as outputs",
         text := graph("%x : Tensor, %p : (Tensor, Tensor), %c : bool", """
%q : (Tensor, Tensor) = prim::If(%c)
  block0():
    %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %x)
    -> (%t)
  block1():
    -> (%p)
""", "%q"), text),
    Line("lower-simple-tuples", "leaves tuples in place across a loop",
         text := graph("%p : (Tensor, Tensor), %n : int, %go : bool", """
%q : (Tensor, Tensor) = prim::Loop(%n, %go, %p)
  block0(%i : int, %t : (Tensor, Tensor)):
    %a : Tensor, %b : Tensor = prim::TupleUnpack(%t)
    %u : (Tensor, Tensor) = prim::TupleConstruct(%b, %a)
    -> (%go, %u)
""", "%q"), text),
    Line("lower-all-tuples", "removes all tuples",
         graph("%x : Tensor, %y : Tensor, %c : bool", """
%q : (Tensor, Tensor) = prim::If(%c)
  block0():
    %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
    -> (%t)
  block1():
    %u : (Tensor, Tensor) = prim::TupleConstruct(%y, %x)
    -> (%u)
""", "%q"),
         graph("%x : Tensor, %y : Tensor, %c : bool", """
%a : Tensor, %b : Tensor = prim::If(%c)
  block0():
    -> (%x, %y)
  block1():
    -> (%y, %x)
""", "%a, %b")),
    Line("notate-module-for-fallback", "places delimiters around calls of modules that should not be converted",
         graph("%self : __torch__.pkg.Net, %x : Tensor", '%b : __torch__.pkg.Block = prim::GetAttr[name="block"](%self)\n'
               '%r : Tensor = prim::CallMethod[name="forward"](%b, %x)'),
         graph("%self : __torch__.pkg.Net, %x : Tensor", '%b : __torch__.pkg.Block = prim::GetAttr[name="block"](%self)\n'
               '%none : NoneType = prim::Constant()\n = prim::Enter[compilation_edge="start"](%none)\n'
               '%r : Tensor = prim::CallMethod[name="forward"](%b, %x)\n = prim::Exit[compilation_edge="end"](%none)'),
         {"torch_executed_modules": ["pkg.Block"]}),
    Line("mark-nodes-for-fallback", "marks all nodes between the delimiters",
         graph("%x : Tensor", '%none : NoneType = prim::Constant()\n = prim::Enter[compilation_edge="start"](%none)\n%a : Tensor = aten::neg(%x)\n'
               ' = prim::Exit[compilation_edge="end"](%none)\n%r : Tensor = aten::relu(%a)'),
         graph("%x : Tensor", "%a : Tensor = aten::neg[to_compile=0](%x)\n%r : Tensor = aten::relu(%a)"), then=("eliminate-dead-code",)),
    Line("peephole-optimize", "eliminates expand that does nothing",
         graph("%x : Float(2, 3)", "%sizes : int[] = prim::Constant[value=[2, 3]]()\n%no : bool = prim::Constant[value=0]()\n"
               "%e : Tensor = aten::expand(%x, %sizes, %no)\n%r : Tensor = aten::relu(%e)"),
         graph("%x : Float(2, 3)", "%r : Tensor = aten::relu(%x)")),
    Line("peephole-optimize", "simplifies x.t().t() to x",
         graph("%x : Tensor", "%a : Tensor = aten::t(%x)\n%b : Tensor = aten::t(%a)\n%r : Tensor = aten::relu(%b)"),
         graph("%x : Tensor", "%r : Tensor = aten::relu(%x)")),
    Line("remove-contiguous", "removes contiguous",
         graph("%x : Tensor", "%zero : int = prim::Constant[value=0]()\n%c : Tensor = aten::contiguous(%x, %zero)\n%r : Tensor = aten::relu(%c)"),
         graph("%x : Tensor", "%r : Tensor = aten::relu(%x)"), then=("eliminate-dead-code",)),
    Line("remove-dropout", "removes dropout, since this is inference",
         graph("%x : Tensor", "%p : float = prim::Constant[value=0.5]()\n%no : bool = prim::Constant[value=0]()\n"
               "%d : Tensor = aten::dropout(%x, %p, %no)\n%r : Tensor = aten::relu(%d)"),
         graph("%x : Tensor", "%r : Tensor = aten::relu(%x)"), then=("eliminate-dead-code",)),
    Line("remove-to", "removes to, where the backend manages devices itself",
         graph("%x : Float(*, *)", '%d : Device = prim::Constant[value="cuda:0"]()\n%six : int = prim::Constant[value=6]()\n'
               "%no : bool = prim::Constant[value=0]()\n%none : NoneType = prim::Constant()\n"
               "%t : Tensor = aten::to(%x, %d, %six, %no, %no, %none)\n%r : Tensor = aten::relu(%t)"),
         graph("%x : Float(*, *)", "%r : Tensor = aten::relu(%x)"), {"casts_are_managed": True}, ("eliminate-dead-code",)),
    Line("unpack-addmm", "unpacks addmm into matmul and add",
         graph("%b : Tensor, %x : Tensor, %w : Tensor", ONE + "%r : Tensor = aten::addmm(%b, %x, %w, %one, %one)"),
         graph("%b : Tensor, %x : Tensor, %w : Tensor", "%m : Tensor = aten::matmul(%x, %w)\n" + ONE + "%r : Tensor = aten::add(%b, %m, %one)"),
         then=("eliminate-dead-code",)),
    Line("unpack-log-softmax", "unpacks log_softmax into softmax and log",
         graph("%x : Tensor", ONE + "%none : NoneType = prim::Constant()\n%r : Tensor = aten::log_softmax(%x, %one, %none)"),
         graph("%x : Tensor", ONE + "%none : NoneType = prim::Constant()\n%s : Tensor = aten::softmax(%x, %one, %none)\n%r : Tensor = aten::log(%s)"),
         {"stable_numerics": False}),
    Line("unroll-loops", "unrolls sufficiently short loops",
         graph("%x : Tensor", "%three : int = prim::Constant[value=3]()\n%go : bool = prim::Constant[value=1]()\n" """
%r : Tensor = prim::Loop(%three, %go, %x)
  block0(%i : int, %v : Tensor):
    %n : Tensor = aten::neg(%v)
    -> (%go, %n)
""".strip("\n")),
         graph("%x : Tensor", "%a : Tensor = aten::neg(%x)\n%b : Tensor = aten::neg(%a)\n%r : Tensor = aten::neg(%b)"), then=("eliminate-dead-code",)),
    Line("replace-tile-with-repeat", "replaces tile by repeat",
         graph("%x : Float(*, *)", "%reps : int[] = prim::Constant[value=[2, 3]]()\n%r : Tensor = aten::tile(%x, %reps)"),
         graph("%x : Float(*, *)", "%reps : int[] = prim::Constant[value=[2, 3]]()\n%r : Tensor = aten::repeat(%x, %reps)")),
]
by_line = pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.pass_name}: {line.says}")


def difference(found, wanted):
    return _C._jit_graph_difference(found.canonicalize(), _C.parse_ir(wanted).canonicalize())


@by_line
def test_from_python(line):
    found = _C.parse_ir(line.before)
    step = lowering.run_pass(line.pass_name, found, **line.options)
    assert step.changed == (line.before != line.after)
    for name in line.then:
        lowering.run_pass(name, found)
    assert difference(found, line.after) is None, found


@by_line
@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
def test_on_the_command_line(line):
    options = [word for name, value in line.options.items() for word in ("--option", f"{name}={','.join(value) if isinstance(value, list) else int(value)}")]
    done = subprocess.run([COMMAND, "lower", "--pass", line.pass_name, *options], input=line.before, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = _C.parse_ir(done.stdout)
    for name in line.then:
        lowering.run_pass(name, found)
    assert difference(found, line.after) is None, found


def test_each_line_names_a_pass_with_a_folder_of_further_tests():
    known = {p.command_name for p in lowering.passes()}
    for line in LINES:
        assert line.pass_name in known and (Path(__file__).parent / "passes" / line.pass_name).is_dir()


# ---- lines that are no graphs


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.fc = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(8, 4)
        self.drop = nn.Dropout(0.5)
        self.scale = 2

    def forward(self, x):
        y = cresset.relu(self.norm(self.conv(x))).contiguous()
        return cresset.log_softmax(self.drop(self.fc(y.flatten(1))) * self.scale, 1)


@pytest.fixture
def module():
    cresset.manual_seed(0)
    return cresset.jit.script(Net().eval())


def kinds(block):
    out = set()
    for n in block.nodes():
        out.add(n.kind())
        for b in n.blocks():
            out |= kinds(b)
    return out


def test_the_phase_leaves_little_to_convert(module):
    lowered = lowering.lower(module)
    assert kinds(lowered.graph.block()) <= {"prim::Constant", "aten::_convolution", "aten::batch_norm", "aten::relu", "aten::flatten", "aten::t", "aten::matmul",
                                            "aten::add", "aten::mul", "aten::sub", "aten::exp", "aten::log", "aten::sum", "aten::amax", "aten::max",
                                            "prim::ListConstruct"}
    x = cresset.randn(2, 1, 4, 4)
    assert cresset.allclose(lowered(x), module(x), atol=1e-5)


def test_the_effect_of_each_pass_is_seen_at_level_graph(module):
    with lowering.logging.capture("graph") as lines:
        lowering.lower(module)
    dumps = [text for level, text in lines if level == "graph" and text.startswith("# after ") and text.split()[2].isdigit()]
    assert [text.split()[3] for text in dumps] == lowering.pipeline()
    assert all(_C.parse_ir(text) for text in dumps)


def test_freeze_module(module):
    """Attributes become constants, modules are inlined, constants propagate."""
    text = str(lowering.freeze(module)._get_method("forward").graph)
    assert "prim::GetAttr" not in text and "prim::CallMethod" not in text
    assert "%self.scale : int = prim::Constant[value=2]" in text and 'name="training"' not in text
    assert "%self.conv.weight : Float(2, 1, 3, 3" in text


def test_lower_graph(module):
    """A graph without self whose last inputs are the parameters of the method, and the values of these."""
    lowered, parameters = lowering.lower_graph(module)
    names = [v.debugName() for v in lowered.inputs()]
    assert names[0] == "x" and names[1:3] == ["self.conv.weight", "self.conv.bias"] and names[-2:] == ["self.fc.weight", "self.fc.bias"]
    assert {"self.norm.weight", "self.norm.bias", "self.norm.running_mean", "self.norm.running_var"} <= set(names)
    assert len(parameters) == len(names) - 1 and "prim::GetAttr" not in str(lowered)
    x = cresset.randn(2, 1, 4, 4)
    assert cresset.allclose(_C._jit_run_graph(lowered, [x, *parameters])[0], module(x), atol=1e-6)


def test_lower_all_tuples_raises_where_it_cannot():
    with pytest.raises(RuntimeError, match="tuple"):
        lowering.run_pass("lower-all-tuples", _C.parse_ir("graph(%x : (Tensor, Tensor)[]):\n  return (%x)\n"))


def test_module_fallback_is_a_pair():
    """The first runs in front of freezing, the second behind it; what is between the delimiters is marked, nothing else."""
    module = cresset.jit.script(Net().eval())
    name = module._c.getattr("fc")._c.qualified_name if hasattr(module._c, "getattr") else "fc"
    found = module.graph.copy()
    assert lowering.run_pass("notate-module-for-fallback", found, torch_executed_modules=[name]).changed
    lowering.run_pass("inline", found)
    assert lowering.run_pass("mark-nodes-for-fallback", found).changed
    text = str(found)
    assert "compilation_edge" not in text
    assert text.count("aten::linear[to_compile=0]") == 1 and "aten::relu(" in text and text.count("[to_compile=0]") <= 2


def test_fused_branches_of_any_rank_are_what_unpack_addmm_makes_of_the_fused_addmm():
    line = next(line for line in LINES if line.pass_name == "fuse-addmm-branches")
    forms = []
    for x in ("Float(*, *)", "Tensor"):
        found = _C.parse_ir(line.before.replace("Float(*, *)", x))
        for name in ("fuse-addmm-branches", "unpack-addmm", "remove-tensor-mutation", "eliminate-dead-code"):
            lowering.run_pass(name, found)
        forms.append(sorted(kinds(found.block())))
        for c in (True, False):
            values = [cresset.randn(4), cresset.randn(2, 3), cresset.randn(3, 4), c]
            assert _C._jit_run_difference(_C.parse_ir(line.before), found, values) is None
    assert forms[0] == forms[1] == ["aten::add", "aten::matmul", "prim::Constant"]


def test_remove_to_is_one_of_the_last():
    order = lowering.pipeline()
    assert order[-2:] == ["remove_to", "dce"]
