"""Running graphs: control flow, built-in functions, errors with the script's stack, forks, gradients, threads."""

import math
import threading

import pytest

import cresset
from cresset import _C


def function(text, name="f"):
    graph = _C.parse_ir(text)
    graph.lint()
    return _C._create_function_from_graph(name, graph)


FACTORIAL = """graph(%n : int):
  %one : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=1]()
  %r : int = prim::Loop(%n, %t, %one)
    block0(%i : int, %acc : int):
      %k : int = aten::add(%i, %one)
      %next : int = aten::mul(%acc, %k)
      -> (%t, %next)
  return (%r)
"""
COLLATZ = """graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %go : bool = aten::gt(%n, %one)
  %x : int, %steps : int = prim::Loop(%max, %go, %n, %zero)
    block0(%i : int, %v : int, %s : int):
      %rest : int = aten::remainder(%v, %two)
      %odd : bool = aten::eq(%rest, %one)
      %w : int = prim::If(%odd)
        block0():
          %p : int = aten::mul(%v, %three)
          %q : int = aten::add(%p, %one)
          -> (%q)
        block1():
          %h : int = aten::floordiv(%v, %two)
          -> (%h)
      %s1 : int = aten::add(%s, %one)
      %more : bool = aten::gt(%w, %one)
      -> (%more, %w, %s1)
  return (%steps)
"""
FIBONACCI = """graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=1]()
  %a : int, %b : int = prim::Loop(%n, %t, %zero, %one)
    block0(%i : int, %p : int, %q : int):
      %s : int = aten::add(%p, %q)
      -> (%t, %q, %s)
  return (%a)
"""
SWAP = """graph(%n : int, %a : Tensor, %b : Tensor):
  %t : bool = prim::Constant[value=1]()
  %x : Tensor, %y : Tensor = prim::Loop(%n, %t, %a, %b)
    block0(%i : int, %p : Tensor, %q : Tensor):
      -> (%t, %q, %p)
  return (%x, %y)
"""
SQUARES = """graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %l : int[] = prim::ListConstruct()
   = prim::Loop(%n, %t)
    block0(%i : int):
      %s : int = aten::mul(%i, %i)
      %m : int[] = aten::append(%l, %s)
      -> (%t)
  return (%l)
"""
NESTED = """graph(%c : bool, %d : bool, %x : int?):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %is : bool = aten::__is__(%x, %none)
  %r : int = prim::If(%is)
    block0():
      %k : int = prim::If(%c)
        block0():
          -> (%one)
        block1():
          %m : int = aten::neg(%one)
          -> (%m)
      -> (%k)
    block1():
      %u : int = prim::unchecked_unwrap_optional(%x)
      %v : int = prim::If(%d)
        block0():
          -> (%u)
        block1():
          %w : int = aten::add(%u, %one)
          -> (%w)
      -> (%v)
  return (%r)
"""


def collatz(n):
    steps = 0
    while n > 1:
        n = n * 3 + 1 if n % 2 else n // 2
        steps += 1
    return steps


def test_control_flow():
    f = function(FACTORIAL)
    assert [f(n) for n in (0, 1, 5, 20, -3)] == [1, 1, 120, math.factorial(20), 1]
    g = function(COLLATZ)
    assert [g(n) for n in range(1, 40)] == [collatz(n) for n in range(1, 40)]
    assert [function(FIBONACCI)(n) for n in range(10)] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
    assert function(SQUARES)(5) == [0, 1, 4, 9, 16]
    a, b = cresset.zeros(2), cresset.ones(3)
    assert [t.shape[0] for t in function(SWAP)(3, a, b)] == [3, 2]
    h = function(NESTED)
    assert [h(True, False, None), h(False, False, None), h(False, True, 5), h(False, False, 5)] == [1, -1, 5, 6]


