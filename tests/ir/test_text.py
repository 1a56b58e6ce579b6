"""Printing and reading IR text are inverses; errors name the place."""

import enum
import io
import time

import pytest

import cresset
from cresset import _C

# Texts in canonical form: reading and printing gives the same text.
EXACT = {
    "empty": "graph():\n  return ()\n",
    "identity": "graph(%x : Tensor):\n  return (%x)\n",
    "inputs under each other": "graph(%x : Tensor,\n      %y.1 : int[]):\n  return (%x, %y.1)\n",
    "refined tensors": """graph(%a : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),
      %b : Long(),
      %c : Double(*, 3),
      %d : Tensor(2, *),
      %e : Half(..., device=cuda:0),
      %f : BFloat16(0, requires_grad=1)):
  return (%a)
""",
    "types": """graph(%a : Tensor?,
      %b : Dict(str, Tensor[]),
      %c : (int, (float, bool)),
      %d : (int),
      %e : (),
      %f : Future[int],
      %g : Union(int, NoneType, str),
      %h : Scalar,
      %i : NoneType,
      %j : Device,
      %k : complex,
      %l : Any,
      %m : __torch__.pkg.___torch_mangle_3.Net,
      %n : Function<f>,
      %o : RRef[Tensor],
      %p : Generator?,
      %q : AnyList,
      %r : t,
      %s : int[][]?[]):
  return (%a)
""",
    "zero outputs": """graph(%c : bool,
      %x : Tensor):
   = prim::If(%c)
    block0():
       = prim::Print(%x)
      -> ()
    block1():
      -> ()
  return (%x)
""",
    "dotted names": """graph(%self.layer1.0.conv.weight : Tensor):
  %self.layer1.0.conv.out.3 : Tensor = aten::relu(%self.layer1.0.conv.weight)
  return (%self.layer1.0.conv.out.3)
""",
    "odd names": 'graph(%"a b" : Tensor,\n      %"input:1" : Tensor):\n  return (%"a b", %"input:1")\n',
    "floats": """graph():
  %0 : float = prim::Constant[value=3.]()
  %1 : float = prim::Constant[value=-0.]()
  %2 : float = prim::Constant[value=0.10000000000000001]()
  %3 : float = prim::Constant[value=inf]()
  %4 : float = prim::Constant[value=-inf]()
  %5 : float = prim::Constant[value=nan]()
  %6 : float = prim::Constant[value=1e+20]()
  %7 : float = prim::Constant[value=10000000000.]()
  %8 : float = prim::Constant[value=4.9406564584124654e-324]()
  %9 : float = prim::Constant[value=nan(0xfff8000000000001)]()
  return (%0)
""",
    "other scalars": """graph():
  %0 : int = prim::Constant[value=-9223372036854775808]()
  %1 : bool = prim::Constant[value=1]()
  %2 : complex = prim::Constant[value=0.+1.j]()
  %3 : complex = prim::Constant[value=nan-infj]()
  %4 : Device = prim::Constant[value="cuda:1"]()
  %5 : NoneType = prim::Constant()
  %6 : Tensor? = prim::Constant()
  return (%0)
""",
    "strings": r"""graph():
  %0 : str = prim::Constant[value="a\"b\n#\\ %x : int = {}"]()
  %1 : str = prim::Constant[value="\001\t"]()
  %2 : str = prim::Constant[value="äß"]()
  %3 : str = prim::Constant[value=""]()
  return (%0)
""",
    "containers": """graph():
  %0 : int[] = prim::Constant[value=[1, 2]]()
  %1 : str[] = prim::Constant[value=["a", "b, c"]]()
  %2 : float[][] = prim::Constant[value=[[1.], []]]()
  %3 : (int, str, NoneType) = prim::Constant[value=(1, "x", None)]()
  %4 : (int) = prim::Constant[value=(1,)]()
  %5 : Dict(str, int[]) = prim::Constant[value={"a": [1], "b": []}]()
  %6 : bool[] = prim::Constant[value=[True, False]]()
  %7 : Device[] = prim::Constant[value=["cpu"]]()
  %8 : float[] = prim::Constant[value=[]]()
  %9 : int?[] = prim::Constant[value=[None, 3]]()
  %10 : complex[] = prim::Constant[value=[1.+2.j]]()
  %11 : () = prim::Constant[value=()]()
  return (%0)
""",
    "scope and place": """graph(%x : Tensor):
  %1 : Tensor = aten::relu(%x), scope: __module.layer1/Linear # /a dir/file.py:12:4
  %2 : Tensor = aten::relu(%1) # x.py:1:0
  return (%2)
""",
    "attributes": """graph(%x : Tensor):
  %1 : Tensor = foo::bar[a=1, b=2., c=1.+0.j, d="s", e=[1, 2], f=[1., 2.], g=["x"], h=[], i=fs[], j=ss[], k=tys[], l=int[], m=[int, (Tensor, str)], n=annotate(bool, True), o=annotate(int[], []), p=(int)](%x)
  return (%1)
""",
    "python call": """graph(%x : Tensor):
  %1 : Tensor = ^MyFunc(1, "a", None)(%x)
  %2 : Tensor = ^Other()[inplace=0](%1)
  return (%2)
""",
    "loops": """graph(%n : int,
      %x : Tensor):
  %t : bool = prim::Constant[value=1]()
  %y : Tensor, %z : int = prim::Loop(%n, %t, %x, %n) # f.py:3:4
    block0(%i : int, %a : Tensor, %b : int):
      %c : Tensor = prim::If(%t)
        block0():
          -> (%a)
        block1():
          %d : Tensor = aten::neg(%a)
          -> (%d)
      -> (%t, %c, %i)
  return (%y, %z)
""",
    "subgraphs": """graph(%x : Tensor):
  %f : Future[Tensor] = prim::fork_0(%x)
  %1 : Tensor = prim::DifferentiableGraph_1[tag="a"](%x)
  %2 : Tensor = prim::GradOf[body=<graph_2>, bodies=[<graph_3>, <graph_4>]](%1)
  return (%f, %2)
with prim::fork_0 = graph(%y : Tensor):
  %z : Tensor = prim::FunctionalGraph_5(%y)
  return (%z)
with prim::DifferentiableGraph_1 = graph(%y : Tensor):
  return (%y)
with graph_2 = graph():
  return ()
with graph_3 = graph():
  return ()
with graph_4 = graph(%a : int):
  return (%a)
with prim::FunctionalGraph_5 = graph(%y : Tensor):
  return (%y)
""",
    "function constant": """graph(%x : Tensor):
  %f : Function<h> = prim::Constant[name="h"]()
  %y : Tensor = prim::CallFunction(%f, %x)
  return (%y)
""",
    "modules": """graph(%self : __torch__.M,
      %x : Tensor):
  %l : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="l"](%self)
  %y : Tensor = prim::CallMethod[name="forward"](%l, %x)
   = prim::SetAttr[name="last"](%self, %y)
  return (%y)
""",
    "tensor constants": """graph():
  %0 : Long(requires_grad=0, device=cpu) = prim::Constant[value={8}]()
  %1 : Float(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor c0>]()
  %2 : Tensor[] = prim::Constant[value=[<Tensor c0>, <Tensor c1>]]()
  return (%1)
with constants:
  c0 : Float(2, strides=[1], requires_grad=0, device=cpu) = base64 "AACAPwAAAMA="  # 1. -2.
  c1 : Bool(0, strides=[1], requires_grad=0, device=cpu) = base64 ""
""",
    "operators of several results": """graph(%x : Tensor):
  %d : int = prim::Constant[value=0]()
  %k : bool = prim::Constant[value=0]()
  %v : Tensor, %i : Tensor = aten::max(%x, %d, %k)
  return (%v, %i)
""",
}


