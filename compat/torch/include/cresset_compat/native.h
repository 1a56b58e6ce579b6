// at::native: the tools of kernels.
#pragma once

#include <cresset_compat/distributions.h>
#include <cresset_compat/library.h>
#include <cresset_compat/tensor_iterator.h>

namespace at::detail {
/// Inside, calls go to the kernels of the CPU, below autograd, whatever the device of their tensors is.
struct OnCpu {
  c10::AutoDispatchBelowADInplaceOrView below;
  c10::impl::ExcludeDispatchKeyGuard not_there{c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)};
  c10::impl::IncludeDispatchKeyGuard here{c10::DispatchKeySet(c10::DispatchKey::CPU)};
};
}  // namespace at::detail

namespace at::meta {
/// Tensors of any device as ones without contents.
template <class T>
decltype(auto) on_meta(T&& argument) {
  if constexpr (std::is_same_v<std::remove_cvref_t<T>, Tensor>)
    return argument.to(c10::kMeta);
  else
    return std::forward<T>(argument);
}
#define CRESSET_COMPAT_ON_META_(name)                                           \
  template <class... A>                                                         \
  decltype(auto) name(A&&... arguments) {                                       \
    return ::cresset::name(::at::meta::on_meta(std::forward<A>(arguments))...); \
  }
}  // namespace at::meta

