"""Loops as machine code: the same results as Python and the interpreter, the same errors."""

import itertools
import math
import os
import resource
import struct
import subprocess
import sys
import threading
from typing import Dict, List

import native_programs
import pytest

import cresset
from cresset import _C

AVAILABLE = _C._jit_native_target() != "none"


@pytest.fixture(autouse=True)
def at_once():
    """Every loop is translated when it is first met."""
    before = _C._jit_set_native_rounds(0)
    on = _C._jit_native_enabled()
    yield
    _C._jit_set_native_rounds(before)
    _C._jit_set_native(on)


def interpreted(f, *arguments):
    cresset.jit.set_native_code(False)
    try:
        return f(*arguments)
    finally:
        cresset.jit.set_native_code(True)


def native(f, *arguments):
    """Runs f; where there is native code some must have been made for it by now."""
    cresset.jit.set_native_code(True)
    return f(*arguments)


def bits(value):
    """Values with floats as their bits, so that -0.0 and NaN compare."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    if isinstance(value, (tuple, list)):
        return type(value), [bits(v) for v in value]
    return type(value), value


def python_function(source):
    namespace = {"math": math, "List": List, "Dict": Dict}
    exec(source, namespace)
    return namespace["f"]


def script(source):
    made = _C._jit_native_functions()
    f = _C.CompilationUnit(source).f
    return f, lambda: _C._jit_native_functions() - made


@pytest.mark.parametrize("name", native_programs.PROGRAMS)
def test_program(name):
    source, argument_lists = native_programs.PROGRAMS[name]
    f, made = script(source)
    reference = python_function(source)
    for arguments in argument_lists:
        expected = bits(reference(*arguments))
        assert bits(interpreted(f, *arguments)) == expected, arguments
        assert bits(native(f, *arguments)) == expected, arguments
    assert bool(made()) == AVAILABLE


@pytest.mark.parametrize("seed", range(150))
def test_random_program(seed):
    source = native_programs.random_program(seed)
    f, made = script(source)
    reference = python_function(source)
    for arguments in [
        (0, 1, 2, 0.5, 1.5),
        (1, 3, -5, -0.0, 2.5),
        (12, 1000003, -77, 1e-3, -12345.678),
        (30, -(2**40), 2**33, 3.0, 0.1),
    ]:
        expected = bits(reference(*arguments))
        assert bits(interpreted(f, *arguments)) == expected, (arguments, source)
        assert bits(native(f, *arguments)) == expected, (arguments, source)


INTS = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    -7,
    63,
    64,
    100,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32 - 1,
    2**32,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    -(2**63) + 1,
]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.5,
    -2.5,
    3.7,
    1e300,
    -1e300,
    5e-324,
    2.0**53,
    9.3e18,
    -9.3e18,
    -(2.0**63),
    math.inf,
    -math.inf,
    math.nan,
]

# Each over all pairs of edge values. The second operand also as a constant, where that is another instruction.
INT_OPERATORS = ["a + b", "a - b", "a * b", "a // b", "a % b", "a / b", "a & b", "a | b", "a ^ b", "a << b", "a >> b", "min(a, b)", "max(a, b)",
    "a < b", "a <= b", "a > b", "a >= b", "a == b", "a != b", "-a", "~a", "abs(a)", "float(a)", "bool(a)", "not a == b", "a if a < b else b",
    "math.pow(a, b)", "math.fmod(a, b)", "math.atan2(a, b)", "a ** 2.0", "math.sqrt(abs(a))", "math.gcd(a, b)"]  # fmt: skip
FLOAT_OPERATORS = ["a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "min(a, b)", "max(a, b)", "a < b", "a <= b", "a > b", "a >= b", "a == b",
    "a != b", "-a", "abs(a)", "int(a)", "bool(a)", "math.floor(a)", "math.ceil(a)", "round(a)", "math.sqrt(a)", "math.exp(a)", "math.log(a)",
    "math.pow(a, b)", "math.fmod(a, b)", "math.copysign(a, b)", "math.isnan(a)", "math.tanh(a)", "a if a < b else b", "a if a != b else 1.0"]  # fmt: skip

FLOAT_OPERATORS += [f"math.{name}(a)" for name in (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "expm1", "lgamma", "erf", "erfc", "gamma", "log10",
    "log1p", "log2")] + ["math.atan2(a, b)", "a ** b"]  # fmt: skip
STEPS = [
    "math.gcd(a, b)",
    "math.isnan(a)",
    "math.pow(a, b)",
    "a ** 2.0",
    "a ** b",
]  # executed by the frame, and too many of the loop's instructions for native code to be worth it


def outcome(run, f, *arguments):
    try:
        return bits(run(f, *arguments))
    except (RuntimeError, ValueError, ZeroDivisionError) as e:
        return type(e), str(e)


@pytest.mark.parametrize(
    "kind, expression", [*(("int", e) for e in INT_OPERATORS), *(("float", e) for e in FLOAT_OPERATORS)]
)
def test_operator(kind, expression):
    """Of two variables, carried round a loop, of a variable with itself, and used by the next instruction."""
    source = f"""
