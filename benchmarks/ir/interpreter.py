"""The interpreter beside Python's: loops of numbers, and the overhead of one operator in a graph.

    python benchmarks/ir/interpreter.py
"""

from __future__ import annotations

import time

import cresset
from cresset import _C

SUM = """graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %t : bool = prim::Constant[value=1]()
  %r : int = prim::Loop(%n, %t, %zero)
    block0(%i : int, %s : int):
      %m : int = aten::mul(%i, %two)
      %u : int = aten::add(%s, %m)
      -> (%t, %u)
  return (%r)
"""
WHILE = """graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %go : bool = aten::gt(%n, %zero)
  %x : int, %c : int = prim::Loop(%max, %go, %n, %zero)
    block0(%k : int, %v : int, %s : int):
      %r : int = aten::remainder(%v, %three)
      %is : bool = aten::eq(%r, %zero)
      %q : int = prim::If(%is)
        block0():
          %p : int = aten::add(%s, %v)
          -> (%p)
        block1():
          -> (%s)
      %w : int = aten::sub(%v, %one)
      %more : bool = aten::gt(%w, %zero)
      -> (%more, %w, %q)
  return (%c)
"""
FLOAT = """graph(%n : int):
  %x0 : float = prim::Constant[value=0.5]()
  %a : float = prim::Constant[value=3.5699999999999998]()
  %one : float = prim::Constant[value=1.]()
  %t : bool = prim::Constant[value=1]()
  %r : float = prim::Loop(%n, %t, %x0)
    block0(%i : int, %x : float):
      %y : float = aten::sub(%one, %x)
      %z : float = aten::mul(%x, %y)
      %w : float = aten::mul(%a, %z)
      -> (%t, %w)
  return (%r)
"""
LIST = """graph(%count : int):
  %l : int[] = prim::rangelist(%count)
  %zero : int = prim::Constant[value=0]()
  %t : bool = prim::Constant[value=1]()
  %n : int = aten::len(%l)
  %r : int = prim::Loop(%n, %t, %zero)
    block0(%i : int, %s : int):
      %e : int = aten::__getitem__(%l, %i)
      %u : int = aten::add(%s, %e)
      -> (%t, %u)
  return (%r)
"""

OPERATOR = """graph(%n : int, %x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = {}
      -> (%t, %b)
  return (%r)
"""


def python_sum(n):
    s = 0
    for i in range(n):
        s = s + i * 2
    return s


def python_while(n):
    s = 0
    while n > 0:
        if n % 3 == 0:
            s = s + n
        n = n - 1
    return s


def python_float(n):
    x = 0.5
    for _ in range(n):
        x = 3.57 * (x * (1.0 - x))
    return x


def python_list(n):
    values = list(range(n))
    s = 0
    for i in range(len(values)):
        s = s + values[i]
    return s


def best(f, *args, repeat=5):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        f(*args)
        times.append(time.perf_counter() - start)
    return min(times)


def function(text):
    return _C._create_function_from_graph("f", _C.parse_ir(text))


def loops(n=1_000_000):
    for name, text, python in (("for, int", SUM, python_sum), ("while, if", WHILE, python_while), ("for, float", FLOAT, python_float), ("list", LIST, python_list)):
        f = function(text)
        assert f(100) == python(100)
        ours, theirs = best(f, n), best(python, n)
        print(f"{name:12} {ours / n * 1e9:7.2f} ns a round   Python {theirs / n * 1e9:6.1f} ns   {theirs / ours:5.1f}x")


def operators(n=200_000):
    """Time of a round of a loop with one operator on one element."""
    x, y = cresset.ones(1), cresset.ones(1)
    for name, line in (("add", "aten::add(%x, %y, %one)"), ("mul", "aten::mul(%x, %y)"), ("relu", "aten::relu(%x)")):
        f = function(OPERATOR.format(line))
        ours = best(f, n, x, y)
        print(f"{name:12} {ours / n * 1e9:7.1f} ns an operator in a graph")


if __name__ == "__main__":
    loops()
    operators()
