// Tensor: the handle users hold, a TensorBase with operators. Methods are generated from the operator table.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <cresset/core/tensor_base.h>
#include <cresset/core/tensor_spec.h>

namespace cresset {

class TensorIndex;
class DeprecatedTypeProperties;

/// A reference-counted handle of a TensorImpl; a default-made one is undefined.
class CRESSET_API Tensor : public TensorBase {
 public:
  Tensor() noexcept = default;
  explicit Tensor(intrusive_ptr<TensorImpl> impl) noexcept : TensorBase(std::move(impl)) {}
  explicit Tensor(const TensorBase& base) noexcept : TensorBase(base) {}
  explicit Tensor(TensorBase&& base) noexcept : TensorBase(std::move(base)) {}
  Tensor(const Tensor& o) noexcept = default;
  Tensor(Tensor&& o) noexcept = default;
  Tensor& operator=(const Tensor& o) & noexcept {
    TensorBase::operator=(o);
    return *this;
  }
  Tensor& operator=(Tensor&& o) & noexcept {
    TensorBase::operator=(std::move(o));
    return *this;
  }
  /// From a handle without operators. A template, so that `t = {}` means a tensor.
  template <std::same_as<TensorBase> Base>
  Tensor& operator=(const Base& o) & noexcept {
    TensorBase::operator=(o);
    return *this;
  }
  /// `t[0] = x` copies into the element, as in PyTorch.
  Tensor& operator=(const Tensor& o) &&;
  Tensor& operator=(const Scalar& v) &&;
  static Tensor wrap_tensor_impl(intrusive_ptr<TensorImpl> p) { return Tensor(std::move(p)); }

  /// PyTorch's older description of dtype and device (cresset/ops/type_properties.h).
  DeprecatedTypeProperties type() const;
  /// The one element as T; raises for tensors of other sizes.
  template <class T>
  T item() const {
    return item_scalar().to<T>();
  }

