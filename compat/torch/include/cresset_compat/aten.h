// Everything of the namespace at that sources name, apart from kernels' own tools (native.h).
#pragma once

#include <cresset_compat/c10.h>
#include <cresset_compat/context.h>
#include <cresset_compat/dimnames.h>
#include <cresset_compat/dispatch.h>
#include <cresset_compat/functions.h>
#include <cresset_compat/jit_type.h>
#include <cresset_compat/mapped_file.h>
#include <cresset_compat/python_operators.h>
#include <cresset_compat/utility.h>

#include <cresset/autograd/autocast.h>
#include <cresset/base/interop.h>
#include <cresset/base/parallel.h>
#include <cresset/core/accelerator_hooks.h>
#include <cresset/dispatch/profiler.h>
#include <cresset/ops/cpu_fallback.h>
#include <cresset/ops/from_blob.h>
#include <cresset/ops/functions.h>
#include <cresset/ops/tensor_index.h>
#include <cresset/ops/tensor_literal.h>
#include <cresset/ops/type_properties.h>

// Operators of tensors that PyTorch has beyond those of cresset/core/tensor.h; found where tensors are.
namespace cresset {
#define CRESSET_COMPAT_OPERATOR(op, function)                                           \
  inline Tensor operator op(const Tensor& a, const Scalar& b) { return a.function(b); } \
  inline Tensor operator op(const Scalar& a, const Tensor& b) { return cresset::scalar_tensor(a, b.options()).function(b); }
CRESSET_COMPAT_OPERATOR(&, bitwise_and)
CRESSET_COMPAT_OPERATOR(|, bitwise_or)
CRESSET_COMPAT_OPERATOR(^, bitwise_xor)
CRESSET_COMPAT_OPERATOR(%, remainder)
#undef CRESSET_COMPAT_OPERATOR
inline Tensor operator%(const Tensor& a, const Tensor& b) { return a.remainder(b); }
inline Tensor operator==(const Scalar& a, const Tensor& b) { return b == a; }
inline Tensor operator!=(const Scalar& a, const Tensor& b) { return b != a; }
inline Tensor operator<(const Scalar& a, const Tensor& b) { return b > a; }
inline Tensor operator<=(const Scalar& a, const Tensor& b) { return b >= a; }
inline Tensor operator>(const Scalar& a, const Tensor& b) { return b < a; }
inline Tensor operator>=(const Scalar& a, const Tensor& b) { return b <= a; }
}  // namespace cresset

#define AT_PARALLEL_NATIVE 1
#define AT_MKL_ENABLED() 0
#define AT_MKLDNN_ENABLED() 0
#define AT_POCKETFFT_ENABLED() 0
#define AT_NNPACK_ENABLED() 0
#define AT_BUILD_WITH_LAPACK() 1

/// Functions that few sources call are templates: they are compiled where they are called, not wherever this file is included.
#define CRESSET_COMPAT_RARE template <class = void>

namespace c10 {
inline Tensor scalar_to_tensor(const Scalar& s, Device device = kCPU) {
  return cresset::full({}, s, TensorOptions(s.type()).device(device));
}
inline std::string toString(const OperatorName& name) { return name.str(); }
}  // namespace c10

