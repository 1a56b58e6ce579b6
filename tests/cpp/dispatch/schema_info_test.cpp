// What schemas and values of arguments say of shared memory. The rules are those of PyTorch's SchemaInfo.
#include <cresset/dispatch/schema_info.h>

#include <gtest/gtest.h>

#include <cresset/dispatch/boxing.h>
#include <cresset/ops/functions.h>

#include "error_of.h"

namespace cresset {
namespace {

constexpr SchemaArgument in(std::size_t i) { return {SchemaArgType::input, i}; }
constexpr SchemaArgument out(std::size_t i) { return {SchemaArgType::output, i}; }

TEST(Schema, SaysWhatMayShareMemory) {
  const FunctionSchema s = parse_schema("t::f(Tensor(a) x, Tensor(b!) y, Tensor z, int(a) n) -> (Tensor(a), Tensor[])");
  EXPECT_TRUE(s.is_aliasing(in(0)) && !s.is_aliasing(in(2)) && s.is_mutable(in(1)) && s.is_mutable("y") && !s.is_mutable("z"));
  EXPECT_TRUE(s.may_alias(in(0), out(0)));
  EXPECT_FALSE(s.may_alias(in(1), out(0)) || s.may_alias(in(3), out(0)));
  EXPECT_FALSE(s.may_contain_alias(out(1), in(2)));
  EXPECT_EQ(error_of([&] { s.is_mutable("w"); }),
            "Schema has no argument named w: t::f(Tensor(a) x, Tensor(b!) y, Tensor z, int(a) n) -> (Tensor(a), Tensor[])");
  EXPECT_EQ(error_of([&] { s.is_aliasing(out(2)); }), "t::f: return 2 was asked for; there are 2.");
}

TEST(SchemaInfo, EqualValuesAreOneMemory) {
  SchemaInfo s("t::f(Tensor(a!) x, Tensor y, Tensor[] l) -> Tensor(a!)");
  EXPECT_FALSE(s.may_alias(in(0), in(1)) || s.is_mutable("y") || s.may_contain_alias(out(0), in(2)));
  const Tensor t = zeros({2});
  s.addArgumentValue("x", t);
  s.addArgumentValue("y", t);
  EXPECT_TRUE(s.may_alias(in(0), in(1)) && s.may_alias(in(1), out(0)) && s.is_mutable("y"));
  s.addArgumentValue("l", IValue(std::vector<Tensor>{t}));
  EXPECT_TRUE(s.may_contain_alias(in(2), out(0), false));
  EXPECT_FALSE(s.may_contain_alias(out(0), in(2), false));
}

TEST(SchemaInfo, StatisticsAreWrittenInTraining) {
  SchemaInfo s("t::norm(Tensor x, Tensor? running_mean, bool training) -> Tensor");
  EXPECT_TRUE(s.is_mutable("running_mean") && s.is_mutable());
  s.addArgumentValue("training", false);
  EXPECT_FALSE(s.is_mutable("running_mean") || s.is_mutable());
  SchemaInfo dropout("aten::dropout(Tensor input, float p, bool train) -> Tensor");
  EXPECT_TRUE(dropout.is_nondeterministic());
  dropout.addArgumentValue("train", false);
  EXPECT_FALSE(dropout.is_nondeterministic());
}

}  // namespace
}  // namespace cresset
