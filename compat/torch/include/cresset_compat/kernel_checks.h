// Small things that kernels of devices take from ATen/native: resizing of storages, checks of factories and lists, numbers as tensors.
#pragma once

#include <bitset>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include <cresset_compat/native.h>
#include <cresset_compat/utility.h>

namespace c10 {

/// The number at `p`, which is of the type `from`, as a number of the type To; and the other way round.
template <class To>
inline To fetch_and_cast(const ScalarType from, const void* p) {
  switch (from) {
#define CRESSET_COMPAT_CASE_(T, Name, ...) \
  case ScalarType::Name: {                 \
    T value;                               \
    std::memcpy(&value, p, sizeof value);  \
    return c10::convert<To>(value);        \
  }
    CRESSET_FORALL_SCALAR_TYPES(CRESSET_COMPAT_CASE_)
#undef CRESSET_COMPAT_CASE_
    default: TORCH_CHECK(false, "fetch_and_cast: a type of numbers was required; ", from, " was given.");
  }
}
template <class From>
inline void cast_and_store(const ScalarType to, void* p, From value) {
  switch (to) {
#define CRESSET_COMPAT_CASE_(T, Name, ...)   \
  case ScalarType::Name: {                   \
    const T stored = c10::convert<T>(value); \
    std::memcpy(p, &stored, sizeof stored);  \
    return;                                  \
  }
    CRESSET_FORALL_SCALAR_TYPES(CRESSET_COMPAT_CASE_)
#undef CRESSET_COMPAT_CASE_
    default: TORCH_CHECK(false, "cast_and_store: a type of numbers was required; ", to, " was given.");
  }
}

}  // namespace c10

namespace at {

/// One bit for each listed dimension; a repeated one is an error.
inline std::bitset<64> dim_list_to_bitset(OptionalIntArrayRef dims, std::size_t ndims) {
  TORCH_CHECK(ndims <= 64, "only tensors with up to 64 dims are supported");
  std::bitset<64> seen;
  if (!dims) {
    for (std::size_t d = 0; d < ndims; ++d) seen[d] = true;
    return seen;
  }
  for (const int64_t dim : *dims) {
    const auto d = static_cast<std::size_t>(c10::maybe_wrap_dim(dim, static_cast<int64_t>(ndims)));
    TORCH_CHECK(!seen[d], "dim ", d, " appears multiple times in the list of dims");
    seen[d] = true;
  }
  return seen;
}

namespace meta {
/// The sizes of a reduction over `dims`, all where there are none.
inline DimVector get_reduction_shape(const Tensor& self, IntArrayRef dims, bool keepdim, bool allow_empty_dims = false) {
  const std::bitset<64> gone = dim_list_to_bitset(dims.empty() && !allow_empty_dims ? OptionalIntArrayRef() : OptionalIntArrayRef(dims),
                                                  static_cast<std::size_t>(self.dim()));
  DimVector sizes;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!gone[static_cast<std::size_t>(d)])
      sizes.push_back(self.size(d));
    else if (keepdim)
      sizes.push_back(1);
  }
  return sizes;
}
}  // namespace meta

