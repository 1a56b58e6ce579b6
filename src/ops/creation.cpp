// New tensors: options, sizes of ranges, fills.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <cresset/ops/from_blob.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/pinned_memory.h>
#include <cresset/ops/tensor_literal.h>

#include "ops/ops_decl_creation.h"
#include "ops/shared/fresh_memory.h"
#include "ops/shared/number_range.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/sparse_factories.h"
#include "ops/shared/structured.h"

namespace cresset::ops {

std::atomic<bool> fresh_memory_is_marked{false};

void mark_fresh_memory(const Tensor& t) {
  if (CRESSET_LIKELY(!fresh_memory_is_marked.load(std::memory_order_relaxed)) || t.numel() == 0) return;
  const ScalarType type = t.scalar_type();
  Scalar mark(true);
  if (isDifferentiableType(type))
    mark = std::numeric_limits<double>::quiet_NaN();
  else if (type != kBool)
    mark = ~uint64_t{0} >> (64 - 8 * static_cast<int>(element_size(type)) + (isSignedType(type) ? 1 : 0));
  const AutoDispatchBelowADInplaceOrView guard;
  Tensor whole = t;
  if (!t.is_non_overlapping_and_dense())  // gaps belong to it too
    whole = Tensor(make_intrusive<TensorImpl>(t.storage(), t.key_set(), t.dtype(),
                                              DimVector{static_cast<int64_t>(t.storage().nbytes() / t.itemsize())}, DimVector{1}, 0));
  cresset::fill_(whole, mark);
}

Tensor make_sparse(IntArrayRef size, ScalarType dtype, Layout layout, std::optional<Device> device) {
  if (layout > kSparseBsc) return {};  // the last of the layouts that are made in Python
  const auto op = Dispatcher::singleton().findSchema({"aten::_new_sparse", ""});
  if (!op) return {};
  cresset::detail::check_sizes_nonnegative(size);
  return op->typed<Tensor(IntArrayRef, ScalarType, Layout, std::optional<Device>)>().call(size, dtype, layout, device);
}

namespace {

// Only host memory can be pinned, and the question means nothing where there is no memory.
void check_options(std::optional<Layout> layout, Device device, std::optional<bool> pin_memory) {
  CRESSET_CHECK_NOT_IMPLEMENTED(!layout || *layout == kStrided, "new tensors are strided here; given layout ", to_string(*layout), ".");
  CRESSET_CHECK(!pin_memory.value_or(false) || device.is_cpu() || device.type() == kMeta,
                "Only dense CPU tensors can be pinned; leave pin_memory out or device at \"cpu\".");
}

Tensor allocate_new(const TensorSpec& spec, std::optional<bool> pin_memory) {
  if (!spec.device.is_cpu()) return allocate(spec, spec.device);
  Tensor made = cresset::detail::empty_host(spec, pin_memory);
  mark_fresh_memory(made);
  return made;
}

// What a new tensor of given sizes is, with every option filled in.
TensorSpec new_spec(IntArrayRef size, ScalarType dtype, std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory) {
  check_options(layout, device_or_default(device), pin_memory);
  detail::check_sizes_nonnegative(size);
  return {DimVector(size), dtype, device_or_default(device), std::nullopt};
}

Tensor new_empty_spec(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                      std::optional<bool> pin_memory) {
  return allocate_new(new_spec(size, dtype.value_or(get_default_dtype()), layout, device, pin_memory), pin_memory);
}

// Fills a tensor nobody else has seen: not an in-place change for version counters or autograd.
Tensor filled(Tensor fresh, const Scalar& value) {
  AutoDispatchBelowADInplaceOrView guard;
  if (value.isIntegral(true) && value.equal(0))
    fresh.zero_();
  else
    fresh.fill_(value);
  return fresh;
}

ScalarType type_of_number(const Scalar& value) {
  if (value.isComplex()) return get_default_complex_dtype();
  return value.isFloatingPoint() ? get_default_dtype() : value.isUnsigned() ? kLong : value.type();
}

DimVector checked_strides(IntArrayRef size, IntArrayRef stride) {
  detail::check_sizes_nonnegative(size);
  CRESSET_CHECK(size.size() == stride.size(), "dimensionality of sizes (", size.size(), ") must match dimensionality of strides (",
                stride.size(), ")");
  for (int64_t s : stride)
    CRESSET_CHECK(s >= 0, "empty_strided: strides must not be negative; given strides ", stride, " for sizes ", size, ".");
  return DimVector(stride);
}

std::optional<DimVector> format_strides(IntArrayRef size, std::optional<MemoryFormat> format) {
  if (!format || *format == MemoryFormat::Contiguous) return std::nullopt;
  CRESSET_CHECK(*format != MemoryFormat::Preserve, "empty: preserve memory format needs a tensor to preserve; use empty_like.");
  return strides_for(size, *format);
}

}  // namespace

Tensor meta_empty(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                  std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  if (Tensor sparse = new_sparse(size, dtype.value_or(get_default_dtype()), layout, device); sparse.defined()) return sparse;
  TensorSpec spec = new_spec(size, dtype.value_or(get_default_dtype()), layout, device, pin_memory);
  spec.strides = format_strides(size, memory_format);
  return allocate_meta(spec);
}

Tensor meta_empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                          std::optional<Device>, std::optional<bool> pin_memory) {
  check_options(layout, Device(kMeta), pin_memory);
  return allocate_meta({DimVector(size), dtype.value_or(get_default_dtype()), Device(kMeta), checked_strides(size, stride)});
}

