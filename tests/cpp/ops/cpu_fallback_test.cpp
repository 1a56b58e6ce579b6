// cpu_fallback on a backend that can only allocate and copy: results, written arguments, lists, counts.
#include <gtest/gtest.h>

#include <cstdlib>

#include <cresset/cresset.h>

using namespace cresset;

namespace {

constexpr DeviceType kDevice = DeviceType::PrivateUse2;

struct TestAllocator final : Allocator {
  DataPtr allocate(std::size_t n) override {
    void* p = std::malloc(n ? n : 1);
    return {p, p, &std::free, Device(kDevice, 0)};
  }
};
TestAllocator test_allocator;

Tensor make_strided(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype, std::optional<Layout>, std::optional<Device>,
                    std::optional<bool>) {
  return detail::empty_strided_generic(size, stride, &test_allocator, key_set_for_device(kDevice), dtype.value_or(kFloat));
}
Tensor make(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout>, std::optional<Device>, std::optional<bool>,
            std::optional<MemoryFormat> format) {
  return detail::empty_generic(size, &test_allocator, key_set_for_device(kDevice), dtype.value_or(kFloat), format);
}
Tensor host_view(const Tensor& t) {
  return t.is_cpu() ? t : from_blob(t.data_ptr(), t.sizes(), t.strides(), TensorOptions(t.scalar_type()));
}
Tensor copy_from(const Tensor& self, const Tensor& dst, bool) {
  host_view(dst).copy_(host_view(self));
  return dst;
}

CRESSET_LIBRARY_IMPL(aten, PrivateUse2, m) {
  SetAllocator(kDevice, &test_allocator);
  m.impl("empty.memory_format", &make);
  m.impl("empty_strided", &make_strided);
  m.impl("_copy_from", &copy_from);
}
CRESSET_LIBRARY_IMPL(_, PrivateUse2, m) { m.fallback(CppFunction::makeFromBoxedFunction<&cpu_fallback>()); }

// A backend whose author forgot the three operators that the fallback needs.
CRESSET_LIBRARY_IMPL(_, PrivateUse3, m) { m.fallback(CppFunction::makeFromBoxedFunction<&cpu_fallback>()); }

const Device there{kDevice, 0};
bool same(const Tensor& on_device, const Tensor& expected) { return on_device.device() == there && on_device.to(kCPU).equal(expected); }

}  // namespace

TEST(CpuFallback, GivesTheAnswerOfTheCpuOnTheDevice) {
  const Tensor a = arange(6, kFloat).reshape({2, 3}), b = a.flip({0});
  const Tensor x = a.to(there), y = b.to(there);
  EXPECT_TRUE(same(x + y, a + b));
  EXPECT_TRUE(same(x.mm(y.t()), a.mm(b.t())));
  const auto [values, indices] = x.max(1);
  EXPECT_TRUE(same(values, std::get<0>(a.max(1))));
  EXPECT_TRUE(same(indices, std::get<1>(a.max(1))));
}

TEST(CpuFallback, WritesBackWhatTheOperatorChanges) {
  const Tensor a = arange(6, kFloat).reshape({2, 3});
  Tensor x = a.to(there);
  Tensor& same_tensor = x.mul_(3);
  EXPECT_TRUE(same_tensor.is_same(x));
  EXPECT_TRUE(same(x, a * 3));
  Tensor out = empty({0}, TensorOptions(there));
  add_out(out, x, x);
  EXPECT_TRUE(same(out, a * 6));
  Tensor column = x.select(1, 1);
  column.fill_(-1);
  EXPECT_EQ(x.to(kCPU)[1][1].item().toDouble(), -1) << "through a view";
}

TEST(CpuFallback, MovesTensorsInListsAndOptionals) {
  const Tensor a = arange(6, kFloat).reshape({2, 3}), x = a.to(there);
  EXPECT_TRUE(same(cat({x, x}, 0), cat({a, a}, 0)));
  const Tensor index = tensor({1, 0});
  const std::vector<std::optional<Tensor>> by_device{std::nullopt, index.to(there)}, by_cpu{std::nullopt, index};
  EXPECT_TRUE(same(cresset::index(x, by_device), cresset::index(a, by_cpu)));
  EXPECT_TRUE(same(layer_norm(x, {3}), layer_norm(a, {3}))) << "undefined weight and bias";
}

TEST(CpuFallback, DifferentiatesLikeTheCpu) {
  Tensor x = arange(4, kFloat).to(there).requires_grad_(true);
  (x * x).sum().backward();
  EXPECT_TRUE(same(x.grad(), arange(4, kFloat) * 2));
}

TEST(CpuFallback, CountsCallsAndBytes) {
  const Tensor x = ones({8}).to(there);
  reset_cpu_fallback_counts();
  x.exp();
  x.exp();
  int64_t calls = 0, bytes = 0;
  for (const auto& c : cpu_fallback_counts())
    if (c.op.find("exp") != std::string::npos) {
      calls += c.calls;
      bytes += c.bytes;
    }
  EXPECT_EQ(calls, 2);
  EXPECT_GE(bytes, 2 * 8 * 4);
  reset_cpu_fallback_counts();
  EXPECT_TRUE(cpu_fallback_counts().empty());
}

TEST(CpuFallback, SaysWhatTheBackendMustHave) {
  const Device unfinished{DeviceType::PrivateUse3, 0};
  for (const auto& make_tensor : {+[](Device d) { return empty({2}, TensorOptions(d)); }, +[](Device d) { return ones({2}).to(d); }}) {
    try {
      make_tensor(unfinished);
      FAIL() << "no kernel allocates on this device";
    } catch (const NotImplementedError& e) {
      EXPECT_NE(std::string(e.what()).find("cpu_fallback: a backend must register aten::empty"), std::string::npos) << e.what();
    }
  }
}
