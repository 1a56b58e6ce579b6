// TensorBase: the handle of a tensor without the operators, for what stands below them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <cresset/core/generator.h>
#include <cresset/core/grad_mode.h>
#include <cresset/core/scalar.h>
#include <cresset/core/sym_int.h>
#include <cresset/core/tensor_accessor.h>
#include <cresset/core/tensor_impl.h>
#include <cresset/core/tensor_options.h>

namespace cresset {

class Tensor;
using TensorList = ArrayRef<Tensor>;
using OptionalTensorList = ArrayRef<std::optional<Tensor>>;

namespace autograd {
struct Node;
}

/// A reference-counted handle of a TensorImpl with what a tensor is (sizes, type, device, memory, place in autograd) and without
/// the operators, which Tensor adds; a default-made one is undefined. Every Tensor is one; Tensor(base) is the way back.
class CRESSET_API TensorBase {
 public:
  TensorBase() noexcept : impl_(UndefinedTensorImpl::singleton()) {}
  explicit TensorBase(intrusive_ptr<TensorImpl> impl) noexcept : impl_(impl ? impl.release() : UndefinedTensorImpl::singleton()) {}
  TensorBase(const TensorBase& o) noexcept : impl_(o.impl_) { retain(); }
  TensorBase(TensorBase&& o) noexcept : impl_(std::exchange(o.impl_, UndefinedTensorImpl::singleton())) {}
  TensorBase& operator=(const TensorBase& o) & noexcept {
    TensorBase copy(o);
    std::swap(impl_, copy.impl_);
    return *this;
  }
  TensorBase& operator=(TensorBase&& o) & noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~TensorBase() { drop(); }

  bool defined() const noexcept { return impl_ != UndefinedTensorImpl::singleton(); }
  void reset() noexcept { *this = TensorBase(); }
  bool is_same(const TensorBase& o) const noexcept { return impl_ == o.impl_; }
  bool is_alias_of(const TensorBase& o) const {
    return impl_->unsafe_storage() && impl_->unsafe_storage().is_alias_of(o.impl_->unsafe_storage());
  }
  uint32_t use_count() const noexcept { return defined() ? impl_->use_count() : 0; }
  TensorImpl* unsafeGetTensorImpl() const noexcept { return impl_; }
  TensorImpl* impl() const noexcept { return impl_; }
  intrusive_ptr<TensorImpl> getIntrusivePtr() const {
    return defined() ? intrusive_ptr<TensorImpl>::reclaim_copy(impl_) : intrusive_ptr<TensorImpl>();
  }
  /// Gives the reference up to the caller (null for an undefined tensor).
  TensorImpl* unsafeReleaseTensorImpl() noexcept {
    TensorImpl* p = std::exchange(impl_, UndefinedTensorImpl::singleton());
    return p == UndefinedTensorImpl::singleton() ? nullptr : p;
  }
  intrusive_ptr<TensorImpl> unsafeReleaseIntrusivePtr() noexcept { return intrusive_ptr<TensorImpl>::reclaim(unsafeReleaseTensorImpl()); }
  static TensorBase wrap_tensor_impl(intrusive_ptr<TensorImpl> p) { return TensorBase(std::move(p)); }

