"""Source text as units: what the names of the language and of torch mean, classes, and the words of errors.

Programs run twice: compiled, and by Python itself.
"""

import copy
import enum
import math
import textwrap
from pathlib import Path
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import cresset
import pytest


def python_namespace():
    """What a script takes for granted, for Python."""
    return {
        "torch": cresset,
        "math": math,
        "Tensor": cresset.Tensor,
        "NamedTuple": NamedTuple,
        "Enum": enum.Enum,
        "inf": math.inf,
        "annotate": lambda _, v: v,
        "fork": lambda f, *args, **kwargs: f(*args, **kwargs),
        "wait": lambda v: v,
        **{
            t.__name__ if hasattr(t, "__name__") else t._name: t
            for t in (Any, Dict, List, Optional, Tuple, Union, Final)
        },
    }


def same(a, b):
    if isinstance(b, cresset.Tensor):
        return isinstance(a, cresset.Tensor) and a.dtype == b.dtype and cresset.equal(a, b)
    if isinstance(b, (tuple, list)):
        return isinstance(a, tuple if isinstance(b, tuple) else list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(b, dict):
        return isinstance(a, dict) and list(a.items()) == list(b.items())
    return type(a) is type(b) and (a == b or (a != a and b != b))


def check(source, *arguments):
    source = textwrap.dedent(source)
    names = python_namespace()
    exec("from __future__ import annotations\n" + source, names)
    expected = names["f"](*copy.deepcopy(arguments))
    unit = cresset._C.CompilationUnit(source)
    actual = unit.f(*copy.deepcopy(arguments))
    assert same(actual, expected), f"{actual!r}, Python gives {expected!r}"


# One expression each: of x, an int of 4.
OF_NUMBERS = """
math.sqrt(x), math.pi, math.floor(2.5), math.ceil(2.1), math.gcd(x, 6), math.log(8, 2), math.exp(0.0), math.pow(2, 3)
math.isnan(inf), math.inf > x, math.fabs(-2.0), math.copysign(1.0, -2.0), math.atan2(1.0, 2.0), math.degrees(math.pi)
int('3'), float('3.5'), bool('a'), bool(''), str(1.5), int(True), float(3), complex(1.0, 2.0), int(2.9), str(x), bool([]), bool([1])
chr(65), ord('A'), hex(255), bin(5), oct(8), divmod(7, 2), divmod(-7.5, 2), abs(-1.5), abs(-x), pow(2.0, 3)
min(x, 1), max(x, 9), min(1.5, x), max(1, 2, 3), min([3, 1, 2]), max([1.5, 2.5]), min(x, 2, 7, 1), max((1, 5, 3))
sum([1, 2]), sum([1.5, 2.0]), any([False, True]), all([True, False]), sorted([3, 1, 2]), sorted(['b', 'a']), sorted((2, 1))
list(range(3)), list(range(1, 10, 3)), list(range(5, 0, -2)), len(range(2, 10, 3)), len(range(-3)), list('ab'), list((1, 2)), list([1])
list(zip([1, 2], 'ab')), list(enumerate([5, 6])), list(enumerate('ab', 3)), list(enumerate([7], start=x)), list(reversed([1, 2, 3]))
[a * b for a, b in zip(range(3), [5, 6, 7])], [i for i in reversed(range(3))], [a + b for a, (b, c) in enumerate(zip([1, 2], [3, 4]))]
tuple((1, 'a')), dict([(1, 'a'), (2, 'b')]), dict(a=1, b=2), dict({'a': x}), dict(zip([1, 2], [3, 4])), dict({'a': x}, b=2)
len('abc'), len([1, 2]), len({1: 2}), len((1, 'a', 2.5))
isinstance(x, int), isinstance(x, float), isinstance('a', (int, str)), isinstance([1], list), isinstance((1, 2), tuple)
'a-b'.split('-'), ','.join(['a', 'b']), 'abc'.upper(), ' a '.strip(), 'abc'.replace('b', 'x'), 'abc'.startswith('ab'), '{} {}'.format(x, 'a')
[1, 2].count(1), [1, 2].index(2), {'a': 1}.get('a', 5), {'a': 1}.get('b', 5), list({'a': 1}.items()), list({'a': 1}.keys())
(1 + 2j).real, (1 + 2j).imag, (3, 4)[1], 'abc'[1], [1, 2][-1]
"""

# Of x, a tensor of 2 by 2.
OF_TENSORS = """
x.shape[0], x.ndim, x.size(1), x.dim(), x.numel(), len(x), x.is_floating_point(), x.requires_grad, x.is_cuda, x.device.type, x.is_leaf
x.T, x.mT, x.t(), x.view(4), x.view(2, 2), x.reshape(-1), x.permute(1, 0), x.sum(0), x.sum((0, 1)), x.sum(), x.mean(1, keepdim=True)
x.float(), x.double(), x.long(), x.to(torch.float64), x.to('cpu'), x.to(x.double()), x.int(), x.bool(), x.half()
2 - x, 2 / x, 2 * x, 2 + x, 2 < x, 2 >= x, 2 == x, 2 ** x, 5 % x, x // 2, -x, abs(x), x @ x, x - 2, x ** 2
torch.add(x, 1), torch.add(2, x), torch.mul(x, 2.5), torch.cat((x, x)), torch.stack([x, x], dim=1), torch.relu(x), torch.sub(2, x)
torch.zeros(2, 3), torch.zeros([2, 3], dtype=torch.int64), torch.ones((1,)), torch.full([2], 7), torch.arange(5), torch.eye(2)
torch.nn.functional.relu(x), torch.linalg.norm(x), torch.tensor([1.0, 2.0]), torch.tensor(3), torch.max(x), torch.max(x, 0)[1]
x.add_(1), x.mul_(2), x.clamp(min=1.5), x.unsqueeze(0), x[0], x[0, 1], x[:, 0], x[..., 1]
min(x.size(0), 5), int(x.sum()), float(x[0, 0]), bool(x[0, 0] > 0), str(x.size(0))
[r for r in x], [i for i, r in enumerate(x)], list(x), list(zip(x, [1, 2])), [r * 2 for r in reversed(x)]
torch.inf, torch.pi, x.real, x.data, x.detach(), x.clone(), x.type_as(x), x.is_contiguous(), x.stride(0), x.storage_offset()
"""


@pytest.mark.parametrize("expressions", OF_NUMBERS.strip().splitlines())
def test_functions_of_the_language(expressions):
    check(f"def f(x: int):\n    return {expressions}\n", 4)


@pytest.mark.parametrize("expressions", OF_TENSORS.strip().splitlines())
def test_operators_and_properties_of_tensors(expressions):
    check(f"def f(x):\n    return {expressions}\n", cresset.tensor([[1.0, 2.0], [3.0, 4.0]]))


def test_calls_become_the_nodes_that_pytorch_makes():
    different = []
    for line in (Path(__file__).parent / "script_calls.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        expression, expected = line.split("  ->", 1)
        body = f"{expression}\n    return x" if " += " in expression else f"return {expression}"
        graph = cresset._C.CompilationUnit(f"import math\ndef f(x, w):\n    {body}\n").f.graph
        nodes = " ".join(f"{n.kind()}/{len(list(n.inputs()))}" for n in graph.nodes() if n.kind() != "prim::Constant")
        if nodes != expected.strip():
            different.append(f"{expression}: {nodes}, PyTorch {expected}")
    assert not different, "\n".join(different)


PROGRAMS = {
    "class": """
        class Counter:
            def __init__(self, start: int, step: float = 2.5):
                self.start = start
                self.step = step
                self.items: List[int] = []
            def put(self, k: int) -> int:
                self.items.append(k)
                return self.start + k
            def __len__(self) -> int:
                return len(self.items)
            def __getitem__(self, i: int) -> int:
                return self.items[i]
            def __add__(self, other: int) -> int:
                return self.start + other
            def __call__(self, x: int) -> int:
                return self.put(x) * 2
        def f(x: int):
            a = Counter(x)
            b = a.put(k=3)
            a.start = 7
            a.step += 1.0
            c = a(5)
            return a.start, a.step, b, c, len(a), a[0], a + 1, a.items, hasattr(a, 'step'), hasattr(a, 'other'), getattr(a, 'start')
        """,
    "classes in each other": """
        class Node:
            def __init__(self, value: int, leaf: Leaf):
                self.value = value
                self.leaf = leaf
            def total(self) -> int:
                return self.value + self.leaf.get() + last(self.leaf)
        class Leaf:
            def __init__(self, value: int):
                self.value = value
            def get(self) -> int:
                return self.value * 10
        def f(x: int):
            n = Node(x, Leaf(2))
            n.leaf.value = 5
            return n.total(), n.leaf.value
        def last(leaf: Leaf) -> int:
            return leaf.value + 1
        """,
    "named tuple": """
        class Point(NamedTuple):
            x: int
            y: float
            names: List[str]
        def moved(p: Point, by: int) -> Point:
            return Point(p.x + by, y=p.y, names=p.names + ['moved'])
        def f(x: int):
            p = moved(Point(x, 2.5, ['a']), 3)
            a, b, c = p
            return p, p.x, p[1], a, b, c, getattr(p, 'y'), hasattr(p, 'x'), hasattr(p, 'z'), len(p)
        """,
    "enum": """
        class Color(Enum):
            RED = 1
            GREEN = 2
        def other(c: Color) -> Color:
            if c == Color.RED:
                return Color.GREEN
            return Color.RED
        def f(x: int):
            c = other(Color.RED)
            return c.name, c.value, c == Color.GREEN, c != Color.GREEN, [k.value for k in Color], other(c).name
        """,
    "interface": """
        class Add:
            def apply(self, x: int, y: int) -> int:
                return x + y
        class Sub:
            def apply(self, x: int, y: int) -> int:
                return x - y
        def f(x: int):
            return Add().apply(x, 1), Sub().apply(x, 1)
        """,
    "constants of the text": """
        import math
        K = 3
        NAMES: List[str] = ['a', 'b']
        def f(x: int):
            return K + x, NAMES[1], len(NAMES)
        """,
    "functions in any order": """
        def f(x: int):
            return g(x, k=2) + g(x)
        def g(x: int, k: int = 5) -> int:
            '''A text.'''
            return h(x) * k
        def h(x: int):
            return x + 1
        """,
    "fork": """
        def g(x: int, y: int = 1):
            return x + y
        class A:
            def __init__(self, x: int):
                self.x = x
            def get(self, y: int) -> int:
                return self.x * y
        def f(x: int):
            a = A(3)
            first = fork(g, x)
            second = fork(g, x, y=x)
            third = fork(a.get, 7)
            return wait(first), wait(second), wait(third)
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    check(PROGRAMS[name], 4)


def test_lists_of_tensors_need_a_type():
    source = """
def f(x):
    a: List[List[int]] = x.long().tolist()
    b = annotate(List[float], x[0].tolist())
    c: bool = (x.sum() > 1).tolist()
    return a, b, c
"""
    unit = cresset._C.CompilationUnit(source)
    assert unit.f(cresset.tensor([[1.0, 2.0], [3.0, 4.0]])) == ([[1, 2], [3, 4]], [1.0, 2.0], True)
    text = str(unit.f.graph)
    assert str(cresset._C.parse_ir(text)) == text
    with pytest.raises(RuntimeError, match="a tensor of 2 dimensions was annotated; it has 3"):
        unit.f(cresset.ones(2, 2, 2))
    unit.define("def g(x):\n    a: List[int] = x.tolist()\n    return a\n")
    with pytest.raises(RuntimeError, match="the annotated element type 'int' was required; the tensor holds Float"):
        unit.g(cresset.ones(2))


def test_interfaces_are_what_classes_fit():
    source = """
@torch.jit.interface
class Binary:
    def apply(self, x: int, y: int) -> int:
        pass
class Add:
    def apply(self, x: int, y: int) -> int:
        return x + y
class Scale:
    def __init__(self, by: int):
        self.by = by
    def apply(self, x: int, y: int) -> int:
        return (x + y) * self.by
class Other:
    def apply(self, x: int) -> int:
        return x
def use(b: Binary, x: int) -> int:
    return b.apply(x, 1)
def f(x: int):
    return use(Add(), x), use(Scale(3), x)
"""
    assert cresset._C.CompilationUnit(source).f(4) == (5, 15)
    with pytest.raises(
        RuntimeError, match="Method on class '__torch__.Other' is not compatible with interface '__torch__.Binary'"
    ):
        cresset._C.CompilationUnit(source + "def g(x: int):\n    return use(Other(), x)\n")


MODULES = """
class Layer(Module):
    __parameters__ = ["weight", ]
    __buffers__ = ["count", ]
    weight : Tensor
    count : Tensor
    training : bool
    k : Final[int] = 3
    names : Final[List[str]] = ["a", "b"]
    def forward(self: __torch__.Layer, x: Tensor) -> Tensor:
        if self.training:
            return x * self.weight + self.k
        return x + len(self.names)
class Net(Module):
    __annotations__ = []
    __annotations__["0"] = Layer
    name : str
    def forward(self, x: Tensor) -> Tensor:
        return getattr(self, "0").forward(x) + getattr(self, "0")(x)
"""


def test_modules_state_their_attributes():
    unit = cresset._C.CompilationUnit(MODULES)
    assert unit.find_type("__torch__.Layer") is not None
    graph = str(unit.find_function("__torch__.Net.forward").graph)
    assert graph.count('prim::GetAttr[name="0"]') == 2
    assert graph.count('prim::CallMethod[name="forward"]') == 2
    forward = str(unit.find_function("__torch__.Layer.forward").graph)
    assert "value=3" in forward
    assert 'prim::GetAttr[name="weight"]' in forward


def test_a_unit_grows():
    unit = cresset._C.CompilationUnit(
        "class A:\n    def __init__(self, x: int):\n        self.x = x\ndef f(x: int):\n    return x + 1\n"
    )
    unit.define("def g(x: int):\n    a = A(x)\n    return f(a.x) * 2\n")
    assert unit.g(4) == 10
    assert unit.find_function("h") is None
    with pytest.raises(AttributeError):
        unit.h  # noqa: B018
    assert {f.name for f in unit.get_functions()} >= {"f", "g"}
    # What fails leaves nothing behind.
    with pytest.raises(RuntimeError, match="undefined value unknown"):
        unit.define("class B:\n    x: int\ndef h(x: int):\n    return x\ndef k(x: int):\n    return unknown(x)\n")
    assert unit.find_function("h") is None
    assert unit.find_type("__torch__.B") is None
    unit.define("class B:\n    x: int\ndef h(x: int):\n    return x\n")
    assert unit.h(3) == 3
    with pytest.raises(RuntimeError, match="already defined"):
        unit.define("def h(x: int):\n    return x + 1\n")


SETTING = """
class Foo:
    def __init__(self, x: int):
        self.x = x
class Color(Enum):
    RED = 1
class P(NamedTuple):
    a: int
    b: int
def g(x: Tensor, y: Tensor) -> Tensor:
    return x
def f(x):
"""
# A body of f, and words of its error.
ERRORS = [
    ("return foo(x)", "undefined value foo"),
    ("return torch.foo(x)", "Unknown builtin op: aten::foo.\nHere are some suggestions: "),
    (
        "return ops.foo.barbarbar(x)",
        "Unknown builtin op: foo::barbarbar.\nCould not find any similar ops to foo::barbarbar",
    ),
    ("return torch.relu(x, 1, 2)", "Expected at most 1 arguments but found 3 positional arguments."),
    ("return torch.relu()", "Argument self not provided."),
    ("return torch.add('a', 2)", "Expected a value of type 'Tensor' for argument 'self' but instead found type 'str'."),
    ("return x.foo", "'Tensor (inferred)' object has no attribute or method 'foo'."),
    ("return (1).foo()", "'int' object has no attribute or method 'foo'."),
    ("return 1()", "cannot call a value of type 'int'"),
    ("return [1].append('a')", "Could not match type str to t in argument 'el'"),
    ("return torch.relu", "builtin cannot be used as a value"),
    ("return print", "print cannot be used as a value"),
    ("return torch", "module 'torch' cannot be used as a value"),
    ("return range(3)", "range cannot be used as a value"),
    ("return iter([1])", "Python builtin iter is currently not supported in scripts"),
    ("return next([1])", "Python builtin next is currently not supported in scripts"),
    ("return super().foo()", "Python builtin super is currently not supported in scripts"),
    ("for i in 1:\n        pass", "'int' object is not iterable"),
    ("for i in range(1, 2, 3, 4):\n        pass", "range expected at most 3 arguments, got 4"),
    ("for i in range(1.5):\n        pass", "all inputs of range must be ints, found float in argument 0"),
    (
        "for a, b in zip((1, 2), [3]):\n        pass",
        "Can not iterate over a module list or tuple with a value that does not have a statically determinable length",
    ),
    ("return zip()", "zip expected at least 1 arguments, got 0"),
    ("return len(1, 2)", "len expected 1 argument, got 2"),
    ("x.y = 1", "Tried to set an attribute: y on a non-class: Tensor"),
    ("return hasattr(x, 'a')", "hasattr's first argument must be an object or NamedTuple, got Tensor instead"),
    ("return tuple([1, 2])", "cannot statically infer the expected size of a list in this context"),
    ("a, b = 1", "int cannot be used as a tuple"),
    (
        "return g(1, x)",
        "g(Tensor x, Tensor y) -> Tensor:\nExpected a value of type 'Tensor' for argument 'x' but instead found type 'int'.",
    ),
    ("return g(x)", "Argument y not provided."),
    ("return g(x, x, z=1)", "Keyword argument z unknown."),
    ("return g(x, x=x)", "Keyword argument x specified twice."),
    ("return g(x, x, x)", "Expected at most 2 arguments but found 3 positional arguments."),
    ("return Foo()", "__init__(__torch__.Foo self, int x) -> NoneType:\nArgument x not provided."),
    ("return Foo(1).z", "Did you forget to initialize an attribute in __init__()?"),
    (
        "a = Foo(1)\n    a.z = 3",
        "Tried to set nonexistent attribute: z. Did you forget to initialize it in __init__()?",
    ),
    ("a = Foo(1)\n    a.x = 'a'", "Wrong type for attribute assignment. Expected int but got str"),
    ("return Color.BLUE", "type object '__torch__.Color' has no attribute 'BLUE'"),
    ("return P(1)", "Argument b not provided."),
    ("return math.foo(1)", "module 'math' has no attribute 'foo' in scripts"),
    ("return torch.jit.foo", "module 'torch.jit' has no attribute 'foo' in scripts"),
    ("return annotate(int, 'a')", "int"),
    ("y: Unknown = x\n    return y", "Unknown type name 'Unknown'"),
    ("y: Unknown[int] = x\n    return y", "Unknown type constructor Unknown"),
    (
        "y: List = []\n    return y",
        "Attempted to use List without a contained type. Please add a contained type, e.g. List[int]",
    ),
    ("y: List[int, str] = []\n    return y", "List expects exactly one element type; 2 were given"),
    ("y: Dict[str] = {}\n    return y", "Dict must have exactly two element types; 1 were given"),
    ("y: Dict[List[int], int] = {}\n    return y", "Cannot create dict for key type 'int[]'"),
    ("y: 3 = 3\n    return y", "a type was expected here"),
    ("with x:\n        pass", "With item expression must return an object, not a value of type 'Tensor'"),
    ("return x.tolist()", "Expected type hint for result of tolist()"),
    (
        "y: List[str] = x.tolist()",
        "str is not one of the supported element types for tolist: int, float, complex, bool",
    ),
    ("return fork()", "Expected at least one argument to fork()"),
    ("return reversed(1)", "'int' object is not iterable"),
]


@pytest.mark.parametrize(("statements", "words"), ERRORS, ids=[e[0].splitlines()[0] for e in ERRORS])
def test_errors_say_what_and_where(statements, words):
    with pytest.raises(RuntimeError) as error:
        cresset._C.CompilationUnit(SETTING + "    " + statements + "\n", "file.py")
    text = str(error.value)
    assert words in text.replace("\n  ", "\n")
    assert 'File "file.py", line 1' in text
    assert "<--- HERE" in text


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("class A(B):\n    x: int\n", "class 'A': scripted classes have no base classes other than"),
        ("class A:\n    x: int = 3\n", "attribute 'x': a class states types only"),
        ("class A(NamedTuple):\n    x: int = 3\n", "default values of named tuples are not supported"),
        ("class A(NamedTuple):\n    x: A\n", "the definition of 'A' needs itself"),
        (
            "class A(Enum):\n    X = 1\n    Y = 'a'\n",
            "the values of an enum must have one type; 'int' and 'str' were given",
        ),
        ("class A(Enum):\n    pass\n", "an enum needs at least one enumerator"),
        ("class A:\n    def f():\n        pass\n", "methods must have a self argument"),
        ("def f(x: int):\n    return x\ndef f(x: int):\n    return x\n", "'f' is defined twice in this text"),
        ("print(1)\n", "expected a function or a class"),
        (
            "class A:\n    def __init__(self, x: int):\n        if x > 1:\n            self.y = x\n",
            "First assignment cannot be in a control-flow block",
        ),
        (
            "def g(x: int):\n    return x.foo\ndef f(x: int):\n    return g(x)\n",
            "'int' object has no attribute or method 'foo'",
        ),
    ],
)
def test_errors_of_definitions(source, words):
    with pytest.raises(RuntimeError) as error:
        cresset._C.CompilationUnit(source)
    assert words in str(error.value)


def test_the_calls_that_led_to_a_function_are_named():
    source = "def f(x: int):\n    return g(x)\ndef g(x: int):\n    return h(x)\ndef h(x: int):\n    return x.foo\n"
    with pytest.raises(RuntimeError) as error:
        cresset._C.CompilationUnit(source)
    text = str(error.value)
    assert "'h' is being compiled since it was called from 'g'\n" in text
    assert "'g' is being compiled since it was called from 'f'\n" in text
    assert text.index("called from 'g'") < text.index("called from 'f'")


ANNOTATIONS = {
    "int": "int",
    "Tensor": "Tensor",
    "torch.Tensor": "Tensor",
    "None": "NoneType",
    "Any": "Any",
    "typing.List[int]": "List[int]",
    "list[int]": "List[int]",
    "Dict[str, List[Tensor]]": "Dict[str, List[Tensor]]",
    "dict[int, float]": "Dict[int, float]",
    "Tuple[int, str]": "Tuple[int, str]",
    "tuple[int]": "Tuple[int]",
    "Tuple[()]": "Tuple[()]",
    "Optional[int]": "Optional[int]",
    "int | None": "Optional[int]",
    "Union[int, None]": "Optional[int]",
    "Union[int, str]": "Union[int, str]",
    "int | str": "Union[int, str]",
    "'List[int]'": "List[int]",
    "List['int']": "List[int]",
    "Future[int]": "Future[int]",
    "torch.jit.Future[int]": "Future[int]",
    "Final[int]": "int",
    "torch.device": "Device",
    "torch.dtype": "int",
    "Device": "Device",
    "number": "number",
    "complex": "complex",
    "BroadcastingList2[int]": "List[int]",
    "torch.Size": "List[int]",
    "Optional[Optional[int]]": "Optional[int]",
}


@pytest.mark.parametrize("written", ANNOTATIONS)
def test_annotations(written):
    unit = cresset._C.CompilationUnit(f"def f(x: {written}):\n    return 1\n")
    assert next(iter(unit.f.graph.inputs())).type().annotation_str == ANNOTATIONS[written]