Tensor empty_permuted_impl(IntArrayRef size, IntArrayRef physical_layout, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                           std::optional<Device> device, std::optional<bool> pin_memory) {
  TensorSpec spec = new_spec(size, dtype.value_or(get_default_dtype()), layout, device, pin_memory);
  const int64_t n = static_cast<int64_t>(size.size());
  CRESSET_CHECK(size.size() == physical_layout.size(),
                "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = ", n,
                " is not equal to len(physical_layout) = ", physical_layout.size());
  DimVector in_memory, strides(size.size());
  std::vector<bool> seen(size.size(), false);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t d = physical_layout[i];
    CRESSET_CHECK(d >= 0 && d < n, "Dimension out of range (expected to be between 0 and ", n - 1, ", but got ", d, " at index ", i,
                  ").  NB: negative dims not currently supported; file an issue if you want it.");
    CRESSET_CHECK(!seen[d], "Duplicate dim not allowed");
    seen[d] = true;
    in_memory.push_back(size[d]);
  }
  const DimVector dense = contiguous_strides(in_memory);
  for (int64_t i = 0; i < n; ++i) strides[physical_layout[i]] = dense[i];
  spec.strides = strides;
  return allocate_new(spec, pin_memory);
}

Tensor empty_like_impl(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                       std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  TensorSpec spec{DimVector(self.sizes()), dtype.value_or(self.scalar_type()), device.value_or(self.device()), std::nullopt};
  check_options(layout, spec.device, pin_memory);
  if (memory_format && *memory_format != MemoryFormat::Preserve) {
    spec.strides = format_strides(self.sizes(), memory_format);
  } else if (self.layout() == kStrided && self.has_storage()) {
    spec.strides = preserved_strides(self);
  }
  return allocate_new(spec, pin_memory);
}

Tensor new_empty_impl(const Tensor& self, IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                      std::optional<Device> device, std::optional<bool> pin_memory) {
  if (Tensor sparse = new_sparse(size, dtype.value_or(self.scalar_type()), layout, device.value_or(self.device())); sparse.defined())
    return sparse;
  return new_empty_spec(size, dtype.value_or(self.scalar_type()), layout, device.value_or(self.device()), pin_memory);
}

Tensor new_empty_strided_impl(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype,
                              std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  TensorSpec spec = new_spec(size, dtype.value_or(self.scalar_type()), layout, device.value_or(self.device()), pin_memory);
  spec.strides = checked_strides(size, stride);
  return allocate_new(spec, pin_memory);
}

Tensor zeros_impl(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                  std::optional<bool> pin_memory) {
  if (Tensor sparse = new_sparse(size, dtype.value_or(get_default_dtype()), layout, device); sparse.defined()) return sparse;
  return filled(new_empty_spec(size, dtype, layout, device, pin_memory), 0);
}

Tensor ones_impl(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                 std::optional<bool> pin_memory) {
  return filled(new_empty_spec(size, dtype, layout, device, pin_memory), 1);
}

Tensor full_impl(IntArrayRef size, const Scalar& fill_value, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                 std::optional<Device> device, std::optional<bool> pin_memory) {
  // Beside a default type of 16 bits, too, a complex number makes complex64.
  ScalarType type = dtype.value_or(type_of_number(fill_value));
  if (!dtype && type == kComplexHalf) type = kComplexFloat;
  return filled(new_empty_spec(size, type, layout, device, pin_memory), fill_value);
}

Tensor zeros_like_impl(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                       std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  const Device where = device.value_or(self.device());
  if (Tensor sparse = new_sparse(self.sizes(), dtype.value_or(self.scalar_type()), layout, where); sparse.defined()) return sparse;
  return filled(empty_like_impl(self, dtype, layout, device, pin_memory, memory_format), 0);
}