  int64_t dim() const { return impl_->dim(); }
  int64_t ndimension() const { return dim(); }
  IntArrayRef sizes() const { return impl_->sizes(); }
  IntArrayRef strides() const { return impl_->strides(); }
  /// Size of dimension d (negative counts from the end); IndexError outside.
  int64_t size(int64_t d) const { return impl_->sizes()[wrap_dim(d)]; }
  int64_t stride(int64_t d) const { return impl_->strides()[wrap_dim(d)]; }
  int64_t numel() const { return impl_->numel(); }
  int64_t storage_offset() const { return impl_->storage_offset(); }
  SymIntArrayRef sym_sizes() const { return sizes(); }
  SymIntArrayRef sym_strides() const { return strides(); }
  SymInt sym_numel() const { return numel(); }
  SymInt sym_storage_offset() const { return storage_offset(); }
  SymInt sym_size(int64_t d) const { return size(d); }
  SymInt sym_stride(int64_t d) const { return stride(d); }
  ScalarType scalar_type() const { return impl_->dtype(); }
  TypeMeta dtype() const { return impl_->dtype(); }
  Device device() const { return impl_->device(); }
  int64_t get_device() const { return device().is_cpu() ? -1 : device().index(); }
  Layout layout() const { return impl_->layout(); }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()).layout(layout()); }
  std::size_t itemsize() const { return impl_->itemsize(); }
  int64_t element_size() const { return static_cast<int64_t>(impl_->itemsize()); }
  std::size_t nbytes() const { return static_cast<std::size_t>(numel()) * itemsize(); }
  DispatchKeySet key_set() const { return impl_->key_set(); }
  bool is_contiguous(MemoryFormat f = MemoryFormat::Contiguous) const { return impl_->is_contiguous(f); }
  bool is_non_overlapping_and_dense() const { return impl_->is_non_overlapping_and_dense(); }
  /// ChannelsLast or ChannelsLast3d when the strides say so, otherwise Contiguous.
  MemoryFormat suggest_memory_format() const;
  bool is_cpu() const { return device().is_cpu(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_privateuseone() const { return device().is_privateuseone(); }
  bool is_xla() const { return device().is_xla(); }
  bool is_hip() const { return device().is_hip(); }
  bool is_xpu() const { return device().is_xpu(); }
  bool is_mps() const { return device().is_mps(); }
  bool is_hpu() const { return device().is_hpu(); }
  bool is_mtia() const { return device().is_mtia(); }
  bool is_maia() const { return device().is_maia(); }
  bool is_lazy() const { return device().is_lazy(); }
  bool is_vulkan() const { return device().type() == kVulkan; }
  bool is_mkldnn() const { return layout() == Layout::Mkldnn; }
  bool is_nested() const { return false; }
  bool is_complex() const { return isComplexType(scalar_type()); }
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool is_signed() const { return isSignedType(scalar_type()); }
  bool is_sparse() const { return layout() == Layout::Sparse; }
  bool is_quantized() const { return isQuantizedType(scalar_type()); }
  bool is_conj() const { return false; }
  bool is_neg() const { return false; }
  bool is_inference() const { return impl_->is_inference(); }
  bool has_storage() const { return impl_->has_storage(); }
  const Storage& storage() const { return impl_->storage(); }
  bool has_names() const { return false; }

  void* data_ptr() const { return impl_->data(); }
  const void* const_data_ptr() const { return impl_->data(); }
  void* mutable_data_ptr() const { return impl_->data(); }
  /// Typed address of the first element; raises when T is not the element type.
  template <class T>
  T* data_ptr() const {
    check_type(CppTypeToScalarType<std::remove_const_t<T>>::value);
    return static_cast<T*>(impl_->data());
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<const T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T, std::size_t N>
  TensorAccessor<T, N> accessor() const {
    CRESSET_CHECK(dim() == static_cast<int64_t>(N), "accessor: a tensor of ", N, " dimensions was required; this one has ", dim(), ".");
    return TensorAccessor<T, N>(data_ptr<T>(), sizes().data(), strides().data());
  }
  /// An accessor with sizes and strides of its own, of type index_t.
  template <class T, std::size_t N, template <class> class PtrTraits = DefaultPtrTraits, class index_t = int64_t>
  GenericPackedTensorAccessor<T, N, PtrTraits, index_t> generic_packed_accessor() const {
    CRESSET_CHECK(dim() == static_cast<int64_t>(N), "packed_accessor: a tensor of ", N, " dimensions was required; this one has ", dim(),
                  ".");
    return {data_ptr<T>(), sizes().data(), strides().data()};
  }
  template <class T, std::size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, PtrTraits> packed_accessor32() const {
    CRESSET_CHECK(numel() <= INT32_MAX, "packed_accessor32: at most 2^31 - 1 elements were required; this tensor has ", numel(),
                  ". Use packed_accessor64.");
    return generic_packed_accessor<T, N, PtrTraits, int32_t>();
  }
  template <class T, std::size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, PtrTraits> packed_accessor64() const {
    return generic_packed_accessor<T, N, PtrTraits, int64_t>();
  }
  template <class T, std::size_t N, template <class> class PtrTraits = DefaultPtrTraits, class index_t = int64_t>
  GenericPackedTensorAccessor<T, N, PtrTraits, index_t> packed_accessor() const {
    return generic_packed_accessor<T, N, PtrTraits, index_t>();
  }
  int64_t _version() const { return static_cast<int64_t>(impl_->version()); }
  /// "CPUFloatType [2, 3]".
  std::string toString() const;

  // Autograd (src/autograd/variable.cpp).
  bool requires_grad() const;
  /// Sets requires_grad of a leaf; only floating and complex tensors can.
  const TensorBase& requires_grad_(bool v = true) const;
  const TensorBase& set_requires_grad(bool v) const { return requires_grad_(v); }
  const std::shared_ptr<autograd::Node>& grad_fn() const;
  bool is_leaf() const;
  int64_t output_nr() const;
  void retain_grad() const;
  bool retains_grad() const;
  void remove_hook(unsigned id) const;
  bool is_view() const;
  const TensorBase& _base() const;
  /// The same data without history and with a version counter of its own.
  TensorBase tensor_data() const;
  TensorBase variable_data() const;

  // The few operators that code without operators needs (src/ops/tensor/tensor_aliases.cpp).
  TensorBase contiguous(MemoryFormat memory_format = MemoryFormat::Contiguous) const;
  TensorBase to(TensorOptions options = {}, bool non_blocking = false, bool copy = false,
                std::optional<MemoryFormat> memory_format = std::nullopt) const;
  const TensorBase& fill_(const Scalar& value) const;
  const TensorBase& zero_() const;

 protected:
  TensorImpl* impl_;

 private:
  void retain() noexcept {
    if (defined()) intrusive_ops::incref(impl_);
  }
  void drop() noexcept {
    if (defined()) intrusive_ops::decref(impl_);
  }
  std::size_t wrap_dim(int64_t d) const {
    const int64_t n = dim(), w = d < 0 ? d + n : d;
    if (CRESSET_UNLIKELY(w < 0 || w >= n)) raise_dim(d);
    return static_cast<std::size_t>(w);
  }
  [[noreturn]] void raise_dim(int64_t d) const;
  void check_type(ScalarType t) const {
    if (CRESSET_UNLIKELY(t != scalar_type())) raise_type(t);
  }
  [[noreturn]] void raise_type(ScalarType t) const;
};

/// "float32[2, 3] on cpu": how errors show a tensor.
CRESSET_API std::string to_string(const TensorBase& t);

/// Wraps negative dimensions: d in [-n, n) to [0, n), n = max(ndim, 1) when wrap_scalar; IndexError outside.
CRESSET_API int64_t maybe_wrap_dim(int64_t d, int64_t ndim, bool wrap_scalar = true);

}  // namespace cresset