namespace at::native {

// --- resizing
inline void resize_bytes_cpu(c10::StorageImpl* storage, std::size_t nbytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  c10::DataPtr fresh = storage->allocator() ? storage->allocator()->allocate(nbytes) : c10::GetCPUAllocator()->allocate(nbytes);
  if (storage->data() && nbytes != 0) std::memcpy(fresh.get(), storage->data(), std::min(nbytes, storage->nbytes()));
  storage->set_data_ptr(std::move(fresh));
  storage->set_nbytes(nbytes);
}
inline void maybe_resize_storage_cpu(TensorImpl* self, std::size_t nbytes) {
  if (self->numel() != 0 && nbytes > self->storage().nbytes()) resize_bytes_cpu(self->storage().unsafeGetStorageImpl(), nbytes);
}
inline TensorImpl* resize_impl_cpu_(TensorImpl* self, IntArrayRef size, at::OptionalIntArrayRef stride, bool resize_storage = true) {
  if (self->sizes() == size && (!stride || self->strides() == *stride)) return self;
  const auto offset = static_cast<std::size_t>(self->storage_offset());
  std::size_t nbytes;
  if (stride) {
    self->set_sizes_and_strides(size, *stride);
    nbytes = at::detail::computeStorageNbytes(size, *stride, self->itemsize(), offset);
  } else {
    self->set_sizes_contiguous(size);
    nbytes = at::detail::computeStorageNbytesContiguous(size, self->itemsize(), offset);
  }
  if (resize_storage) maybe_resize_storage_cpu(self, nbytes);
  return self;
}
inline bool resize_output_check(const Tensor& output, IntArrayRef shape) {
  if (output.sizes() == shape) return false;
  if (output.numel() != 0)
    TORCH_WARN("An output with one or more elements was resized since it had shape ", output.sizes(),
               ", which does not match the required "
               "output shape ",
               shape, ". Call out.resize_(0) to reuse an out tensor t.");
  return true;
}
inline bool resize_output(const Tensor& output, IntArrayRef shape) {
  if (!resize_output_check(output, shape)) return false;
  output.resize_(shape);
  return true;
}
inline Tensor& resize_as_(Tensor& self, const Tensor& other) { return self.resize_as_(other); }
inline Tensor as_strided_tensorimpl(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                                    std::optional<int64_t> offset = std::nullopt) {
  return cresset::detail::alias_with_sizes_and_strides(self, size, stride, offset.value_or(self.storage_offset()));
}
inline Tensor view(const Tensor& self, IntArrayRef size) {
  const at::detail::OnCpu guard;
  return self.view(size);
}
inline Tensor _reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride) { return as_strided_tensorimpl(self, size, stride); }
inline const Tensor& resize_(const Tensor& self, IntArrayRef size, std::optional<at::MemoryFormat> format = std::nullopt) {
  TensorImpl* const impl = self.unsafeGetTensorImpl();
  resize_impl_cpu_(impl, size, std::nullopt, false);
  const std::size_t needed =
      at::detail::computeStorageNbytesContiguous(size, impl->itemsize(), static_cast<std::size_t>(impl->storage_offset()));
  if (impl->numel() != 0 && needed > impl->storage().nbytes()) {
    if (self.is_cpu())
      resize_bytes_cpu(impl->storage().unsafeGetStorageImpl(), needed);
    else
      cresset::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(impl->storage(), needed);
  }
  if (format && *format != at::MemoryFormat::Preserve) impl->empty_tensor_restride(*format);
  return self;
}
inline Tensor& copy_(Tensor& self, const Tensor& source, bool non_blocking = false) {
  const c10::AutoDispatchBelowADInplaceOrView below;
  return self.copy_(source, non_blocking);
}
inline Scalar _local_scalar_dense_cpu(const Tensor& self) {
  return cresset::from_blob(self.data_ptr(), IntArrayRef(), IntArrayRef(), TensorOptions(self.scalar_type())).item();
}
inline Tensor& set_(Tensor& self, c10::Storage storage, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return self;
}
inline Tensor& set_(Tensor& self, c10::Storage storage) {
  const auto n = static_cast<int64_t>(storage.nbytes() / self.itemsize());
  return at::native::set_(self, std::move(storage), 0, {n}, {1});
}
inline Tensor& set_tensor_(Tensor& self, const Tensor& source) {
  if (self.is_same(source)) return self;
  return at::native::set_(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}
inline int64_t ensure_nonempty_dim(int64_t d) { return std::max<int64_t>(d, 1); }
inline int64_t ensure_nonempty_size(const Tensor& t, int64_t d) { return t.dim() == 0 ? 1 : t.size(d); }
inline int64_t ensure_nonempty_stride(const Tensor& t, int64_t d) { return t.dim() == 0 ? 1 : t.stride(d); }

// --- places in loops over several dimensions, of which the last runs fastest
/// The places, one for each pair (place, size), of element `offset`; gives what is left over.
template <class T>
T data_index_init(T offset) {
  return offset;
}
template <class T, class... Rest>
T data_index_init(T offset, T& place, const T& size, Rest&&... rest) {
  const T outer = data_index_init(offset, std::forward<Rest>(rest)...);
  place = outer % size;
  return outer / size;
}
/// The places of the next element; true where all begin again.
inline bool data_index_step() { return true; }
template <class T, class... Rest>
bool data_index_step(T& place, const T& size, Rest&&... rest) {
  if (!data_index_step(std::forward<Rest>(rest)...)) return false;
  if (++place == size) place = 0;
  return place == 0;
}

// --- the CPU in place of a missing kernel
inline void cpu_fallback(const c10::OperatorHandle& op, c10::Stack* stack, bool /*error_on_views*/ = false,
                         c10::DispatchKey /*cpu_dispatch_key*/ = c10::DispatchKey::CPU) {
  cresset::cpu_fallback(op, stack);
}
/// call_fallback_fn<&fallback, ATEN_OP(name)>::call(arguments…)
template <c10::KernelFunction::BoxedKernelFunction* fallback, class Op, bool symint, class R, class... A>
struct _call_fallback_fn final {
  static R call(typename c10::impl::arg_of<A>::canonical... args) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name).template typed<R(A...)>();
    return c10::KernelFunction::makeFromBoxedFunction<fallback>().template call<R, c10::impl::canonical_t<A>...>(op, c10::DispatchKeySet(),
                                                                                                                 args...);
  }
};
template <c10::KernelFunction::BoxedKernelFunction* fallback, class Op, bool symint, class R, class... A>
struct _call_fallback_fn<fallback, Op, symint, R(A...)> final {
  static R call(A... arguments) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name).template typed<R(A...)>();
    return c10::KernelFunction::makeFromBoxedFunction<fallback>().template call<R, c10::impl::canonical_t<A>...>(op, c10::DispatchKeySet(),
                                                                                                                 arguments...);
  }
};
template <c10::KernelFunction::BoxedKernelFunction* fallback, class Op>
using call_fallback_fn = _call_fallback_fn<fallback, Op, false, typename Op::schema>;
template <c10::KernelFunction::BoxedKernelFunction* fallback, class Op>
using call_fallback_fn_symint = _call_fallback_fn<fallback, Op, true, typename Op::schema>;

