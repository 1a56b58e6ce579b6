"""Variables that get values of other types, and arguments that become what a script wants; expected is what torch 2.13 does."""

import re
from collections import namedtuple

import pytest

import cresset

jit = cresset.jit


# torch 2.13: the type of the result, where the variable was made in the same block.
REBOUND = {
    "x = [1.5]\n    x = [1, 2]": ("List[int]", [1, 2]),
    "x = []\n    x = [1, 2]": ("List[int]", [1, 2]),
    "x: List[float] = [1.5]\n    x = [1, 2]": ("List[int]", [1, 2]),
    "x: List[Optional[int]] = [1]\n    x = [1, 2]": ("List[int]", [1, 2]),
    "x: Optional[List[int]] = None\n    x = [1]": ("List[int]", [1]),
    "x = [1.5]\n    x = [i for i in [1, 2]]": ("List[int]", [1, 2]),
    "x = {'a': 1}\n    x = {1: 2}": ("Dict[int, int]", {1: 2}),
}


@pytest.mark.parametrize("lines", REBOUND)
def test_a_variable_of_the_same_block_gets_another_type(lines):
    f = jit.CompilationUnit(f"def f():\n    {lines}\n    return x\n").f
    assert (list(f.graph.outputs())[0].type().annotation_str, f()) == REBOUND[lines]


@pytest.mark.parametrize("first", ["[]", "[1.5]"])
def test_a_variable_of_a_block_around_keeps_its_type(first):
    known = {"[]": "List[Tensor]", "[1.5]": "List[float]"}[first]
    with pytest.raises(RuntimeError, match=rf"Variable 'x' previously had type {re.escape(known)} but is now being assigned to a value of type List\[int\]"):
        jit.CompilationUnit(f"def f():\n    x = {first}\n    if 1 == 1:\n        x = [1, 2]\n    return x\n")


# torch 2.13 takes int() and float() of tensors of one element.
TENSORS = [
    ("int", cresset.ones(1), 1), ("int", cresset.tensor(2.5), 2), ("float", cresset.ones(1, 1), 1.0), ("Optional[int]", cresset.ones(1), 1),
    ("List[int]", [cresset.ones(1), cresset.tensor(True)], [1, 1]), ("List[float]", [cresset.ones(1)], [1.0]), ("Dict[str, int]", {"a": cresset.ones(1)}, {"a": 1}),
    ("Tuple[int, float]", (cresset.ones(1), cresset.ones(1)), (1, 1.0)), ("List[List[int]]", [[cresset.ones(1)]], [[1]]),
]  # fmt: skip


@pytest.mark.parametrize("kind, given, expected", TENSORS)
def test_tensors_of_one_element_are_numbers(kind, given, expected):
    f = jit.CompilationUnit(f"def f(x: {kind}):\n    return x\n").f
    assert f(given) == expected
    if kind == "int":
        with pytest.raises(RuntimeError, match="Expected a value of type 'int' for argument 'x' but instead found type 'Tensor'"):
            f(cresset.ones(2))


def test_words_for_named_tuples_and_dimensions_of_lists():
    Outputs = namedtuple("Outputs", ["logits", "aux"])

    def f(x: Outputs):
        return x

    with pytest.raises(RuntimeError, match=r"but instead found type 'Outputs \(aka NamedTuple\(logits, aux\)\)'"):
        jit.script(f)(Outputs("3", "4"))
    g = jit.CompilationUnit("def g(x):\n    return torch.jit.annotate(List[List[float]], x.tolist())\n").g
    with pytest.raises(RuntimeError, match="Output annotation list dimension and runtime tensor dimension must match"):
        g(cresset.ones(2))


# torch 2.13: what a function with this parameter gets when a script passes this display of x = [1, 2, 3], or the words of its refusal.
TUPLES = [
    ("Tuple[int, float]", "(x[0], x[1])", (1, 2.0)), ("Tuple[int, Tuple[float, int]]", "(x[0], (x[1], x[2]))", (1, (2.0, 3))),
    ("Optional[Tuple[int, int]]", "(x[0], x[1])", (1, 2)), ("Tuple[List[float], int]", "((1.0, 2.0), x[0])", ([1.0, 2.0], 1)),
    ("Tuple[Optional[int], int]", "(x[0], 1)", (1, 1)), ("Tuple[Optional[int], int]", "(None, x[1])", (None, 2)),
    ("Tuple[int, float]", "(1, 2)", "Expected a value of type 'Tuple[int, float]' for argument 'p' but instead found type 'Tuple[int, int]'."),
    ("Tuple[int, float]", '(x[0], "a")', "Expected a value of type 'Tuple[int, float]' for argument 'p' but instead found type 'Tuple[int, str]'."),
    ("Tuple[int, Tuple[float, int]]", "(x[0], (x[1], x[2], x[0]))", "for argument 'p' but instead found type 'Tuple[int, Tuple[Tensor, Tensor, Tensor]]'."),
]  # fmt: skip


@pytest.mark.parametrize("kind, given, expected", TUPLES)
def test_members_of_a_tuple_become_what_a_parameter_wants(kind, given, expected):
    text = f"def inner(p: {kind}):\n    return p\ndef f(x):\n    return inner({given})\ndef g(x):\n    t = {given}\n    return inner(t)\n"
    if isinstance(expected, str):
        with pytest.raises(RuntimeError, match=re.escape(expected)):
            jit.CompilationUnit(text)
        return
    unit = jit.CompilationUnit(text)
    assert unit.f(cresset.arange(1, 4)) == unit.g(cresset.arange(1, 4)) == expected