namespace native {

// --- ResizeCommon.h, Resize.h
inline int64_t storage_size_for(IntArrayRef size, IntArrayRef stride) {
  TORCH_INTERNAL_ASSERT(size.size() == stride.size(), "storage_size_for(size, stride) requires that size and stride have the same size");
  return static_cast<int64_t>(at::detail::computeStorageNbytes(size, stride, 1, 0));
}
inline Tensor& resize_named_tensor_(Tensor& self, IntArrayRef size, std::optional<c10::MemoryFormat> format = std::nullopt) {
  TORCH_CHECK(self.sizes() == size, "Cannot resize named tensor with resize_ or resize_as_ (tried to resize ", self.sizes(), " to ", size,
              ")");
  TORCH_CHECK(!format, "Unsupported memory format for named tensor resize ", *format);
  return self;
}
/// Whether `storage` may be made that of `result`; its memory is resized by the caller.
inline void checkSetStorage(Tensor& result, c10::Storage storage, int64_t offset, IntArrayRef size, IntArrayRef stride,
                            bool check_offset_in_bounds = true) {
  TORCH_CHECK(size.size() == stride.size(), "unequal size length (", size.size(), ") and stride length (", stride.size(), ")");
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  if (check_offset_in_bounds && storage.nbytes() > 0 && result.itemsize() > 0 && c10::multiply_integers(size) > 0)
    TORCH_CHECK(static_cast<std::size_t>(offset) * result.itemsize() <= storage.nbytes(), "storage offset ", offset,
                " is out of bounds for storage of size ", storage.nbytes());
  if (result.storage().unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return;
  TORCH_CHECK(storage.device() == result.storage().device(), "Attempted to set the storage of a tensor on device \"",
              result.storage().device(), "\" to a storage on different device \"", storage.device(),
              "\".  This is no longer allowed; the devices must match.");
  result.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
}
inline void setStrided(const Tensor& self, IntArrayRef size, IntArrayRef stride, int64_t offset) {
  TORCH_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  for (const int64_t s : stride) TORCH_CHECK(s >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
  const std::size_t needed = at::detail::computeStorageNbytes(size, stride, self.itemsize(), static_cast<std::size_t>(offset));
  TORCH_CHECK(c10::multiply_integers(size) == 0 || needed <= self.storage().nbytes(), "setStorage: sizes ", size, ", strides ", stride,
              ", storage offset ", offset, ", and itemsize ", self.itemsize(), " requiring a storage size of ", needed,
              " are out of bounds for storage of size ", self.storage().nbytes());
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
}

// --- TensorFactories.h, TensorShape.h, ScalarOps.h, TensorConversions
inline void check_size_nonnegative(IntArrayRef size) {
  for (const int64_t n : size) TORCH_CHECK(n >= 0, "Trying to create tensor with negative dimension ", n, ": ", size);
}
/// Whether whole numbers up to n are exact in the type of the tensor.
inline void check_supported_max_int_with_precision(int64_t n, const Tensor& tensor) {
  const auto fits = [&](int digits) { return n <= (int64_t{1} << digits) + 1; };
  TORCH_CHECK(n >= 0, "n must be non-negative, got ", n);
  switch (tensor.scalar_type()) {
    case kHalf: TORCH_CHECK(fits(11), "n cannot be greater than 2049 for Half type."); break;
    case kFloat: TORCH_CHECK(fits(24), "n cannot be greater than 2^24+1 for Float type."); break;
    case kDouble: TORCH_CHECK(fits(53), "n cannot be greater than 2^53+1 for Double type."); break;
    default: break;
  }
}
inline bool cat_should_skip_tensor(const Tensor& t) { return t.dim() == 1 && t.size(0) == 0; }
/// A number as a tensor that takes no part in the choice of types.
inline Tensor wrapped_scalar_tensor(const Scalar& number, Device device = kCPU) {
  Tensor t = at::scalar_tensor(number, at::device(device).dtype(number.type()));
  t.unsafeGetTensorImpl()->set_wrapped_number(true);
  return t;
}

inline void zero_numel_check_dims(const Tensor& self, int64_t dim, const char* op) {
  TORCH_CHECK_INDEX(self.dim() == 0 ? dim == 0 || dim == -1 : self.size(dim) != 0, op,
                    self.dim() == 0 ? ": Expected reduction dim -1 or 0 for scalar but got " : ": Expected reduction dim ", dim,
                    self.dim() == 0 ? "" : " to have non-zero size.");
}
/// The factor of add and sub: a number that the type can hold.
inline void alpha_check(ScalarType dtype, const Scalar& alpha) {
  TORCH_CHECK(!alpha.isBoolean() || dtype == kBool, "Boolean alpha only supported for Boolean results.");
  TORCH_CHECK(c10::isFloatingType(dtype) || c10::isComplexType(dtype) || alpha.isIntegral(true),
              "For integral input tensors, argument alpha must not be a floating point number.");
  TORCH_CHECK(c10::isComplexType(dtype) || !alpha.isComplex(),
              "For non-complex input tensors, argument alpha must not be a complex number.");
}
/// How many matrices a tensor has.
inline int64_t batchCount(const Tensor& matrices) {
  return c10::multiply_integers(matrices.sizes().slice(0, static_cast<std::size_t>(matrices.dim() - 2)));
}
enum class fft_norm_mode { none, by_root_n, by_n };
namespace memory {
template <class T, int size>
struct alignas(sizeof(T) * size) aligned_vector {
  T val[size];
};
}  // namespace memory

// --- ConvUtils.h
constexpr int input_batch_size_dim = 0, input_channels_dim = 1, output_batch_size_dim = 0, output_channels_dim = 1,
              weight_output_channels_dim = 0, weight_input_channels_dim = 1;
inline std::vector<int64_t> conv_output_size(IntArrayRef input, IntArrayRef weight, IntArrayRef padding, IntArrayRef stride,
                                             IntArrayRef dilation = {}) {
  std::vector<int64_t> out = {input[input_batch_size_dim], weight[weight_output_channels_dim]};
  for (std::size_t d = 2; d < input.size(); ++d) {
    const int64_t kernel = (dilation.empty() ? 1 : dilation[d - 2]) * (weight[d] - 1) + 1;
    out.push_back((input[d] + 2 * padding[d - 2] - kernel) / stride[d - 2] + 1);
  }
  return out;
}
inline std::vector<int64_t> conv_input_size(IntArrayRef output, IntArrayRef weight, IntArrayRef padding, IntArrayRef output_padding,
                                            IntArrayRef stride, IntArrayRef dilation, int64_t groups) {
  std::vector<int64_t> in = {output[output_batch_size_dim], weight[weight_input_channels_dim] * groups};
  for (std::size_t d = 2; d < output.size(); ++d)
    in.push_back((output[d] - 1) * stride[d - 2] - 2 * padding[d - 2] + dilation[d - 2] * (weight[d] - 1) + 1 + output_padding[d - 2]);
  return in;
}

// --- layer_norm.h
/// (M, N): rows and elements of a row.
inline std::pair<int64_t, int64_t> _check_layer_norm_inputs(const Tensor& input, IntArrayRef shape, const Tensor& weight,
                                                            const Tensor& bias) {
  const auto n = static_cast<int64_t>(shape.size());
  TORCH_CHECK(n >= 1,
              "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
              "normalized_shape = ",
              shape);
  TORCH_CHECK(!weight.defined() || weight.sizes() == shape,
              "Expected weight to be of same shape as normalized_shape, but got weight of "
              "shape ",
              weight.sizes(), " and normalized_shape = ", shape);
  TORCH_CHECK(!bias.defined() || bias.sizes() == shape, "Expected bias to be of same shape as normalized_shape, but got bias of shape ",
              bias.sizes(), " and normalized_shape = ", shape);
  const bool fits = input.dim() >= n && input.sizes().slice(static_cast<std::size_t>(input.dim() - n)) == shape;
  TORCH_CHECK(fits, "Given normalized_shape=", shape, ", expected input with shape [*, ", shape, "], but got input of size", input.sizes());
  const auto before = static_cast<std::size_t>(input.dim() - n);
  return {c10::multiply_integers(input.sizes().slice(0, before)), c10::multiply_integers(input.sizes().slice(before))};
}

// --- ForeachUtils.h
inline void check_foreach_api_restrictions(TensorList tensors) {
  TORCH_CHECK(!tensors.empty(), "Tensor list must have at least one tensor.");
}
inline void check_foreach_api_restrictions(TensorList tensors, c10::ArrayRef<Scalar> scalars) {
  check_foreach_api_restrictions(tensors);
  TORCH_CHECK(tensors.size() == scalars.size(), "Tensor list must have same number of elements as scalar list.");
}
inline void check_foreach_api_restrictions(TensorList a, TensorList b) {
  check_foreach_api_restrictions(a);
  TORCH_CHECK(a.size() == b.size(), "Tensor lists must have the same number of tensors, got ", a.size(), " and ", b.size());
}
inline void check_foreach_api_restrictions(TensorList a, TensorList b, TensorList c) {
  check_foreach_api_restrictions(a, b);
  TORCH_CHECK(a.size() == c.size(), "Tensor lists must have the same number of tensors, got ", a.size(), " and ", c.size());
}
/// Whether a kernel may walk over the lists together: one device and type, sizes and strides of each place alike, dense without overlap.
inline bool can_use_fast_route(c10::ArrayRef<TensorList> lists, c10::ArrayRef<Scalar> scalars = {},
                               bool does_op_promote_integer_inputs_to_float = false) {
  const Tensor& like = lists[0][0];
  for (const TensorList& list : lists)
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Tensor &t = list[i], &first = lists[0][i];
      if (t.scalar_type() != like.scalar_type() || t.device() != like.device() || t.layout() != kStrided ||
          !t.is_non_overlapping_and_dense() || t.sizes() != first.sizes() || t.strides() != first.strides())
        return false;
    }
  if (does_op_promote_integer_inputs_to_float && c10::isIntegralType(like.scalar_type(), true)) return false;
  for (const Scalar& s : scalars)
    if (c10::promoteTypes(s.isFloatingPoint() && !c10::isIntegralType(like.scalar_type(), true) ? like.scalar_type() : s.type(),
                          like.scalar_type()) != like.scalar_type())
      return false;
  return true;
}
inline bool can_use_fast_route(TensorList tensors, c10::ArrayRef<Scalar> scalars = {}, bool promotes = false) {
  return can_use_fast_route(c10::ArrayRef<TensorList>{tensors}, scalars, promotes);
}
inline bool can_use_fast_route(TensorList a, TensorList b, bool promotes = false) {
  return can_use_fast_route(c10::ArrayRef<TensorList>{a, b}, {}, promotes);
}

}  // namespace native
}  // namespace at

namespace c10::impl {
/// All tensors of a call are of one device, or of none.
inline void check_and_update_common_device(std::optional<Device>& common, const at::Tensor& t, const std::string& op,
                                           const std::string& argument) {
  if (!t.defined()) return;
  TORCH_CHECK(!common || *common == t.device(), "Expected all tensors to be on the same device, but found at least two devices, ", *common,
              " and ", t.device(), "! (when checking argument for argument ", argument, " in method ", op, ")");
  common = t.device();
}
}  // namespace c10::impl
