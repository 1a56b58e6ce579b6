"""Schemas from signatures: each row is a signature, the names of mutated arguments and the schema or the words of the error."""

import typing
from typing import List, Optional, Sequence, Tuple

import pytest

import cresset as torch
from cresset import Tensor
from cresset.library import infer_schema

Number = typing.Union[int, float, bool]


def plain(x: Tensor, y: Optional[Tensor], z: Sequence[int], w: List[float], b: bool = True, n: int = 1) -> Tuple[Tensor, Tensor]: ...
def defaults(x: Tensor, dt: torch.dtype = torch.float32, d: Optional[torch.device] = None, s: Number = 1, st: str = "a", fl: float = 1.5) -> None: ...
def lists(x: Tensor, y: List[Tensor], n: int) -> List[Tensor]: ...
def keywords(x: "Tensor", *, y: int, z: float = 3.0, k: "int | None" = None, m: list[int] | None = None) -> "tuple[Tensor, int, float, bool]": ...
def optionals(x: Tensor, i: int = -1, a: bool = None, s: Optional[str] = "x", dt: Optional[torch.dtype] = None, n: Optional[Number] = 2.5) -> Tensor: ...
def sequences(xs: Sequence[Optional[Tensor]], b: Sequence[bool], n: List[Number]) -> int: ...
def one_tuple(x: Tensor) -> Tuple[Tensor]: ...
def no_annotation(x): ...
def no_return(x: Tensor): ...
def varargs(*args: Tensor) -> Tensor: ...
def varkwargs(**kwargs: Tensor) -> Tensor: ...
def positional(x: Tensor, /) -> Tensor: ...
def a_dict(x: dict) -> Tensor: ...
def a_tuple(x: Tuple[int, int]) -> Tensor: ...
def unknown_name(x: "Nope") -> Tensor: ...  # noqa: F821
def returns_dict(x: Tensor) -> dict: ...
def returns_optional(x: Tensor) -> Optional[Tensor]: ...
def tensor_default(x: Tensor = torch.ones(1)) -> Tensor: ...  # noqa: B008


@pytest.mark.parametrize(
    "function, mutated, schema",
    [
        (plain, (), "(Tensor x, Tensor? y, SymInt[] z, float[] w, bool b=True, SymInt n=1) -> (Tensor, Tensor)"),
        (defaults, (), '(Tensor x, ScalarType dt=float32, Device? d=None, Scalar s=1, str st="a", float fl=1.5) -> ()'),
        (lists, "unknown", "(Tensor(a0!) x, Tensor(a1!)[] y, SymInt n) -> Tensor[]"),
        (lists, {"y"}, "(Tensor x, Tensor(a1!)[] y, SymInt n) -> Tensor[]"),
        (keywords, (), "(Tensor x, *, SymInt y, float z=3.0, SymInt? k=None, SymInt[]? m=None) -> (Tensor, SymInt, float, bool)"),
        (optionals, (), '(Tensor x, SymInt i=-1, bool a=None, str? s="x", ScalarType? dt=None, Scalar? n=2.5) -> Tensor'),
        (sequences, (), "(Tensor?[] xs, bool[] b, Scalar[] n) -> SymInt"),
        (one_tuple, (), "(Tensor x) -> Tensor"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_schema(function, mutated, schema):
    assert infer_schema(function, mutates_args=mutated) == schema
    assert infer_schema(function, mutates_args=mutated, op_name="name") == "name" + schema


@pytest.mark.parametrize(
    "function, mutated, words",
    [
        (no_annotation, (), "Parameter x must have a type annotation"),
        (no_return, (), "No return type annotation was provided"),
        (varargs, (), "varargs, or varkwargs"),
        (varkwargs, (), "varargs, or varkwargs"),
        (positional, (), "positional-only args"),
        (a_dict, (), "Parameter x has unsupported type <class 'dict'>. The valid types are"),
        (a_tuple, (), r"please try to use List instead. For example, list\[int\]"),
        (unknown_name, (), "Unsupported type annotation Nope"),
        (returns_dict, (), "Return has unsupported type"),
        (returns_optional, (), "Return has unsupported type"),
        (tensor_default, (), "unsupported default value type"),
        (lists, ("n",), "only Tensors or collections of Tensors can be mutated"),
        (lists, ("q",), "{'q'} in mutates_args were not found"),
        (lists, "x", "mutates_args must either be a sequence"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_refusals(function, mutated, words):
    with pytest.raises(ValueError, match=words):
        infer_schema(function, mutates_args=mutated)


def test_what_schemas_and_names_say():
    from cresset._library.utils import is_functional_schema, lookup_op, parse_namespace

    functional = {
        "foo(Tensor x) -> Tensor": True, "foo(Tensor(a) x) -> Tensor": True, "foo(Tensor(a!) x) -> Tensor": False, "foo(Tensor(a) x) -> Tensor(a)": False,
        "foo(Tensor x) -> ()": False,
    }  # fmt: skip
    assert {schema: is_functional_schema(schema) for schema in functional} == functional
    assert lookup_op("aten::sin") is torch.ops.aten.sin.default and lookup_op("aten::add.Tensor") is torch.ops.aten.add.Tensor
    assert parse_namespace("a::b") == ("a", "b")
    with pytest.raises(ValueError, match="of the form 'namespace::name'"):
        parse_namespace("a")


def test_lists_of_tensors_by_their_types():
    from cresset._library.utils import is_tensorlist_like_type

    kinds = [torch._C.parse_schema(f"f({kind} x) -> ()").arguments[0].type for kind in ("Tensor[]", "Tensor?[]", "Tensor[]?", "Tensor?[]?", "Tensor", "int[]", "Tensor?")]
    assert list(map(is_tensorlist_like_type, kinds)) == [True] * 4 + [False] * 3
