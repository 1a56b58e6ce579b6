"""Programs of scripts against Python, which runs the same source."""

import copy

import exits
import pytest
import script_programs
import script_speed_programs
import script_tensor_programs

import cresset
from cresset import _C


def tensors(argument):
    return cresset.tensor(argument) if isinstance(argument, list) else argument


def same(got, expected):
    if isinstance(expected, cresset.Tensor):
        return isinstance(got, cresset.Tensor) and got.dtype == expected.dtype and cresset.equal(got, expected)
    if isinstance(expected, (tuple, list)):
        # Named results of Python's functions are plain tuples in scripts.
        return type(got) is (list if isinstance(expected, list) else tuple) and len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(expected, dict):
        return list(got) == list(expected) and all(same(got[k], expected[k]) for k in expected)
    return type(got) is type(expected) and got == expected


def check(source, argument_lists):
    namespace = {}
    exec(script_programs.HEADER + source, namespace)
    unit = _C.CompilationUnit(source)
    unit.f.graph.lint()
    text = str(unit.f.graph)
    assert not any(kind in text for kind in ("prim::Load", "prim::Store", "Stmt", "LoopContinuation", "prim::With"))
    for arguments in argument_lists:
        expected = namespace["f"](*copy.deepcopy(arguments))
        for rounds in (1_000_000, 0):  # interpreted, then with loops as machine code
            before = _C._jit_set_native_rounds(rounds)
            got = unit.f(*copy.deepcopy(arguments))
            _C._jit_set_native_rounds(before)
            assert same(got, expected), f"{arguments}: {got!r}, Python gives {expected!r}"


@pytest.mark.parametrize("name", script_programs.PROGRAMS)
def test_program(name):
    check(*script_programs.PROGRAMS[name])


@pytest.mark.parametrize("name", script_speed_programs.PROGRAMS)
def test_speed_program(name):
    check(*script_speed_programs.PROGRAMS[name])


@pytest.mark.parametrize("name", script_tensor_programs.PROGRAMS)
def test_tensor_program(name):
    source, argument_lists = script_tensor_programs.PROGRAMS[name]
    check(source, [tuple(map(tensors, arguments)) for arguments in argument_lists])


@pytest.mark.parametrize("seed", range(60))
def test_exits(seed):
    """Random nests of for, while, if and with break, continue and return in all places."""
    source = exits.program(seed)
    check(source, [(n, m) for n in (0, 1, 3, 6) for m in (0, 2, 5)])


EXIT_MATRIX = [
    (exit, outer, inner)
    for exit in ("break", "continue", "return s + 1000")
    for outer in ("for i in range(n):", "while s < n * 3:", "if n > 1:")
    for inner in ("for j in range(m):", "while s % 7 < m:", "if m > 2:")
    if exit.startswith("return") or not (outer.startswith("if") and inner.startswith("if"))  # break and continue need a loop
]


@pytest.mark.parametrize("exit, outer, inner", EXIT_MATRIX)
def test_exit_matrix(exit, outer, inner):
    """Each exit in each pair of blocks, with work behind every block."""
    source = f"""
def f(n: int, m: int):
    s = 0
    {outer}
        s += 1
        {inner}
            s += 2
            if s % 5 == 3:
                {exit}
            s += 4
        s += 8
    s += 16
    return s
"""
    check(source, [(n, m) for n in (0, 1, 2, 5) for m in (0, 1, 3, 4)])


def test_linear_time():
    """Twice the program, about twice the time: a thousand branches with exits and variables are compiled in a moment."""
    lines = ["def f(a: int):", "    s = 0"]
    for i in range(1000):
        lines += [f"    x{i} = a + {i}", f"    if x{i} == -1:", f"        return {i}", f"    if a > {i}:", f"        s += x{i}"]
    lines += ["    return s"]
    unit = _C.CompilationUnit("\n".join(lines))
    assert unit.f(3) == 3 + 4 + 5
    assert unit.f(-1) == 0
    assert unit.f(-11) == 10


def test_depth_is_bounded():
    deep = "def f(a: int):\n" + "".join("    " * (i + 1) + "if a > 0:\n" for i in range(3000)) + "    " * 3001 + "a = 1\n    return a\n"
    with pytest.raises(RuntimeError, match="too many levels|deeper"):
        _C.CompilationUnit(deep)
    chain = "def f(a: int):\n" + "".join(f"    if a == {i}:\n        return {i}\n" for i in range(6000)) + "    return -1\n"
    with pytest.raises(RuntimeError, match="nest deeper"):
        _C.CompilationUnit(chain)
