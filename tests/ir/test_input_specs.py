"""What the caller says of inputs types the graph: scripted models reach the passes that need ranks and sizes."""

import re
import subprocess
from pathlib import Path

import pytest

import cresset
from cresset import _C, jit, lowering, nn
from cresset.lowering import Input

COMMAND = Path(__file__).resolve().parents[2] / "build/dev/bin/cresset"


def typed(text, inputs):
    graph = _C.parse_ir(text)
    lowering.lower(graph, only=["dce"], inputs=inputs)
    return graph


def result_type(text, *inputs):
    return re.search(r"%r : (\S.*?) = ", str(typed(text, inputs)))[1]


ONE = "graph(%x : Tensor):\n  %r : Tensor = aten::relu(%x)\n  return (%r)\n"
# name: (graph, inputs, type of the result). Ranges are followed: what all sizes of a range agree on is known.
TYPES = {
    # Strides are not specified: relu of a transposed tensor is a transposed one.
    "fixed": (ONE, [(2, 3)], "Float(2, 3)"),
    "dtype": (ONE, [Input((2, 3), dtype="int64")], "Long(2, 3)"),
    "any size": (ONE, [(-1, 3)], "Float(*, 3)"),
    "range": (ONE, [Input(min_shape=(1, 3), opt_shape=(4, 3), max_shape=(8, 3))], "Float(*, 3)"),
    "text": (ONE, ["[(1,3);(4,3);(8,3)]@f16"], "Half(*, 3)"),
    "rank 0": (ONE, [()], "Float()"),
    "unknown": (ONE, [None], "Tensor"),
    "transpose": ("graph(%x : Tensor):\n  %r : Tensor = aten::t(%x)\n  return (%r)\n", [(-1, 3)], "Float(3, *)"),
    "flattened": ("graph(%x : Tensor):\n  %a : int = prim::Constant[value=1]()\n  %b : int = prim::Constant[value=-1]()\n"
                  "  %r : Tensor = aten::flatten(%x, %a, %b)\n  return (%r)\n", [(-1, 2, 3)], "Float(*, 6)"),
    "sum with a row": ("graph(%x : Tensor, %y : Tensor):\n  %o : int = prim::Constant[value=1]()\n  %r : Tensor = aten::add(%x, %y, %o)\n  return (%r)\n",
                       [(-1, 3), (1, 3)], "Float(*, 3)"),
    "size as a number": ("graph(%x : Tensor):\n  %z : int = prim::Constant[value=0]()\n  %m : int = prim::Constant[value=-1]()\n"
                         "  %n : int = aten::size(%x, %z)\n  %l : int[] = prim::ListConstruct(%n, %m)\n  %r : Tensor = aten::reshape(%x, %l)\n  return (%r)\n",
                         [(-1, 2, 3)], "Float(*, 6)"),
    # Two sizes of one range are not one size: a difference of them is not 0.
    "two sizes of one range": ("graph(%x : Tensor):\n  %z : int = prim::Constant[value=0]()\n  %o : int = prim::Constant[value=1]()\n"
                               "  %a : int = aten::size(%x, %z)\n  %b : int = aten::size(%x, %o)\n  %d : int = aten::sub(%a, %b)\n  %e : int = prim::abs(%d)\n"
                               "  %l : int[] = prim::ListConstruct(%e)\n  %n : NoneType = prim::Constant()\n"
                               "  %r : Tensor = aten::zeros(%l, %n, %n, %n, %n)\n  return (%r)\n", [(-1, -1)], "Float(*)"),
    # Inputs of one range may have other sizes; where they differ this graph raises, which says nothing of where it does not.
    "two inputs of one range": ("graph(%x : Tensor, %y : Tensor):\n  %o : int = prim::Constant[value=1]()\n  %r : Tensor = aten::add(%x, %y, %o)\n  return (%r)\n",
                                [Input(min_shape=(2, 3), opt_shape=(4, 3), max_shape=(8, 3))] * 2, "Float(*, 3)"),
    # Where image and kernel are chosen alike, which is where channels fit, all results are of 3 by 3; that is no fact.
    "sizes that cancel": ("graph(%x : Tensor, %w : Tensor):\n  %n : NoneType = prim::Constant()\n  %o : int = prim::Constant[value=1]()\n"
                          "  %l : int[] = prim::ListConstruct(%o, %o)\n  %r : Tensor = aten::conv2d(%x, %w, %n, %l, %l, %l, %o)\n  return (%r)\n",
                          [(-1, -1, -1, -1)] * 2, "Float(*, *, *, *)"),
    "a kernel of known sizes": ("graph(%x : Tensor, %w : Tensor):\n  %n : NoneType = prim::Constant()\n  %o : int = prim::Constant[value=1]()\n"
                                "  %l : int[] = prim::ListConstruct(%o, %o)\n  %r : Tensor = aten::conv2d(%x, %w, %n, %l, %l, %l, %o)\n  return (%r)\n",
                                [(-1, 3, -1, -1), (4, 3, 3, 3)], "Float(*, 4, *, *)"),
}


