// What types know of tensors, and names for sizes that they do not know. The texts are PyTorch's.
#include <cresset/dispatch/tensor_type.h>

#include <gtest/gtest.h>

#include <sstream>

#include <cresset/ops/functions.h>

#include "error_of.h"

namespace cresset {
namespace {

template <class T>
std::string text(const T& v) {
  std::ostringstream out;
  out << v;
  return out.str();
}
using Sizes = VaryingShape<int64_t>;
using Entries = std::vector<std::optional<int64_t>>;
TensorTypePtr known(std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  return TensorType::create(kFloat, Device(kCPU), Sizes(sizes), Sizes(strides), false);
}

TEST(ShapeSymbol, IsASizeOrAName) {
  const auto five = ShapeSymbol::fromStaticSize(5), a = ShapeSymbol::newSymbol(), b = ShapeSymbol::newSymbol();
  EXPECT_TRUE(five.is_static());
  EXPECT_EQ(text(five), "5");
  EXPECT_FALSE(a.is_static());
  EXPECT_EQ(text(a), "SS(" + std::to_string(a.value()) + ")");
  EXPECT_EQ(a, a);
  EXPECT_FALSE(a == b);
  EXPECT_EQ(text(ShapeSymbol()), "SS(-1)");
  EXPECT_EQ(merge_primitive(a, a), a);
  EXPECT_FALSE(merge_primitive(five, a).is_static());
  EXPECT_NE(error_of([&] { a.static_size(); }).find("a size that is known was required"), std::string::npos);
}

TEST(SymbolicShape, PrintsAndMerges) {
  const auto name = ShapeSymbol::newSymbol();
  const SymbolicShape shape(std::vector<ShapeSymbol>{name, ShapeSymbol::fromStaticSize(3)});
  EXPECT_EQ(text(shape), "(*, 3)");
  EXPECT_EQ(shape.symbolicDims(), (std::vector<bool>{true, false}));
  EXPECT_EQ(text(SymbolicShape()), "(*)");
  EXPECT_EQ(text(SymbolicShape(std::optional<std::size_t>(2))), "(*, *)");
  EXPECT_EQ(text(SymbolicShape(Entries{2, std::nullopt})), "(2, *)");
  EXPECT_FALSE(shape.isComplete());
  const SymbolicShape merged = shape.merge(SymbolicShape(std::vector<ShapeSymbol>{name, ShapeSymbol::fromStaticSize(4)}));
  EXPECT_EQ(merged[0], name);
  EXPECT_FALSE(merged[1].is_static());
  EXPECT_FALSE(shape.merge(SymbolicShape(std::optional<std::size_t>(3))).rank());
  EXPECT_NE(error_of([&] { shape.at(2); }).find("out of range for 2 dimensions"), std::string::npos);
  EXPECT_NE(error_of([] { SymbolicShape().at(0); }).find("number of dimensions is known"), std::string::npos);
}

TEST(TensorType, OfSizesAndStrides) {
  const auto t = known({2, 3}, {3, 1});
  EXPECT_EQ(t->str(), "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)");
  EXPECT_EQ(text(t->stride_properties()), "({1:1}, {0:3})");
  EXPECT_EQ(text(known({2, 3, 4}, {1, 8, 2})->stride_properties()), "({0:1}, {2:2}, {1:8})");
  EXPECT_EQ(*t->withStrides(t->stride_properties()), *t);
  EXPECT_EQ(t->undefined(), std::optional(false));
  const Sizes implicit = std::vector<int64_t>{2, 3};
  EXPECT_TRUE(t->sizes() == implicit);
  EXPECT_TRUE(t->sizes() == (std::vector<int64_t>{2, 3}));
  const auto partly = TensorType::create(kFloat, Device(kCPU), Sizes(std::optional(Entries{2, std::nullopt})), Sizes(), false);
  EXPECT_EQ(partly->str(), "Float(2, *, requires_grad=0, device=cpu)");
  EXPECT_TRUE(t->isSubtypeOf(*partly));
  EXPECT_NE(error_of([] {
              TensorType::create(kFloat, Device(kCPU), Sizes(), Sizes(std::vector<int64_t>{1}), false);
            }).find("1 strides need as many known sizes"),
            std::string::npos);
  EXPECT_NE(error_of([] { TensorType::create(kFloat, Device(kCPU), Sizes(), Sizes(), false, true); }).find("undefined=true"),
            std::string::npos);
}

TEST(TensorType, KeepsTheNamesOfSizes) {
  const auto a = ShapeSymbol::newSymbol(), b = ShapeSymbol::newSymbol();
  const auto with = [](ShapeSymbol s) {
    return TensorType::create(kFloat, Device(kCPU), SymbolicShape(std::vector<ShapeSymbol>{s, ShapeSymbol::fromStaticSize(3)}),
                              VaryingShape<Stride>(), false);
  };
  const auto t = with(a);
  EXPECT_EQ(t->str(), "Float(*, 3, requires_grad=0, device=cpu)");
  EXPECT_EQ(t->symbolic_sizes()[0], a);
  EXPECT_EQ(t->withScalarType(kLong)->symbolic_sizes()[0], a);
  EXPECT_EQ(t->merge(*t)->symbolic_sizes()[0], a);
  EXPECT_FALSE(t->merge(*with(b))->symbolic_sizes()[0] == a);
  // Names are no part of a type's equality.
  EXPECT_EQ(*t, *with(b));
  EXPECT_TRUE(t->isSubtypeOf(*with(b)));
  // Who asks twice finds one name.
  const auto dimensions = TensorType::create(kFloat, Device(kCPU), std::optional<std::size_t>(2), false);
  EXPECT_EQ(dimensions->symbolic_sizes(), dimensions->symbolic_sizes());
  EXPECT_FALSE(dimensions->symbolic_sizes()[0] == dimensions->symbolic_sizes()[1]);
  EXPECT_FALSE(TensorType::get()->symbolic_sizes().rank());
}

TEST(TensorType, Merges) {
  const auto both = known({2, 3}, {3, 1})->merge(*known({2, 4}, {4, 1}));
  EXPECT_EQ(text(both->symbolic_sizes()), "(2, *)");
  EXPECT_EQ(text(both->stride_properties()), "({1:1}, {0:*})");
  EXPECT_EQ(*known({2, 3}, {3, 1})->merge(*known({2, 4}, {4, 1}), false), *known({2, 3}, {3, 1}));
}

TEST(TensorType, MatchesTensors) {
  EXPECT_TRUE(known({2, 3}, {3, 1})->matchTensor(zeros({2, 3})));
  EXPECT_FALSE(known({2, 3}, {3, 1})->matchTensor(zeros({3, 3})));
  EXPECT_FALSE(known({2, 3}, {3, 1})->matchTensor(zeros({3, 2}).t()));
  EXPECT_FALSE(known({2, 3}, {3, 1})->matchTensor(zeros({2, 3}, kDouble)));
  EXPECT_TRUE(TensorType::get()->matchTensor(zeros({2})));
  EXPECT_EQ(TensorType::contiguousStridesOf({2, 3, 4, 5}), (std::vector<int64_t>{60, 20, 5, 1}));
  EXPECT_EQ(TensorType::contiguousStridesOf({2, 3, 4, 5}, MemoryFormat::ChannelsLast), (std::vector<int64_t>{60, 1, 15, 3}));
}

TEST(Layout, HasThePlacesOfPyTorch) {
  EXPECT_EQ(static_cast<int>(Layout::SparseCsc), 4);
  EXPECT_EQ(static_cast<int>(Layout::Jagged), 7);
  EXPECT_EQ(to_string(kSparseBsr), "sparse_bsr");
  EXPECT_EQ(to_string(kSparseBsc), "sparse_bsc");
  EXPECT_EQ(to_string(kJagged), "jagged");
}

}  // namespace
}  // namespace cresset
