// TensorImpl: what a tensor is: a view (sizes, strides, offset) of a storage, its type, its keys and its autograd part.
#pragma once

#include <atomic>
#include <memory>

#include <cresset/base/intrusive_ptr.h>
#include <cresset/base/small_vector.h>
#include <cresset/core/dispatch_key_set.h>
#include <cresset/core/layout.h>
#include <cresset/core/scalar_type.h>
#include <cresset/core/storage.h>

namespace cresset {

class Tensor;

/// The autograd part of a tensor as the core sees it; the real one is autograd's AutogradMeta.
struct CRESSET_API AutogradMetaInterface {
  virtual ~AutogradMetaInterface() = default;
};

/// Data a backend attaches to its tensors; copied by shallow copies.
struct CRESSET_API BackendMeta : intrusive_ptr_target {
  virtual intrusive_ptr<BackendMeta> clone(const intrusive_ptr<BackendMeta>& self) const { return self; }
};

/// What the Python layer installs so that a tensor can own its Python object.
struct PyObjectHooks {
  void (*release)(void* pyobject) = nullptr;
};
CRESSET_API extern PyObjectHooks pyobject_hooks;

struct CRESSET_API TensorImpl : intrusive_ptr_target {
  /// A tensor of sizes {0} on a storage; the keys say backend and autograd.
  TensorImpl(Storage&& storage, DispatchKeySet key_set, TypeMeta data_type);
  /// A tensor without storage (undefined data, meta-like or opaque).
  TensorImpl(DispatchKeySet key_set, TypeMeta data_type, std::optional<Device> device);
  TensorImpl(Storage&& storage, DispatchKey key, TypeMeta data_type) : TensorImpl(std::move(storage), key_set_of_backend(key), data_type) {}
  /// A view with everything given; used by the view operators.
  TensorImpl(const Storage& storage, DispatchKeySet key_set, TypeMeta data_type, IntArrayRef sizes, IntArrayRef strides, int64_t offset);
  ~TensorImpl() override;
  TensorImpl(const TensorImpl&) = delete;
  void release_resources() override;

  IntArrayRef sizes() const { return CRESSET_UNLIKELY(custom_) ? sizes_custom() : IntArrayRef(sizes_); }
  IntArrayRef strides() const { return CRESSET_UNLIKELY(custom_) ? strides_custom() : IntArrayRef(strides_); }
  int64_t dim() const { return static_cast<int64_t>(sizes().size()); }
  int64_t numel() const { return CRESSET_UNLIKELY(custom_) ? numel_custom() : numel_; }
  int64_t storage_offset() const { return offset_; }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    if (CRESSET_UNLIKELY(custom_)) return is_contiguous_custom(format);
    return format == MemoryFormat::Contiguous ? contiguous_ : has_strides_of(format);
  }
  /// Does every element have its own place, without holes?
  bool is_non_overlapping_and_dense() const;
  TypeMeta dtype() const { return dtype_; }
  ScalarType scalar_type() const { return dtype_; }
  Device device() const { return device_; }
  DeviceType device_type() const { return device_.type(); }
  bool is_cpu() const { return device_.is_cpu(); }
  bool is_cuda() const { return device_.is_cuda(); }
  bool is_meta() const { return device_.is_meta(); }
  bool is_privateuseone() const { return device_.is_privateuseone(); }
  virtual Layout layout() const { return kStrided; }
  DispatchKeySet key_set() const { return key_set_; }
  std::size_t itemsize() const { return element_size(dtype_); }

  virtual bool has_storage() const { return static_cast<bool>(storage_); }
  /// The storage; raises when the tensor has none.
  virtual const Storage& storage() const;
  const Storage& unsafe_storage() const { return storage_; }
  /// Address of the first element, null for empty or storage-less tensors.
  void* data() const {
    if (CRESSET_UNLIKELY(!storage_)) return data_without_storage();
    char* base = static_cast<char*>(storage_.unsafeGetStorageImpl()->data());
    return base ? base + offset_ * static_cast<int64_t>(element_size(dtype_)) : nullptr;
  }

  void set_sizes_contiguous(IntArrayRef sizes);
  /// Sizes and strides together; both of one length.
  void set_sizes_and_strides(IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset = std::nullopt);
  void set_storage_offset(int64_t offset) { offset_ = offset; }
  /// The same sizes with strides of a memory format.
  void empty_tensor_restride(MemoryFormat format) { set_sizes_and_strides(sizes(), strides_for(sizes(), format)); }
  /// Other memory, same sizes; the version counter of this tensor is kept.
  void set_storage_keep_dtype(Storage storage);
  void set_storage_and_dtype(Storage storage, TypeMeta type);
  void set_key_set(DispatchKeySet ks) { key_set_ = ks; }
  /// Removes the autograd and ADInplaceOrView keys (inference tensors).
  void remove_autograd_key() { key_set_ = key_set_ - autograd_dispatch_keyset_with_ADInplaceOrView; }

  uint32_t version() const;
  void bump_version();
  /// RuntimeError for an inference tensor outside of inference mode: it is not written. Asked before a write. One with a counter of its
  /// own, which was detached there, may be.
  void check_write() const {
    if (inference_ && !version_) [[unlikely]]
      check_inference_mode();
  }
  VariableVersion version_counter() const;
  void set_version_counter(const VariableVersion& counter);
  /// Makes this tensor count with `other` from now on.
  void share_version_with(const TensorImpl& other);
  /// Gives this tensor a counter of its own, starting at `start`.
  void new_version_counter(uint32_t start = 0);
  bool is_inference() const { return inference_; }
  void set_inference(bool v) { inference_ = v; }

  bool is_wrapped_number() const { return wrapped_number_; }
  void set_wrapped_number(bool v) { wrapped_number_ = v; }

