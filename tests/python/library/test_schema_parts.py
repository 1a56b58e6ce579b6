"""The parts of a schema in Python, and which schema may take another's place."""

import pytest

import cresset as torch

parse = torch._C.parse_schema


def test_parts():
    schema = parse("a::f.x(Tensor(a!) self, int[2] k=3, *, ScalarType? dtype=None, SymInt n, Tensor(b!) out) -> (Tensor(a!), SymInt)")
    assert (schema.name, schema.overload_name, [a.name for a in schema.arguments]) == ("a::f", "x", ["self", "k", "dtype", "n", "out"])
    assert [a.type for a in schema.arguments] == ["Tensor", "int[]", "ScalarType?", "SymInt", "Tensor"]
    assert [a.type.str() for a in schema.arguments] == ["Tensor", "int[]", "int?", "int", "Tensor"]
    assert schema.arguments[-1].is_out and not schema.arguments[0].is_out and schema.is_mutable and not schema.is_vararg
    assert schema == parse(str(schema)) and hash(schema) == hash(parse(str(schema)))
    with pytest.raises(RuntimeError, match="<--- HERE|found 'eof'"):
        parse("f(Tensor x")


def test_types_print_as_annotations():
    schema = parse("a::f(Tensor self, int[2]? k, *, ScalarType? dtype=None, SymInt[] n, Tensor?[] i, Scalar s, (int, str) p) -> Tensor[]")
    printed = ["Tensor", "Optional[List[int]]", "Optional[int]", "List[int]", "List[Optional[Tensor]]", "number", "Tuple[int, str]"]
    assert [str(a.type) for a in schema.arguments] == [f"{a.type}" for a in schema.arguments] == printed
    assert repr(schema.returns[0].type) == "List[Tensor]"
    assert [str(a.real_type) for a in schema.arguments[:3]] == ["Tensor", "Optional[List[int]]", "Optional[ScalarType]"]


def test_a_script_has_a_schema_in_parts():
    script = torch.jit.script(with_defaults)
    schema = script.schema
    assert str(schema) == "with_defaults(Tensor x, int n=3, (int, int) l=(1, 2)) -> Tensor" and schema.name == "with_defaults"
    assert [(a.name, str(a.type), a.default_value, a.has_default_value()) for a in schema.arguments] == [
        ("x", "Tensor", None, False), ("n", "int", 3, True), ("l", "Tuple[int, int]", (1, 2), True)]  # fmt: skip
    forward = torch.jit.script(torch.nn.Linear(1, 1)).forward.schema
    assert [a.name for a in forward.arguments][1:] == ["input"] and str(forward.returns[0].type) == "Tensor"


def with_defaults(x, n: int = 3, l: tuple[int, int] = (1, 2)):
    return x * n + l[0]


def test_every_schema_reads_back():
    schemas = torch._C._jit_get_all_schemas()
    assert len(schemas) > 2000
    for schema in schemas:
        again = parse(str(schema))
        assert again == schema and again.is_backward_compatible_with(schema) and again.check_forward_compatible_with(schema) == (True, "")


OLD = "any.over(Tensor self, *, Tensor b, int c) -> Tensor"


@pytest.mark.parametrize(
    "new, works",
    [
        (OLD, True), ("any.over(Tensor self, *, Tensor b, int c, int d=1) -> Tensor", True), ("any.over(Tensor self, Tensor b, *, int c) -> Tensor", True),
        ("any.over(Tensor self, *, Tensor b, int? c) -> Tensor", True), ("any.over(Tensor self, *, Tensor b, int c=1) -> Tensor", True),
        ("other.over(Tensor self, *, Tensor b, int c) -> Tensor", False), ("any.other(Tensor self, *, Tensor b, int c) -> Tensor", False),
        ("any.over(Tensor self, *, Tensor b) -> Tensor", False), ("any.over(Tensor self, *, Tensor b, int c, int d) -> Tensor", False),
        ("any.over(Tensor self, int d=1, *, Tensor b, int c) -> Tensor", False), ("any.over(Tensor self, *, int c, Tensor b) -> Tensor", False),
        ("any.over(Tensor self, *, Tensor b, int renamed) -> Tensor", False), ("any.over(Tensor self, *, Tensor b, int[] c) -> Tensor", False),
        ("any.over(Tensor self, *, Tensor b, int c) -> Tensor?", False), ("any.over(Tensor self, *, Tensor b, int c) -> (Tensor, Tensor)", False),
        ("any.over(Tensor self, *, Tensor b, int c) -> Tensor out", False),
    ],
)  # fmt: skip
def test_backward_compatibility(new, works):
    assert parse(new).is_backward_compatible_with(parse(OLD)) is works


@pytest.mark.parametrize(
    "new, reason",
    [
        ("any(Tensor self, int a) -> Tensor", ""), ("any(Tensor self, int a, int b=1, int c=1) -> Tensor", ""),
        ("any(Tensor self, int a, int b=1, int[2] c=1) -> Tensor", "of type int\\[\\] has a container type as its default value"),
        ("any(Tensor self, int a, int b=4) -> Tensor", "'b' is not forward compatible with the older version of the schema"),
        ("any(Tensor self, int a, int b) -> Tensor", "'b' is not"), ("any(Tensor self, int a=1, int b=1) -> Tensor", "'a' is not"),
        ("any(Tensor self, int a, int b=1, *, Tensor(a!) out) -> Tensor", "the same number of out arguments"),
    ],
)  # fmt: skip
def test_forward_compatibility(new, reason):
    import re

    works, why = parse(new).check_forward_compatible_with(parse("any(Tensor self, int a, int b=1) -> Tensor"))
    assert works is not bool(reason) and (re.search(reason, why) if reason else why == "")
