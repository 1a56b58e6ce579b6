// out= and in-place binding, seen through operators: cat and flip have shape functions, add is pointwise, square is derived.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <cresset/core/tensor.h>
#include <cresset/ops/functions.h>

#include "ops/shared/structured.h"

namespace cresset {
namespace {

std::vector<std::string>* warnings = nullptr;

// Collects warnings for a scope.
struct Warnings {
  Warnings() : previous(set_warning_handler([](std::string_view, const std::string& text) { warnings->push_back(text); })) {
    warnings = &texts;
  }
  ~Warnings() { set_warning_handler(previous); }
  std::vector<std::string> texts;
  WarningHandler previous;
};

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

Tensor values(IntArrayRef sizes) { return arange(contiguous_strides(sizes)[0] * sizes[0], kFloat).view(sizes); }

bool same(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  const Tensor x = a.to(kDouble).contiguous(), y = b.to(kDouble).contiguous();
  return std::equal(x.data_ptr<double>(), x.data_ptr<double>() + x.numel(), y.data_ptr<double>());
}

TEST(Allocate, FollowsTheSpec) {
  const Tensor t = ops::allocate_cpu({DimVector{2, 3}, kDouble, Device(kCPU), DimVector{1, 2}});
  EXPECT_EQ(t.sizes(), IntArrayRef({2, 3}));
  EXPECT_EQ(t.strides(), IntArrayRef({1, 2}));
  EXPECT_EQ(t.scalar_type(), kDouble);
  const Tensor m = ops::allocate({DimVector{4, 5}, kFloat, Device(kCPU), std::nullopt}, Device(DeviceType::Meta));
  EXPECT_TRUE(m.is_meta());
  EXPECT_EQ(m.strides(), IntArrayRef({5, 1}));
}

TEST(Allocate, FollowsTheMemoryFormatOfTheOptions) {
  const TensorOptions last = TensorOptions(kFloat).memory_format(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(empty({2, 3, 4, 5}, last).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(rand_like(values({120}).reshape({2, 3, 4, 5}), last).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(empty({2, 3, 4, 5}, last, MemoryFormat::Contiguous).is_contiguous());
}

TEST(DeviceOf, TakesTheFirstDefinedTensor) {
  const Tensor meta = empty({2}, TensorOptions(DeviceType::Meta));
  const std::vector<Tensor> list{Tensor(), meta};
  EXPECT_TRUE(ops::device_of(Tensor(), std::optional<Tensor>(), TensorList(list)).is_meta());
  EXPECT_TRUE(ops::device_of(Tensor()).is_cpu());
}

TEST(Out, IsFilledInPlaceWhenItFits) {
  const Tensor x = values({2, 3});
  Tensor out = empty({2, 3});
  const void* before = out.data_ptr();
  EXPECT_TRUE(flip_out(out, x, {1}).is_same(out));
  EXPECT_EQ(out.data_ptr(), before);
  EXPECT_TRUE(same(out, flip(x, {1})));
}

TEST(Out, OtherDtypeAndStridesGoThroughATemporary) {
  const Tensor x = values({2, 3});
  Tensor wide = empty({2, 3}, kDouble);
  cat_out(wide, {x}, 0);
  EXPECT_TRUE(same(wide, x.to(kDouble)));
  Tensor transposed = empty({3, 2}).t();
  flip_out(transposed, x, {0});
  EXPECT_EQ(transposed.strides(), IntArrayRef({1, 2}));
  EXPECT_TRUE(same(transposed, flip(x, {0})));
}

TEST(Out, MayBeAnInput) {
  const Tensor expected = flip(values({2, 3}), {0, 1});
  Tensor x = values({2, 3});
  flip_out(x, x, {0, 1});
  EXPECT_TRUE(same(x, expected));
}

TEST(Out, MayNotBeAnInputOfCat) {
  Tensor x = values({2, 3});
  const Tensor before = x.clone();
  EXPECT_NE(
      error_of([&] { cat_out(x, std::vector<Tensor>{x, x}, 0); }).find("unsupported operation: some elements of the input tensor and"),
      std::string::npos);
  EXPECT_TRUE(same(x, before));
}

TEST(Out, ResizesWithAWarningUnlessEmpty) {
  const Tensor x = values({2, 3});
  Warnings caught;
  Tensor empty_out = empty({0});
  flip_out(empty_out, x, {0});
  EXPECT_TRUE(caught.texts.empty());
  Tensor small = empty({2});
  flip_out(small, x, {0});
  EXPECT_EQ(small.sizes(), IntArrayRef({2, 3}));
  ASSERT_EQ(caught.texts.size(), 1u);
  EXPECT_NE(
      caught.texts[0].find("An output with one or more elements was resized since it had shape [2], which does not match the required "
                           "output shape [2, 3]"),
      std::string::npos);
}

TEST(Out, RefusesOtherDtypesAndRepeatedElements) {
  const Tensor x = values({2, 3});
  Tensor integral = empty({2, 3}, kLong);
  EXPECT_EQ(error_of([&] { flip_out(integral, x, {0}); }), "Expected out tensor to have dtype float, but got long int instead");
  EXPECT_EQ(error_of([&] { cat_out(integral, {x}, 0); }), "torch.cat(): input types can't be cast to the desired output type Long");
  Tensor expanded = empty({1, 3}).expand({2, 3});
  EXPECT_NE(error_of([&] {
              flip_out(expanded, x, {0});
            }).find("more than one element of the written-to tensor refers to a single memory location"),
            std::string::npos);
}

TEST(Out, RefusesAutograd) {
  Tensor x = values({2, 3});
  x.requires_grad_();
  Tensor out = empty({2, 3});
  EXPECT_EQ(error_of([&] { flip_out(out, x, {0}); }),
            "flip(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
  EXPECT_EQ(error_of([&] { diag_out(out, x, 0); }),
            "diag(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
}

TEST(Out, OfMetaTensorsGivesShapesOnly) {
  const Tensor x = empty({2, 3}, TensorOptions(DeviceType::Meta));
  Tensor out = empty({0}, TensorOptions(DeviceType::Meta));
  flip_out(out, x, {0});
  EXPECT_EQ(out.sizes(), IntArrayRef({2, 3}));
}

TEST(InPlace, ChecksShapeAndDtype) {
  Tensor x = values({3});
  EXPECT_EQ(error_of([&] { x.add_(values({2, 3})); }), "output with shape [3] doesn't match the broadcast shape [2, 3]");
  Tensor i = arange(3);
  EXPECT_EQ(error_of([&] { i.mul_(values({3})); }), "result type Float can't be cast to the desired output type Long");
}

TEST(InPlace, BumpsTheVersionOnce) {
  Tensor x = values({3});
  const auto version = x._version();
  x.add_(1);
  EXPECT_EQ(x._version(), version + 1);
  x.fill_(2);
  EXPECT_EQ(x._version(), version + 2);
}

}  // namespace
}  // namespace cresset
