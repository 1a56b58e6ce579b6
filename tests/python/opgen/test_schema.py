"""Schemas: parsing, printing, C++ spelling, errors with a column."""

import pytest
import schema


@pytest.mark.parametrize("text", [
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    "max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)",
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "conv(Tensor input, Tensor? bias=None, int[2] stride=1, bool[3] mask=[True, False, True], float eps=1e-05, str mode='none') -> (Tensor, int)",
    "touch(Tensor(a!) self) -> ()",
])
def test_printing_is_the_inverse_of_parsing(text):
    assert schema.parse(text).text() == text


def test_namespace_and_names():
    s = schema.parse("cresset::thing.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    assert (s.ns, s.name, s.overload, s.qualified, s.ident) == ("cresset", "thing", "out", "cresset::thing.out", "cresset_thing_out")
    assert s.is_out and not s.is_inplace


@pytest.mark.parametrize("argument, cpp", [
    ("Tensor x", "const Tensor&"), ("Tensor(a!) x", "Tensor&"), ("Tensor? x", "const std::optional<Tensor>&"), ("Tensor[] x", "TensorList"),
    ("Tensor?[] x", "OptionalTensorList"), ("Scalar x", "const Scalar&"), ("Scalar? x", "const std::optional<Scalar>&"),
    ("Scalar[] x", "ArrayRef<Scalar>"), ("SymInt x", "int64_t"), ("int? x", "std::optional<int64_t>"), ("int[2] x", "IntArrayRef"),
    ("SymInt[]? x", "OptionalIntArrayRef"), ("float x", "double"), ("float[]? x", "std::optional<ArrayRef<double>>"),
    ("bool[3] x", "std::array<bool, 3>"), ("str x", "std::string_view"), ("str? x", "std::optional<std::string_view>"),
    ("ScalarType? x", "std::optional<ScalarType>"), ("Generator? x", "const std::optional<Generator>&"),
])
def test_cpp_argument_types(argument, cpp):
    assert schema.parse(f"f({argument}) -> ()").args[0].type.cpp_arg() == cpp


@pytest.mark.parametrize("argument, cpp", [
    ("int[2] x=1", "{1, 1}"), ("int[] x=[0, 1]", "{0, 1}"), ("bool x=True", "true"), ("Tensor? x=None", "std::nullopt"),
    ("str x='mean'", '"mean"'), ("MemoryFormat x=contiguous_format", "MemoryFormat::Contiguous"), ("int x=Mean", "1"),
    ("ScalarType x=long", "ScalarType::Long"), ("float x=1e-05", "1e-05"),
])
def test_cpp_defaults(argument, cpp):
    assert schema.parse(f"f({argument}) -> ()").args[0].cpp_default() == cpp


@pytest.mark.parametrize("text, column, words", [
    ("f(Tensr self) -> Tensor", 3, "unknown type specifier 'Tensr'"),
    ("f(Tensor self -> Tensor", 15, "expected ','"),
    ("f(Tensor self)", 15, "expected '->'"),
    ("f.default(Tensor self) -> Tensor", 10, "not a legal overload name"),
    ("f(Tensor a, Tensor a) -> Tensor", 21, "appears twice"),
    ("f(int a=1, int b) -> Tensor", 17, "without a default"),
    ("f(Tensor self) -> Tensor extra", 26, "unexpected text"),
    ("f(int class) -> Tensor", 12, "C++ keyword"),
])
def test_errors_name_the_column(text, column, words):
    with pytest.raises(schema.SchemaError, match=words.replace("(", r"\(").replace("+", r"\+")) as error:
        schema.parse(text)
    assert error.value.column == column
