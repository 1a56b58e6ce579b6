// Modules that pool, drop, normalise and compare, and the functions behind them.
#include <cmath>

#include <gtest/gtest.h>

#include <cresset/cresset.h>

#include "error_of.h"
#include "same_tensors.h"

using namespace cresset;
namespace F = cresset::nn::functional;

namespace {
Tensor rows() { return tensor({{1., 2., 3.}, {4., 5., 6.}, {7., 8., 9.}}); }
}  // namespace

TEST(Modules, MaxUnpoolPutsValuesBack) {
  const Tensor x = arange(24, kFloat).reshape({1, 1, 4, 6});
  nn::MaxPool2d pool(2);
  nn::MaxUnpool2d unpool(2);
  const auto [values, indices] = pool->forward_with_indices(x);
  const Tensor back = unpool(values, indices);
  EXPECT_EQ(back.sizes(), x.sizes());
  EXPECT_TRUE(same(back, x * x.eq(back)));
  EXPECT_EQ(back.count_nonzero().item<int64_t>(), 6);
  const Tensor larger = unpool(values, indices, std::vector<int64_t>{1, 1, 5, 6});
  EXPECT_EQ(larger.sizes(), IntArrayRef({1, 1, 5, 6}));
  EXPECT_EQ(error_of([&] { unpool(values, indices, std::vector<int64_t>{9, 6}); }),
            "invalid output_size [9, 6] (dim 0 must be between 2 and 6)");
  const Tensor line = F::max_unpool1d(tensor({{3., 5.}}, kFloat), tensor({{1, 2}}), F::MaxUnpool1dFuncOptions(2));
  EXPECT_TRUE(same(line, tensor({{0., 3., 5., 0.}}, kFloat)));
}

TEST(Modules, FractionalMaxPoolKnowsItsSize) {
  const Tensor x = randn({2, 3, 8, 9});
  nn::FractionalMaxPool2d by_size(nn::FractionalMaxPool2dOptions(2).output_size(nn::ExpandingArray<2>({4, 3})));
  const auto [values, indices] = by_size->forward_with_indices(x);
  EXPECT_EQ(values.sizes(), IntArrayRef({2, 3, 4, 3}));
  EXPECT_TRUE(same(values.flatten(2), x.flatten(2).gather(2, indices.flatten(2))));
  nn::FractionalMaxPool3d by_ratio(nn::FractionalMaxPool3dOptions(2).output_ratio(0.5));
  EXPECT_EQ(by_ratio(randn({1, 2, 6, 6, 6})).sizes(), IntArrayRef({1, 2, 3, 3, 3}));
  EXPECT_EQ(error_of([&] { F::fractional_max_pool2d(x, F::FractionalMaxPool2dFuncOptions(2)); }),
            "fractional_max_pool2d requires specifying either an output_size or an output_ratio");
}

TEST(Modules, RReLUDrawsSlopesInTraining) {
  const Tensor x = full({1000}, -1, kFloat);
  nn::RReLU drawn(nn::RReLUOptions().lower(0.2).upper(0.4));
  const Tensor y = drawn(x);
  EXPECT_TRUE(y.le(-0.2).all().item<bool>() && y.ge(-0.4).all().item<bool>());
  EXPECT_GT(y.std().item<double>(), 0.01);
  drawn->eval();
  EXPECT_TRUE(close(drawn(x), x * 0.3));
}

TEST(Modules, AlphaDropoutOfChannelsIsOneDecisionEach) {
  const Tensor x = ones({4, 50, 6});
  nn::FeatureAlphaDropout drop(0.5);
  const Tensor y = drop(x);
  EXPECT_TRUE(same(y, y.narrow(2, 0, 1).expand_as(y)));
  EXPECT_GT(y.std().item<double>(), 0.1);
  drop->eval();
  EXPECT_TRUE(same(drop(x), x));
  EXPECT_TRUE(same(F::alpha_dropout(x), x));
  EXPECT_EQ(error_of([] { nn::Dropout wrong(1.5); }), "dropout probability has to be between 0 and 1, but got 1.5");
}

TEST(Modules, EmbeddingBagsOfGivenRows) {
  nn::EmbeddingBag bag = nn::EmbeddingBag::from_pretrained(rows());
  EXPECT_FALSE(bag->weight.requires_grad());
  EXPECT_TRUE(close(bag(tensor({{0, 2}})), tensor({{4., 5., 6.}})));
  const Tensor sums = F::embedding_bag(tensor({0, 1, 2}), rows(), F::EmbeddingBagFuncOptions().mode(nn::kSum).offsets(tensor({0, 2})));
  EXPECT_TRUE(close(sums, tensor({{5., 7., 9.}, {7., 8., 9.}})));
  EXPECT_EQ(error_of([] { F::embedding_bag(tensor({0, 1}), rows()); }), "offsets has to be a 1D Tensor but got null");
}