namespace at {
using cresset::promote_types;

namespace detail {
inline Tensor scalar_tensor_static(const Scalar& s, std::optional<ScalarType> dtype, std::optional<Device> device) {
  return cresset::full({}, s, TensorOptions(dtype.value_or(s.type())).device(device.value_or(kCPU)));
}
}  // namespace detail
/// float32, strided, on the CPU, whatever the defaults are.
inline TensorOptions initialTensorOptions() { return TensorOptions(kCPU).dtype(kFloat).layout(kStrided); }
using c10::convert;
using cresset::from_blob;
using cresset::from_file;
using cresset::manual_seed;
/// One dimension (a number is a tensor of one element), of the type that the values have in C++ (torch::tensor makes int64 and the default
/// type of them, as Python does).
template <class T>
Tensor tensor(c10::ArrayRef<T> values, const TensorOptions& options = {}) {
  constexpr c10::ScalarType type = cresset::CppTypeToScalarType<T>::value;
  const TensorOptions typed = options.has_dtype() ? options : options.dtype(type);
  CRESSET_CHECK_NOT_IMPLEMENTED(!c10::isComplexType(type) || c10::isComplexType(typed.dtype().toScalarType()),
                                "\"tensor_cpu\" not implemented for '", typed.dtype().toScalarType(), "'");
  return cresset::tensor(values, typed);
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return at::tensor(c10::ArrayRef<T>(values.begin(), values.size()), options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return at::tensor(c10::ArrayRef<T>(values), options);
}
template <class T>
  requires(std::is_arithmetic_v<T> || requires { cresset::CppTypeToScalarType<T>::value; })
Tensor tensor(T value, const TensorOptions& options = {}) {
  return at::tensor(c10::ArrayRef<T>(value), options);
}
using TensorRef = const Tensor&;
using ITensorListRef = c10::IListRef<Tensor>;
using IOptTensorListRef = c10::IListRef<std::optional<Tensor>>;

// --- threads
using cresset::get_num_interop_threads;
using cresset::get_num_threads;
using cresset::get_thread_num;
using cresset::in_parallel_region;
using cresset::launch;
using cresset::set_num_interop_threads;
using cresset::set_num_threads;
namespace internal {
inline constexpr int64_t GRAIN_SIZE = 32768;
struct ThreadIdGuard {
  explicit ThreadIdGuard(int) {}
};
inline void lazy_init_num_threads() {}
}  // namespace internal
inline void init_num_threads() {}
inline int intraop_default_num_threads() { return get_num_threads(); }
inline int64_t divup(int64_t x, int64_t y) { return (x + y - 1) / y; }
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& f) {
  CRESSET_CHECK(grain_size >= 0, "parallel_for: a grain size of at least 0 was required; ", grain_size, " was given.");
  cresset::parallel_for(begin, end, grain_size, f);
}
/// f(begin, end, identity) for pieces, joined from left to right by combine.
template <class T, class F, class Combine>
T parallel_reduce(int64_t begin, int64_t end, int64_t grain_size, T identity, const F& f, const Combine& combine) {
  if (begin >= end) return identity;
  const int64_t step = std::max<int64_t>({grain_size, divup(end - begin, get_num_threads()), 1});
  std::vector<T> parts(static_cast<std::size_t>(divup(end - begin, step)), identity);
  cresset::parallel_for(0, static_cast<int64_t>(parts.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      parts[static_cast<std::size_t>(i)] = f(begin + i * step, std::min(end, begin + (i + 1) * step), identity);
  });
  T result = identity;
  for (const T& part : parts) result = combine(result, part);
  return result;
}
/// What a task on another thread takes along: key sets and modes.
class ThreadLocalState {
 public:
  ThreadLocalState() : keys_(c10::impl::tls_local_dispatch_key_set()), modes_(cresset::detail::grad_mode_state) {}
  explicit ThreadLocalState(bool) : ThreadLocalState() {}
  static void setThreadLocalState(const ThreadLocalState& s) {
    cresset::detail::local_keys = {s.keys_.included.raw_repr(), s.keys_.excluded.raw_repr()};
    cresset::detail::grad_mode_state = s.modes_;
  }

 private:
  c10::LocalDispatchKeySet keys_;
  cresset::detail::GradModeState modes_;
};
class ThreadLocalStateGuard {
 public:
  explicit ThreadLocalStateGuard(const ThreadLocalState& s) { ThreadLocalState::setThreadLocalState(s); }
  ~ThreadLocalStateGuard() { ThreadLocalState::setThreadLocalState(before_); }
  ThreadLocalStateGuard(const ThreadLocalStateGuard&) = delete;

 private:
  ThreadLocalState before_;
};
namespace sequence_number {
inline uint64_t peek() { return 0; }
inline uint64_t get_and_increment() { return 0; }
}  // namespace sequence_number

// --- types of arithmetic
template <class T>
struct OpMathType {
  using type = cresset::opmath_type<T>;
};
using cresset::opmath_type;
template <class T>
using acc_type_cpu = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int64_t,
                                        std::conditional_t<std::is_same_v<T, float> || c10::is_reduced_floating_point_v<T>, double, T>>;
template <class T, bool is_cuda>
using acc_type = std::conditional_t<is_cuda, cresset::opmath_type<T>, acc_type_cpu<T>>;
inline ScalarType toAccumulateType(ScalarType t, bool is_cuda) {
  if (is_cuda) return toOpMathType(t);
  return isIntegralType(t) ? kLong : t == kFloat || isReducedFloatingType(t) ? kDouble : t;
}

// --- arguments in errors
using CheckedFrom = const char*;
struct TensorGeometry {
  TensorGeometry() = default;
  explicit TensorGeometry(IntArrayRef sizes) : sizes_(sizes.vec()), strides_(contiguous_of(sizes)), numel_(product(sizes)) {}
  explicit TensorGeometry(const Tensor& t)
      : sizes_(t.sizes().vec()), strides_(t.strides().vec()), storage_offset_(t.storage_offset()), numel_(t.numel()) {}
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t size(int64_t d) const { return sizes_[static_cast<std::size_t>(cresset::maybe_wrap_dim(d, dim()))]; }
  IntArrayRef sizes() const { return sizes_; }
  int64_t stride(int64_t d) const { return strides_[static_cast<std::size_t>(cresset::maybe_wrap_dim(d, dim()))]; }
  IntArrayRef strides() const { return strides_; }
  int64_t storage_offset() const { return storage_offset_; }
  int64_t numel() const { return numel_; }
  bool is_contiguous() const { return IntArrayRef(strides_) == IntArrayRef(contiguous_of(sizes_)); }