def test_random_graphs_run_as_python():
    """Straight-line integer programs with Ifs, against Python's own arithmetic."""
    import random

    rng = random.Random(7)
    for _ in range(60):
        text, python = ["graph(%a : int, %b : int):"], []
        names = ["a", "b"]
        for i in range(rng.randint(1, 25)):
            op, sign = rng.choice([("add", "+"), ("sub", "-"), ("mul", "*"), ("__xor__", "^"), ("__and__", "&")])
            x, y, z, w = (rng.choice(names) for _ in range(4))
            if rng.random() < 0.3:
                text += [f"  %c{i} : bool = aten::lt(%{x}, %{y})", f"  %v{i} : int = prim::If(%c{i})", "    t():",
                         f"      %p{i} : int = aten::{op}(%{z}, %{w})", f"      -> (%p{i})", "    e():", f"      -> (%{z})"]
                python.append(f"v{i} = wrap({z} {sign} {w}) if {x} < {y} else {z}")
            else:
                text.append(f"  %v{i} : int = aten::{op}(%{x}, %{y})")
                python.append(f"v{i} = wrap({x} {sign} {y})")
            names.append(f"v{i}")
        text.append(f"  return (%{names[-1]}, %{names[len(names) // 2]})")
        f = function("\n".join(text))
        for a, b in [(3, 5), (-7, 2), (1 << 40, 12345)]:
            scope = {"a": a, "b": b, "wrap": lambda v: (v + (1 << 63)) % (1 << 64) - (1 << 63)}
            exec("\n".join(python), scope)
            assert f(a, b) == (scope[names[-1]], scope[names[len(names) // 2]])


# Built-in functions: the call's text, arguments, and Python's result.
def call(op, *types, result):
    inputs = ", ".join(f"%a{i} : {t}" for i, t in enumerate(types))
    args = ", ".join(f"%a{i}" for i in range(len(types)))
    results = result if isinstance(result, tuple) else (result,)
    typed, names = ", ".join(f"%r{i} : {t}" for i, t in enumerate(results)), ", ".join(f"%r{i}" for i in range(len(results)))
    return function(f"graph({inputs}):\n  {typed} = {op}({args})\n  return ({names})")


BUILTINS = [
    ("aten::add", ("int", "int"), "int", (2, 3), 5),
    ("aten::add", ("int", "float"), "float", (2, 0.5), 2.5),
    ("aten::add", ("str", "str"), "str", ("a", "b"), "ab"),
    ("aten::add", ("int[]", "int[]"), "int[]", ([1], [2]), [1, 2]),
    ("aten::mul", ("float", "float"), "float", (2.5, 2.0), 5.0),
    ("aten::div", ("int", "int"), "float", (7, 2), 3.5),
    ("aten::div", ("int", "int"), "float", (1, 0), math.inf),
    ("aten::floordiv", ("int", "int"), "int", (-7, 2), -4),
    ("aten::floordiv", ("float", "int"), "float", (7.5, 2), 3.0),
    ("aten::remainder", ("int", "int"), "int", (-7, 3), 2),
    ("aten::remainder", ("float", "float"), "float", (-1.0, 3.0), 2.0),
    ("aten::pow", ("int", "int"), "float", (2, -1), 0.5),
    ("aten::neg", ("float",), "float", (1.5,), -1.5),
    ("aten::lt", ("int", "float"), "bool", (1, 1.5), True),
    ("aten::eq", ("str", "str"), "bool", ("a", "b"), False),
    ("aten::eq", ("int[]", "int[]"), "bool", ([1, 2], [1, 2]), True),
    ("aten::ne", ("float", "float"), "bool", (math.nan, math.nan), True),
    ("aten::__not__", ("bool",), "bool", (True,), False),
    ("aten::__lshift__", ("int", "int"), "int", (3, 4), 48),
    ("aten::__rshift__", ("int", "int"), "int", (-16, 2), -4),
    ("aten::Int", ("float",), "int", (-2.7,), -2),
    ("aten::Int", ("str",), "int", (" 12 ",), 12),
    ("aten::Float", ("str",), "float", ("2.5",), 2.5),
    ("aten::Bool", ("float",), "bool", (0.0,), False),
    ("aten::floor", ("float",), "int", (-1.5,), -2),
    ("aten::round", ("float",), "float", (2.5,), 2.0),
    ("aten::sqrt", ("int",), "float", (9,), 3.0),
    ("aten::gcd", ("int", "int"), "int", (12, 18), 6),
    ("aten::factorial", ("int",), "int", (5,), 120),
    ("prim::min", ("int[]",), "int", ([3, 1, 2],), 1),
    ("prim::max", ("int", "float"), "float", (1, 2.5), 2.5),
    ("prim::abs", ("int",), "int", (-3,), 3),
    ("aten::len", ("str",), "int", ("abc",), 3),
    ("aten::len", ("Dict(str, int)",), "int", ({"a": 1},), 1),
    ("aten::__getitem__", ("int[]", "int"), "int", ([1, 2, 3], -1), 3),
    ("aten::__getitem__", ("str[]", "int"), "str", (["a", "b"], 1), "b"),
    ("aten::__getitem__", ("Dict(str, int)", "str"), "int", ({"a": 1}, "a"), 1),
    ("aten::__contains__", ("Dict(int, int)", "int"), "bool", ({1: 2}, 2), False),
    ("aten::keys", ("Dict(str, int)",), "str[]", ({"b": 1, "a": 2},), ["b", "a"]),
    ("aten::items", ("Dict(str, int)",), "(str, int)[]", ({"b": 1},), [("b", 1)]),
    ("aten::get", ("Dict(str, int)", "str", "int"), "int", ({"b": 1}, "c", 4), 4),
    ("aten::slice", ("int[]", "int?", "int?", "int"), "int[]", ([0, 1, 2, 3], None, None, -1), [3, 2, 1, 0]),
    ("aten::slice", ("str", "int?", "int?", "int"), "str", ("abcdef", 1, -1, 2), "bd"),
    ("aten::sorted", ("str[]",), "str[]", (["b", "a"],), ["a", "b"]),
    ("aten::index", ("int[]", "int"), "int", ([4, 5], 5), 1),
    ("aten::count", ("str", "str", "int", "int"), "int", ("banana", "an", 0, -1), 2),
    ("aten::sum", ("bool[]",), "int", ([True, True, False],), 2),
    ("aten::split", ("str", "str?", "int"), "str[]", (" a  b ", None, -1), ["a", "b"]),
    ("aten::split", ("str", "str?", "int"), "str[]", ("a,b,c", ",", 1), ["a", "b,c"]),
    ("aten::join", ("str", "str[]"), "str", ("-", ["a", "b"]), "a-b"),
    ("aten::replace", ("str", "str", "str", "int"), "str", ("aaa", "a", "b", 2), "bba"),
    ("aten::center", ("str", "int", "str"), "str", ("ab", 5, "*"), "ab".center(5, "*")),
    ("aten::title", ("str",), "str", ("hello world",), "Hello World"),
    ("aten::strip", ("str", "str"), "str", (" x ", " "), "x"),
    ("aten::find", ("str", "str", "int", "int"), "int", ("abc", "c", 0, -1), 2),
    ("aten::partition", ("str", "str"), ("str", "str", "str"), ("a=b", "="), ("a", "=", "b")),
    ("aten::format", ("str", "int", "float", "str[]"), "str", ("{} {} {}", 1, 2.0, ["x"]), "1 2. [x]"),
    ("aten::percentFormat", ("str", "int", "float", "str"), "str", ("%d|%.2f|%s", 1, 2.345, "x"), "1|%.2f|x" % 2.345),
    ("aten::hex", ("int",), "str", (-255,), "-0xff"),
    ("aten::chr", ("int",), "str", (228,), "ä"),
    ("aten::str", ("float",), "str", (0.1,), "0.10000000000000001"),
    ("aten::__range_length", ("int", "int", "int"), "int", (2, 9, 3), 3),
    ("aten::__derive_index", ("int", "int", "int"), "int", (2, 10, -3), 4),
    ("prim::rangelist", ("int",), "int[]", (3,), [0, 1, 2]),
]


@pytest.mark.parametrize("op, types, result, args, expected", BUILTINS, ids=[f"{b[0]}{b[1]}" for b in BUILTINS])
def test_builtins(op, types, result, args, expected):
    got = call(op, *types, result=result)(*args)
    assert type(got) is type(expected) and (got == expected or (got != got and expected != expected))


ERRORS = [
    ("aten::floordiv", ("int", "int"), "int", (1, 0), ZeroDivisionError, "integer division or modulo by zero"),
    ("aten::__getitem__", ("int[]", "int"), "int", ([1], 3), IndexError, "list index out of range"),
    ("aten::__getitem__", ("Dict(str, int)", "str"), "int", ({}, "q"), KeyError, "KeyError: q"),
    ("aten::__getitem__", ("str", "int"), "str", ("abc", 7), IndexError, "string index out of range"),
    ("aten::pop", ("int[]", "int"), "int", ([], -1), IndexError, "pop from empty list"),
    ("aten::index", ("int[]", "int"), "int", ([1], 3), ValueError, "'3' is not in list"),
    ("aten::Int", ("str",), "int", ("x1",), ValueError, "invalid literal for int"),
    ("aten::Int", ("float",), "int", (math.nan,), RuntimeError, "cannot convert float NaN to integer"),
    ("aten::_unwrap_optional", ("int?",), "int", (None,), RuntimeError, "Unwrapping null optional"),
]


@pytest.mark.parametrize("op, types, result, args, error, message", ERRORS, ids=[e[0] + str(e[3]) for e in ERRORS])
def test_errors_of_builtins(op, types, result, args, error, message):
    with pytest.raises(error) as e:
        call(op, *types, result=result)(*args)
    assert message in str(e.value)


def test_errors_carry_the_stack_of_the_script():
    f = function("graph(%x : Tensor, %y : Tensor):\n  %o : int = prim::Constant[value=1]()\n"
                 "  %z : Tensor = aten::add(%x, %y, %o) # model.py:12:4\n  return (%z)", "forward")
    with pytest.raises(RuntimeError) as e:
        f(cresset.ones(2), cresset.ones(3))
    lines = str(e.value).split("\n")
    assert "must match the size of tensor b" in lines[0]
    assert "Traceback of TorchScript (most recent call last):" in lines
    assert lines[-1].startswith('  File "model.py", line 12, in forward: %z : Tensor = aten::add')
    assert f(cresset.ones(2), cresset.ones(2)).tolist() == [2, 2]


def test_raise():
    f = function('graph(%n : int):\n  %c : str = prim::Constant[value="builtins.ValueError"]()\n  %p : str = prim::Constant[value="bad {}"]()\n'
                 "  %m : str = aten::format(%p, %n)\n   = prim::RaiseException(%m, %c)\n  return (%n)")
    with pytest.raises(RuntimeError, match="builtins.ValueError: bad 3"):
        f(3)


def test_print(capsys):
    function("graph(%x : int, %s : str):\n   = prim::Print(%x, %s)\n  return (%x)")(3, "a b")
    assert capsys.readouterr().out == "3 a b\n"


def test_tuples_and_lists():
    f = function("""graph(%a : int, %b : str):
  %t : (int, str) = prim::TupleConstruct(%a, %b)
  %i : int = prim::Constant[value=-1]()
  %s : str = prim::TupleIndex(%t, %i)
  %u : (str) = prim::TupleSlice[beg=1, end=9](%t)
  %x : int, %y : str = prim::TupleUnpack(%t)
  %l : int[] = prim::ListConstruct(%a, %x)
  %p : int, %q : int = prim::ListUnpack(%l)
  %d : Dict(str, int) = prim::DictConstruct(%b, %p, %s, %q)
  return (%u, %d, %y)
""")
    assert f(4, "k") == (("k",), {"k": 4}, "k")
    g = function("graph(%l : int[]):\n  %a : int, %b : int = prim::ListUnpack(%l)\n  return (%a)")
    with pytest.raises(RuntimeError, match="Expected 2 elements in a list but found 3"):
        g([1, 2, 3])


def test_gradients_flow_through_graphs():
    f = function("graph(%x : Tensor, %n : int):\n  %t : bool = prim::Constant[value=1]()\n  %y : Tensor = prim::Loop(%n, %t, %x)\n"
                 "    block0(%i : int, %w : Tensor):\n      %v : Tensor = aten::mul(%w, %x)\n      -> (%t, %v)\n  return (%y)")
    x = cresset.tensor([2.0, 3.0], requires_grad=True)
    f(x, 2).sum().backward()
    assert x.grad.tolist() == [12.0, 27.0]  # 3 x²


def test_fork_and_wait():
    text = """graph(%x : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %f : Future[Tensor] = prim::fork_0(%x, %n)
  %y : Tensor = aten::neg(%x)
  %z : Tensor = aten::wait(%f)
  %s : Tensor = aten::add(%y, %z, %one)
  return (%s)
with prim::fork_0 = graph(%a : Tensor, %k : int):
  %g : Future[Tensor] = prim::fork_1(%a, %k)
  %b : Tensor = aten::wait(%g)
  return (%b)
with prim::fork_1 = graph(%a : Tensor, %k : int):
  %b : Tensor = aten::mul(%a, %k)
  return (%b)
"""
    f = function(text)
    x = cresset.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(50):
        assert f(x, 5).tolist() == [4.0, 8.0]
    f(x, 5).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    bad = function(text.replace("aten::mul(%a, %k)", "aten::view(%a, %l)").replace("  %b : Tensor = aten::view", "  %l : int[] = prim::ListConstruct(%k)\n  %b : Tensor = aten::view"))
    with pytest.raises(RuntimeError, match="invalid for input of size 2"):
        bad(x, 5)


def test_threads():
    f = function(COLLATZ)
    wrong = []

    def work():
        for n in range(1, 60):
            if f(n) != collatz(n):
                wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_arguments():
    f = function("graph(%x.1 : Tensor, %n : int):\n  %y : Tensor = aten::mul(%x.1, %n)\n  return (%y)")
    x = cresset.ones(1)
    assert f(x, n=3).item() == 3 and f(x=x, n=2).item() == 2
    for args, kwargs, message in [((x,), {}, "missing value for argument 'n'"), ((x, 1, 2), {}, "at most 2 argument"),
                                  ((x, 1), {"n": 2}, "multiple values for argument 'n'"), ((x,), {"m": 2}, "Unknown keyword argument 'm'"),
                                  ((x, "a"), {}, "Expected a value of type 'int' for argument 'n' but instead found type 'str'")]:
        with pytest.raises(RuntimeError, match=message):
            f(*args, **kwargs)
    assert str(f.schema) == "f(Tensor x, int n) -> Tensor"


def test_code_is_flat_and_fused():
    code = function(COLLATZ).dump_code()
    assert "CALL" not in code
    assert code.count("\n") <= 17
    assert "JUMP_UNLESS_EQ_INT" in code
    assert function(FACTORIAL).dump_code().count("\n") <= 8


def test_memory_is_released_early():
    """A value goes when its last user has run, not at the end of the function."""
    big = 1 << 22
    text = "graph(%x : Tensor):\n" + "".join(f"  %v{i} : Tensor = aten::neg(%{'x' if i == 0 else f'v{i - 1}'})\n" for i in range(20)) + "  return (%v19)"
    f = function(text)
    x = cresset.ones(big // 4)
    f(x)
    _C._reset_peak_cpu_memory_stats()
    before = _C._cpu_memory_stats()[0]
    f(x)
    assert _C._cpu_memory_stats()[1] - before <= 3 * big


@pytest.mark.parametrize("body", ["", "%k : Tensor = aten::tanh(%a)", "%k : Tensor = aten::add(%a, %b, %i)"])
def test_a_carried_value_that_stays_and_is_handed_on(body):
    f = function(f"""graph(%x : Tensor, %y : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %p : Tensor, %q : Tensor = prim::Loop(%n, %t, %x, %y)
    block0(%i : int, %a : Tensor, %b : Tensor):
      {body}
      -> (%t, %a, %a)
  return (%p, %q)
""")
    x, y = cresset.ones(2), cresset.zeros(2)
    for n in range(4):
        p, q = f(x, y, n)
        assert p.tolist() == [1, 1] and q.tolist() == ([1, 1] if n else [0, 0])