  AutogradMetaInterface* autograd_meta() const { return autograd_meta_.get(); }
  void set_autograd_meta(std::unique_ptr<AutogradMetaInterface> m) { autograd_meta_ = std::move(m); }

  BackendMeta* backend_meta() const { return backend_meta_.get(); }
  const intrusive_ptr<BackendMeta>& backend_meta_ptr() const { return backend_meta_; }
  BackendMeta* get_backend_meta() const { return backend_meta(); }
  const intrusive_ptr<BackendMeta>& get_backend_meta_intrusive_ptr() const { return backend_meta_; }
  void set_backend_meta(intrusive_ptr<BackendMeta> m) { backend_meta_ = std::move(m); }

  /// A new impl on the same storage without autograd part. share_version: does it count changes together with this one?
  virtual intrusive_ptr<TensorImpl> shallow_copy_and_detach(bool share_version) const;
  /// PyTorch's form: the copy counts with `counter`. Sizes of copies may always be changed.
  intrusive_ptr<TensorImpl> shallow_copy_and_detach(const VariableVersion& counter, bool allow_tensor_metadata_change) const;
  /// Takes over storage, sizes, type and keys of another impl (set_data).
  virtual void shallow_copy_from(const intrusive_ptr<TensorImpl>& other);
  virtual const char* tensorimpl_type_name() const { return "TensorImpl"; }

  /// Python object of this tensor (borrowed unless owned), managed by the Python layer.
  void* pyobject() const { return pyobject_.load(std::memory_order_acquire); }
  void set_pyobject(void* p, bool owned) {
    pyobject_.store(p, std::memory_order_release);
    owns_pyobject_ = owned;
  }
  bool owns_pyobject() const { return owns_pyobject_; }

  static void* operator new(std::size_t n);
  static void operator delete(void* p, std::size_t n) noexcept;

 protected:
  virtual IntArrayRef sizes_custom() const { return sizes_; }
  virtual IntArrayRef strides_custom() const { return strides_; }
  virtual int64_t numel_custom() const { return numel_; }
  virtual bool is_contiguous_custom(MemoryFormat format) const {
    return format == MemoryFormat::Contiguous ? contiguous_ : has_strides_of(format);
  }
  virtual void* data_without_storage() const { return nullptr; }
  /// Routes sizes, strides, numel and is_contiguous through the virtual functions above.
  void set_custom_sizes_strides(bool v) { custom_ = v; }
  bool has_strides_of(MemoryFormat format) const;
  static void check_inference_mode();
  /// The version of what shallow_copy_and_detach makes of this tensor.
  void set_version_of_copy(TensorImpl& copy, bool share_version) const;
  void refresh_contiguous();
  void copy_metadata_from(const TensorImpl& other);

  Storage storage_;
  std::unique_ptr<AutogradMetaInterface> autograd_meta_;
  intrusive_ptr<VersionHolder> version_;  // null: the storage's own counter
  intrusive_ptr<BackendMeta> backend_meta_;
  std::atomic<void*> pyobject_{nullptr};
  DimVector sizes_{0};
  DimVector strides_{1};
  int64_t offset_ = 0;
  int64_t numel_ = 0;
  DispatchKeySet key_set_;
  ScalarType dtype_;
  Device device_;
  bool contiguous_ = true;
  bool custom_ = false;
  bool wrapped_number_ = false;
  bool inference_ = false;
  bool owns_pyobject_ = false;
};

/// A tensor whose data is a handle of the backend's own instead of a storage; strides and data pointers are refused.
template <class OpaqueHandle>
struct OpaqueTensorImpl : TensorImpl {
  OpaqueTensorImpl(DispatchKeySet key_set, TypeMeta data_type, Device device, OpaqueHandle handle, IntArrayRef sizes,
                   bool is_non_overlapping_and_dense = true)
      : TensorImpl(key_set, data_type, device), handle_(std::move(handle)), dense_(is_non_overlapping_and_dense) {
    set_sizes_contiguous(sizes);
    set_custom_sizes_strides(true);
  }
  void release_resources() override {
    TensorImpl::release_resources();
    handle_ = {};
  }
  bool has_storage() const override { return false; }
  const OpaqueHandle& opaque_handle() const { return handle_; }
  OpaqueHandle& unsafe_opaque_handle() { return handle_; }
  intrusive_ptr<TensorImpl> shallow_copy_and_detach(bool share_version) const override {
    auto r = make_intrusive<OpaqueTensorImpl>(key_set(), dtype(), device(), handle_, sizes(), dense_);
    if (share_version) r->share_version_with(*this);
    return r;
  }
  void shallow_copy_from(const intrusive_ptr<TensorImpl>& other) override {
    auto* o = dynamic_cast<OpaqueTensorImpl*>(other.get());
    CRESSET_CHECK(o, "set_data: a tensor of type ", tensorimpl_type_name(), " was required; a ", other->tensorimpl_type_name(),
                  " was given.");
    copy_metadata_from(*o);
    handle_ = o->handle_;
  }
  const char* tensorimpl_type_name() const override { return "OpaqueTensorImpl"; }

 protected:
  IntArrayRef strides_custom() const override { CRESSET_THROW(Error, "opaque tensors do not have strides"); }
  bool is_contiguous_custom(MemoryFormat) const override { return dense_; }

 private:
  OpaqueHandle handle_;
  bool dense_;
};

/// The undefined tensor: one object for the process, outside of reference counting.
struct CRESSET_API UndefinedTensorImpl final : TensorImpl {
  static TensorImpl* singleton() { return &instance_; }

 private:
  UndefinedTensorImpl();
  static UndefinedTensorImpl instance_;
};

}  // namespace cresset