def f(a: {kind}, b: {kind}):
    r = {expression}
    s = r
    for i in range(2):
        r = {expression}
        if i == 1:
            s = {expression}
    return r, s
"""
    f, made = script(source)
    values = INTS if kind == "int" else FLOATS
    for a, b in itertools.product(
        values, values if "b" in expression.replace("abs", "").replace("bool", "") else values[:1]
    ):
        assert outcome(native, f, a, b) == outcome(interpreted, f, a, b), (a, b)
    assert bool(made()) == (AVAILABLE and expression not in STEPS)


@pytest.mark.parametrize("op", ["//", "%", "*", "+", "-", "&", "<<", ">>", "<", "=="])
def test_constant_operands(op):
    for constant in INTS:
        if constant == -(2**63) or (op in ("<<", ">>") and constant < 0):
            continue
        source = f"def f(a: int):\n    r = 0\n    for i in range(2):\n        r = int(a {op} ({constant})) + int(({constant}) {op} 5)\n    return r\n"
        f, _ = script(source)
        for a in INTS:
            assert outcome(native, f, a) == outcome(interpreted, f, a), (a, constant)


FAILING = {
    "division by zero": ("    s += 10 // (7 - i)\n", "ZeroDivisionError", "s += 10 // (7 - i)"),
    "remainder": ("    s += 10 % (7 - i)\n", "ZeroDivisionError", "s += 10 % (7 - i)"),
    "the result of the instruction before": ("    s += (s * 3) % (i - 7)\n", "ZeroDivisionError", "(s * 3) % (i - 7)"),
    "shift": ("    s += 1 << (7 - i)\n", "ValueError", "1 << (7 - i)"),
    "conversion": ("    s += int(1e17 * 3.0 ** i)\n", "RuntimeError", "int(1e17"),
    "index": ("    s += x[i]\n", "IndexError", "x[i]"),
    "negative index": ("    s += x[-i]\n", "IndexError", "x[-i]"),
    "assignment": ("    x[i] = s\n", "IndexError", "x[i] = s"),
    "raise": ("    if i == 7:\n            raise ValueError('no ' + str(i))\n", "ValueError", "raise ValueError"),
    "assert": ("    assert i < 7, 'too far'\n", "AssertionError", "assert i < 7"),
    "function": ("    s += math.factorial(i - 7 + 20) % 1000\n", "RuntimeError", "math.factorial"),
}


@pytest.mark.parametrize("name", FAILING)
def test_errors(name):
    """The interpreter's error, with its trace; and what the loop did before is done."""
    line, error, place = FAILING[name]
    source = f"""
def g(x: List[int], n: int):
    s = 0
    for i in range(n):
        x[0] += 1
    {line}
        s += 1
    return s
def f(x: List[int], n: int):
    return g(x, n)
"""
    f, made = script(source)
    runs = []
    for run in (interpreted, native):
        x = [0] * 6 if "index" in name or name == "assignment" else [0] * 30
        with pytest.raises(Exception) as caught:
            run(f, cresset.jit.annotate(List[int], x), 30)
        runs.append((type(caught.value), str(caught.value)))
    assert runs[0] == runs[1]
    assert place in runs[1][1] and "in g" in runs[1][1] and "in f" in runs[1][1]
    assert error in [c.__name__ for c in runs[1][0].__mro__] or error in runs[1][1]
    assert bool(made()) == AVAILABLE


