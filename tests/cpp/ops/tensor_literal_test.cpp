// tensor({…}) and manual_seed in C++.
#include <gtest/gtest.h>

#include <cresset/cresset.h>

using namespace cresset;

TEST(TensorLiteral, ValuesTypesAndShapes) {
  EXPECT_EQ(tensor({1, 2}).scalar_type(), kLong);
  EXPECT_EQ(tensor({1.5, 2.0}).scalar_type(), kFloat);
  EXPECT_EQ(tensor({1.5, 2.0}, TensorOptions(kDouble)).scalar_type(), kDouble);
  EXPECT_EQ(tensor(true).scalar_type(), kBool);
  EXPECT_EQ(tensor(3.5).dim(), 0);
  const Tensor matrix = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(matrix.sizes(), IntArrayRef({2, 3}));
  EXPECT_EQ(matrix[1][0].item().toLong(), 4);
  EXPECT_TRUE(tensor(std::vector<float>{1, 2}, TensorOptions().requires_grad(true)).requires_grad());
  try {
    tensor({{1, 2}, {3}});
    FAIL() << "rows of two lengths";
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "tensor: rows of one length were required; the first has 2, another 1.");
  }
}

TEST(TensorOptions, FactoriesMakeLeavesThatRequireGradients) {
  const TensorOptions options = TensorOptions(kDouble).requires_grad(true);
  EXPECT_TRUE(ones({2}, options).requires_grad());
  EXPECT_TRUE(rand({2}, options).is_leaf());
  EXPECT_TRUE(zeros_like(ones({2}), options).requires_grad());
  EXPECT_TRUE(ones({2}).new_zeros({3}, options).requires_grad());
  EXPECT_FALSE(ones({2}, TensorOptions(kDouble)).requires_grad());
}

TEST(ManualSeed, RestartsTheStream) {
  manual_seed(7);
  const Tensor first = rand({3});
  manual_seed(7);
  EXPECT_TRUE(rand({3}).equal(first));
}

TEST(TensorLiteral, OneComplexNumber) {
  const Tensor z = tensor(std::complex<float>(1, 2));
  EXPECT_EQ(z.scalar_type(), kComplexFloat);
  EXPECT_EQ(z.dim(), 0);
}

TEST(Calls, AnUndefinedTensorForAnOptionalOneIsNone) {
  const Tensor x = tensor({{1., 3.}, {2., 6.}});
  EXPECT_TRUE(layer_norm(x, {2}, Tensor(), Tensor()).equal(layer_norm(x, {2})));
}

TEST(Calls, OptionsFromWhatOtherTensorsSay) {
  const Tensor x = ones({2}), y = ones({2}, TensorOptions(kLong));
  EXPECT_EQ(x.to(y.dtype()).scalar_type(), kLong);
  EXPECT_EQ(x.to({kCPU, 0}).device().type(), Device::Type::CPU);
  EXPECT_EQ(TensorOptions({kCPU, 0}).device(), Device(kCPU, 0));
  EXPECT_EQ(TensorOptions(Device(kMeta)).device(), TensorOptions("meta").device());
  EXPECT_TRUE(std::numeric_limits<Half>::has_signaling_NaN);
  EXPECT_NE(std::numeric_limits<Half>::signaling_NaN(), std::numeric_limits<Half>::signaling_NaN());
}