// --- matrix products of raw memory
enum class TransposeType { NoTranspose, Transpose, ConjTranspose };
namespace cpublas {
using native::TransposeType;
template <class T>
void gemm(TransposeType ta, TransposeType tb, int64_t m, int64_t n, int64_t k, cresset::opmath_type<T> alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, cresset::opmath_type<T> beta, T* c, int64_t ldc) {
  // Columns lie together: a column-major matrix is the transpose of a row-major view.
  const auto options = TensorOptions(cresset::CppTypeToScalarType<T>::value);
  const auto columns = [&](const T* p, int64_t rows, int64_t cols, int64_t ld) {
    return cresset::from_blob(const_cast<T*>(p), {rows, cols}, {1, ld}, options);
  };
  const Tensor x = ta == TransposeType::NoTranspose ? columns(a, m, k, lda) : columns(a, k, m, lda).t();
  const Tensor y = tb == TransposeType::NoTranspose ? columns(b, k, n, ldb) : columns(b, n, k, ldb).t();
  Tensor z = columns(c, m, n, ldc);
  const c10::InferenceMode mode;
  const Tensor product = at::mm(x, y).mul_(alpha);
  z.copy_(beta == 0 ? product : z.mul(beta).add_(product));
}
/// Kernels that want their matrices packed are not here: what asks for that takes its other way.
inline bool could_pack(ScalarType /*dtype*/) { return false; }
/// c (+)= a b by rows; with is_vnni the rows of b lie by twos (16-bit numbers) or fours (8-bit ones) beside each other.
template <class A, class B, class C>
void brgemm(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, bool add, const A* a, const B* b, C* c,
            bool is_vnni = sizeof(B) < 4) {
  using Sum = std::conditional_t<std::is_integral_v<A>, int32_t, float>;
  const int64_t together = is_vnni ? static_cast<int64_t>(4 / sizeof(B)) : 1;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      Sum sum = add ? static_cast<Sum>(c[i * ldc + j]) : 0;
      for (int64_t l = 0; l < k; ++l)
        sum += static_cast<Sum>(a[i * lda + l]) * static_cast<Sum>(b[(l / together * ldb + j) * together + l % together]);
      c[i * ldc + j] = static_cast<C>(sum);
    }
}
inline void brgemm_release(bool = false) {}
}  // namespace cpublas

// --- kernels by device kind
template <class FnPtr, class Name>
struct DispatchStub;
template <class R, class Name, class... A>
struct DispatchStub<R (*)(A...), Name> {
  using FnPtr = R (*)(A...);
  constexpr DispatchStub() = default;
  DispatchStub(const DispatchStub&) = delete;
  template <class... B>
  R operator()(c10::DeviceType device, B&&... args) {
    FnPtr f = get(device);
    TORCH_CHECK(f, "DispatchStub: missing kernel for ", DeviceTypeName(device));
    return f(std::forward<B>(args)...);
  }
  bool is_device_supported(c10::DeviceType device) const { return get(device) != nullptr; }
  void set(c10::DeviceType device, FnPtr f) { table_.at(static_cast<std::size_t>(device)).store(f); }
  void set_cuda_dispatch_ptr(FnPtr f) { set(kCUDA, f); }
  void set_privateuse1_dispatch_ptr(FnPtr f) { set(kPrivateUse1, f); }