TEST(Modules, LossesWithMargins) {
  const Tensor x = tensor({{0.1, 0.2, 0.7}}), target = tensor({2});
  EXPECT_NEAR(nn::MultiMarginLoss()(x, target).item<double>(), (0.4 + 0.5) / 3, 1e-6);
  const Tensor labels = tensor({{2, -1, 0}});
  EXPECT_NEAR(nn::MultiLabelMarginLoss()(x, labels).item<double>(), (0.4 + 0.5) / 3, 1e-6);
  const Tensor a = randn({5, 4}), p = randn({5, 4}), n = randn({5, 4});
  nn::TripletMarginLoss plain(nn::TripletMarginLossOptions().margin(0.5).swap(true));
  nn::TripletMarginWithDistanceLoss given(nn::TripletMarginWithDistanceLossOptions().margin(0.5).swap(true));
  EXPECT_NEAR(plain(a, p, n).item<double>(), given(a, p, n).item<double>(), 1e-5);
  const auto manhattan = [](const Tensor& u, const Tensor& v) { return (u - v).abs().sum(1); };
  nn::TripletMarginWithDistanceLoss other(
      nn::TripletMarginWithDistanceLossOptions().distance_function(manhattan).reduction(nn::kSum).margin(0));
  EXPECT_NEAR(other(a, p, n).item<double>(), (manhattan(a, p) - manhattan(a, n)).clamp_min(0).sum().item<double>(), 1e-4);
  EXPECT_NEAR(F::smooth_l1_loss(tensor({0.5}), tensor({0.}), nn::kSum, 1.0).item<double>(), 0.125, 1e-6);
}

TEST(Modules, LayersCheckWhatTheyAreGiven) {
  EXPECT_EQ(error_of([] { nn::Conv2d wrong(nn::Conv2dOptions(1, 1, 3).stride(2).padding(nn::kSame)); }),
            "padding='same' is not supported for strided convolutions");
  EXPECT_EQ(error_of([] { nn::Hardtanh wrong(nn::HardtanhOptions().min_val(1).max_val(0)); }), "max_val must be greater than min_val");
  EXPECT_EQ(error_of([] { F::fold(ones({1, 1, 1, 1}), F::FoldFuncOptions(2, 1)); }),
            "Input Error: Only unbatched (2D) or batched (3D) input Tensors are supported (got 4D)");
  EXPECT_EQ(error_of([] { F::interpolate(ones({1, 1, 4}), F::InterpolateFuncOptions()); }),
            "either size or scale_factor should be defined");
}

TEST(Modules, CrossMapNormIsSymmetric) {
  const Tensor x = randn({2, 5, 3, 3});
  EXPECT_TRUE(close(nn::CrossMapLRN2d(3)(x), nn::LocalResponseNorm(3)(x)));
  const Tensor mirrored = nn::CrossMapLRN2d(nn::CrossMapLRN2dOptions(4).alpha(1))(x.flip({1})).flip({1});
  EXPECT_TRUE(close(nn::CrossMapLRN2d(nn::CrossMapLRN2dOptions(4).alpha(1))(x), mirrored));
}

TEST(Modules, NormalizeIntoATensor) {
  Tensor out = empty({2, 3});
  const Tensor x = randn({2, 3});
  F::normalize(x, F::NormalizeFuncOptions().p(1).dim(-1).out(out));
  EXPECT_TRUE(close(out, F::normalize(x, F::NormalizeFuncOptions().p(1).dim(-1))));
  EXPECT_TRUE(close(out.abs().sum(1), ones({2})));
}

TEST(AdaptiveLogSoftmax, ClustersAddUpToOneSoftmax) {
  nn::AdaptiveLogSoftmaxWithLoss softmax(nn::AdaptiveLogSoftmaxWithLossOptions(6, 12, {3, 7}).div_value(2));
  const Tensor x = randn({8, 6}), target = tensor({0, 2, 3, 6, 7, 11, 1, 9});
  const Tensor all = softmax->log_prob(x);
  EXPECT_TRUE(close(all.exp().sum(1), ones({8})));
  const nn::ASMoutput out = softmax(x, target);
  EXPECT_TRUE(close(out.output, all.gather(1, target.unsqueeze(1)).squeeze(1)));
  EXPECT_NEAR(out.loss, -out.output.mean().item<double>(), 1e-5);
  EXPECT_TRUE(same(softmax->predict(x), all.argmax(1)));
  EXPECT_TRUE(close(softmax(x[3], target[3]).output, out.output[3]));
  EXPECT_EQ(softmax->parameters().size(), 5u);
  EXPECT_EQ(error_of([&] { softmax(x, target + 5); }), "Target values should be in [0, 11], but values in range [5, 16] were found. ");
}