 private:
  static std::vector<int64_t> contiguous_of(IntArrayRef sizes) { return IntArrayRef(c10::contiguous_strides(sizes)).vec(); }
  static int64_t product(IntArrayRef sizes) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
  std::vector<int64_t> sizes_, strides_{};
  int64_t storage_offset_ = 0, numel_ = 0;
};
struct TensorArg {
  const Tensor& tensor;
  const char* name;
  int pos;
  TensorArg(const Tensor& tensor, const char* name, int pos) : tensor(tensor), name(name), pos(pos) {}
  TensorArg(Tensor&&, const char*, int) = delete;
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
};
struct TensorGeometryArg {
  TensorGeometry tensor;
  const char* name;
  int pos;
  TensorGeometryArg(TensorArg arg) : tensor(arg.tensor), name(arg.name), pos(arg.pos) {}
  TensorGeometryArg(TensorGeometry tensor, const char* name, int pos) : tensor(std::move(tensor)), name(name), pos(pos) {}
  const TensorGeometry* operator->() const { return &tensor; }
  const TensorGeometry& operator*() const { return tensor; }
};
inline std::ostream& operator<<(std::ostream& out, const TensorGeometryArg& t) {
  return t.pos == 0 ? out << "'" << t.name << "'" : out << "argument #" << t.pos << " '" << t.name << "'";
}
inline std::ostream& operator<<(std::ostream& out, const TensorArg& t) { return out << TensorGeometryArg(t); }
CRESSET_COMPAT_RARE void checkDim(CheckedFrom c, const Tensor& t, const char* name, int pos, int64_t dim) {
  TORCH_CHECK(t.dim() == dim, "Expected ", dim, "-dimensional tensor, but got ", t.dim(), "-dimensional tensor for ",
              TensorGeometryArg(TensorArg(t, name, pos)), " (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkDim(CheckedFrom c, const TensorGeometryArg& t, int64_t dim) {
  TORCH_CHECK(t->dim() == dim, "Expected ", dim, "-dimensional tensor, but got ", t->dim(), "-dimensional tensor for ", t,
              " (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkDimRange(CheckedFrom c, const TensorGeometryArg& t, int64_t first, int64_t last) {
  TORCH_CHECK(t->dim() >= first && t->dim() < last, "Expected ", first, " to ", last - 1, " dimensions, but got ", t->dim(),
              "-dimensional tensor for ", t, " (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkContiguous(CheckedFrom c, const TensorGeometryArg& t) {
  TORCH_CHECK(t->is_contiguous(), "Expected contiguous tensor, but got non-contiguous tensor for ", t, " (while checking arguments for ", c,
              ")");
}
CRESSET_COMPAT_RARE void checkAllContiguous(CheckedFrom c, ArrayRef<TensorArg> ts) {
  for (const TensorArg& t : ts)
    if (t->defined()) checkContiguous(c, t);
}
CRESSET_COMPAT_RARE void checkSize(CheckedFrom c, const TensorGeometryArg& t, IntArrayRef sizes) {
  checkDim(c, t, static_cast<int64_t>(sizes.size()));
  TORCH_CHECK(t->sizes() == sizes, "Expected tensor of size ", sizes, ", but got tensor of size ", t->sizes(), " for ", t,
              " (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkSize(CheckedFrom c, const TensorGeometryArg& t, int64_t dim, int64_t size) {
  TORCH_CHECK(t->size(dim) == size, "Expected tensor to have size ", size, " at dimension ", dim, ", but got size ", t->size(dim), " for ",
              t, " (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkNumel(CheckedFrom c, const TensorGeometryArg& t, int64_t numel) {
  TORCH_CHECK(t->numel() == numel, "Expected tensor for ", t, " to have ", numel, " elements; but it actually has ", t->numel(),
              " elements (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkSameSize(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  TORCH_CHECK(a->sizes() == b->sizes(), "Expected tensor for ", a, " to have same size as tensor for ", b, "; but ", a->sizes(),
              " does not equal ", b->sizes(), " (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkAllSameSize(CheckedFrom c, ArrayRef<TensorArg> ts) {
  for (std::size_t i = 1; i < ts.size(); ++i) checkSameSize(c, ts[0], ts[i]);
}
CRESSET_COMPAT_RARE void checkAllSameNumel(CheckedFrom c, ArrayRef<TensorArg> ts) {
  for (std::size_t i = 1; i < ts.size(); ++i) checkNumel(c, ts[i], ts[0]->numel());
}
CRESSET_COMPAT_RARE void checkDefined(CheckedFrom c, const TensorArg& t) {
  TORCH_CHECK(t->defined(), "Expected tensor for ", t, " to be non-null, but it was undefined  (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkAllDefined(CheckedFrom c, ArrayRef<TensorArg> ts) {
  for (const TensorArg& t : ts) checkDefined(c, t);
}
CRESSET_COMPAT_RARE void checkSameType(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  TORCH_CHECK(a->options().dtype() == b->options().dtype() && a->device().type() == b->device().type(), "Expected tensor for ", a,
              " to have the same type as tensor for ", b, "; but type ", a->toString(), " does not equal ", b->toString(),
              " (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkAllSameType(CheckedFrom c, ArrayRef<TensorArg> ts) {
  for (std::size_t i = 1; i < ts.size(); ++i) checkSameType(c, ts[0], ts[i]);
}
CRESSET_COMPAT_RARE void checkScalarType(CheckedFrom c, const TensorArg& t, ScalarType type) {
  TORCH_CHECK(t->scalar_type() == type, "Expected tensor for ", t, " to have scalar type ", toString(type), "; but got ", t->toString(),
              " instead (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkScalarTypes(CheckedFrom c, const TensorArg& t, ArrayRef<ScalarType> types) {
  TORCH_CHECK(std::find(types.begin(), types.end(), t->scalar_type()) != types.end(), "Expected tensor for ", t,
              " to have one of the following scalar types: ", types, "; but got ", t->toString(), " instead (while checking arguments for ",
              c, ")");
}
CRESSET_COMPAT_RARE void checkSameGPU(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  TORCH_CHECK(!a->is_cpu() && a->device() == b->device(), "Expected tensors ", a, " and ", b,
              " to be on one accelerator (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkAllSameGPU(CheckedFrom c, ArrayRef<TensorArg> ts) {
  for (std::size_t i = 1; i < ts.size(); ++i) checkSameGPU(c, ts[0], ts[i]);
}
CRESSET_COMPAT_RARE void checkBackend(CheckedFrom c, const Tensor& t, Backend b) {
  TORCH_CHECK(!t.defined() || c10::dispatchKeyToBackend(backendKey(t.device().type())) == b, "Expected tensor of another backend, but got ",
              t.toString(), " (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkDeviceType(CheckedFrom c, const Tensor& t, DeviceType type) {
  TORCH_CHECK(!t.defined() || t.device().type() == type, "Expected tensor to have ", DeviceTypeName(type),
              " DeviceType, but got tensor with ", DeviceTypeName(t.device().type()), " DeviceType (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void checkDeviceType(CheckedFrom c, TensorList ts, DeviceType type) {
  for (const Tensor& t : ts) checkDeviceType(c, t, type);
}
CRESSET_COMPAT_RARE void checkLayout(CheckedFrom c, const Tensor& t, Layout layout) {
  TORCH_CHECK(!t.defined() || t.layout() == layout, "Expected tensor to have ", layout, " Layout, but got tensor with ", t.layout(),
              " Layout (while checking arguments for ", c, ")");
}
CRESSET_COMPAT_RARE void* maybe_data_ptr(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }
CRESSET_COMPAT_RARE bool geometry_is_contiguous(IntArrayRef sizes, IntArrayRef strides) {
  return strides == IntArrayRef(c10::contiguous_strides(sizes));
}
CRESSET_COMPAT_RARE void check_dim_size(const Tensor& t, int64_t dim, int64_t dim_size, int64_t size) {
  TORCH_CHECK(t.dim() == dim && t.size(dim_size) == size, "Expected a tensor of dimension ", dim, " and tensor.size[", dim_size,
              "] == ", size, " but got: dimension ", t.dim(), " and tensor.size[", dim_size, "] = ", t.size(dim_size));
}
CRESSET_COMPAT_RARE int64_t maybe_wrap_dim(int64_t d, int64_t ndim, bool wrap_scalar = true) {
  return cresset::maybe_wrap_dim(d, ndim, wrap_scalar);
}
CRESSET_COMPAT_RARE int64_t maybe_wrap_dim(int64_t d, const Tensor& t) { return cresset::maybe_wrap_dim(d, t.dim()); }
CRESSET_COMPAT_RARE void maybe_wrap_dims(std::vector<int64_t>& dims, int64_t ndim) {
  for (int64_t& d : dims) d = cresset::maybe_wrap_dim(d, ndim);
}

// --- shapes of views
CRESSET_COMPAT_RARE DimVector infer_size_dv(IntArrayRef shape, int64_t numel) {
  return DimVector(at::empty({numel}, TensorOptions(kMeta)).view(shape).sizes());
}
CRESSET_COMPAT_RARE std::vector<int64_t> infer_size(IntArrayRef shape, int64_t numel) {
  return IntArrayRef(infer_size_dv(shape, numel)).vec();
}
namespace detail {
CRESSET_COMPAT_RARE std::vector<int64_t> defaultStrides(IntArrayRef sizes) { return IntArrayRef(cresset::contiguous_strides(sizes)).vec(); }
/// Strides of the view with these sizes, or nothing where that needs a copy.
CRESSET_COMPAT_RARE std::optional<DimVector> computeStride(IntArrayRef sizes, IntArrayRef strides, const DimVector& new_sizes) {
  try {
    return DimVector(at::empty_strided(sizes, strides, TensorOptions(kMeta)).view(new_sizes).strides());
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}
CRESSET_COMPAT_RARE std::optional<std::vector<int64_t>> computeStride(IntArrayRef sizes, IntArrayRef strides, IntArrayRef new_sizes) {
  const auto out = computeStride(sizes, strides, DimVector(new_sizes));
  return out ? std::optional(IntArrayRef(*out).vec()) : std::nullopt;
}
}  // namespace detail

// --- shapes that broadcast
CRESSET_COMPAT_RARE std::vector<int64_t> infer_size(IntArrayRef a, IntArrayRef b) {
  std::vector<int64_t> out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    TORCH_CHECK(x == y || x == 1 || y == 1, "The size of tensor a (", x, ") must match the size of tensor b (", y,
                ") at non-singleton dimension ", out.size() - 1 - i);
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}
CRESSET_COMPAT_RARE bool are_expandable(IntArrayRef a, IntArrayRef b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const int64_t x = a[a.size() - 1 - i], y = b[b.size() - 1 - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}
CRESSET_COMPAT_RARE bool is_expandable_to(IntArrayRef shape, IntArrayRef desired) {
  if (shape.size() > desired.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const int64_t size = shape[shape.size() - 1 - i];
    if (size != desired[desired.size() - 1 - i] && size != 1) return false;
  }
  return true;
}
CRESSET_COMPAT_RARE c10::MaybeOwned<Tensor> expand_size(const Tensor& t, IntArrayRef sizes) {
  return t.sizes() == sizes ? c10::MaybeOwned<Tensor>::borrowed(t) : c10::MaybeOwned<Tensor>::owned(t.expand(sizes));
}
CRESSET_COMPAT_RARE std::tuple<c10::MaybeOwned<Tensor>, c10::MaybeOwned<Tensor>> expand_outplace(const Tensor& a, const Tensor& b) {
  const std::vector<int64_t> sizes = infer_size(a.sizes(), b.sizes());
  return {expand_size(a, sizes), expand_size(b, sizes)};
}
CRESSET_COMPAT_RARE c10::MaybeOwned<Tensor> expand_inplace(const Tensor& a, const Tensor& b) { return expand_size(b, a.sizes()); }
CRESSET_COMPAT_RARE std::vector<Tensor> expand_outplace(TensorList tensors) {
  std::vector<int64_t> sizes;
  for (const Tensor& t : tensors)
    if (t.defined()) sizes = infer_size(sizes, t.sizes());
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(t.defined() ? t.expand(sizes) : t);
  return out;
}
CRESSET_COMPAT_RARE Tensor sum_to(Tensor t, IntArrayRef shape) {
  if (shape.empty()) return t.sum();
  std::vector<int64_t> dims;
  const int64_t leading = t.dim() - static_cast<int64_t>(shape.size());
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d < leading || (shape[static_cast<std::size_t>(d - leading)] == 1 && t.size(d) != 1)) dims.push_back(d);
  if (!dims.empty()) t = t.sum(IntArrayRef(dims), true);
  return leading > 0 ? t.view(shape) : t;
}

// --- tensors and functions under further names
template <class Impl, class... A>
Tensor make_tensor_of(A&&... a) {
  return Tensor(c10::intrusive_ptr<TensorImpl>(c10::make_intrusive<Impl>(std::forward<A>(a)...)));
}
namespace detail {
template <class Impl, class... A>
Tensor make_tensor(A&&... a) {
  return make_tensor_of<Impl>(std::forward<A>(a)...);
}
template <class Impl, class... A>
Tensor make_tensor_base(A&&... a) {
  return make_tensor_of<Impl>(std::forward<A>(a)...);
}
inline void check_size_nonnegative(IntArrayRef sizes) { cresset::detail::check_sizes_nonnegative(sizes); }
inline std::size_t computeStorageNbytes(IntArrayRef sizes, IntArrayRef strides, std::size_t itemsize, std::size_t offset = 0) {
  return cresset::detail::compute_storage_nbytes(sizes, strides, itemsize, static_cast<int64_t>(offset));
}
inline std::size_t computeStorageNbytesContiguous(IntArrayRef sizes, std::size_t itemsize, std::size_t offset = 0) {
  return computeStorageNbytes(sizes, c10::contiguous_strides(sizes), itemsize, offset);
}
/// An array of fixed length that kernels may hold by value.
template <class T, int size_>
struct Array {
  Array() = default;
  Array(T value) { std::fill_n(data, size_, value); }
  T& operator[](int i) { return data[i]; }
  const T& operator[](int i) const { return data[i]; }
  static constexpr int size() { return size_; }

  T data[size_];
};
using cresset::detail::empty_cpu;
inline Tensor empty_cpu(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                        std::optional<bool> pin_memory, std::optional<MemoryFormat> format) {
  return at::empty(size,
                   TensorOptions().dtype(dtype).layout(layout).device(device ? device : Device(DeviceType::CPU)).pinned_memory(pin_memory),
                   format);
}
inline Tensor empty_cpu(IntArrayRef size, const TensorOptions& options) { return at::empty(size, options.device(DeviceType::CPU)); }
inline const Generator& getDefaultCPUGenerator() { return cresset::default_cpu_generator(); }
inline Generator createCPUGenerator(uint64_t seed = c10::default_rng_seed_val) { return cresset::make_cpu_generator(seed); }
}  // namespace detail
// Older names of what has another one here.
CRESSET_COMPAT_RARE std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim, bool return_inverse = false,
                                                                              bool return_counts = false) {
  return cresset::unique_consecutive(self, return_inverse, return_counts, dim);
}
CRESSET_COMPAT_RARE Tensor& adaptive_avg_pool3d_backward_out(Tensor& grad_input, const Tensor& grad_output, const Tensor& self) {
  return cresset::_adaptive_avg_pool3d_backward_out(grad_input, grad_output, self);
}
#define CRESSET_COMPAT_NAME_(name, function)                                      \
  template <class T>                                                              \
    requires std::is_convertible_v<T, Tensor> || std::is_convertible_v<T, Scalar> \
  Tensor name(const Tensor& self, const T& other) {                               \
    if constexpr (std::is_convertible_v<T, Tensor>)                               \
      return cresset::function(self, other);                                      \
    else                                                                          \
      return cresset::function(self, Scalar(other));                              \
  }
CRESSET_COMPAT_NAME_(__and__, bitwise_and)
CRESSET_COMPAT_NAME_(__or__, bitwise_or)
CRESSET_COMPAT_NAME_(__xor__, bitwise_xor)
CRESSET_COMPAT_NAME_(__lshift__, bitwise_left_shift)
CRESSET_COMPAT_NAME_(__rshift__, bitwise_right_shift)
#undef CRESSET_COMPAT_NAME_
// Lists of indices as scripts have them. Templates, so that `index(x, {i, j})` has one meaning.
template <class L>
concept ListOfIndices = std::is_same_v<L, c10::List<std::optional<Tensor>>>;
template <ListOfIndices L>
Tensor index(const Tensor& self, const L& indices) {
  return cresset::index(self, c10::OptionalTensorList(indices.vec()));
}
template <ListOfIndices L>
Tensor& index_out(Tensor& out, const Tensor& self, const L& indices) {
  return cresset::index_out(out, self, c10::OptionalTensorList(indices.vec()));
}
template <ListOfIndices L>
Tensor index_put(const Tensor& self, const L& indices, const Tensor& values, bool accumulate = false) {
  return cresset::index_put(self, c10::OptionalTensorList(indices.vec()), values, accumulate);
}
template <ListOfIndices L>
Tensor& index_put_(Tensor& self, const L& indices, const Tensor& values, bool accumulate = false) {
  return cresset::index_put_(self, c10::OptionalTensorList(indices.vec()), values, accumulate);
}
template <ListOfIndices L>
Tensor& index_put_out(Tensor& out, const Tensor& self, const L& indices, const Tensor& values, bool accumulate = false) {
  return cresset::index_put_out(out, self, c10::OptionalTensorList(indices.vec()), values, accumulate);
}
template <ListOfIndices L>
Tensor& _index_put_impl_(Tensor& self, const L& indices, const Tensor& values, bool accumulate = false, bool unsafe = false) {
  return cresset::_index_put_impl_(self, c10::OptionalTensorList(indices.vec()), values, accumulate, unsafe);
}
template <ListOfIndices L>
Tensor _unsafe_index(const Tensor& self, const L& indices) {
  return cresset::_unsafe_index(self, c10::OptionalTensorList(indices.vec()));
}
template <ListOfIndices L>
Tensor _unsafe_index_put(const Tensor& self, const L& indices, const Tensor& values, bool accumulate = false) {
  return cresset::_unsafe_index_put(self, c10::OptionalTensorList(indices.vec()), values, accumulate);
}
template <ListOfIndices L>
Tensor _unsafe_masked_index(const Tensor& self, const Tensor& mask, const L& indices, const Scalar& fill) {
  return cresset::_unsafe_masked_index(self, mask, c10::OptionalTensorList(indices.vec()), fill);
}
template <ListOfIndices L>
Tensor _unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask, const L& indices, const Tensor& values) {
  return cresset::_unsafe_masked_index_put_accumulate(self, mask, c10::OptionalTensorList(indices.vec()), values);
}
// Operators for modes of Python that the table does not have.
CRESSET_COMPAT_RARE Tensor lift_fresh(const Tensor& self) {
  return c10::Dispatcher::singleton().findSchemaOrThrow("aten::lift_fresh", "").typed<Tensor(const Tensor&)>().call(self);
}
CRESSET_COMPAT_RARE void _assert_scalar(const Scalar& self, std::string_view assert_msg) { TORCH_CHECK(self.to<bool>(), assert_msg); }
// What a tensor says of itself, as functions.
inline bool is_complex(const Tensor& t) { return t.is_complex(); }
inline bool is_conj(const Tensor& t) { return t.is_conj(); }
inline bool is_neg(const Tensor& t) { return t.is_neg(); }
inline bool is_inference(const Tensor& t) { return t.is_inference(); }
inline bool is_signed(const Tensor& t) { return t.is_signed(); }
inline bool is_floating_point(const Tensor& t) { return t.is_floating_point(); }
inline bool is_distributed(const Tensor& /*t*/) { return false; }
inline bool is_vulkan_available() { return false; }
inline c10::Allocator* getCPUAllocator() { return c10::GetCPUAllocator(); }
inline Tensor empty_symint(c10::SymIntArrayRef size, TensorOptions options = {}, std::optional<MemoryFormat> format = std::nullopt) {
  return cresset::empty(size, options, format);
}
inline Tensor zeros_symint(c10::SymIntArrayRef size, TensorOptions options = {}) { return cresset::zeros(size, options); }
inline Tensor ones_symint(c10::SymIntArrayRef size, TensorOptions options = {}) { return cresset::ones(size, options); }
inline Tensor full_symint(c10::SymIntArrayRef size, const Scalar& v, TensorOptions options = {}) { return cresset::full(size, v, options); }
inline Tensor tensor_of_scalar(const Scalar& s, TensorOptions options) { return cresset::full({}, s, options); }
inline c10::MaybeOwned<Tensor> borrow_from_optional_tensor(const std::optional<Tensor>& t) {
  return t ? c10::MaybeOwned<Tensor>::borrowed(*t) : c10::MaybeOwned<Tensor>::owned(std::in_place);
}
inline std::optional<Device> device_of(const Tensor& t) { return t.defined() ? std::optional(t.device()) : std::nullopt; }
inline std::optional<Device> device_of(const std::optional<Tensor>& t) { return t ? device_of(*t) : std::nullopt; }
inline std::optional<Device> device_of(TensorList ts) { return ts.empty() ? std::nullopt : device_of(ts.front()); }
inline bool is_tensor_subclass_like(const Tensor&) { return false; }
inline bool isTensorSubclassLike(const Tensor&) { return false; }
inline bool areAnyTensorSubclassLike(TensorList) { return false; }
enum class MemOverlap { No, Yes, TooHard };
enum class MemOverlapStatus { Full, Partial, No, TooHard };
CRESSET_COMPAT_RARE MemOverlap has_internal_overlap(const Tensor& t) {
  if (t.is_non_overlapping_and_dense()) return MemOverlap::No;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.stride(d) == 0 && t.size(d) > 1) return MemOverlap::Yes;
  return MemOverlap::TooHard;
}
CRESSET_COMPAT_RARE int64_t _debug_has_internal_overlap(const Tensor& t) { return static_cast<int64_t>(has_internal_overlap(t)); }
CRESSET_COMPAT_RARE void assert_no_internal_overlap(const Tensor& t) {
  TORCH_CHECK(has_internal_overlap(t) != MemOverlap::Yes,
              "unsupported operation: more than one element of the written-to tensor refers to a "
              "single memory location. Please clone() the tensor before performing the operation.");
}
CRESSET_COMPAT_RARE MemOverlapStatus get_overlap_status(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return MemOverlapStatus::Full;
  if (a.numel() == 0 || b.numel() == 0 || !a.is_alias_of(b)) return MemOverlapStatus::No;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) return MemOverlapStatus::TooHard;
  const auto* x = static_cast<const char*>(a.data_ptr());
  const auto* y = static_cast<const char*>(b.data_ptr());
  if (x == y) return a.strides() == b.strides() ? MemOverlapStatus::Full : MemOverlapStatus::Partial;
  return x < y + b.nbytes() && y < x + a.nbytes() ? MemOverlapStatus::Partial : MemOverlapStatus::No;
}
CRESSET_COMPAT_RARE void assert_no_partial_overlap(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(get_overlap_status(a, b) != MemOverlapStatus::Partial,
              "unsupported operation: some elements of the input tensor and the "
              "written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.");
}
CRESSET_COMPAT_RARE void assert_no_overlap(const Tensor& a, const Tensor& b) {
  const auto s = get_overlap_status(a, b);
  TORCH_CHECK(s != MemOverlapStatus::Partial && s != MemOverlapStatus::Full,
              "unsupported operation: some elements of the input tensor and the "
              "written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.");
}
namespace Reduction {
enum Reduction { None, Mean, Sum, END };
}
inline std::string get_parallel_info() { return "ATen parallel backend: native thread pool"; }
inline std::string show_config() { return "Cresset"; }
inline std::string get_cxx_flags() { return ""; }
inline std::string get_cpu_capability() { return "DEFAULT"; }
inline DeprecatedTypeProperties CPU(ScalarType t) { return DeprecatedTypeProperties(TensorOptions(t).device(kCPU)); }
inline DeprecatedTypeProperties CUDA(ScalarType t) { return DeprecatedTypeProperties(TensorOptions(t).device(kCUDA)); }
inline DeprecatedTypeProperties getDeprecatedTypeProperties(Backend, ScalarType t) { return CPU(t); }
namespace tracer::impl {
inline bool is_dispatch_enabled() {
  const cresset::LocalDispatchKeySet keys = cresset::impl::tls_local_dispatch_key_set();
  return keys.included.has(DispatchKey::Tracer) && !keys.excluded.has(DispatchKey::Tracer);
}
/// A running trace records nothing for a scope.
struct NoTracerDispatchMode {
  cresset::impl::ExcludeDispatchKeyGuard guard{DispatchKey::Tracer};
};
}  // namespace tracer::impl
struct NoTF32Guard {
  NoTF32Guard() {}
};

// --- what a backend says about its device
/// Takes getDefaultGenerator with and without const: PyTorch's own declaration has changed.
struct PrivateUse1HooksInterface : cresset::PrivateUse1HooksInterface {
  virtual const Generator& getDefaultGenerator(DeviceIndex index) { return cresset::PrivateUse1HooksInterface::getDefaultGenerator(index); }
  const Generator& getDefaultGenerator(DeviceIndex index) const override {
    return const_cast<PrivateUse1HooksInterface*>(this)->getDefaultGenerator(index);
  }
};

/// A new generator of the device that REGISTER_GENERATOR_PRIVATEUSE1 gave one.
inline Generator GetGeneratorForPrivateuse1(DeviceIndex index) { return cresset::make_generator_for(Device(kPrivateUse1, index)); }

/// Zeros for kernels that only look at sizes; they have memory here.
CRESSET_COMPAT_RARE Tensor _efficientzerotensor(IntArrayRef size, const TensorOptions& options = {}) {
  return cresset::zeros(size, options);
}

/// A tensor that may be absent, without a count of its own.
class OptionalTensorRef {
 public:
  OptionalTensorRef() = default;
  OptionalTensorRef(const Tensor& t) : tensor_(t) {}
  bool has_value() const { return tensor_.defined(); }
  explicit operator bool() const { return has_value(); }
  const Tensor& getTensorRef() const& { return tensor_; }
  const Tensor& operator*() const& { return tensor_; }
  const Tensor* operator->() const& { return &tensor_; }

 private:
  Tensor tensor_;
};

namespace detail {
CRESSET_COMPAT_RARE void check_rng_state(const Tensor& state) {
  CRESSET_CHECK_TYPE(state.layout() == kStrided && state.device().type() == kCPU && state.scalar_type() == kByte && state.is_contiguous(),
                     "RNG state must be a torch.ByteTensor");
}
}  // namespace detail

// --- automatic mixed precision
namespace autocast {
inline bool is_autocast_enabled(DeviceType t = kCPU) { return !c10::impl::tls_is_dispatch_key_excluded(autocastKey(t)); }
inline bool is_enabled() { return is_autocast_enabled(); }
inline bool is_cpu_enabled() { return is_autocast_enabled(); }
inline Tensor cached_cast(ScalarType to, const Tensor& t, DeviceType type = kCPU) {
  return t.defined() && t.is_floating_point() && t.device().type() == type && t.scalar_type() != kDouble && t.scalar_type() != to ? t.to(to)
                                                                                                                                  : t;
}
inline std::optional<Tensor> cached_cast(ScalarType to, const std::optional<Tensor>& t, DeviceType type = kCPU) {
  return t ? std::optional<Tensor>(cached_cast(to, *t, type)) : std::nullopt;
}
inline std::vector<Tensor> cached_cast(ScalarType to, TensorList ts, DeviceType type = kCPU) {
  std::vector<Tensor> out;
  for (const Tensor& t : ts) out.push_back(cached_cast(to, t, type));
  return out;
}
using cresset::autocast::clear_cache;
using cresset::autocast::get_autocast_dtype;
using cresset::autocast::is_autocast_cache_enabled;
using cresset::autocast::set_autocast_cache_enabled;
using cresset::autocast::set_autocast_dtype;
using cresset::autocast::set_autocast_enabled;
inline ScalarType get_lower_precision_fp_from_device_type(DeviceType type) { return get_autocast_dtype(type); }
}  // namespace autocast

// --- profiler marks
using RecordFunctionHandle = uint64_t;
enum class RecordScope : uint8_t {
  FUNCTION,
  BACKWARD_FUNCTION,
  TORCHSCRIPT_FUNCTION,
  KERNEL_FUNCTION_DTYPE,
  CUSTOM_CLASS,
  BUILD_FEATURE,
  LITE_INTERPRETER,
  USER_SCOPE
};
struct RecordFunction : cresset::profiler::RecordFunction {
  explicit RecordFunction(RecordScope scope = RecordScope::FUNCTION)
      : cresset::profiler::RecordFunction(static_cast<cresset::profiler::Scope>(scope)) {}
};
#define RECORD_FUNCTION(fn, ...) CRESSET_RECORD_FUNCTION(fn, __VA_ARGS__)
#define RECORD_FUNCTION_WITH_SCOPE(scope, fn, ...) \
  CRESSET_RECORD_FUNCTION_IN_SCOPE(static_cast<cresset::profiler::Scope>(scope), fn, __VA_ARGS__)
#define RECORD_USER_SCOPE(fn) CRESSET_RECORD_USER_SCOPE(fn)
// Types of kernels are no records here.
#define RECORD_KERNEL_FUNCTION_DTYPE(NAME, enum_type) (void)0

// --- what a device's fallback does by itself
/// Copies on the CPU of those tensors that are defined.
inline std::vector<Tensor> _to_cpu(TensorList tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& t : tensors) copies.push_back(t.defined() ? t.cpu() : t);
  return copies;
}
/// Makes `dst` as large as `self`, and copies.
inline Tensor _copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  if (dst.sizes() != self.sizes()) dst.resize_(self.sizes());
  return at::_copy_from(self, dst, false);
}

}  // namespace at

namespace torch::jit {
using cresset::drop;
using cresset::last;
using cresset::pack;
using cresset::peek;
using cresset::pop;
using cresset::push;
using cresset::Stack;
}  // namespace torch::jit

// Used inside of functions without a semicolon.
#undef REGISTER_GENERATOR_PRIVATEUSE1
#define REGISTER_GENERATOR_PRIVATEUSE1(maker) CRESSET_REGISTER_GENERATOR(PrivateUse1, maker);