 private:
  FnPtr get(c10::DeviceType device) const {
    return device < c10::DeviceType::HIP ? table_[static_cast<std::size_t>(device)].load() : nullptr;
  }
  std::array<std::atomic<FnPtr>, c10::kDeviceTypeCount> table_{};
};
#define DECLARE_DISPATCH(fn, name)                                                                     \
  struct name##_DECLARE_DISPATCH_type : ::at::native::DispatchStub<fn, name##_DECLARE_DISPATCH_type> { \
    constexpr name##_DECLARE_DISPATCH_type() = default;                                                \
  };                                                                                                   \
  extern name##_DECLARE_DISPATCH_type name
#define DEFINE_DISPATCH(name) struct name##_DECLARE_DISPATCH_type name
#define CRESSET_COMPAT_REGISTER_DISPATCH_(device, name, fn) \
  static const bool CRESSET_UNIQUE(registered_##name) = ((name).set(::cresset::DeviceType::device, fn), true)
#define REGISTER_DISPATCH(name, fn) CRESSET_COMPAT_REGISTER_DISPATCH_(CPU, name, fn)
#define ALSO_REGISTER_AVX512_DISPATCH(name, fn) CRESSET_COMPAT_REGISTER_DISPATCH_(CPU, name, fn)
#define REGISTER_ALL_CPU_DISPATCH(name, fn) CRESSET_COMPAT_REGISTER_DISPATCH_(CPU, name, fn)
#define REGISTER_ARCH_DISPATCH(name, arch, fn) CRESSET_COMPAT_REGISTER_DISPATCH_(CPU, name, fn)
#define REGISTER_AVX2_DISPATCH(name, fn) CRESSET_COMPAT_REGISTER_DISPATCH_(CPU, name, fn)
#define REGISTER_AVX512_DISPATCH(name, fn) CRESSET_COMPAT_REGISTER_DISPATCH_(CPU, name, fn)
#define REGISTER_NO_CPU_DISPATCH(name) static_assert(true)
#define REGISTER_CUDA_DISPATCH(name, fn) CRESSET_COMPAT_REGISTER_DISPATCH_(CUDA, name, fn)
#define REGISTER_PRIVATEUSE1_DISPATCH(name, fn) CRESSET_COMPAT_REGISTER_DISPATCH_(PrivateUse1, name, fn)

// --- stubs of built-in operators that devices fill
#define CRESSET_COMPAT_STUB_(fn, name)                                                   \
  struct name##_DECLARE_DISPATCH_type : DispatchStub<fn, name##_DECLARE_DISPATCH_type> { \
    constexpr name##_DECLARE_DISPATCH_type() = default;                                  \
  };                                                                                     \
  inline name##_DECLARE_DISPATCH_type name
using unary_fn = void (*)(TensorIteratorBase&);
using quantize_fn = void (*)(const Tensor&, Tensor&, double, int64_t);
using _fused_sdp_choice_fn = int64_t (*)(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool,
                                         std::optional<double>, bool);
CRESSET_COMPAT_STUB_(unary_fn, abs_stub);
CRESSET_COMPAT_STUB_(unary_fn, neg_stub);
CRESSET_COMPAT_STUB_(unary_fn, sigmoid_stub);
CRESSET_COMPAT_STUB_(quantize_fn, quantize_tensor_per_tensor_affine_stub);
CRESSET_COMPAT_STUB_(_fused_sdp_choice_fn, _fused_sdp_choice_stub);
#undef CRESSET_COMPAT_STUB_
inline Tensor& abs_out(const Tensor& self, Tensor& out) {
  TensorIterator iter = TensorIterator::unary_op(out, self);
  abs_stub(iter.device_type(), iter);
  return out;
}
inline Tensor quantize_per_tensor(const Tensor& self, double scale, int64_t zero_point, ScalarType /*dtype*/) {
  Tensor out = at::empty_like(self);
  quantize_tensor_per_tensor_affine_stub(self.device().type(), self, out, scale, zero_point);
  return out;
}

}  // namespace at::native
namespace sdp {
using at::SDPBackend;
}
