// The schema grammar: parsing and printing are inverses, errors say where.
#include <gtest/gtest.h>

#include <cresset/dispatch/function_schema.h>

namespace cresset {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_schema(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

class RoundTrip : public testing::TestWithParam<const char*> {};
TEST_P(RoundTrip, PrintsWhatItRead) {
  const FunctionSchema s = parse_schema(GetParam());
  EXPECT_EQ(s.str(), GetParam());
  EXPECT_TRUE(parse_schema(s.str()) == s);
}
INSTANTIATE_TEST_SUITE_P(
    Schemas, RoundTrip,
    testing::Values("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                    "aten::relu_(Tensor(a!) self) -> Tensor(a!)",
                    "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
                    "aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) "
                    "values, Tensor(b!) indices)",
                    "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
                    "a::b(int[2] k=1, bool[3] m=[True, False, True], float y=2., float z=1e-05) -> ()",
                    "a::c(Layout layout, Device? device=None, *, MemoryFormat? f=None, Generator? g=None) -> (Tensor, int)",
                    "a::d(str reduction=\"mean\") -> Scalar", "a::e(Dict(str, Tensor) d, (int, Tensor) t) -> Tensor[]", "a::f(...) -> ...",
                    "a::g(Tensor(a!)[] self) -> ()", "a::h(t[] l, t x) -> t"));

TEST(Schema, words_for_numbers_are_of_the_type_that_takes_them) {
  for (const char* text : {"f(Tensor x, float g=float) -> Tensor", "f(int[2] k=Mean, ScalarType d=long) -> ()"}) {
    const std::string printed = parse_schema(text).str();
    EXPECT_EQ(parse_schema(printed).str(), printed);
  }
  EXPECT_TRUE(parse_schema("f(float g=float) -> ()").arguments()[0].default_value->isDouble());
}

TEST(Schema, ReadsOtherSpellings) {
  EXPECT_EQ(parse_schema("a::b( int[2] k=[1,1] ,float y=2.0)->Tensor").str(), "a::b(int[2] k=1, float y=2.) -> Tensor");
  EXPECT_EQ(parse_schema("a::b(int reduction=Mean) -> (Tensor)").str(), "a::b(int reduction=1) -> Tensor");
  EXPECT_EQ(parse_schema("a::b(str x='none') -> Tensor").str(), "a::b(str x=\"none\") -> Tensor");
}

// As PyTorch 2.13 reads and prints them.
TEST(Schema, WrittenWithoutASetIsASetOfItsOwn) {
  const FunctionSchema s = parse_schema("a::b(Tensor(a!) x, Tensor!? y, Tensor ! z, Tensor[]! w) -> (Tensor!, Tensor(a!))");
  EXPECT_EQ(s.str(), "a::b(Tensor(a!) x, Tensor($0! -> )? y, Tensor($1! -> ) z, Tensor[]($2! -> ) w) -> (Tensor($3! -> ), Tensor(a!))");
  EXPECT_EQ(parse_schema(s.str()), s);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(s.arguments()[i].is_mutable());
  EXPECT_NE(error_of("a::b(Tensor?! x) -> ()").find("expected ident but found '!' here"), std::string::npos);
  EXPECT_NE(error_of("a::b(Tensor(!) x) -> ()").find("expected ident but found '!' here"), std::string::npos);
}

TEST(Schema, SaysWhatIsKnownOfArguments) {
  const FunctionSchema s = parse_schema("a::b(Tensor(a!) self, int[3] k=2, *, Tensor(b!) out) -> Tensor(a!)");
  ASSERT_EQ(s.arguments().size(), 3u);
  EXPECT_TRUE(s.is_mutable());
  EXPECT_FALSE(s.arguments()[0].is_out());
  EXPECT_TRUE(s.arguments()[2].is_out());
  EXPECT_EQ(s.arguments()[1].N, 3);
  EXPECT_EQ(s.arguments()[1].default_value->toIntVector(), (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(s.argument_index("out"), 2u);
  EXPECT_FALSE(s.argument_index("absent"));
  EXPECT_EQ(s.alias_analysis(), AliasAnalysisKind::FROM_SCHEMA);
}

TEST(Schema, ErrorsMarkTheWord) {
  EXPECT_EQ(
      error_of("a::b(Foo x) -> Tensor"),
      "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full list, please see "
      "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func :\na::b(Foo x) -> Tensor\n     ~~~ <--- HERE\n");
  EXPECT_NE(
      error_of("a::b(Tensor x -> Tensor").find("expected ) but found 'arrow' here:\na::b(Tensor x -> Tensor\n              ~~ <--- HERE"),
      std::string::npos);
  EXPECT_NE(error_of("a::b.default(Tensor x) -> Tensor").find("default is not a legal overload name"), std::string::npos);
  EXPECT_NE(error_of("a::b.__x(Tensor x) -> Tensor").find("not a legal overload name"), std::string::npos);
  EXPECT_NE(error_of("a::b(Dimname x) -> Tensor").find("named tensors are not supported"), std::string::npos);
  EXPECT_NE(error_of("a::b(Tensor x=1) -> Tensor").find("expected None but found 'number'"), std::string::npos);
  EXPECT_NE(error_of("a::b(int x=1.5) -> Tensor").find("expected number but found 'number'"), std::string::npos);
  EXPECT_NE(error_of("a::b(int x) -> Tensor extra!").find("expected eof but found '!'"), std::string::npos);
  EXPECT_NE(error_of("a::b(int x=99999999999999999999) -> Tensor").find("expected number but found"), std::string::npos);
  EXPECT_NE(error_of("a::b(int x=1, int y) -> Tensor").find("argument 'y' without a default"), std::string::npos);
  for (const char* number : {".", "1.2.3", "1e", "1e999", ".j", "1e9999j"})
    EXPECT_NE(error_of(std::string("a::b(float x=") + number + ") -> Tensor").find("expected number but found"), std::string::npos)
        << number;
  EXPECT_NE(error_of("a::b(bool[2] x=-1e-5) -> Tensor").find("a number cannot be the default of type bool["), std::string::npos);
  EXPECT_NE(error_of("a::b(complex x=(1.0j)) -> Tensor").find("expected number but found"), std::string::npos);
  const std::string longer =
      "a::b(int[1] x=[-2, -2], int[2] y=3) -> Tensor";  // only a list of the length that a number is repeated to is one
  EXPECT_EQ(parse_schema(longer).str(), longer);
  for (const char* number : {"(0.0+1.0j)", "(-0.5-1e-05j)", "(1e-05+2.0j)"}) {
    const std::string text = std::string("a::b(complex x=") + number + ") -> Tensor";
    EXPECT_EQ(parse_schema(text).str(), text);
  }
  EXPECT_NE(error_of("a::b(Tensor x=Mean) -> Tensor").find("invalid numeric default value"), std::string::npos);
  EXPECT_NE(error_of("a::b(int x)").find("expected arrow but found 'eof'"), std::string::npos);
  EXPECT_NE(error_of("").find("expected ident but found 'eof'"), std::string::npos);
}

TEST(Schema, DeepNestingDoesNotHurt) {
  const auto repeated = [](const std::string& part) {
    std::string out;
    for (int i = 0; i < 200000; ++i) out += part;
    return out;
  };
  for (const std::string& text : {repeated("("), "int" + repeated("[]"), "int" + repeated("?"), repeated("Dict(int, "), repeated("Future("),
                                  "(" + repeated("int[]?, ") + "int) x"})
    EXPECT_NE(error_of("a::b(" + text).find("a type with more than 512 brackets and marks is not supported"), std::string::npos);
  EXPECT_NE(error_of("a::b(int[] x=" + repeated("[")), "");
}

TEST(Type, Subtypes) {
  const auto t = [](const char* text) { return parse_type(text); };
  EXPECT_TRUE(t("int")->is_subtype_of(*t("Scalar")));
  EXPECT_TRUE(t("Tensor")->is_subtype_of(*t("Tensor?")));
  EXPECT_TRUE(t("SymInt[]")->is_subtype_of(*t("int[]")));
  EXPECT_FALSE(t("Tensor?")->is_subtype_of(*t("Tensor")));
  EXPECT_FALSE(t("Scalar")->is_subtype_of(*t("int")));
}

}  // namespace
}  // namespace cresset
