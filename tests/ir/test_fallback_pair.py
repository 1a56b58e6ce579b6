"""Notate, freeze, mark: the pair of the page around freezing, by name on a module, and marks in archives."""

import io
import re
import subprocess
from pathlib import Path

import pytest

import cresset
from cresset import jit, lowering, nn

COMMAND = Path(__file__).resolve().parents[2] / "build/dev/bin/cresset"
PAIR = ["notate-module-for-fallback", "freeze-module", "lower-graph", "mark-nodes-for-fallback"]


class Block(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3, bias=bias)
        self.scale = 2.0

    def forward(self, x):
        return cresset.relu(self.conv(x)) * self.scale


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(True), Block(False)

    def forward(self, x):
        with cresset.no_grad():
            y = self.first(x)
        return self.second(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.layer, self.after = Block(False), Layer(), nn.Conv2d(1, 2, 1)

    def forward(self, x):
        y = self.before(x)
        future = jit.fork(self.layer, y)
        z = jit.wait(future)
        if x.size(0) > 1:
            z = self.layer(y) + z
        return self.after(z)


@pytest.fixture
def module():
    cresset.manual_seed(0)
    return jit.script(Net().eval())


def marked(text):
    return sorted(re.findall(r"(\w+::\w+)\[[^]]*to_compile=0", text))


@pytest.mark.parametrize("name", ["layer.first", "layer", "before", "after"])
def test_from_python(module, name):
    text = str(module.graph)
    passed = lowering.run_passes(module, PAIR, torch_executed_modules=[name])
    found = str(passed.graph)
    assert "compilation_edge" not in found and "prim::GetAttr" not in found and "prim::CallMethod" not in found
    assert marked(found) and "self.after.weight" in found
    assert str(module.graph) == text  # the module itself stays as it is
    x = cresset.randn(2, 1, 8, 8)
    with cresset.no_grad():
        assert cresset.allclose(passed(x), module(x), atol=1e-5)


def test_what_is_marked(module):
    for name, wanted in (("layer.first", 1), ("layer.second", 1), ("layer", 2), ("before", 1)):
        found = marked(str(lowering.run_passes(module, PAIR, torch_executed_modules=[name]).graph))
        calls = [kind for kind in found if kind == "aten::conv2d"]
        # In the arm of the If; the fork's graph is a text of its own.
        assert len(calls) >= wanted and "aten::relu" in found, (name, found)


def test_delimiters_stand_around_what_freezing_leaves(module):
    """Attributes inside of delimiters are folded as they are outside, those that may be None, too."""
    passed = lowering.run_passes(module, PAIR[:2], torch_executed_modules=["before"])
    text = str(passed.graph)
    start, end = text.index('compilation_edge="start"'), text.index('compilation_edge="end"')
    assert start < text.index("aten::conv2d") < end and "prim::GetAttr" not in text
    assert re.search(r"aten::conv2d\(%\w+, %self.before.conv.weight, %\w+", text)


class OptionalBias(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.weight = nn.Parameter(cresset.randn(1, 1, 3, 3))
        self.register_parameter("bias", nn.Parameter(cresset.randn(1)) if bias else None)
        self.table: list[cresset.Tensor] = [cresset.ones(1)]
        self.maybe: cresset.Tensor | None = cresset.ones(1) if bias else None

    def forward(self, x):
        y = cresset.conv2d(x, self.weight, self.bias)
        if self.maybe is not None:
            y = y + self.maybe
        return y + self.table[0]


class Around(nn.Module):
    def __init__(self, bias, how):
        super().__init__()
        self.inner, self.how = OptionalBias(bias), how
        self.values: list[cresset.Tensor] = []

    def forward(self, x):
        if self.how == "no_grad":
            with cresset.no_grad():
                return self.inner(x)
        if self.how == "fork":
            return jit.wait(jit.fork(self.inner, x))
        if self.how == "container":
            found = [x]
            found.append(self.inner(x))
            found[0] = found[1]
            return found[0]
        return self.inner(x)


@pytest.mark.parametrize("delimited", [False, True])
@pytest.mark.parametrize("how", ["plain", "no_grad", "fork", "container"])
@pytest.mark.parametrize("bias", [True, False])
def test_freezing_folds_optional_tensors(bias, how, delimited):
    module = jit.script(Around(bias, how).eval())
    names = PAIR[:2] if delimited else PAIR[1:2]
    options = {"torch_executed_modules": ["inner"]} if delimited else {}
    passed = lowering.run_passes(module, names, **options)
    text = str(passed.graph)
    # A call that is forked is not delimited: its module is an input of the forked graph, which has no path.
    assert "prim::GetAttr" not in text and ("compilation_edge" in text) == (delimited and how != "fork"), text
    x = cresset.randn(1, 1, 5, 5)
    marks = lowering.run_passes(module, PAIR if delimited else PAIR[1:3], **options)
    with cresset.no_grad():
        assert cresset.allclose(marks(x), module(x), atol=1e-6)


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
def test_on_the_command_line(module, tmp_path):
    module.save(tmp_path / "net.pt")
    command = [COMMAND, "lower", tmp_path / "net.pt", "--pass", ",".join(PAIR), "--option", "torch_executed_modules=layer.first"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    wanted = lowering.run_passes(module, PAIR, torch_executed_modules=["layer.first"]).graph
    assert marked(done.stdout) == marked(str(wanted)) != []


def saved(module):
    buffer = io.BytesIO()
    module.save(buffer)
    buffer.seek(0)
    return jit.load(buffer)


class Marks(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x, n: int):
        y = cresset.relu(self.fc(x)) + 1
        for _ in range(n):
            y = cresset.tanh(y) * 2
        if n > 1:
            y = -y
        return cresset.sigmoid(y)


@pytest.mark.parametrize("kinds", [["aten::relu"], ["aten::linear", "aten::tanh"], ["prim::Loop", "prim::If"], ["aten::neg", "aten::sigmoid"], ["prim::CallMethod"]])
def test_marks_survive_archives(kinds):
    module = jit.script(Marks().eval())
    for path in ("", "fc"):
        graph = module.graph if not path else module.fc.graph
        for kind in kinds:
            for node in graph.findAllNodes(kind):
                node.i_("to_compile", 0)
    again = saved(module)
    before = marked(str(module.graph)) + marked(str(module.fc.graph))
    assert before and marked(str(again.graph)) + marked(str(again.fc.graph)) == before
    assert saved(again).code == again.code
    x = cresset.randn(2, 3)
    assert cresset.equal(again(x, 2), module(x, 2))
    if "prim::CallMethod" in kinds:  # what is marked is marked when it is inlined
        assert "aten::linear" in marked(str(again.inlined_graph))


def test_a_notated_module_keeps_its_marks():
    module = jit.script(Marks().eval())
    lowering.run_pass("notate-module-for-fallback", module.graph, torch_executed_modules=["fc"])
    again = saved(module)
    assert marked(str(again.graph)) == ["prim::CallMethod"] and "compilation_edge" not in str(again.graph)
    text = str(lowering.lower(again, only=["dce"]).graph)
    assert "aten::linear" in marked(text)
