// Storage: a reference-counted block of memory that tensors share.
#pragma once

#include <cresset/base/intrusive_ptr.h>
#include <cresset/core/allocator.h>
#include <cresset/core/sym_int.h>

namespace cresset {

/// Counts in-place changes of the data that some tensors share.
struct CRESSET_API VersionHolder : intrusive_ptr_target {
  uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  // Concurrent writers of one tensor are a race of the caller's already, so no read-modify-write is needed.
  void bump() noexcept { version_.store(version() + 1, std::memory_order_relaxed); }
  void set_version(uint32_t v) noexcept { version_.store(v, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> version_{0};
};

/// PyTorch's handle of a counter; without one for inference tensors, which raise when they are asked for their version.
class VariableVersion {
 public:
  VariableVersion() = default;
  explicit VariableVersion(intrusive_ptr<VersionHolder> counter) : counter_(std::move(counter)) {}
  bool enabled() const { return static_cast<bool>(counter_); }
  uint32_t current_version() const {
    CRESSET_CHECK(counter_, "Inference tensors do not track version counter.");
    return counter_->version();
  }
  void bump() {
    if (counter_) counter_->bump();
  }

 private:
  friend struct TensorImpl;
  intrusive_ptr<VersionHolder> counter_;
};

/// The block. Its byte size may grow (resize_) when it has an allocator. It holds the version of its data as well.
struct CRESSET_API StorageImpl : VersionHolder {
  struct use_byte_size_t {};

  StorageImpl(use_byte_size_t, std::size_t nbytes, DataPtr data, Allocator* allocator, bool resizable)
      : data_(std::move(data)), nbytes_(nbytes), allocator_(allocator), resizable_(resizable) {}
  /// Memory from an allocator.
  StorageImpl(use_byte_size_t tag, std::size_t nbytes, Allocator* allocator, bool resizable)
      : StorageImpl(tag, nbytes, allocator->allocate(nbytes), allocator, resizable) {}
  /// Host memory straight from alloc_cpu (the quick path: no DataPtr context).
  StorageImpl(use_byte_size_t, std::size_t nbytes);
  ~StorageImpl() override;
  void release_resources() override;

  void* data() const { return data_.get(); }
  void* mutable_data() const { return data_.get(); }
  const DataPtr& data_ptr() const { return data_; }
  DataPtr& mutable_data_ptr() { return data_; }
  /// Swaps in new memory; the old one comes back.
  DataPtr set_data_ptr(DataPtr p);
  std::size_t nbytes() const { return nbytes_; }
  void set_nbytes(std::size_t n) { nbytes_ = n; }
  Device device() const { return data_.device(); }
  DeviceType device_type() const { return data_.device().type(); }
  Allocator* allocator() const { return allocator_; }
  bool resizable() const { return resizable_; }
  void set_resizable(bool r) { resizable_ = r; }
  /// Grows or shrinks to nbytes, keeping the common prefix (host memory only). Raises when not resizable.
  void resize_bytes(std::size_t nbytes);

  static void* operator new(std::size_t n);
  static void operator delete(void* p, std::size_t n) noexcept;

 private:
  DataPtr data_;
  std::size_t nbytes_;
  Allocator* allocator_;
  bool resizable_;
  bool sized_cpu_ = false;  // data_ came from alloc_cpu(nbytes at that time) and is returned with that size
  std::size_t allocated_ = 0;
  void free_sized() noexcept;
};

/// Makes the storages of a device kind's tensors, where the backend has a StorageImpl of its own. A null DataPtr asks for
/// memory from the allocator.
using StorageImplCreateHelper = intrusive_ptr<StorageImpl> (*)(StorageImpl::use_byte_size_t, SymInt nbytes, DataPtr data,
                                                               Allocator* allocator, bool resizable);
CRESSET_API void SetStorageImplCreate(DeviceType t, StorageImplCreateHelper create);
CRESSET_API StorageImplCreateHelper GetStorageImplCreate(DeviceType t);
/// A storage from the device's maker, or a plain one.
CRESSET_API intrusive_ptr<StorageImpl> make_storage_impl(StorageImpl::use_byte_size_t, SymInt nbytes, DataPtr data, Allocator* allocator,
                                                         bool resizable, std::optional<Device> device);

/// Handle of a StorageImpl.
class Storage {
 public:
  struct use_byte_size_t : StorageImpl::use_byte_size_t {};
  Storage() = default;
  Storage(intrusive_ptr<StorageImpl> impl) : impl_(std::move(impl)) {}
  Storage(use_byte_size_t, std::size_t nbytes, Allocator* allocator, bool resizable = false)
      : impl_(make_intrusive<StorageImpl>(StorageImpl::use_byte_size_t(), nbytes, allocator->allocate(nbytes), allocator, resizable)) {}
  Storage(use_byte_size_t, std::size_t nbytes, DataPtr data, Allocator* allocator = nullptr, bool resizable = false)
      : impl_(make_intrusive<StorageImpl>(StorageImpl::use_byte_size_t(), nbytes, std::move(data), allocator, resizable)) {}

  explicit operator bool() const { return static_cast<bool>(impl_); }
  void* data() const { return impl_ ? impl_->data() : nullptr; }
  void* mutable_data() const { return data(); }
  const DataPtr& data_ptr() const { return impl_->data_ptr(); }
  DataPtr& mutable_data_ptr() const { return impl_->mutable_data_ptr(); }
  DataPtr set_data_ptr(DataPtr p) const { return impl_->set_data_ptr(std::move(p)); }
  std::size_t nbytes() const { return impl_ ? impl_->nbytes() : 0; }
  void set_nbytes(std::size_t n) const { impl_->set_nbytes(n); }
  Device device() const { return impl_->device(); }
  DeviceType device_type() const { return impl_->device_type(); }
  Allocator* allocator() const { return impl_->allocator(); }
  bool resizable() const { return impl_->resizable(); }
  bool is_alias_of(const Storage& o) const { return impl_ == o.impl_; }
  uint32_t use_count() const { return impl_.use_count(); }
  bool unique() const { return impl_.unique(); }
  StorageImpl* unsafeGetStorageImpl() const { return impl_.get(); }
  const intrusive_ptr<StorageImpl>& getIntrusivePtr() const { return impl_; }

 private:
  intrusive_ptr<StorageImpl> impl_;
};

}  // namespace cresset