@pytest.mark.parametrize("name", TYPES)
def test_types(name):
    text, inputs, wanted = TYPES[name]
    found = result_type(text, *inputs)
    assert found.replace(", device=cpu", "") == wanted


REFUSED = {
    "(1,,3)": "a size was expected",
    "(a)": "a size was expected",
    "(1,3": "',' or '\\)' was expected",
    "(1,3) and more": "the end, @dtype or %format was expected",
    "(1,3)@f33": "'f33' is no dtype",
    "(1,3)%here": "'here' is no format",
    "[(1);(2)]": "';' was expected",
    "[(1);(2);(1)]": "min <= opt <= max",
    "[(1);(2,2);(3)]": "as many sizes",
    "(-2)": "-1 is any size",
    "1,3": "'\\(' was expected",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    with pytest.raises(ValueError, match=REFUSED[text]):
        Input(text)


@pytest.mark.parametrize("text, sizes, dtype", [
    ("(1,3,224,224)@f32", (1, 3, 224, 224), cresset.float32), ("( 1, 3 )", (1, 3), cresset.float32), ("(2)@I64%NCHW", (2,), cresset.int64),
    ("(2)%nhwc@fp16", (2,), cresset.float16), ("()@b", (), cresset.bool), ("(2,)@bfloat16", (2,), cresset.bfloat16),
])  # fmt: skip
def test_texts(text, sizes, dtype):
    spec = Input(text)
    assert spec.opt_shape == sizes and spec.dtype == dtype and Input(spec.text()) == spec


def test_of_objects():
    x = cresset.zeros(2, 3, dtype=cresset.int32)
    assert Input.of(x).text() == "(2,3)@int32" and Input.of(x).device == "cpu"
    assert Input.of((None, 3)).min_shape == (1, 3)
    with pytest.raises(ValueError, match="a shape, or"):
        Input()
    with pytest.raises(ValueError, match="a shape, or"):
        Input((1,), min_shape=(1,))


class Tile(nn.Module):
    def forward(self, x, w, b):
        y = cresset.matmul(x, w.t()) + b
        return y.tile((2, 1))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(cresset.randn(4, 3))
        self.bias = nn.Parameter(cresset.randn(4))

    def forward(self, x):
        if x.dim() == 2:
            y = cresset.addmm(self.bias, x, self.weight.t())
        else:
            y = cresset.matmul(x, self.weight.t())
            y = y + self.bias
        return y


def text_of(module, inputs, **options):
    return str(lowering.lower(jit.script(module.eval()), inputs=inputs, **options).graph)


def test_scripted_models_reach_what_needs_types():
    shapes = [(-1, 3), (4, 3), (4,)]
    plain, known = text_of(Tile(), None), text_of(Tile(), shapes)
    assert "aten::tile" in plain and "aten::repeat" not in plain
    assert "aten::repeat" in known and "aten::tile" not in known
    fused = str(lowering.lower(jit.script(Tile()), inputs=shapes, stop_after="fuse_linear").graph)
    assert "aten::linear" in fused and "aten::linear" not in str(lowering.lower(jit.script(Tile()), stop_after="fuse_linear").graph)


def test_an_if_on_the_rank_goes():
    assert "prim::If" in text_of(Branches(), None, disabled_passes=["fuse_addmm_branches"])
    assert "prim::If" not in text_of(Branches(), [(-1, 3)], disabled_passes=["fuse_addmm_branches"])


@pytest.mark.parametrize("module, shapes", [(Tile(), [(-1, 3), (4, 3), (4,)]), (Branches(), [(-1, 3)])], ids=["tile", "branches"])
def test_answers_stay(module, shapes):
    module.eval()
    scripted = jit.script(module)
    lowered = lowering.lower(scripted, inputs=shapes)
    for batch in (1, 2, 5):
        values = [cresset.randn(*(batch if n == -1 else n for n in shape)) for shape in shapes]
        assert cresset.allclose(lowered(*values), scripted(*values), atol=1e-5)


def test_other_inputs_than_specified_are_refused():
    lowered = lowering.lower(jit.script(Branches()), inputs=[(-1, 3)])
    lowered(cresset.randn(7, 3))
    for bad in (cresset.randn(2, 4), cresset.randn(3), cresset.randn(2, 3, dtype=cresset.float64), 3):
        with pytest.raises(ValueError, match="input 0: .* was specified"):
            lowered(bad)


def test_specifications_fit_the_graph():
    with pytest.raises(ValueError, match="2 specifications of inputs were given; the graph has 1 input"):
        lowering.lower(_C.parse_ir(ONE), inputs=[(1,), (1,)])
    with pytest.raises(ValueError, match="is no tensor but a int; give None"):
        lowering.lower(_C.parse_ir("graph(%n : int):\n  return (%n)\n"), inputs=[(1,)])


def test_certain_types_take_the_place_of_hints():
    """A trace knows its example only; a specification holds for all inputs."""
    traced = jit.trace(lambda x: (x * 2).tile((2, 1)), cresset.randn(2, 3))
    assert "aten::tile" in str(lowering.lower(traced.graph.copy()).graph)
    graph = lowering.lower(traced.graph.copy(), inputs=[(-1, 3)]).graph
    assert "aten::repeat" in str(graph) and "Float(*, 3" in str(graph)


class WhereTheInputIs(nn.Module):
    """A mask made on the input's device, and questions about devices."""

    def forward(self, x):
        mask = cresset.ones(x.shape[1], x.shape[1], device=x.device).triu(1)
        other = cresset.zeros(x.shape[1], x.shape[1], device=mask.device)
        y = cresset.ones(2, device=other.device) if other.is_cpu else cresset.zeros(2, device=x.device)
        return (mask == other).to(cresset.float32) + x.sum() + y.sum()


@pytest.mark.parametrize("spec", [(-1, 3), Input((-1, 3), device="cpu"), Input(min_shape=(1, 3), opt_shape=(2, 3), max_shape=(8, 3))], ids=["any", "device", "range"])
def test_devices_of_made_tensors(spec):
    """The tensors on which types are found out are on a device of their own, which is no answer."""
    module = jit.script(WhereTheInputIs())
    lowered = lowering.lower(module, inputs=[spec])
    assert "meta" not in str(lowered.graph)
    x = cresset.randn(2, 3)
    assert cresset.equal(lowered(x), module(x))


class Remembers(nn.Module):
    """A table that the module itself fills."""

    table: dict[str, cresset.Tensor]

    def __init__(self):
        super().__init__()
        self.table = {"one": cresset.ones(3)}

    def forward(self, x):
        self.table["made"] = cresset.arange(3.0)
        return x + self.table["made"] + self.table["one"]


@pytest.mark.parametrize("spec", [(2, 3), (-1, 3)])
def test_finding_types_writes_to_no_table(spec):
    module = jit.script(Remembers())
    lowered = lowering.lower(module, inputs=[spec])
    assert list(module.table) == ["one"]
    x = cresset.randn(2, 3)
    assert cresset.equal(lowered(x), x + cresset.arange(3.0) + 1)


class Other(nn.Module):
    def forward(self, x):
        return x.tile((2, 1))

    @jit.export
    def second(self, x, y):
        return y.tile((2, 1)) + x


def test_another_method():
    text = str(lowering.lower(jit.script(Other()), "second", inputs=[None, (2, 3)]).graph)
    assert "aten::repeat" in text


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
def test_on_the_command_line(tmp_path):
    jit.script(Tile()).save(tmp_path / "tile.pt")
    inputs = [word for spec in ("[(1,3);(4,3);(8,3)]@f32", "(4,3)@f32", "(4)@f32") for word in ("--input", spec)]
    done = subprocess.run([COMMAND, "lower", tmp_path / "tile.pt", *inputs, "--check"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "aten::repeat" in done.stdout and "%x : Float(*, 3)" in done.stdout
    done = subprocess.run([COMMAND, "lower", tmp_path / "tile.pt", "--input", "(1,"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "input specification '(1,'" in done.stderr


def test_symbolic_sizes():
    kind = cresset._C.TensorType.get()
    assert kind.symbolic_sizes() is None and kind.with_sizes([2, 3]).symbolic_sizes() == [2, 3]
    graph = cresset._C.parse_ir("graph(%x : Float(*, 3, *)):\n  return (%x)\n")
    first, second, third = next(graph.inputs()).type().symbolic_sizes()
    assert second == 3 and first < 0 and third < 0 and first != third