Tensor ones_like_impl(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                      std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  return filled(empty_like_impl(self, dtype, layout, device, pin_memory, memory_format), 1);
}

Tensor full_like_impl(const Tensor& self, const Scalar& fill_value, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                      std::optional<Device> device, std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  return filled(empty_like_impl(self, dtype, layout, device, pin_memory, memory_format), fill_value);
}

Tensor new_zeros_impl(const Tensor& self, IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                      std::optional<Device> device, std::optional<bool> pin_memory) {
  const Tensor fresh = new_empty_impl(self, size, dtype, layout, device, pin_memory);
  return fresh.layout() == kStrided ? filled(fresh, 0) : fresh;
}

Tensor new_ones_impl(const Tensor& self, IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                     std::optional<Device> device, std::optional<bool> pin_memory) {
  check_options(layout, device.value_or(self.device()), pin_memory);
  return filled(new_empty_impl(self, size, dtype, layout, device, pin_memory), 1);
}

Tensor new_full_impl(const Tensor& self, IntArrayRef size, const Scalar& fill_value, std::optional<ScalarType> dtype,
                     std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  check_options(layout, device.value_or(self.device()), pin_memory);
  return filled(new_empty_impl(self, size, dtype, layout, device, pin_memory), fill_value);
}

Tensor scalar_tensor_impl(const Scalar& s, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                          std::optional<bool> pin_memory) {
  return filled(new_empty_spec({}, dtype, layout, device, pin_memory), s);
}

// ---- ranges

static void check_whole(double from, double to, double by) {
  for (const double number : {from, to, by}) check_number(Scalar(number), kLong);
}
static void check_range(double from, double to, double by) {
  CRESSET_CHECK(by > 0 || by < 0, "step must be nonzero");
  CRESSET_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
  CRESSET_CHECK((by > 0 && to >= from) || (by < 0 && to <= from), "upper bound and lower bound inconsistent with step sign");
}

TensorSpec arange_shape(const Scalar& start, const Scalar& end, const Scalar& step, std::optional<ScalarType> dtype,
                        std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  const bool integral = start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
  const ScalarType type = dtype.value_or(integral ? kLong : get_default_dtype());
  CRESSET_CHECK_NOT_IMPLEMENTED(type != kBool && !isComplexType(type), "\"arange_cpu\" not implemented for '", type, "'");
  const double from = start.toDouble(), to = end.toDouble(), by = step.toDouble();
  check_range(from, to, by);
  if (isIntegralType(type)) check_whole(from, to, by);
  if (type == kLong) CRESSET_CHECK_VALUE(step.toLong() != 0, "step must be nonzero");
  double count;
  if (integral) {
    const int64_t first = start.toLong(), last = end.toLong(), stride = step.toLong(), sign = stride > 0 ? 1 : -1;
    count = static_cast<double>((last - first + stride - sign) / stride);
  } else {
    count = std::ceil((to - from) / by);
  }
  CRESSET_CHECK(count >= 0 && count <= 9.2e18, "arange: invalid size, possible overflow");
  const int64_t sizes[] = {static_cast<int64_t>(count)};
  return new_spec(sizes, type, layout, device, pin_memory);
}

TensorSpec arange_start_shape(const Scalar& start, const Scalar& end, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                              std::optional<Device> device, std::optional<bool> pin_memory) {
  return arange_shape(start, end, 1, dtype, layout, device, pin_memory);
}

TensorSpec arange_end_shape(const Scalar& end, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                            std::optional<bool> pin_memory) {
  return arange_shape(0, end, 1, dtype, layout, device, pin_memory);
}

TensorSpec linspace_shape(const Scalar& start, const Scalar& end, int64_t steps, std::optional<ScalarType> dtype,
                          std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  CRESSET_CHECK(steps >= 0, "number of steps must be non-negative");
  const bool complex = start.isComplex() || end.isComplex();
  const ScalarType type = dtype.value_or(complex ? get_default_complex_dtype() : get_default_dtype());
  CRESSET_CHECK(!complex || isComplexType(type), "linspace(): inferred dtype ", get_default_complex_dtype(),
                " can't be safely cast to passed dtype ", type);
  CRESSET_CHECK_NOT_IMPLEMENTED(type != kBool, "\"linspace_cpu\" not implemented for 'Bool'");
  return new_spec(steps, type, layout, device, pin_memory);
}

TensorSpec logspace_shape(const Scalar& start, const Scalar& end, int64_t steps, double, std::optional<ScalarType> dtype,
                          std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  return linspace_shape(start, end, steps, dtype, layout, device, pin_memory);
}