@pytest.mark.parametrize("name", EXACT)
def test_exact(name):
    text = EXACT[name]
    graph = _C.parse_ir(text)
    graph.lint()
    assert str(graph) == text
    again = _C.parse_ir(str(graph))
    assert str(again) == text
    assert _C._jit_graph_difference(graph, again) is None
    assert str(graph.copy()) == text


# Other spellings: what is read, and how it is printed then.
TOLERANT = {
    "no types": ("graph(%x, %y):\n  %z = aten::add(%x, %y, %o)\n  return (%z)".replace("%o", "%y"), None),
    "schema gives the type": (
        "graph(%x):\n  %d : int = prim::Constant[value=0]()\n  %s = aten::size(%x, %d)\n  return (%s)",
        "%s : int = aten::size(%x, %d)",
    ),
    "optional equals sign": ("graph(%x):\n  prim::Print(%x)\n  return ()", "   = prim::Print(%x)\n"),
    "shadowing": ("graph(%x):\n  %x = aten::relu(%x)\n  %x = aten::neg(%x)\n  return (%x)", "%x : Tensor = aten::neg(%x.2)\n  return (%x)"),
    "sizes with strides": ("graph(%x : Float(10:48, 48:1)):\n  return (%x)", "Float(10, 48, strides=[48, 1])"),
    "dynamic": ("graph(%x : Dynamic):\n  return (%x)", "%x : Tensor"),
    "None as a type": ("graph():\n  %n : None = prim::Constant()\n  return (%n)", "%n : NoneType = prim::Constant()"),
    "annotation spelling": ("graph(%x : List[Optional[Dict[str, Tuple[int, float]]]]):\n  return (%x)", "%x : Dict(str, (int, float))?[]"),
    "Optional and List": ("graph(%x : Optional(List(int))):\n  return (%x)", "%x : int[]?"),
    "fixed length": ("graph(%x : int[2]):\n  return (%x)", "%x : int[]"),
    "comments": ("# first\ngraph(%x): # second\n# third\n  return (%x) # fourth\n", "graph(%x : Tensor):\n  return (%x)\n"),
    "number as a display": ("graph():\n  %f : float = prim::Constant[value={2.5}]()\n  return (%f)", "value=2.5]"),
    "display of PyTorch": (
        "graph():\n  %t : Long(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value= 1  2 [ CPULongType{2} ]]()\n  return (%t)",
        "# 1 2\n",
    ),
    "whole float": ("graph():\n  %f : float = prim::Constant[value=10000000000]()\n  return (%f)", "value=10000000000.]"),
    "any block names": ("graph(%c : bool):\n  prim::If(%c)\n    then():\n      -> ()\n    whatever():\n      -> ()\n  return ()", "    block1():\n"),
    "one line": ("graph(%c : bool): prim::If(%c) a(): -> () b(): -> () return ()", "   = prim::If(%c)\n    block0():\n      -> ()\n"),
    "annotated empty list": ("graph():\n  %l : int[] = prim::Constant[value=annotate(List[int], [])]()\n  return (%l)", "%l : int[] = prim::Constant[value=[]]()"),
}