  // Autograd (src/autograd/variable.cpp).
  const Tensor& requires_grad_(bool v = true) const {
    TensorBase::requires_grad_(v);
    return *this;
  }
  const Tensor& set_requires_grad(bool v) const { return requires_grad_(v); }
  /// The accumulated gradient, undefined when there is none.
  const Tensor& grad() const;
  Tensor& mutable_grad() const;
  /// Runs backward from this tensor; gradient may be left out for one-element tensors.
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                std::optional<TensorList> inputs = std::nullopt) const;
  /// Called with each gradient of this tensor; may return a replacement. Gives an id for remove_hook.
  unsigned register_hook(std::function<Tensor(const Tensor&)> hook) const;
  template <class F, class = std::enable_if_t<std::is_void_v<std::invoke_result_t<F, const Tensor&>>>, class = void>
  unsigned register_hook(F hook) const {
    return register_hook(std::function<Tensor(const Tensor&)>([hook](const Tensor& g) {
      hook(g);
      return Tensor();
    }));
  }
  const Tensor& _base() const;
  /// The same data without history and with a version counter of its own.
  Tensor tensor_data() const { return variable_data(); }
  Tensor variable_data() const { return Tensor(TensorBase::variable_data()); }
  Tensor data() const { return variable_data(); }
  /// The older spelling of data_ptr<T>().
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }
  void set_data(const Tensor& new_data) const;

  // Operators and indexing (src/ops/tensor/tensor_operators.cpp).
  Tensor operator-() const;
  Tensor operator~() const;
  Tensor& operator+=(const Tensor& o);
  Tensor& operator+=(const Scalar& o);
  Tensor& operator-=(const Tensor& o);
  Tensor& operator-=(const Scalar& o);
  Tensor& operator*=(const Tensor& o);
  Tensor& operator*=(const Scalar& o);
  Tensor& operator/=(const Tensor& o);
  Tensor& operator/=(const Scalar& o);
  Tensor operator[](int64_t i) const;
  Tensor operator[](const Tensor& index) const;
  /// Python's x[...]: integers, slices, None, Ellipsis, masks and index tensors (cresset/ops/tensor_index.h).
  Tensor index(std::initializer_list<TensorIndex> indices) const;
  Tensor index(ArrayRef<TensorIndex> indices) const;
  Tensor index(OptionalTensorList indices) const;
  /// Python's x[...] = values.
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values);
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value);
  Tensor& index_put_(ArrayRef<TensorIndex> indices, const Tensor& values);
  Tensor& index_put_(ArrayRef<TensorIndex> indices, const Scalar& value);
  // Lists of indices as scripts have them (List<std::optional<Tensor>>), whose `vec()` gives the tensors.
  template <class L>
    requires requires(const L& l) { OptionalTensorList(l.vec()); }
  Tensor index(const L& indices) const {
    return index(OptionalTensorList(indices.vec()));
  }
  template <class L>
    requires requires(const L& l) { OptionalTensorList(l.vec()); }
  Tensor index_put(const L& indices, const Tensor& values, bool accumulate = false) const {
    return index_put(OptionalTensorList(indices.vec()), values, accumulate);
  }
  template <class L>
    requires requires(const L& l) { OptionalTensorList(l.vec()); }
  Tensor& index_put_(const L& indices, const Tensor& values, bool accumulate = false) const {
    return index_put_(OptionalTensorList(indices.vec()), values, accumulate);
  }
  // Forms of the operators below under their older or symbolic names.
  Tensor cpu() const;
  Tensor cuda() const;
  /// Makes this tensor show a storage: all of it as a row, or from an offset with the given sizes (contiguous without strides).
  Tensor& set_(const Storage& source) const;
  Tensor& set_(const Storage& source, int64_t storage_offset, IntArrayRef size, IntArrayRef stride = {}) const;
  Tensor toType(ScalarType t) const;
  /// In memory that a device can reach without a copy; the device makes no difference.
  bool is_pinned(std::optional<Device> device = std::nullopt) const;
  /// A copy in such memory of the device's, or the accelerator's.
  Tensor pin_memory(std::optional<Device> device = std::nullopt) const;
  Tensor view_symint(SymIntArrayRef size) const;
  Tensor reshape_symint(SymIntArrayRef size) const;
  Tensor expand_symint(SymIntArrayRef size, bool implicit = false) const;
  Tensor narrow_symint(int64_t d, SymInt start, SymInt length) const;
  Tensor select_symint(int64_t d, SymInt i) const;
  Tensor slice_symint(int64_t d = 0, std::optional<SymInt> start = std::nullopt, std::optional<SymInt> end = std::nullopt,
                      SymInt step = 1) const;
  Tensor new_empty_symint(SymIntArrayRef size, const TensorOptions& options = {}) const;
  Tensor new_zeros_symint(SymIntArrayRef size, const TensorOptions& options = {}) const;

  // Operators whose kernels are Python's, of sparse and quantized tensors, which are made there: a program without Python gets a
  // NotImplementedError (cresset/ops/python_operators.h).
  Tensor to_sparse(int64_t sparse_dim) const;
  Tensor to_sparse(std::optional<Layout> layout = std::nullopt, OptionalIntArrayRef blocksize = std::nullopt,
                   std::optional<int64_t> dense_dim = std::nullopt) const;
  Tensor to_sparse_csr(std::optional<int64_t> dense_dim = std::nullopt) const;
  Tensor to_sparse_csc(std::optional<int64_t> dense_dim = std::nullopt) const;
  Tensor to_sparse_bsr(IntArrayRef blocksize, std::optional<int64_t> dense_dim = std::nullopt) const;
  Tensor to_sparse_bsc(IntArrayRef blocksize, std::optional<int64_t> dense_dim = std::nullopt) const;
  Tensor to_dense(std::optional<ScalarType> dtype = std::nullopt, std::optional<bool> masked_grad = std::nullopt) const;
  /// Raises: there is no such layout.
  Tensor to_mkldnn(std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor coalesce() const;
  bool is_coalesced() const;
  Tensor indices() const;
  Tensor values() const;
  Tensor _indices() const;
  Tensor _values() const;
  Tensor crow_indices() const;
  Tensor col_indices() const;
  Tensor ccol_indices() const;
  Tensor row_indices() const;
  int64_t _nnz() const;
  int64_t sparse_dim() const;
  int64_t dense_dim() const;
  int64_t _dimI() const;
  int64_t _dimV() const;
  Tensor& _coalesced_(bool coalesced) const;
  const Tensor& sparse_resize_(IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) const;
  const Tensor& sparse_resize_and_clear_(IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) const;
  Tensor sparse_mask(const Tensor& mask) const;
  Tensor dequantize() const;
  Tensor int_repr() const;
  double q_scale() const;
  int64_t q_zero_point() const;
  Tensor q_per_channel_scales() const;
  Tensor q_per_channel_zero_points() const;
  int64_t q_per_channel_axis() const;

  // A generated method for each operator of the table that is a method: add, view, sum, …
#include <cresset/ops/tensor_methods.inc>
  /// x.to(y.dtype()). A template, so that braces never mean it.
  template <class T>
    requires std::is_same_v<T, TypeMeta>
  Tensor to(T dtype, bool non_blocking = false, bool copy = false, std::optional<MemoryFormat> memory_format = std::nullopt) const {
    return to(dtype.toScalarType(), non_blocking, copy, memory_format);
  }

 private:
  Scalar item_scalar() const;
};

