// dtypes, devices, key sets, scalars, storages, tensors without operators.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include <cresset/core/dispatch_types.h>
#include <cresset/core/tensor.h>

namespace cresset {
namespace {

template <class E = Error, class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

TEST(ScalarType, Promotion) {
  EXPECT_EQ(promote_types(kByte, kChar), kShort);
  EXPECT_EQ(promote_types(kByte, kBool), kByte);
  EXPECT_EQ(promote_types(kHalf, kBFloat16), kFloat);
  EXPECT_EQ(promote_types(kLong, kHalf), kHalf);
  EXPECT_EQ(promote_types(kComplexFloat, kDouble), kComplexDouble);
  EXPECT_EQ(promote_types(kComplexFloat, kLong), kComplexFloat);
  EXPECT_FALSE(canCast(kFloat, kLong));
  EXPECT_FALSE(canCast(kLong, kBool));
  EXPECT_TRUE(canCast(kDouble, kHalf));
  EXPECT_THROW(set_default_dtype(kLong), TypeError);
  EXPECT_EQ(
      error_of<NotImplementedError>([] { CRESSET_DISPATCH(kBool, "sum_cpu", CRESSET_FLOATING_TYPES, [&] { return sizeof(scalar_t); }); }),
      "\"sum_cpu\" not implemented for 'Bool'");
}

TEST(Device, NamesAreRegistered) {
  EXPECT_EQ(Device("meta").type(), kMeta);
  EXPECT_EQ(Device("cpu:1").index(), 1);
  EXPECT_NE(error_of([] { Device("gpu"); }).find("Expected one of cpu, cuda, ipu, xpu"), std::string::npos);
  EXPECT_NE(error_of([] { Device("cpu:x"); }).find("Invalid device string: 'cpu:x'"), std::string::npos);
  EXPECT_NE(error_of([] { Device(""); }).find("must not be empty"), std::string::npos);
  const DeviceType t = register_device_type("testchip");
  EXPECT_EQ(register_device_type("testchip"), t);
  EXPECT_EQ(Device("testchip:2").str(), "testchip:2");
  EXPECT_EQ(parseDispatchKey("AutogradTestChip"), autogradKey(t));
  EXPECT_NE(error_of([] { register_device_type("cpu"); }).find("already belongs to another device"), std::string::npos);
  EXPECT_NE(error_of([] { register_device_type("2x"); }).find("not beginning with a digit"), std::string::npos);
  rename_privateuse1_backend("renamed");
  rename_privateuse1_backend("renamed");
  EXPECT_EQ(Device("privateuseone").type(), Device("renamed").type());
  EXPECT_NE(error_of([] { rename_privateuse1_backend("other"); }).find("has already been set"), std::string::npos);
}

TEST(TensorOptions, DeviceIndexMeansCuda) {
  EXPECT_EQ(TensorOptions().device_index(3).device(), Device(kCUDA, 3));
  EXPECT_EQ(device_index(1).dtype(kInt).device(), Device(kCUDA, 1));
}

TEST(DispatchKeySet, UnionsAndPriorities) {
  const DispatchKeySet cpu = key_set_for_device(kCPU);
  EXPECT_EQ(toString(cpu), "DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)");
  EXPECT_EQ(cpu.highestPriorityTypeId(), DispatchKey::AutocastCPU);
  EXPECT_EQ((cpu - autocast_dispatch_keyset).highestPriorityTypeId(), DispatchKey::AutogradCPU);
  EXPECT_EQ((cpu & after_autograd_keyset).highestPriorityTypeId(), DispatchKey::ADInplaceOrView);
  EXPECT_EQ((cpu & after_ADInplaceOrView_keyset).highestPriorityTypeId(), DispatchKey::CPU);
  const DispatchKeySet both = cpu | key_set_for_device(kPrivateUse1);
  EXPECT_EQ((both & after_ADInplaceOrView_keyset).highestPriorityTypeId(), DispatchKey::PrivateUse1);
  EXPECT_FALSE(cpu.has(DispatchKey::Meta));
  EXPECT_EQ(DispatchKeySet().highestPriorityTypeId(), DispatchKey::Undefined);
  for (int i = 1; i < static_cast<int>(DispatchKey::NumKeys); ++i) {
    const auto k = static_cast<DispatchKey>(i);
    EXPECT_EQ(parseDispatchKey(toString(k)), k);
  }
  EXPECT_NE(error_of([] { parseDispatchKey("Nothing"); }).find("could not parse dispatch key: Nothing"), std::string::npos);
}

TEST(ScalarType, StoredTypes) {
  EXPECT_EQ(element_size(kFloat8_e5m2), 1u);
  EXPECT_EQ(element_size(kComplexHalf), 4u);
  EXPECT_EQ(std::string(dtype_name(kUInt32)), "uint32");
  EXPECT_EQ(dtype_from_name("float8_e8m0fnu"), kFloat8_e8m0fnu);
  EXPECT_EQ(dtype_from_name("undefined"), std::nullopt);
  EXPECT_EQ(dtype_from_numpy("u8"), kUInt64);
  EXPECT_EQ(dtype_from_numpy("f1"), std::nullopt);
  EXPECT_TRUE(isIntegralType(kUInt16) && !isSignedType(kUInt16) && isBarebonesUnsignedType(kUInt16) && !isBarebonesUnsignedType(kByte));
  EXPECT_TRUE(isFloatingType(kFloat8_e4m3fn) && isFloat8Type(kFloat8_e4m3fn) && !isFloat8Type(kHalf));
  EXPECT_EQ(promote_types(kUInt16, kHalf), kHalf);
  EXPECT_EQ(error_of([] { promote_types(kUInt16, kInt); }),
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote UInt16 and Int");
  EXPECT_EQ(error_of([] { promote_types(kFloat, kFloat8_e5m2); }),
            "Promotion for Float8 Types is not supported, attempted to promote Float and Float8_e5m2");
}

TEST(Scalar, ChecksRange) {
  EXPECT_EQ(Scalar(300).to<int64_t>(), 300);
  EXPECT_EQ(error_of([] { Scalar(300).to<uint8_t>(); }), "value cannot be converted to type uint8_t without overflow");
  EXPECT_EQ(error_of([] { Scalar(1e300).to<float>(); }), "value cannot be converted to type float without overflow");
  EXPECT_EQ(error_of([] { Scalar(std::complex<double>(1, 2)).to<double>(); }), "value cannot be converted to type double without overflow");
  EXPECT_TRUE(std::isinf(Scalar(INFINITY).to<float>()));
  EXPECT_EQ(to_string(Scalar(1.0)), "1.0");
  EXPECT_EQ(to_string(Scalar(true)), "True");
  EXPECT_EQ(to_string(Scalar(std::complex<double>(1, -2))), "(1.0-2.0j)");
}

TEST(Scalar, HoldsUnsignedNumbersBeyondInt64) {
  constexpr uint64_t kLarge = uint64_t{1} << 63;
  const Scalar large(kLarge);
  EXPECT_TRUE(large.isUnsigned() && large.isIntegral(false));
  EXPECT_EQ(large.type(), kUInt64);
  EXPECT_EQ(large.to<uint64_t>(), kLarge);
  EXPECT_EQ(large.to<double>(), 0x1p63);
  EXPECT_EQ(to_string(large), "9223372036854775808");
  EXPECT_EQ(error_of([&] { large.to<int64_t>(); }), "value cannot be converted to type int64_t without overflow");
  EXPECT_FALSE(Scalar(static_cast<int64_t>(kLarge)) == large);
  EXPECT_FALSE(Scalar(uint64_t{5}).isUnsigned());
  EXPECT_EQ(Scalar(-1).to<uint64_t>(), ~uint64_t{0});
  EXPECT_EQ(error_of([] { Scalar(-1.5).to<uint64_t>(); }), "value cannot be converted to type uint64_t without overflow");
}

TEST(Tensor, LayoutFacts) {
  const Tensor t = detail::empty_strided_cpu({2, 3, 4, 5}, {60, 1, 15, 3}, kFloat);
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_TRUE(t.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(t.suggest_memory_format(), MemoryFormat::ChannelsLast);
  EXPECT_TRUE(t.is_non_overlapping_and_dense());
  EXPECT_FALSE(detail::empty_strided_cpu({2, 3}, {0, 1}, kFloat).is_non_overlapping_and_dense());
  EXPECT_TRUE(detail::empty_strided_cpu({1, 3}, {99, 1}, kFloat).is_contiguous());
  EXPECT_EQ(t.size(-1), 5);
  EXPECT_EQ(error_of<IndexError>([&] { t.size(4); }), "Dimension out of range (expected to be in range of [-4, 3], but got 4)");
  EXPECT_EQ(error_of<IndexError>([] { detail::empty_cpu({}, kFloat).size(0); }), "Dimension specified as 0 but tensor has no dimensions");
  EXPECT_EQ(error_of([&] { t.data_ptr<double>(); }), "expected scalar type Double but found Float");
  EXPECT_EQ(to_string(detail::empty_meta({2}, {1}, kLong)), "int64[2] on meta");
}

TEST(Tensor, BadSizesAndTooMuchMemory) {
  EXPECT_EQ(error_of([] { detail::empty_cpu({2, -1}, kFloat); }), "Trying to create tensor with negative dimension -1: [2, -1]");
  EXPECT_NE(error_of([] { detail::empty_cpu({int64_t{1} << 40, int64_t{1} << 40}, kFloat); }).find("Storage size calculation overflowed"),
            std::string::npos);
  EXPECT_NE(error_of<OutOfMemoryError>([] { detail::empty_cpu({int64_t{1} << 55}, kFloat); }).find("you tried to allocate"),
            std::string::npos);
}

TEST(Tensor, UndefinedAndCounts) {
  Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(none.use_count(), 0u);
  const Tensor a = detail::empty_cpu({2}, kFloat);
  const Tensor b = a;
  EXPECT_EQ(a.use_count(), 2u);
  EXPECT_TRUE(a.is_same(b));
  EXPECT_FALSE(to_string(none).empty());
}

TEST(Tensor, VersionsAreSharedByViewsOnly) {
  const Tensor base = detail::empty_cpu({4}, kFloat);
  const Tensor view = detail::alias_with_sizes_and_strides(base, {2}, {2}, 1);
  view.unsafeGetTensorImpl()->bump_version();
  EXPECT_EQ(base._version(), 1);
  const auto apart = base.unsafeGetTensorImpl()->shallow_copy_and_detach(false);
  apart->bump_version();
  EXPECT_EQ(base._version(), 1);
  const auto together = base.unsafeGetTensorImpl()->shallow_copy_and_detach(true);
  together->bump_version();
  EXPECT_EQ(view._version(), 2);
  VariableVersion counter = view.unsafeGetTensorImpl()->version_counter();
  counter.bump();
  EXPECT_TRUE(counter.enabled());
  EXPECT_EQ(counter.current_version(), 3u);
  EXPECT_EQ(base._version(), 3);
  EXPECT_EQ(apart->version_counter().current_version(), apart->version());
  EXPECT_NE(error_of([&] { detail::alias_with_sizes_and_strides(base, {5}, {1}, 0); }).find("out of bounds for storage of size 16"),
            std::string::npos);
}

TEST(Tensor, InferenceModeMakesInferenceTensors) {
  Tensor inside;
  {
    const InferenceMode guard;
    inside = detail::empty_cpu({2}, kFloat);
  }
  EXPECT_TRUE(inside.is_inference());
  EXPECT_FALSE(inside.key_set().has(DispatchKey::AutogradCPU));
  EXPECT_NE(error_of([&] { inside._version(); }).find("Inference tensors do not track version counter"), std::string::npos);
  const VariableVersion none = inside.unsafeGetTensorImpl()->version_counter();
  EXPECT_FALSE(none.enabled());
  EXPECT_NE(error_of([&] { none.current_version(); }).find("Inference tensors do not track version counter"), std::string::npos);
  EXPECT_NE(
      error_of([&] { inside.unsafeGetTensorImpl()->bump_version(); }).find("Inplace update to inference tensor outside InferenceMode"),
      std::string::npos);
  EXPECT_TRUE(GradMode::is_enabled());
}

TEST(Opaque, HasSizesButNoStorage) {
  using Impl = OpaqueTensorImpl<std::shared_ptr<int>>;
  const Tensor t(
      make_intrusive<Impl>(key_set_for_device(kPrivateUse1), kFloat, Device(kPrivateUse1, 0), std::make_shared<int>(5), IntArrayRef{2, 3}));
  EXPECT_EQ(t.numel(), 6);
  EXPECT_FALSE(t.has_storage());
  EXPECT_NE(error_of([&] { t.strides(); }).find("opaque tensors do not have strides"), std::string::npos);
  EXPECT_THROW(t.storage(), NotImplementedError);
  const auto copy = t.unsafeGetTensorImpl()->shallow_copy_and_detach(true);
  EXPECT_EQ(*static_cast<Impl*>(copy.get())->opaque_handle(), 5);
}

int64_t elements_of(const TensorBase& t) { return t.numel(); }
static_assert(std::is_convertible_v<const Tensor&, const TensorBase&> && !std::is_convertible_v<const TensorBase&, Tensor>);
static_assert(std::is_constructible_v<Tensor, const TensorBase&> && sizeof(TensorBase) == sizeof(Tensor));
static_assert(std::is_nothrow_move_constructible_v<Tensor> && std::is_nothrow_move_assignable_v<Tensor>);

TEST(Tensor, is_same_size_asks_for_sizes_only) {
  const Tensor x = detail::empty_cpu({2, 3}, kFloat);
  EXPECT_TRUE(x.is_same_size(detail::empty_cpu({2, 3}, kLong)));
  EXPECT_FALSE(x.is_same_size(detail::empty_cpu({3, 2}, kFloat)));
  EXPECT_FALSE(x.is_same_size(detail::empty_cpu({1, 2, 3}, kFloat)));
}

TEST(TensorBase, IsTheHandleWithoutOperators) {
  Tensor t = detail::empty_cpu({2, 3}, kFloat);
  EXPECT_EQ(elements_of(t), 6);
  TensorBase base = t;
  EXPECT_TRUE(base.is_same(t) && t.is_same(base) && t.is_alias_of(base));
  EXPECT_EQ(t.use_count(), 2);
  const Tensor back(base);
  EXPECT_TRUE(back.is_same(t));
  EXPECT_EQ(back.sizes(), base.sizes());
  EXPECT_EQ(base.size(-1), 3);
  EXPECT_EQ(base.data_ptr<float>(), t.data_ptr<float>());
  EXPECT_EQ(to_string(base), "float32[2, 3]");
  EXPECT_EQ(base.toString(), "CPUFloatType");
  EXPECT_FALSE(base.requires_grad());
  const Tensor moved(std::move(base));
  EXPECT_FALSE(base.defined());
  EXPECT_EQ(t.use_count(), 3);
  t = {};
  EXPECT_FALSE(t.defined());
  t = TensorBase(moved);
  EXPECT_TRUE(t.is_same(moved));
  EXPECT_FALSE(TensorBase().defined());
}

TEST(TensorBase, HasTheFewOperatorsThatCodeWithoutOperatorsNeeds) {
  const TensorBase t = detail::empty_strided_cpu({2, 3}, {1, 2}, kFloat);
  t.fill_(3);
  const TensorBase rows = t.contiguous();
  EXPECT_EQ(rows.strides(), (IntArrayRef{3, 1}));
  EXPECT_EQ(rows.data_ptr<float>()[5], 3);
  EXPECT_EQ(t.to(TensorOptions(kLong)).data_ptr<int64_t>()[0], 3);
  EXPECT_EQ(t.zero_().data_ptr<float>()[5], 0);
  EXPECT_TRUE(t.requires_grad_().requires_grad() && t.is_leaf());
  EXPECT_FALSE(t.variable_data().requires_grad());
}

TEST(Storage, ResizesOnlyWhenItMay) {
  Storage s(make_intrusive<StorageImpl>(StorageImpl::use_byte_size_t(), 16));
  std::memset(s.mutable_data(), 7, 16);
  s.unsafeGetStorageImpl()->resize_bytes(4096);
  EXPECT_EQ(static_cast<char*>(s.data())[15], 7);
  char buffer[8];
  const Storage fixed(Storage::use_byte_size_t(), 8, DataPtr(buffer, kCPU));
  EXPECT_EQ(error_of([&] { fixed.unsafeGetStorageImpl()->resize_bytes(16); }), "Trying to resize storage that is not resizable");
}

// Sources for PyTorch before 2.3 override the const form, newer ones the other.
struct ConstForm final : Allocator {
  DataPtr allocate(std::size_t) const override { return {nullptr, Device(DeviceType::PrivateUse1, 0)}; }
};
struct NewForm final : Allocator {
  DataPtr allocate(std::size_t) override { return {nullptr, Device(DeviceType::PrivateUse1, 0)}; }
};
struct NoForm final : Allocator {};

TEST(Allocator, AllocatesInEitherForm) {
  ConstForm older;
  NewForm newer;
  NoForm none;
  for (Allocator* a : {static_cast<Allocator*>(&older), static_cast<Allocator*>(&newer)}) EXPECT_FALSE(a->allocate(4).device().is_cpu());
  EXPECT_EQ(
      error_of([&] { static_cast<Allocator&>(none).allocate(4); }),
      "Allocator: an allocator that overrides allocate(size_t) const was required, which this one does not, or that is asked through a "
      "pointer that is not const.");
}

}  // namespace
}  // namespace cresset