@pytest.mark.parametrize("name", TOLERANT)
def test_tolerant(name):
    text, piece = TOLERANT[name]
    graph = _C.parse_ir(text)
    graph.lint()
    printed = str(graph)
    if piece:
        assert piece in printed
    assert str(_C.parse_ir(printed)) == printed


# The message, and the line and column that it names.
ERRORS = [
    ("graph(%a):\n  %b = aten::foo(%zz)\n  return (%a)", "Cannot find a variable with name 'zz'", 2, 18),
    ("graph(%a):\n  %b : int = aten::relu(%a\n  return (%a)", "expected ) but found 'return' here", 3, 3),
    ("graph(%a):\n  %b : int = aten::relu(%a)\n  return (%a)",
     "Annotated type int does not match schema type Tensor for operator aten::relu(Tensor self) -> Tensor", 2, 14),
    ("graph(%a)\n  return (%a)", "expected : but found 'return' here", 2, 3),
    ("", "expected graph but found the end here", 1, 1),
    ("graph(%a : Foo):\n  return (%a)", "Unknown type name 'Foo'", 1, 12),
    ("graph(%a : Float(2, shape=3)):\n  return (%a)", "unknown property 'shape' of a tensor type", 1, 21),
    ("graph(%a : Dict(int)):\n  return (%a)", "Dict takes 2 types; 1 were given", 1, 12),
    ("graph():\n  %s : str = prim::Constant[value=\"abc]()\n  return (%s)", "a string without an end", 2, 35),
    ("graph():\n  %s : int = prim::Constant[value=99999999999999999999]()\n  return (%s)", "the number does not fit 64 bits", 2, 35),
    ("graph():\n  %t : Tensor = prim::Constant[value=<Tensor>]()\n  return (%t)",
     "the contents of <Tensor> are not in the text; parse_tensor_constants=True reads zeros of its type", 2, 38),
    ("graph():\n  %t : Tensor = prim::Constant[value=<Tensor c7>]()\n  return (%t)", "constant 'c7' is not in the text", 2, 38),
    ("graph(%c : bool):\n  prim::If(%c)\n    block0():\n  return ()", "expected -> but found 'return' here", 4, 3),
    ("graph(%c : bool):\n    block0():\n  return ()", "block 'block0' stands behind no node", 2, 5),
    ("graph(%c : bool):\n  %x : Tensor = prim::If(%c)\n    a():\n      %y = foo::bar(%c)\n      -> (%y)\n    b():\n      -> (%y)\n  return ()",
     "Cannot find a variable with name 'y'", 7, 11),
    ("graph(%x):\n  %v, %i = aten::relu(%x)\n  return (%x)", "Operator aten::relu(Tensor self) -> Tensor has 1 results; 2 are named", 2, 12),
    ("graph(%x):\n  return (%x)\ngarbage", "expected the end but found 'garbage' here", 3, 1),
    ("graph(%x):\n  %y = aten::relu[a=<graph_1>](%x)\n  return (%x)", "subgraph 'graph_1' is not in the text", 2, 21),
    ("graph(%x):\n  %y = aten(%x)\n  return (%x)", "expected :: but found '(' here", 2, 12),
    ("graph():\n  return ()\nwith constants:\n  c0 : Float(2, strides=[1]) = base64 \"AAAA\"\n", "the contents do not fit the type Float(2, strides=[1])", 4, 32),
]