CRESSET_API Tensor operator+(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator+(const Tensor& a, const Scalar& b);
CRESSET_API Tensor operator+(const Scalar& a, const Tensor& b);
CRESSET_API Tensor operator-(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator-(const Tensor& a, const Scalar& b);
CRESSET_API Tensor operator-(const Scalar& a, const Tensor& b);
CRESSET_API Tensor operator*(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator*(const Tensor& a, const Scalar& b);
CRESSET_API Tensor operator*(const Scalar& a, const Tensor& b);
CRESSET_API Tensor operator/(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator/(const Tensor& a, const Scalar& b);
CRESSET_API Tensor operator/(const Scalar& a, const Tensor& b);
CRESSET_API Tensor operator==(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator==(const Tensor& a, const Scalar& b);
CRESSET_API Tensor operator!=(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator!=(const Tensor& a, const Scalar& b);
CRESSET_API Tensor operator<(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator<(const Tensor& a, const Scalar& b);
CRESSET_API Tensor operator<=(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator<=(const Tensor& a, const Scalar& b);
CRESSET_API Tensor operator>(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator>(const Tensor& a, const Scalar& b);
CRESSET_API Tensor operator>=(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator>=(const Tensor& a, const Scalar& b);
CRESSET_API Tensor operator&(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator|(const Tensor& a, const Tensor& b);
CRESSET_API Tensor operator^(const Tensor& a, const Tensor& b);

namespace detail {
/// A fresh dense CPU tensor, uninitialised: the quick path of every CPU kernel. Strides must describe a dense layout.
CRESSET_API Tensor empty_cpu(IntArrayRef sizes, ScalarType dtype);
CRESSET_API Tensor empty_strided_cpu(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype);
/// A tensor that has keys, sizes and dtype but no memory.
CRESSET_API Tensor empty_meta(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype);
/// A tensor with memory from a device's allocator (for backends whose memory is an Allocator's).
CRESSET_API Tensor empty_strided_generic(IntArrayRef sizes, IntArrayRef strides, Allocator* allocator, DispatchKeySet ks, ScalarType dtype);
CRESSET_API Tensor empty_generic(IntArrayRef sizes, Allocator* allocator, DispatchKeySet ks, ScalarType dtype,
                                 std::optional<MemoryFormat> format = std::nullopt);
/// Another view of self's storage. Raises when it would reach outside of it. Knows nothing of autograd.
CRESSET_API Tensor alias_with_sizes_and_strides(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, int64_t offset);
/// Bytes from the start of the storage to the end of the furthest element.
CRESSET_API std::size_t compute_storage_nbytes(IntArrayRef sizes, IntArrayRef strides, std::size_t itemsize, int64_t offset = 0);
/// Sizes must be non-negative and their product must fit; `Trying to create tensor with negative dimension -1: [-1]`.
CRESSET_API void check_sizes_nonnegative(IntArrayRef sizes);
}  // namespace detail

}  // namespace cresset
