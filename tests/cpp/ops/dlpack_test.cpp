// DLPack from C++: memory given out and taken in.
#include <gtest/gtest.h>

#include <cresset/cresset.h>
#include <cresset/ops/dlpack.h>

using namespace cresset;

namespace {

// Memory of another library: a matrix (2, 3) of int32 with an offset, which counts its deletions.
template <class Managed>
struct Foreign {
  int32_t data[8] = {-1, -1, 0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
  Managed managed{};
  int deleted = 0;

  Foreign() {
    managed.dl_tensor = {data, {kDLCPU, 0}, 2, {kDLInt, 32, 1}, shape, strides, 2 * sizeof(int32_t)};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* m) { ++static_cast<Foreign*>(m->manager_ctx)->deleted; };
  }
};

template <class Managed>
void takes_in_and_gives_back() {
  Foreign<Managed> foreign;
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) foreign.managed.version = {1, 0};
  {
    const Tensor t = from_dlpack(&foreign.managed);
    EXPECT_EQ(t.scalar_type(), kInt);
    EXPECT_EQ(t.sizes(), IntArrayRef({2, 3}));
    EXPECT_EQ(t[1][0].item<int>(), 3);
    t.mul_(2);
    EXPECT_EQ(foreign.data[7], 10);
    const Tensor view = t.select(0, 1);
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

std::string words(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was raised";
}

}  // namespace

TEST(DLPack, TakesInBothForms) {
  takes_in_and_gives_back<DLManagedTensor>();
  takes_in_and_gives_back<DLManagedTensorVersioned>();
}

TEST(DLPack, GivesOutMemoryThatOutlivesTheTensor) {
  DLManagedTensorVersioned* managed = nullptr;
  {
    const Tensor t = arange(6).to(kFloat).view({1, 2, 3}).transpose(1, 2);
    managed = to_dlpack_versioned(t, DLPACK_FLAG_BITMASK_IS_COPIED);
  }
  EXPECT_EQ(managed->version.major, 1U);
  EXPECT_EQ(managed->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
  const DLTensor& t = managed->dl_tensor;
  EXPECT_EQ(t.ndim, 3);
  EXPECT_EQ(t.dtype.code, kDLFloat);
  EXPECT_EQ(t.dtype.bits, 32);
  EXPECT_EQ(std::vector<int64_t>(t.shape, t.shape + 3), (std::vector<int64_t>{1, 3, 2}));
  EXPECT_EQ(std::vector<int64_t>(t.strides, t.strides + 3), (std::vector<int64_t>{1, 1, 3}));
  EXPECT_EQ(static_cast<float*>(t.data)[5], 5);
  const Tensor back = from_dlpack(managed);
  EXPECT_EQ(back.sum().item<float>(), 15);
}

TEST(DLPack, AnotherDeleterTakesThePlaceOfTheSources) {
  Foreign<DLManagedTensor> foreign;
  void* given = nullptr;
  from_dlpack(&foreign.managed, [&given](void* source) { given = source; });
  EXPECT_EQ(given, &foreign.managed);
  EXPECT_EQ(foreign.deleted, 0);
}

TEST(DLPack, WhatIsRefusedStaysTheCallers) {
  Foreign<DLManagedTensor> foreign;
  foreign.strides[0] = -3;
  EXPECT_EQ(words([&] { from_dlpack(&foreign.managed); }), "from_dlpack: negative strides are not supported. Make a copy first.");
  foreign.strides[0] = 3;
  foreign.managed.dl_tensor.dtype = {kDLInt, 24, 1};
  EXPECT_EQ(words([&] { from_dlpack(&foreign.managed); }), "from_dlpack: unsupported element type with code 0 and 24 bits.");
  foreign.managed.dl_tensor.dtype = {kDLInt, 32, 4};
  EXPECT_EQ(words([&] { from_dlpack(&foreign.managed); }), "ATen does not support lanes != 1");
  foreign.managed.dl_tensor.dtype.lanes = 1;
  foreign.managed.dl_tensor.device = {kDLCUDA, 0};
  EXPECT_EQ(words([&] { from_dlpack(&foreign.managed); }), "from_dlpack: memory of device type 2 is not supported.");
  EXPECT_EQ(foreign.deleted, 0);

  Foreign<DLManagedTensorVersioned> newer;
  newer.managed.version = {2, 3};
  EXPECT_EQ(words([&] { from_dlpack(&newer.managed); }), "from_dlpack: version 2.3 of DLPack is newer than 1.1.");
  EXPECT_EQ(newer.deleted, 0);
}

TEST(DLPack, NeitherGradientsNorMetaTensorsAreGivenOut) {
  EXPECT_THROW(to_dlpack(ones({2}, TensorOptions().requires_grad(true))), BufferError);
  EXPECT_EQ(words([] { to_dlpack(empty({2}, TensorOptions(Device(kMeta)))); }), "Cannot pack tensors on meta");
}

TEST(Storage, ATensorShowsAnotherStorage) {
  const Tensor source = arange(6), target = empty({0}, TensorOptions(kLong));
  target.set_(source.storage(), 1, {2, 2}, {2, 1});
  EXPECT_EQ(target[1][1].item<int64_t>(), 4);
  target.set_(source.storage());
  EXPECT_EQ(target.sizes(), IntArrayRef({6}));
  target.set_(source.storage(), 2, {2, 2});
  EXPECT_EQ(target[1][0].item<int64_t>(), 4);
}

TEST(PythonOperators, SaySoWithoutPython) {
  EXPECT_EQ(words([] { eye(2).to_sparse(); }),
            "'aten::to_sparse' is an operator of sparse or quantized tensors, whose kernels are Python's: it is not there in a program "
            "without Python.");
  EXPECT_THROW(ones({2}).q_scale(), NotImplementedError);
  EXPECT_THROW(ones({2}).to_mkldnn(), NotImplementedError);
}