@pytest.mark.parametrize("text, message, line, column", ERRORS, ids=range(len(ERRORS)))
def test_errors(text, message, line, column):
    with pytest.raises(RuntimeError) as e:
        _C.parse_ir(text)
    shown = str(e.value)
    assert shown.startswith(message)
    assert f"line {line}, column {column}:" in shown
    lines = text.split("\n")
    assert lines[line - 1] in shown
    assert shown.rstrip().endswith("~~~~ <--- HERE")


def test_tensor_placeholder_reads_as_zeros():
    text = "graph():\n  %t : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()\n  return (%t)"
    graph = _C.parse_ir(text, parse_tensor_constants=True)
    t = next(graph.outputs()).toIValue()
    assert t.tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(RuntimeError, match="needs a complete type"):
        _C.parse_ir("graph():\n  %t : Float(2) = prim::Constant[value=<Tensor>]()\n  return (%t)", True)


TENSORS = {
    "float": lambda: cresset.tensor([[1.5, -0.0], [float("nan"), float("inf")]]),
    "transposed": lambda: cresset.arange(6).reshape(2, 3).t(),
    "expanded": lambda: cresset.tensor([1.0, 2.0]).expand(3, 2),
    "gaps": lambda: cresset.arange(10)[::3],
    "half": lambda: cresset.tensor([1.0, 2.5], dtype=cresset.float16),
    "bfloat16": lambda: cresset.tensor(0.1, dtype=cresset.bfloat16),
    "complex": lambda: cresset.tensor([1 + 2j]),
    "bool": lambda: cresset.tensor([True, False]),
    "uint8": lambda: cresset.tensor(7, dtype=cresset.uint8),
    "empty": lambda: cresset.zeros(0, 3),
    "scalar": lambda: cresset.tensor(0.1),
    "double scalar": lambda: cresset.tensor(0.1, dtype=cresset.float64),
    "negative zero": lambda: cresset.tensor(-0.0),
    "large": lambda: cresset.arange(5000).to(cresset.float64),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensor_constants_are_lossless(name):
    value = TENSORS[name]()
    graph = _C.Graph()
    graph.registerOutput(graph.insertConstant(value))
    text = str(graph)
    again = _C.parse_ir(text)
    read = next(again.outputs()).toIValue()
    assert read.dtype == value.dtype and read.shape == value.shape and read.stride() == value.stride()
    as_bytes = [t.contiguous().view(cresset.uint8).tolist() if t.numel() and t.dim() else repr(t) for t in (value, read)]
    assert as_bytes[0] == as_bytes[1]
    assert str(again) == text
    assert _C._jit_graph_difference(graph, again) is None
    assert "base64" not in graph.str(True, False)


def test_shared_constants_stay_shared():
    graph = _C.Graph()
    t = cresset.arange(3)
    for _ in range(2):
        graph.registerOutput(graph.insertConstant(t))
    assert str(graph).count("base64") == 1
    a, b = [v.toIValue() for v in _C.parse_ir(str(graph)).outputs()]
    a[0] = 7
    assert b[0] == 7


def deep_ifs(depth):
    lines = ["graph(%c : bool, %x : Tensor):"]
    lines += [f"  %y{i} : Tensor = prim::If(%c)\n block0():" for i in range(depth)]
    lines.append("  -> (%x)")
    for i in range(depth - 1, -1, -1):
        lines.append("  block1():\n  -> (%x)")
        if i:
            lines.append(f"  -> (%y{i})")
    lines.append("  return (%y0)")
    return "\n".join(lines)


def test_deep_nesting():
    graph = _C.parse_ir(deep_ifs(10000))
    graph.lint()
    text = str(graph)
    assert str(_C.parse_ir(text)) == text
    assert str(graph.copy()) == text
    assert _C._jit_graph_difference(graph, _C.parse_ir(text)) is None
    graph.canonicalize()
    assert len(graph.findAllNodes("prim::If")) == 10000
    _C._jit_pass_dce(graph)


def test_deep_subgraphs_and_types():
    n = 2000
    text = "graph(%x : Tensor):\n  %y : Tensor = prim::FunctionalGraph_0(%x)\n  return (%y)\n"
    for i in range(n):
        text += f"with prim::FunctionalGraph_{i} = graph(%x : Tensor):\n"
        if i < n - 1:
            text += f"  %y : Tensor = prim::FunctionalGraph_{i + 1}(%x)\n  return (%y)\n"
        else:
            text += "  return (%x)\n"
    graph = _C.parse_ir(text)
    graph.lint()
    assert str(graph) == text
    del graph
    for bad in ("(" * 10000, "List[" * 10000, "int" + "[]" * 10):
        try:
            _C.parse_ir(f"graph(%x : {bad}):\n  return (%x)")
        except RuntimeError:
            pass
    with pytest.raises(RuntimeError, match="deep"):
        _C.parse_ir("graph():\n  %x : Any = prim::Constant[value=" + "[" * 10000 + "]\n")


def test_reading_is_linear():
    def seconds(n):
        lines = ["graph(%x : Tensor):", "  %one : int = prim::Constant[value=1]()"]
        lines += [f"  %v{i} : Tensor = aten::add(%{'x' if i == 0 else f'v{i - 1}'}, %x, %one)" for i in range(n)]
        text = "\n".join(lines + [f"  return (%v{n - 1})"])
        start = time.process_time()
        graph = _C.parse_ir(text)
        printed = str(graph)
        graph.lint()
        assert printed.count("\n") == n + 3
        return time.process_time() - start

    seconds(2000)
    small, large = min(seconds(4000) for _ in range(3)), seconds(40000)
    assert large < 40 * small


def test_garbage_never_crashes():
    import random

    rng = random.Random(0)
    texts = list(EXACT.values())
    for _ in range(400):
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(["", "(", ")", "[", "%", "]", '"', "\n", "->", "9", "<", ",", "::", "{"]) + text[at + rng.randint(0, 3):]
        try:
            graph = _C.parse_ir(text)
            str(graph)
        except (RuntimeError, ValueError, TypeError, IndexError):
            pass


def test_named_results_and_values_of_enumerators():
    text = """graph(%x : Tensor,
      %c : Enum<__torch__.Shade>):
  %m : NamedTuple(values : Tensor, indices : Tensor) = prim::TupleConstruct(%x, %x)
  %e : NamedTuple() = prim::TupleConstruct()
  %n : str = prim::EnumValue(%c)
  %f : float = prim::EnumValue(%c)
  return (%m, %n)
"""
    graph = _C.parse_ir(text)
    assert str(graph) == text
    assert [n.schema().partition(" ->")[2] for n in graph.nodes() if n.kind() == "prim::EnumValue"] == [" str", " float"]
    for wrong, message in (("NamedTuple(Tensor)", "expected : "), ("NamedTuple(a : Tensor", "expected "), ("NamedTuple(: int)", "name of a field")):
        with pytest.raises(RuntimeError, match=message):
            _C.parse_ir(f"graph(%x : {wrong}):\n  return (%x)\n")


def test_types_of_another_graph():
    """The names in a text are the reading program's, or those of a graph: an archive may have other classes of the same name."""

    class Shade(enum.Enum):
        LIGHT = "l"
        DARK = "d"

    def f(c: Shade):
        return c, Shade.DARK

    graph = cresset.jit.script(f).graph
    text = str(graph).replace("Shade", "ForeignShade")
    with pytest.raises(RuntimeError, match=r"unknown constant '__torch__.*ForeignShade.DARK'"):
        _C.parse_ir(text)
    buffer = io.BytesIO()

    class Gives(cresset.nn.Module):
        def forward(self, c: Shade):
            return c, Shade.DARK

    cresset.jit.script(Gives()).save(buffer)
    loaded = cresset.jit.load(io.BytesIO(buffer.getvalue())).graph
    again = _C.parse_ir(str(loaded), like=loaded)
    assert _C._jit_graph_difference(again, loaded) is None
    with pytest.raises(TypeError, match="a Graph was required"):
        _C.parse_ir(text, like=3)
