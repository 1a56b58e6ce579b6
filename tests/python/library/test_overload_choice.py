"""torch.ops beside tests/golden/overloads.json, which PyTorch recorded: what is passed for which type, and which overload is called."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import cresset as torch

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
sys.path.insert(0, str(GOLDEN))
import overload_cases  # noqa: E402

RECORDED = json.loads((GOLDEN / "overloads.json").read_text())
# Where PyTorch takes a value for what it is not, this package refuses it.
REFUSED = {
    **{(kind, "[tensor]"): "a fraction is no integer" for kind in ("int[]", "int[2]", "int[]?", "int[2]?")},
    **{(kind, name): "the number behind an enumeration's member" for kind in ("ScalarType", "Layout", "MemoryFormat")
       for name in ("True", "float tensor", "int tensor", "bool tensor", "__index__")},
    **{(kind, name): "the number behind an enumeration's member" for kind in ("Scalar", "Scalar?") for name in ("dtype", "layout")},
    **{case: "nothing is not false" for case in (("bool", "None"), ("bool[]", "[tensor, None]"), ("bool[2]", "[tensor, None]"))},
    **{(kind, "range"): "no number" for kind in ("bool", "bool?")},
    **{(kind, "[tensor]"): "a vector of one element is no number" for kind in ("float[]", "float[2]")},
    **{("complex", name): "has no complex value" for name in ("__index__", "__float__", "2**70")},
    ("str[]", "str"): "letter by letter",
}  # fmt: skip
# An integer stands for a memory format, a layout or a dtype inside of schemas; one may be passed for SymInt too.
TAKEN = {("SymInt", name) for name in ("dtype", "layout", "memory format")}


def test_arguments_are_passed_as_pytorch_passes_them():
    for kind, row in overload_cases.passed(torch).items():
        expected = {name: shown for name, shown in RECORDED["passed"][kind].items() if (kind, name) not in REFUSED}
        assert {name: shown for name, shown in row.items() if (kind, name) not in TAKEN} == expected, kind


def test_every_refusal_is_one():
    passed = overload_cases.passed(torch)
    assert [case for case in REFUSED if case[1] in passed[case[0]] or case[1] not in RECORDED["passed"][case[0]]] == []


def test_the_overload_is_the_one_that_pytorch_calls():
    for pair, row in overload_cases.chosen(torch).items():
        first, second = pair.split(", ")
        for name in overload_cases.values(torch):
            if any((kind, name) in REFUSED or (kind, name) in TAKEN for kind in (first, second)):
                continue
            mine = next((n for n in "12" if name in row[n]), None)
            assert mine == next((n for n in "12" if name in RECORDED["chosen"][pair][n]), None), (pair, name)


@pytest.fixture
def foo():
    """The namespace and the two overloads of the guide to torch.library."""
    library = torch.library.Library("foo", "DEF")
    library.define("add.Tensor(Tensor a, Tensor b) -> str")
    library.define("add.Scalar(Tensor a, float b) -> str")
    library.impl("add.Tensor", lambda a, b: "Tensor", "CompositeExplicitAutograd")
    library.impl("add.Scalar", lambda a, b: f"Scalar {b}", "CompositeExplicitAutograd")
    yield torch.ops.foo.add
    library._destroy()


def test_numbers_choose_the_overload_for_numbers(foo):
    x = torch.ones(2)
    assert foo(x, b=2.0) == foo(x, 2.0) == foo(x, 2) == foo(b=2.0, a=x) == "Scalar 2.0" and foo(x, True) == "Scalar 1.0"
    assert foo(x, x) == foo(x, b=x) == "Tensor" and foo(x, torch.tensor(2.0)) == "Tensor"
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'b' but instead found type 'float'"):
        foo.Tensor(x, 2.0)
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        foo(2.0, x)


def test_arithmetic_of_aten_takes_numbers_for_tensors():
    x, aten = torch.ones(2), torch.ops.aten
    assert aten.add.Tensor(x, 2).tolist() == [3.0, 3.0] and aten.mul(2.0, x).tolist() == [2.0, 2.0]
    assert aten.add(torch.ones(2, dtype=torch.int32), 2).dtype == torch.int32, "a number takes part in promotion as one"
    for op, args in ((aten.mm.default, (x, 2)), (aten.maximum, (x, 2)), (aten.eq.Tensor, (x, 2)), (aten.pow.Tensor_Tensor, (x, 2))):
        with pytest.raises(RuntimeError, match="but instead found type 'int'"):
            op(*args)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda f, x: f(x, 1, 2, 3, 4), r"expected at most 4 argument\(s\) but received 5 argument\(s\)\. Declaration: words::f"),
        (lambda f, x: f(x, 1, True), r"takes 2 positional argument\(s\) but 3 was/were given\.  Declaration: words::f"),
        (lambda f, x: f(x, 1, n=2), "Argument 'n' specified both as positional and keyword argument. Schema: words::f"),
        (lambda f, x: f(x, 1, q=2), "Unknown keyword argument 'q' for operator 'words::f'. Schema: words::f"),
        (lambda f, x: f(n=1), "is missing value for argument 'x'. Declaration: words::f"),
        (lambda f, x: f(x, 1.5), "type 'int' for argument 'n' but instead found type 'float'.\nPosition: 1\nValue: 1.5\nDeclaration: words::f"),
        (lambda f, x: f(x, 2**70), "for argument 'n' but instead found type 'int'.\nPosition: 1\nValue: 1180591620717411303424"),
    ],
)
def test_words_of_refusals(call, words):
    with torch.library._scoped_library("words", "DEF") as library:
        library.define("f(Tensor x, int n, *, bool b=False, int k=1) -> Tensor")
        with pytest.raises(RuntimeError, match=words):
            call(torch.ops.words.f, torch.ones(1))


def test_order_of_overloads_does_not_depend_on_which_was_used_first():
    """The first overload that fits is called, so the order is part of the meaning."""
    code = """
import cresset
for first in {names}: getattr(cresset.ops.aten.norm, first)
print(cresset.ops.aten.norm.overloads())
"""
    names = torch.ops.aten.norm.overloads()
    for first in ([], ["dtype_out"], names[::-1]):
        shown = subprocess.run([sys.executable, "-c", code.format(names=first)], capture_output=True, text=True, check=True).stdout
        assert shown.strip() == str(names)
