// The rule of pointwise operators: broadcasting, layouts of results, conversions, refusals.
#include <gtest/gtest.h>

#include <cresset/ops/functions.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace cresset {
namespace {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Tensor tensor_of(std::vector<int64_t> values) {
  const Tensor t = empty({static_cast<int64_t>(values.size())}, kLong);
  std::copy(values.begin(), values.end(), t.mutable_data_ptr<int64_t>());
  return t;
}

double at(const Tensor& t, IntArrayRef index) {
  int64_t offset = t.storage_offset();
  const auto strides = t.strides();
  for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  const char* base = static_cast<const char*>(t.storage().data());
  switch (t.scalar_type()) {
    case kFloat: return reinterpret_cast<const float*>(base)[offset];
    case kDouble: return reinterpret_cast<const double*>(base)[offset];
    case kLong: return static_cast<double>(reinterpret_cast<const int64_t*>(base)[offset]);
    case kInt: return reinterpret_cast<const int32_t*>(base)[offset];
    case kShort: return reinterpret_cast<const int16_t*>(base)[offset];
    case kByte: return reinterpret_cast<const uint8_t*>(base)[offset];
    case kHalf: return static_cast<float>(reinterpret_cast<const Half*>(base)[offset]);
    case kBFloat16: return static_cast<float>(reinterpret_cast<const BFloat16*>(base)[offset]);
    default: ADD_FAILURE() << "type " << toString(t.scalar_type()); return 0;
  }
}

// at() with the index of a broadcast result.
double at_broadcast(const Tensor& t, IntArrayRef index) {
  std::vector<int64_t> own(static_cast<std::size_t>(t.dim()));
  const std::size_t lead = index.size() - own.size();
  for (std::size_t d = 0; d < own.size(); ++d) own[d] = t.sizes()[d] == 1 ? 0 : index[d + lead];
  return at(t, own);
}

template <class F>
void for_each_index(IntArrayRef sizes, const F& f) {
  std::vector<int64_t> index(sizes.size(), 0);
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  for (int64_t i = 0; i < n; ++i) {
    f(IntArrayRef(index));
    for (std::size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

// A tensor of the given sizes with a random layout: permuted, with gaps, or with repeated dimensions of size 1.
Tensor random_layout(const std::vector<int64_t>& sizes, ScalarType type, std::mt19937& random) {
  const std::size_t n = sizes.size();
  std::vector<std::size_t> order(n);
  for (std::size_t d = 0; d < n; ++d) order[d] = d;
  if (random() % 2) std::shuffle(order.begin(), order.end(), random);
  DimVector strides(n);
  int64_t next = random() % 3 == 0 ? 2 : 1;
  for (std::size_t i = n; i-- > 0;) {
    strides[order[i]] = next;
    next *= sizes[order[i]] + (random() % 4 == 0 ? 1 : 0);
  }
  const Tensor block = arange(next, TensorOptions(kLong)).remainder(23).sub(7).abs().add(1).to(type);
  return detail::alias_with_sizes_and_strides(block, sizes, strides, 0);
}

TEST(Pointwise, EveryLayoutTypeAndBroadcastGivesTheSameNumbers) {
  std::mt19937 random(1);
  const ScalarType types[] = {kFloat, kDouble, kLong, kInt, kShort, kByte, kHalf, kBFloat16};
  for (int trial = 0; trial < 600; ++trial) {
    const std::size_t ndim = random() % 5;
    std::vector<int64_t> sizes(ndim), a_sizes, b_sizes;
    for (auto& s : sizes) s = trial % 50 == 0 ? random() % 3 : 1 + random() % (ndim < 3 ? 70 : 9);
    a_sizes = b_sizes = sizes;
    for (std::size_t d = 0; d < ndim; ++d) {
      if (random() % 4 == 0) a_sizes[d] = 1;
      if (random() % 4 == 0) b_sizes[d] = 1;
    }
    for (std::size_t d = 0; d < ndim; ++d) sizes[d] = std::max(a_sizes[d], b_sizes[d]);
    for (std::size_t d = 0; d < ndim; ++d)
      if (a_sizes[d] == 0 || b_sizes[d] == 0) a_sizes[d] = b_sizes[d] = sizes[d] = 0;
    if (random() % 3 == 0 && !b_sizes.empty() && b_sizes[0] == 1) b_sizes.erase(b_sizes.begin());
    const Tensor a = random_layout(a_sizes, types[random() % 8], random), b = random_layout(b_sizes, types[random() % 8], random);
    const Tensor sum = add(a, b, 2);
    ASSERT_EQ(sum.sizes(), IntArrayRef(sizes));
    ASSERT_EQ(sum.scalar_type(), result_type(a, b));
    const Tensor out = random_layout(sizes, kDouble, random);
    add_out(const_cast<Tensor&>(out), a, b, 2);
    const Tensor less = lt(a, b);
    for_each_index(sizes, [&](IntArrayRef index) {
      const double x = at_broadcast(a, index), y = at_broadcast(b, index);
      ASSERT_EQ(at(sum, index), x + 2 * y) << "trial " << trial;
      ASSERT_EQ(at(out, index), x + 2 * y) << "trial " << trial;
      ASSERT_EQ(less.to(kLong).numel() && at(less.to(kLong), index) != 0, x < y) << "trial " << trial;
    });
    if (trial % 8) continue;
    Tensor self = random_layout(sizes, sum.scalar_type(), random).clone();
    const Tensor before = self.clone();
    self.add_(b);
    if (canCast(result_type(before, b), self.scalar_type()))
      for_each_index(sizes, [&](IntArrayRef index) { ASSERT_EQ(at(self, index), at(before, index) + at_broadcast(b, index)); });
  }
}

TEST(Pointwise, LargeResultsAreSplitOverThreads) {
  const Tensor a = arange(300001, TensorOptions(kFloat)), column = arange(601, TensorOptions(kFloat)).view({601, 1});
  const Tensor b = arange(500, TensorOptions(kFloat));
  const Tensor sum = add(a, 1), table = add(column, b), half = add(a.to(kDouble), a.to(kInt));
  for (int64_t i = 0; i < 300001; i += 997) {
    ASSERT_EQ(sum.const_data_ptr<float>()[i], static_cast<float>(i + 1));
    ASSERT_EQ(half.const_data_ptr<double>()[i], static_cast<double>(2 * i));
  }
  for (int64_t i = 0; i < 601; ++i)
    for (int64_t j = 0; j < 500; ++j) ASSERT_EQ(table.const_data_ptr<float>()[i * 500 + j], static_cast<float>(i + j));
  // Across the result: one operand runs along the other dimension.
  const Tensor square = arange(400 * 500, TensorOptions(kFloat)).view({400, 500});
  const Tensor across = add(square.t().contiguous().t(), square);
  for (int64_t i = 0; i < 400; i += 7)
    for (int64_t j = 0; j < 500; j += 3) ASSERT_EQ(at(across, {i, j}), 2.0 * static_cast<double>(i * 500 + j));
}

TEST(Pointwise, ResultsKeepTheLayoutOfDenseOperands) {
  const Tensor x = ones({2, 3, 4}), permuted = x.permute({2, 0, 1});
  EXPECT_EQ(neg(permuted).strides(), permuted.strides());
  EXPECT_EQ(add(permuted, permuted).strides(), permuted.strides());
  EXPECT_EQ(add(permuted, ones({4, 2, 3})).strides(), permuted.strides());
  EXPECT_EQ(add(ones({4, 2, 3}), permuted).strides(), (IntArrayRef{6, 3, 1}));
  const Tensor image = empty({2, 3, 4, 5}, TensorOptions(kFloat), MemoryFormat::ChannelsLast);
  EXPECT_EQ(add(image, image).strides(), image.strides());
  EXPECT_EQ(mul(image, ones({1, 3, 1, 1})).strides(), image.strides());
  EXPECT_EQ(neg(ones({3}).expand({2, 3})).strides(), (IntArrayRef{3, 1}));
  EXPECT_EQ(neg(slice(ones({4, 6}), 0, 0, 4, 2).t()).strides(), (IntArrayRef{1, 6}));
  EXPECT_EQ(eq(permuted, permuted).strides(), permuted.strides());
  EXPECT_EQ(neg(ones({0, 3})).strides(), (IntArrayRef{3, 1}));
}

TEST(Pointwise, SmallIntegersWrap) {
  const Tensor u8 = full({3}, 200, TensorOptions(kByte));
  EXPECT_EQ(add(u8, u8)[0].item<int64_t>(), 144);
  EXPECT_EQ(neg(u8)[0].item<int64_t>(), 56);
  const Tensor i8 = full({3}, 127, TensorOptions(kChar));
  EXPECT_EQ(add(i8, 1)[0].item<int64_t>(), -128);
  // Numbers wrap into the type they are promoted to.
  EXPECT_EQ(add(full({1}, 44, TensorOptions(kByte)), 300).item<int64_t>(), 88);
  EXPECT_TRUE(eq(full({1}, 44, TensorOptions(kByte)), 300).item<bool>());
  EXPECT_TRUE(eq(full({1}, 44, TensorOptions(kByte)), scalar_tensor(300, TensorOptions(kLong))).item<bool>());
  EXPECT_EQ(add(ones({1}, kInt), full({1}, 0x7fffffff, TensorOptions(kInt))).item<int64_t>(), -2147483648LL);
}

TEST(Pointwise, IntegerDivision) {
  const Tensor a = tensor_of({7, -7, 7, -7}), b = tensor_of({2, 2, -2, -2});
  const auto values = [](const Tensor& t) {
    return std::vector<int64_t>(t.const_data_ptr<int64_t>(), t.const_data_ptr<int64_t>() + t.numel());
  };
  EXPECT_EQ(values(floor_divide(a, b)), (std::vector<int64_t>{3, -4, -4, 3}));
  EXPECT_EQ(values(div(a, b, "trunc")), (std::vector<int64_t>{3, -3, -3, 3}));
  EXPECT_EQ(values(div(a, b, "floor")), (std::vector<int64_t>{3, -4, -4, 3}));
  EXPECT_EQ(values(remainder(a, b)), (std::vector<int64_t>{1, 1, -1, -1}));
  EXPECT_EQ(values(fmod(a, b)), (std::vector<int64_t>{1, -1, 1, -1}));
  EXPECT_EQ(error_of([&] { floor_divide(a, zeros_like(b)); }), "ZeroDivisionError");
  EXPECT_EQ(error_of([&] { remainder(a, 0); }), "ZeroDivisionError");
  EXPECT_EQ(error_of([&] { div(a, b, "up"); }), "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'");
  EXPECT_EQ(error_of([&] { pow(a, -1); }), "Integers to negative integer powers are not allowed.");
}

TEST(Pointwise, NanGoesThroughOrLoses) {
  const double nan = std::nan("");
  const Tensor x = full({1}, nan), one = ones({1});
  for (const Tensor& y : {maximum(x, one), maximum(one, x), minimum(x, one), minimum(one, x), clamp(x, 0, 1), relu(x), hardtanh(x)})
    EXPECT_TRUE(std::isnan(y.item<double>()));
  for (const Tensor& y : {fmax(x, one), fmax(one, x), fmin(x, one), fmin(one, x)}) EXPECT_EQ(y.item<double>(), 1);
  EXPECT_EQ(clamp(full({1}, 3.0), 2, 1).item<double>(), 1);
}

TEST(Pointwise, ShapesThatDoNotFit) {
  EXPECT_EQ(error_of([] { add(ones({2, 3}), ones({2, 4})); }),
            "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
  EXPECT_EQ(error_of([] { ones({3}).add_(ones({2, 3})); }), "output with shape [3] doesn't match the broadcast shape [2, 3]");
}

TEST(Pointwise, TypesThatDoNotFit) {
  const Tensor i = ones({2}, kLong), b = ones({2}, kBool);
  EXPECT_EQ(error_of([&] { Tensor(i).add_(1.5); }), "result type Float can't be cast to the desired output type Long");
  EXPECT_EQ(error_of([&] {
              Tensor out = empty({2}, kLong);
              add_out(out, i, ones({2}));
            }),
            "result type Float can't be cast to the desired output type Long");
  EXPECT_EQ(error_of([&] { bitwise_and(ones({2}), 1); }), "\"bitwise_and_cpu\" not implemented for 'Float'");
  EXPECT_EQ(error_of([&] { lt(ones({2}, kComplexFloat), 1); }), "\"lt_cpu\" not implemented for 'ComplexFloat'");
  EXPECT_THROW(silu(i), NotImplementedError);
  EXPECT_EQ(error_of([&] { sub(b, b); }),
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.");
  EXPECT_EQ(error_of([&] { sub(ones({2}), b); }),
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead.");
  EXPECT_EQ(error_of([&] { rsub(b, 1); }),
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead.");
  EXPECT_EQ(error_of([&] { neg(b); }),
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead.");
  EXPECT_EQ(error_of([&] { add(i, i, 0.5); }), "For integral input tensors, argument alpha must not be a floating point number.");
  EXPECT_EQ(error_of([&] { add(i, i, true); }), "Boolean alpha only supported for Boolean results.");
  EXPECT_EQ(error_of([&] { clamp(i); }), "torch.clamp: At least one of 'min' or 'max' must not be None");
  EXPECT_EQ(error_of([&] { where(i, i, i); }), "where expected condition to be a boolean tensor, but got a tensor with dtype Long");
  EXPECT_EQ(error_of([&] { i.masked_fill(i, 2); }), "masked_fill_ only supports boolean masks, but got mask with dtype long int");
  EXPECT_EQ(error_of([&] { gelu(ones({2}), "fast"); }), "approximate argument must be either none or tanh.");
}

TEST(Pointwise, MemoryThatOverlaps) {
  EXPECT_EQ(error_of([] { ones({1}).expand({3}).add_(1); }),
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the "
            "tensor before performing the operation.");
  const Tensor x = ones({3});
  EXPECT_EQ(error_of([&] { slice(x, 0, 1, 3).add_(slice(x, 0, 0, 2)); }),
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please "
            "clone() the tensor before performing the operation.");
  x.add_(x);
  EXPECT_EQ(x[1].item<double>(), 2);
}

TEST(Pointwise, OutTensorsAreResizedAndConverted) {
  Tensor out = empty({0}, kDouble);
  add_out(out, ones({2, 3}), ones({3}));
  EXPECT_EQ(out.sizes(), (IntArrayRef{2, 3}));
  EXPECT_EQ(out[1][2].item<double>(), 2);
  // The result is rounded in its own type before it is stored in a wider one.
  Tensor wide = empty({1}, kInt);
  add_out(wide, full({1}, 127, TensorOptions(kChar)), ones({1}, kChar));
  EXPECT_EQ(wide.item<int64_t>(), -128);
}

TEST(Pointwise, MetaTensorsHaveTheShapeAndTypeOnly) {
  const Tensor m = empty({2, 1}, TensorOptions(kLong).device(kMeta)), n = empty({3}, TensorOptions(kFloat).device(kMeta));
  const Tensor sum = add(m, n);
  EXPECT_TRUE(sum.is_meta());
  EXPECT_EQ(sum.sizes(), (IntArrayRef{2, 3}));
  EXPECT_EQ(sum.scalar_type(), kFloat);
  EXPECT_EQ(add(m, 2.5).scalar_type(), kFloat);
  EXPECT_THROW(add(m, empty({4, 3}, TensorOptions(kFloat).device(kMeta))), Error);
}

TEST(Pointwise, NoLoopForAnEmptyTensor) {
  EXPECT_EQ(floor_divide(ones({0}, kLong), zeros({0}, kLong)).numel(), 0);
  EXPECT_EQ(add(ones({0, 3}), ones({1, 3})).sizes(), (IntArrayRef{0, 3}));
}

}  // namespace
}  // namespace cresset
