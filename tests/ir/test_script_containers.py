"""Lists and dictionaries that Python and scripts share; expected is what Python's own list and dict do."""

from typing import Dict, List

import pytest

import cresset

jit = cresset.jit


@jit.script
def push(x: List[int], v: int):
    x.append(v)
    return len(x)


@jit.script
def put(x: Dict[str, int], key: str, v: int):
    x[key] = v
    return x


LIST_STEPS = [
    lambda l: l.append(7), lambda l: l.extend([8, 9]), lambda l: l.pop(), lambda l: l.pop(0), lambda l: l.insert(1, 5),
    lambda l: l.__setitem__(0, 4), lambda l: l.__setitem__(-1, 6), lambda l: l.__delitem__(1), lambda l: l[0], lambda l: l[-1],
    lambda l: list(l[0:2]), lambda l: 4 in l, lambda l: 44 in l, lambda l: l.count(4), lambda l: l.remove(4), lambda l: len(l),
    lambda l: [x + 1 for x in l], lambda l: l.__setitem__(slice(0, 1), [1, 2, 3]), lambda l: l == [1, 2, 3], lambda l: l.clear(),
]  # fmt: skip
DICT_STEPS = [
    lambda d: d.__setitem__("b", 2), lambda d: d["a"], lambda d: d.__setitem__("a", 5), lambda d: list(d), lambda d: list(d.keys()),
    lambda d: list(d.items()), lambda d: list(d.values()), lambda d: "a" in d, lambda d: "z" in d, lambda d: d.get("z"),
    lambda d: d.get("a", 0), lambda d: len(d), lambda d: d.__delitem__("a"), lambda d: d == {"b": 2}, lambda d: dict(d.items()),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "start"), [(LIST_STEPS, [1, 2, 3]), (DICT_STEPS, {"a": 1})], ids=["list", "dict"])
def test_the_protocol_is_pythons(steps, start):
    ours, python = jit.script(start), type(start)(start)
    for i, step in enumerate(steps):
        assert step(ours) == step(python), i
        assert ours == python, i
    assert start == type(start)(start)  # a copy was made


def test_scripts_work_on_the_same_container():
    shared, plain = jit.script([1, 2]), [1, 2]
    assert push(shared, 7) == 3 and list(shared) == [1, 2, 7]
    assert push(plain, 7) == 3 and plain == [1, 2]
    names = jit.script({"a": 1})
    assert put(names, "b", 2) == {"a": 1, "b": 2} and dict(names.items()) == {"a": 1, "b": 2}


def test_names_and_text():
    l, d = jit.script([1, 2]), jit.script({"a": 1})
    assert type(l).__name__ == "ScriptList" and repr(l) == "[1, 2]"
    assert type(d).__name__ == "ScriptDict" and repr(d) == "{a: 1}"
    assert jit.script(l) is l
    assert repr(jit.script([[1], [2]])) == "[[1], [2]]"
    assert len(jit.script([])) == 0 and len(jit.script({})) == 0


@pytest.mark.parametrize(
    ("action", "error", "words"),
    [
        (lambda: jit.script([1])[3], IndexError, "list index out of range"),
        (lambda: jit.script([1]).append("a"), TypeError, "a value of type 'int' was expected; a str was given"),
        (lambda: jit.script([1]).__setitem__(2, 1), IndexError, "list index out of range"),
        (lambda: jit.script([1]).pop(4), IndexError, "out of range"),
        (lambda: jit.script([1]).remove(4), ValueError, "x not in list"),
        (lambda: jit.script({"a": 1})["z"], KeyError, "z"),
        (lambda: jit.script({"a": 1}).__setitem__(1, 1), TypeError, "a value of type 'str' was expected; a int was given"),
        (lambda: jit.script([1, "a"]), RuntimeError, "Unable to infer type of list"),
        (lambda: jit.script({"a": 1, "b": "c"}), RuntimeError, "Unable to infer type of dictionary"),
        (lambda: push(jit.script(["a"]), 1), RuntimeError, r"Expected a value of type 'List\[int\]' for argument 'x'"),
        (lambda: jit.script((1, 2)), TypeError, "is a built-in class"),
    ],
)
def test_errors(action, error, words):
    with pytest.raises(error, match=words):
        action()


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        ("Dict[str, int]", "dict()", {}), ("Dict[int, int]", "dict([])", {}), ("Optional[Dict[str, int]]", "dict()", {}),
        ("Optional[List[int]]", "[i for i in range(3)]", [0, 1, 2]), ("Union[List[int], List[str]]", "[i for i in range(3)]", [0, 1, 2]),
        ("Dict[str, float]", '{k: 1.0 for k in ["a"]}', {"a": 1.0}), ("Dict[str, float]", "dict(a=1.0)", {"a": 1.0}),
    ],
)  # fmt: skip
def test_annotated_containers(annotation, value, result):
    assert cresset.jit.CompilationUnit(f"def fn():\n    x: {annotation} = {value}\n    return x\n").fn() == result