// ---- linspace and logspace between tensors

namespace {
std::string dimensions_text(const char* name, const Tensor& t) { return str(name, " with ", t.dim(), " dimension(s)"); }
void check_ends(const char* op, const Tensor& start, const Tensor& end) {
  CRESSET_CHECK(start.dim() == 0 && end.dim() == 0, op, " only supports 0-dimensional start and end tensors, but got ",
                dimensions_text("start", start), " and ", dimensions_text("end", end), ".");
}
void check_end(const char* op, const char* name, const Tensor& t) {
  CRESSET_CHECK(t.dim() == 0, op, " only supports 0-dimensional start and end tensors, but got ", dimensions_text(name, t), ".");
}
}  // namespace

Tensor linspace_tensors(const Tensor& start, const Tensor& end, int64_t steps, std::optional<ScalarType> dtype,
                        std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  check_ends("linspace", start, end);
  return cresset::linspace(start.item(), end.item(), steps, dtype, layout, device, pin_memory);
}
Tensor linspace_tensors(const Tensor& start, const Scalar& end, int64_t steps, std::optional<ScalarType> dtype,
                        std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  check_end("linspace", "start", start);
  return cresset::linspace(start.item(), end, steps, dtype, layout, device, pin_memory);
}
Tensor linspace_tensors(const Scalar& start, const Tensor& end, int64_t steps, std::optional<ScalarType> dtype,
                        std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  check_end("linspace", "end", end);
  return cresset::linspace(start, end.item(), steps, dtype, layout, device, pin_memory);
}
Tensor logspace_tensors(const Tensor& start, const Tensor& end, int64_t steps, double base, std::optional<ScalarType> dtype,
                        std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  check_ends("logspace", start, end);
  return cresset::logspace(start.item(), end.item(), steps, base, dtype, layout, device, pin_memory);
}
Tensor logspace_tensors(const Tensor& start, const Scalar& end, int64_t steps, double base, std::optional<ScalarType> dtype,
                        std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  check_end("logspace", "start", start);
  return cresset::logspace(start.item(), end, steps, base, dtype, layout, device, pin_memory);
}
Tensor logspace_tensors(const Scalar& start, const Tensor& end, int64_t steps, double base, std::optional<ScalarType> dtype,
                        std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  check_end("logspace", "end", end);
  return cresset::logspace(start, end.item(), steps, base, dtype, layout, device, pin_memory);
}

// ---- matrices

TensorSpec eye_m_shape(int64_t n, int64_t m, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                       std::optional<bool> pin_memory) {
  CRESSET_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  CRESSET_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  return new_spec({n, m}, dtype.value_or(get_default_dtype()), layout, device, pin_memory);
}

TensorSpec eye_shape(int64_t n, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                     std::optional<bool> pin_memory) {
  return eye_m_shape(n, n, dtype, layout, device, pin_memory);
}

namespace {
TensorSpec triangle_spec(const char* op, const Tensor& self) {
  CRESSET_CHECK(self.dim() >= 2, op, ": input tensor must have at least 2 dimensions");
  return {DimVector(self.sizes()), self.scalar_type(), self.device(), std::nullopt};
}
}  // namespace

TensorSpec tril_shape(const Tensor& self, int64_t) { return triangle_spec("tril", self); }
TensorSpec triu_shape(const Tensor& self, int64_t) { return triangle_spec("triu", self); }

namespace {

// Elements of the lower triangle (columns c <= row + offset) of a row by col matrix.
__int128 lower_count(int64_t row, int64_t col, int64_t offset) {
  offset = std::clamp<int64_t>(offset, -row, col);
  // Rows before `first` have none, those from `full` on all columns; in between there is one more with each row.
  const int64_t first = std::clamp<int64_t>(-offset, 0, row), full = std::clamp<int64_t>(col - offset - 1, first, row);
  const __int128 slope = static_cast<__int128>(full - first) * (first + offset + 1 + full + offset) / 2;
  return slope + static_cast<__int128>(row - full) * col;
}
int64_t checked_count(__int128 count) {
  CRESSET_CHECK(count <= std::numeric_limits<int64_t>::max(), "a triangle of so many elements is too large");
  return static_cast<int64_t>(count);
}

TensorSpec indices_spec(int64_t row, int64_t col, int64_t count, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                        std::optional<Device> device, std::optional<bool> pin_memory) {
  const ScalarType type = dtype.value_or(kLong);
  CRESSET_CHECK_NOT_IMPLEMENTED(isIntegralType(type) || isFloatingType(type), "\"tril_indices\" not implemented for '", type, "'");
  (void)row, (void)col;
  return new_spec({2, count}, type, layout, device, pin_memory);
}

void check_row_col(int64_t row, int64_t col) {
  CRESSET_CHECK(row >= 0, "row must be non-negative, got", row);
  CRESSET_CHECK(col >= 0, "col must be non-negative, got", col);
}

}  // namespace

