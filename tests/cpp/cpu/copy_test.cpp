// Copies, conversions, fills and new tensors on the CPU.
#include <gtest/gtest.h>

#include <cresset/ops/from_blob.h>
#include <cresset/ops/functions.h>

#include <cmath>
#include <functional>
#include <limits>

namespace cresset {
namespace {

constexpr ScalarType kAll[] = {kByte, kChar, kShort, kInt, kLong, kHalf, kFloat, kDouble, kComplexFloat, kComplexDouble, kBool, kBFloat16};

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool equal_all(const Tensor& a, const Tensor& b) { return !ne(a, b).any().item<bool>(); }

TEST(Copy, EveryTypeToEveryType) {
  for (ScalarType from : kAll)
    for (ScalarType to : kAll)
      for (int64_t n : {1, 7, 1000}) {
        const Tensor source = arange(n, TensorOptions(kLong)).remainder(5).to(from);
        const Tensor result = source.to(to);
        ASSERT_EQ(result.scalar_type(), to);
        for (int64_t i = 0; i < n; i += 3) {
          const int64_t value = from == kBool || to == kBool ? (i % 5 != 0) : i % 5;
          ASSERT_EQ(result[i].item().to<std::complex<double>>(), std::complex<double>(static_cast<double>(value), 0))
              << toString(from) << " to " << toString(to) << " at " << i;
        }
      }
}

TEST(Copy, ConversionsWrapRoundAndTruncate) {
  const auto one = [](double value, ScalarType from, ScalarType to) { return full({1}, value, TensorOptions(from)).to(to).item(); };
  EXPECT_EQ(one(300, kLong, kByte).toLong(), 44);
  EXPECT_EQ(one(-1, kLong, kByte).toLong(), 255);
  EXPECT_EQ(one(-1.7, kFloat, kByte).toLong(), 255);
  EXPECT_EQ(one(-1.7, kDouble, kLong).toLong(), -1);
  EXPECT_EQ(one(0.3, kFloat, kBool).toBool(), true);
  EXPECT_EQ(one(65520, kFloat, kHalf).toDouble(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(one(1.0009765625 + 0.00048828125, kFloat, kHalf).toDouble(), 1.001953125);  // half to even
  EXPECT_EQ(one(1.00390625, kFloat, kBFloat16).toDouble(), 1.0);
  EXPECT_TRUE(std::isnan(one(std::nan(""), kFloat, kBFloat16).toDouble()));
  EXPECT_TRUE(std::isnan(one(std::nan(""), kFloat, kHalf).toDouble()));
  EXPECT_EQ(full({1}, Scalar(std::complex<double>(2, 3)), TensorOptions(kComplexDouble)).to(kFloat).item().toDouble(), 2);
}

TEST(Copy, HalfTypesSurviveTheRoundTripBitByBit) {
  for (ScalarType type : {kHalf, kBFloat16}) {
    const Tensor bits = arange(65536, TensorOptions(kInt)).to(kShort);
    const Tensor values = bits.view(type);
    const Tensor floats = values.to(kFloat);
    const Tensor back = floats.to(type).view(kShort);
    for (int64_t i = 0; i < 65536; ++i) {
      if (!std::isnan(floats.const_data_ptr<float>()[i])) {
        ASSERT_EQ(back.const_data_ptr<int16_t>()[i], bits.const_data_ptr<int16_t>()[i]) << i;
      }
    }
  }
}

TEST(Copy, AnyStridesToAnyStrides) {
  for (ScalarType type : {kByte, kHalf, kFloat, kDouble, kComplexDouble}) {
    const Tensor source = arange(70 * 90, TensorOptions(kLong)).view({70, 90}).to(type);
    const Tensor transposed = source.t().contiguous();
    const Tensor sliced = slice(source, 1, 3, 90, 2).contiguous();
    for (int64_t i = 0; i < 70; i += 3)
      for (int64_t j = 0; j < 43; j += 5) {
        ASSERT_TRUE(transposed[j][i].item() == source[i][j].item());
        ASSERT_TRUE(sliced[i][j].item() == source[i][3 + 2 * j].item());
      }
    Tensor target = zeros({90, 70}, TensorOptions(type)).t();
    target.copy_(source);
    EXPECT_TRUE(equal_all(target, source));
    Tensor wide = slice(zeros({70, 180}, TensorOptions(type)), 1, 0, 180, 2);
    wide.copy_(source);
    EXPECT_TRUE(equal_all(wide, source));
    wide.copy_(source[0]);
    EXPECT_TRUE(equal_all(wide[69], source[0]));
  }
  const Tensor big = arange(600 * 700, TensorOptions(kInt)).view({600, 700}), turned = big.t().contiguous();
  for (int64_t i = 0; i < 600; i += 13)
    for (int64_t j = 0; j < 700; j += 17) ASSERT_EQ(turned.const_data_ptr<int32_t>()[j * 600 + i], i * 700 + j);
}

TEST(Copy, ToAndCloneKeepWhatTheyCan) {
  const Tensor x = ones({2, 3});
  EXPECT_TRUE(x.to(kFloat).is_same(x));
  EXPECT_FALSE(x.to(kFloat, false, true).is_same(x));
  EXPECT_TRUE(x.to(TensorOptions(kFloat).device(kCPU)).is_same(x));
  EXPECT_EQ(x.t().clone().strides(), (IntArrayRef{1, 3}));
  EXPECT_EQ(x.t().to(kDouble).strides(), (IntArrayRef{1, 3}));
  EXPECT_EQ(x.t().clone(MemoryFormat::Contiguous).strides(), (IntArrayRef{2, 1}));
  EXPECT_EQ(x.t().contiguous().strides(), (IntArrayRef{2, 1}));
  EXPECT_TRUE(x.contiguous().is_same(x));
  EXPECT_EQ(x.expand({4, 2, 3}).clone().strides(), (IntArrayRef{6, 3, 1}));
  EXPECT_EQ(ones({2, 3, 4, 5}).contiguous(MemoryFormat::ChannelsLast).strides(), (IntArrayRef{60, 1, 15, 3}));
  EXPECT_EQ(error_of([&] { x.contiguous(MemoryFormat::ChannelsLast); }).rfind("required rank 4 tensor to use channels_last format", 0), 0u);
}

TEST(Copy, Refusals) {
  EXPECT_EQ(error_of([] { ones({3}).copy_(ones({2})); }),
            "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0");
  EXPECT_EQ(error_of([] { ones({3}).copy_(ones({2, 3})); }), "output with shape [3] doesn't match the broadcast shape [2, 3]");
  EXPECT_EQ(error_of([] { ones({1}).expand({3}).copy_(ones({3})); }),
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the "
            "tensor before performing the operation.");
  const Tensor meta = empty({3}, TensorOptions(kFloat).device(kMeta));
  EXPECT_EQ(error_of([&] { ones({3}).copy_(meta); }), "Cannot copy out of meta tensor; no data!");
  EXPECT_EQ(error_of([&] { meta.to(Device(kCPU), kFloat); }), "Cannot copy out of meta tensor; no data!");
  EXPECT_EQ(error_of([] { ones({2, 2}).item(); }), "a Tensor with 4 elements cannot be converted to Scalar");
  EXPECT_EQ(error_of([] { is_nonzero(ones({2})); }), "Boolean value of Tensor with more than one value is ambiguous");
  EXPECT_EQ(error_of([] { is_nonzero(ones({0})); }), "Boolean value of Tensor with no values is ambiguous");
  EXPECT_EQ(error_of([] { ones({2}, kByte).fill_(300); }), "value cannot be converted to type uint8_t without overflow");
  EXPECT_EQ(error_of([] { ones({2}).fill_(ones({2})); }), "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.");
}

TEST(Copy, Fill) {
  Tensor x = zeros({4, 6});
  slice(x, 1, 0, 6, 2).fill_(3);
  EXPECT_EQ(x[3][4].item<double>(), 3);
  EXPECT_EQ(x[3][5].item<double>(), 0);
  x.t().zero_();
  EXPECT_EQ(x[3][4].item<double>(), 0);
  x.fill_(scalar_tensor(7, TensorOptions(kLong)));
  EXPECT_EQ(x[0][0].item<double>(), 7);
  EXPECT_EQ(zeros({2})._version(), 0);
  EXPECT_EQ(full({2}, 1.5)._version(), 0);
}

TEST(Creation, TypesFollowTheNumbers) {
  EXPECT_EQ(full({2}, true).scalar_type(), kBool);
  EXPECT_EQ(full({2}, 3).scalar_type(), kLong);
  EXPECT_EQ(full({2}, 1.5).scalar_type(), kFloat);
  EXPECT_EQ(full({2}, Scalar(std::complex<double>(0, 1))).scalar_type(), kComplexFloat);
  EXPECT_EQ(arange(5).scalar_type(), kLong);
  EXPECT_EQ(arange(5.0).scalar_type(), kFloat);
  EXPECT_EQ(arange(1, 4, 0.5).scalar_type(), kFloat);
  EXPECT_EQ(scalar_tensor(3).scalar_type(), kFloat);
  EXPECT_EQ(linspace(0, 1, 3).scalar_type(), kFloat);
  EXPECT_EQ(ones({2}, kLong).new_full({2}, 1.5).scalar_type(), kLong);
  EXPECT_EQ(full_like(ones({2}, kLong), 1.7)[0].item<int64_t>(), 1);
}

TEST(Creation, Ranges) {
  const Tensor down = arange(5, 0, -2);
  ASSERT_EQ(down.numel(), 3);
  EXPECT_EQ(down[2].item<int64_t>(), 1);
  EXPECT_EQ(arange(0, 1, 0.1).numel(), 10);
  EXPECT_EQ(arange(0, 1, 0.1)[3].item<float>(), 0.3f);
  EXPECT_EQ(arange(300, TensorOptions(kByte))[299].item<int64_t>(), 43);
  EXPECT_EQ(arange(0.5, 3, TensorOptions(kInt)).numel(), 3);
  EXPECT_EQ(error_of([] { arange(0, 5, 0); }), "step must be nonzero");
  EXPECT_EQ(error_of([] { arange(0, -5); }), "upper bound and lower bound inconsistent with step sign");
  EXPECT_EQ(error_of([] { arange(0, std::numeric_limits<double>::infinity()); }), "unsupported range: 0 -> inf");
  EXPECT_EQ(error_of([] { linspace(0, 1, -1); }), "number of steps must be non-negative");
  EXPECT_THROW(arange(5, TensorOptions(kBool)), NotImplementedError);
  const Tensor line = linspace(0, 10, 4, TensorOptions(kLong));
  EXPECT_EQ(line[3].item<int64_t>(), 10);
  EXPECT_EQ(line[1].item<int64_t>(), 3);
  EXPECT_EQ(linspace(3, 10, 1).item<double>(), 3);
  EXPECT_EQ(linspace(0, 1, 0).numel(), 0);
  EXPECT_EQ(logspace(0, 2, 3)[2].item<double>(), 100);
  EXPECT_EQ(error_of([] { empty({-1}); }), "Trying to create tensor with negative dimension -1: [-1]");
}

TEST(Creation, Matrices) {
  const Tensor m = arange(12, TensorOptions(kLong)).view({3, 4});
  EXPECT_EQ(tril(m)[0][1].item<int64_t>(), 0);
  EXPECT_EQ(tril(m)[2][2].item<int64_t>(), 10);
  EXPECT_EQ(triu(m, 1)[0][0].item<int64_t>(), 0);
  EXPECT_EQ(triu(m.t(), -1)[1][0].item<int64_t>(), 1);
  EXPECT_EQ(eye(2, 3)[1][1].item<double>(), 1);
  EXPECT_EQ(eye(3)[1][2].item<double>(), 0);
  const Tensor lower = tril_indices(3, 3, 1);
  ASSERT_EQ(lower.sizes(), (IntArrayRef{2, 8}));
  EXPECT_EQ(lower[1][4].item<int64_t>(), 2);
  EXPECT_EQ(triu_indices(2, 4, -1).sizes(), (IntArrayRef{2, 8}));
  EXPECT_EQ(error_of([] { eye(-1); }), "n must be greater or equal to 0, got -1");
}

TEST(Creation, LikeKeepsTheLayout) {
  EXPECT_EQ(empty_like(ones({2, 3, 4}).transpose(0, 2)).strides(), (IntArrayRef{1, 4, 12}));
  EXPECT_EQ(empty_like(slice(slice(ones({4, 6}), 0, 0, 4, 2), 1, 0, 6, 2).t()).strides(), (IntArrayRef{1, 3}));
  EXPECT_EQ(zeros_like(ones({3}).expand({2, 3})).strides(), (IntArrayRef{3, 1}));
  EXPECT_EQ(zeros_like(ones({2}), TensorOptions(kLong)).scalar_type(), kLong);
}

TEST(Creation, FromBlobSharesAndReleases) {
  float numbers[6] = {0, 1, 2, 3, 4, 5};
  int released = 0;
  {
    const Tensor t = from_blob(numbers, {2, 3}, [&](void* p) { released += p == numbers; });
    EXPECT_EQ(t[1][2].item<float>(), 5);
    numbers[5] = 50;
    EXPECT_EQ(t[1][2].item<float>(), 50);
    const Tensor again = t;
  }
  EXPECT_EQ(released, 1);
  const Tensor columns = from_blob(numbers, {3, 2}, {1, 3});
  EXPECT_EQ(columns[2][0].item<float>(), 2);
  EXPECT_THROW(from_blob(numbers, {-1}), Error);
}

}  // namespace
}  // namespace cresset