@pytest.mark.parametrize("place", ["rows[i % 2][i]", "rows[i][0]", "rows[-i][1]", "rows[i % 2][-i]", "len(rows[i])"])
def test_errors_in_nested_lists(place):
    source = f"""
def f(rows: List[List[int]], n: int):
    s = 0
    for i in range(n):
        s += {place}
        rows[i % 2][0] = s
    return s
"""
    f, made = script(source)
    runs = []
    for run in (interpreted, native):
        rows = cresset.jit.annotate(List[List[int]], [[1] * 10, [2] * 7, [3] * 3])
        with pytest.raises(IndexError) as caught:
            run(f, rows, 30)
        runs.append((str(caught.value), rows))
    assert runs[0] == runs[1]
    assert place in runs[0][0] and made() == AVAILABLE


def test_entered_in_the_middle():
    """A loop that is hot inside a cold one: the nest is translated and entered at the inner loop."""
    _C._jit_set_native_rounds(50)
    source = """
def f(n: int, m: int):
    s = 0
    t = 0.5
    for i in range(n):
        t = t * 2.0 + float(i)
        for j in range(m):
            s += i * j
            t = t % 1000.0 + float(j)
        s += 1
    return s, t
"""
    f, made = script(source)
    assert native(f, 3, 20) == python_function(source)(3, 20)
    assert native(f, 20, 60) == python_function(source)(20, 60)
    assert made() == AVAILABLE


def test_only_parts():
    """An outer loop with calls of operators is interpreted, the inner one is not."""
    source = """
def f(x: Tensor, n: int):
    s = 0
    for i in range(n):
        x = x + 1
        for j in range(10):
            s += j
    return x, s
"""
    f, made = script(source)
    x, s = native(f, cresset.zeros(2), 5)
    assert x.tolist() == [5, 5] and s == 225
    assert made() == AVAILABLE


def test_list_of_floats_with_ints():
    """Elements of another kind than the type says are left to the interpreter."""
    source = """
def f(x: List[float], n: int):
    s = 0.0
    for i in range(n):
        for k in range(len(x)):
            s += x[k]
            x[k] = s
        x.append(s)
    return s
"""
    f, _ = script(source)
    assert native(f, [1, 2.5, 3], 3) == interpreted(f, [1, 2.5, 3], 3) == python_function(source)([1, 2.5, 3], 3)


def test_threads():
    source = native_programs.PROGRAMS["exits"][0]
    expected = python_function(source)(400, 37)
    _C._jit_set_native_rounds(100)
    for _ in range(10):
        f, made = script(source)
        results = []
        barrier = threading.Barrier(6)

        def work(f=f, barrier=barrier, results=results):
            barrier.wait()
            results.append([f(400, 37) for _ in range(5)])

        threads = [threading.Thread(target=work) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert results == [[expected] * 5] * 6
        assert made() == AVAILABLE


def test_memory_goes_with_the_code():
    def pages():
        with open("/proc/self/maps") as f:
            ranges = [
                line.split()[0].split("-")
                for line in f
                if "r-xp 00000000 00:00 0 \n" in line or "r-xp 00000000 00:00 0\n" in line
            ]
        return sum(int(end, 16) - int(begin, 16) for begin, end in ranges) // resource.getpagesize()

    source = native_programs.PROGRAMS["exits"][0]
    before = pages()
    kept = [script(source)[0] for _ in range(20)]
    for f in kept:
        f(10, 10)
    assert pages() == before + 20 * AVAILABLE
    f = None
    kept.clear()
    assert pages() == before


def writable_and_executable():
    """The mappings of the process that are both; other libraries may have some."""
    with open("/proc/self/maps") as maps:
        return {line for line in maps if " rwx" in line}


def test_no_page_is_writable_and_executable():
    before = writable_and_executable()
    f, made = script(native_programs.PROGRAMS["exits"][0])
    f(10, 10)
    assert made() > 0 or not AVAILABLE
    assert writable_and_executable() <= before


def test_switch():
    source = native_programs.PROGRAMS["exits"][0]
    f, made = script(source)
    cresset.jit.set_native_code(False)
    assert not cresset.jit.native_code_enabled()
    expected = f(30, 5)
    assert made() == 0
    cresset.jit.set_native_code(True)
    assert cresset.jit.native_code_enabled() == AVAILABLE
    assert f(30, 5) == expected and made() == AVAILABLE
    cresset.jit.set_native_code(False)
    assert f(30, 5) == expected


@pytest.mark.parametrize("value, on", [("0", False), ("1", True), ("", True)])
def test_environment(value, on):
    code = "import cresset; print(cresset.jit.native_code_enabled())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CRESSET_NATIVE": value, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert run.stdout.strip() == str(on and AVAILABLE), run.stderr