TensorSpec tril_indices_shape(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                              std::optional<Device> device, std::optional<bool> pin_memory) {
  check_row_col(row, col);
  return indices_spec(row, col, checked_count(lower_count(row, col, offset)), dtype, layout, device, pin_memory);
}

TensorSpec triu_indices_shape(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                              std::optional<Device> device, std::optional<bool> pin_memory) {
  check_row_col(row, col);
  const __int128 below = offset > -row ? lower_count(row, col, offset - 1) : 0;
  return indices_spec(row, col, checked_count(static_cast<__int128>(row) * col - below), dtype, layout, device, pin_memory);
}

Tensor closed_range(const Scalar& start, const Scalar& end, const Scalar& step, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  const double from = start.toDouble(), to = end.toDouble(), by = step.toDouble();
  const ScalarType type = dtype.value_or(get_default_dtype());
  CRESSET_CHECK_NOT_IMPLEMENTED(type != kBool && !isComplexType(type), "\"range_cpu\" not implemented for '", type, "'");
  if (isIntegralType(type)) check_whole(from, to, by);
  check_range(from, to, by);
  if (!isIntegralType(type)) {
    const auto n = static_cast<int64_t>((to - from) / by) + 1;
    return (cresset::arange(n, kDouble, layout, device, pin_memory) * by + from).to(type);
  }
  const int64_t first = start.toLong(), stride = step.toLong();
  CRESSET_CHECK(stride != 0, "step must be nonzero");
  const __int128 n = (static_cast<__int128>(end.toLong()) - first) / stride + 1;
  CRESSET_CHECK(n <= std::numeric_limits<int64_t>::max(), "range: invalid size, possible overflow");
  return (cresset::arange(static_cast<int64_t>(n), kLong, layout, device, pin_memory) * stride + first).to(type);
}

}  // namespace cresset::ops

namespace cresset {

namespace {
struct BlobOwner {
  std::function<void(void*)> deleter;
  void* data;
};
}  // namespace

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> deleter, const TensorOptions& options) {
  detail::check_sizes_nonnegative(sizes);
  CRESSET_CHECK(sizes.size() == strides.size(), "from_blob: as many strides as sizes were required; given ", strides, " for sizes ", sizes,
                ".");
  const ScalarType dtype = options.dtype();
  const Device device = options.device();
  CRESSET_CHECK(device.is_cpu(), "from_blob: host memory was required; given device ", device, ".");
  const std::size_t nbytes = detail::compute_storage_nbytes(sizes, strides, element_size(dtype));
  DataPtr owner(data, device);
  if (deleter) {
    owner = DataPtr(
        data, new BlobOwner{std::move(deleter), data},
        [](void* context) {
          auto* blob = static_cast<BlobOwner*>(context);
          blob->deleter(blob->data);
          delete blob;
        },
        device);
  }
  Storage storage(Storage::use_byte_size_t(), nbytes, std::move(owner));
  auto impl = make_intrusive<TensorImpl>(std::move(storage), key_set_for_device(device.type()), dtype);
  impl->set_sizes_and_strides(sizes, strides);
  const Tensor tensor(std::move(impl));
  if (options.requires_grad_opt().value_or(false)) tensor.requires_grad_();
  return tensor;
}

Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter, const TensorOptions& options) {
  return from_blob(data, sizes, contiguous_strides(sizes), std::move(deleter), options);
}

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return from_blob(data, sizes, strides, nullptr, options);
}

Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return from_blob(data, sizes, contiguous_strides(sizes), nullptr, options);
}

Tensor tensor_from_values(const void* values, std::size_t count, ScalarType dtype, IntArrayRef sizes, const TensorOptions& options) {
  // The copy is made before anybody else can see this tensor, so the constness of `values` holds.
  const Tensor given = from_blob(const_cast<void*>(values), sizes, TensorOptions(dtype));
  CRESSET_CHECK_VALUE(static_cast<int64_t>(count) == given.numel(), "tensor: ", given.numel(), " values were required for sizes ", sizes,
                      "; ", count, " were given.");
  Tensor result = given.to(options.device(), options.dtype().toScalarType(), /*non_blocking=*/false, /*copy=*/true);
  if (options.requires_grad()) result.requires_grad_();
  return result;
}

void manual_seed(uint64_t seed) {
  const Generator& generator = default_cpu_generator();
  std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace cresset
