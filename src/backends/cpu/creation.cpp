// New tensors in host memory: uninitialised, ranges, identity, triangles.
#include <algorithm>
#include <cmath>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/pinned_memory.h>

#include "cpu/cpu_decl_creation.h"
#include "ops/shared/fresh_memory.h"
#include "ops/shared/sparse_factories.h"

namespace cresset::cpu {
namespace {

constexpr int64_t kGrain = 32768;

// Every type but bool.
#define CRESSET_CASES_LINSPACE(...) CRESSET_REAL_TYPES(__VA_ARGS__) CRESSET_CASES_COMPLEX(__VA_ARGS__)

// The value of a number as T, wrapping where the kind allows it.
template <class T>
T number_as(const Scalar& value) {
  if constexpr (is_complex_v<T>) {
    return value.to<T>();
  } else if constexpr (std::is_integral_v<T>) {
    return value.isFloatingPoint() ? static_cast<T>(value.toDouble()) : static_cast<T>(value.toLong());
  } else {
    return static_cast<T>(static_cast<opmath_type<T>>(value.toDouble()));
  }
}

// start + step * i, rounded once.
template <class T, class I>
T along(T start, T step, I i) {
  if constexpr (is_complex_v<T>) {
    return start + step * i;
  } else {
    return std::fma(step, i, start);
  }
}

}  // namespace

Tensor empty_memory_format(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device>,
                           std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  const ScalarType type = dtype.value_or(get_default_dtype());
  if (Tensor sparse = ops::new_sparse(size, type, layout, std::nullopt); sparse.defined()) return sparse;
  CRESSET_CHECK_NOT_IMPLEMENTED(!layout || *layout == kStrided, "empty: new tensors are strided here; given layout ", to_string(*layout),
                                ".");
  const bool pinned = pin_memory.value_or(false);
  if (!pinned && (!memory_format || *memory_format == MemoryFormat::Contiguous)) {
    Tensor made = detail::empty_cpu(size, type);
    ops::mark_fresh_memory(made);
    return made;
  }
  CRESSET_CHECK(memory_format != MemoryFormat::Preserve, "empty: preserve memory format needs a tensor to preserve; use empty_like.");
  detail::check_sizes_nonnegative(size);
  Tensor made = detail::empty_host(size, strides_for(size, memory_format.value_or(MemoryFormat::Contiguous)), type, pin_memory);
  ops::mark_fresh_memory(made);
  return made;
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype, std::optional<Layout>, std::optional<Device>,
                     std::optional<bool> pin_memory) {
  CRESSET_CHECK(size.size() == stride.size(), "dimensionality of sizes (", size.size(), ") must match dimensionality of strides (",
                stride.size(), ")");
  for (int64_t s : stride)
    CRESSET_CHECK(s >= 0, "empty_strided: strides must not be negative; given strides ", stride, " for sizes ", size, ".");
  Tensor made = detail::empty_host(size, stride, dtype.value_or(get_default_dtype()), pin_memory);
  ops::mark_fresh_memory(made);
  return made;
}

void arange(const Scalar& start, const Scalar&, const Scalar& step, std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>,
            std::optional<bool>, const Tensor& out) {
  CRESSET_DISPATCH(out.scalar_type(), "arange_cpu", CRESSET_REAL_TYPES, [&] {
    // Values are computed in double or int64_t from the first one, so errors do not add up.
    using wide = std::conditional_t<std::is_integral_v<scalar_t>, int64_t, double>;
    const wide first = number_as<wide>(start), by = number_as<wide>(step);
    scalar_t* data = out.mutable_data_ptr<scalar_t>();
    parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        data[i] = static_cast<scalar_t>(static_cast<opmath_type<scalar_t>>(first + by * static_cast<wide>(i)));
    });
  });
}

void arange_start(const Scalar& start, const Scalar& end, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory, const Tensor& out) {
  arange(start, end, 1, dtype, layout, device, pin_memory, out);
}

void arange_end(const Scalar& end, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                std::optional<bool> pin_memory, const Tensor& out) {
  arange(0, end, 1, dtype, layout, device, pin_memory, out);
}

void linspace(const Scalar& start, const Scalar& end, int64_t steps, std::optional<ScalarType>, std::optional<Layout>,
              std::optional<Device>, std::optional<bool>, const Tensor& out) {
  CRESSET_DISPATCH(out.scalar_type(), "linspace_cpu", CRESSET_CASES_LINSPACE, [&] {
    // Both ends are met exactly: the first half counts from the start, the second from the end. Integers step in double.
    using math = std::conditional_t<std::is_integral_v<scalar_t>, double, opmath_type<scalar_t>>;
    const math first = static_cast<math>(start.to<scalar_t>()), last = static_cast<math>(end.to<scalar_t>());
    scalar_t* data = out.mutable_data_ptr<scalar_t>();
    if (steps == 1) {
      data[0] = static_cast<scalar_t>(first);
      return;
    }
    const math step = (last - first) / static_cast<typename scalar_value_type<math>::type>(steps - 1);
    parallel_for(0, steps, kGrain, [&](int64_t begin, int64_t to) {
      for (int64_t i = begin; i < to; ++i) {
        using count = typename scalar_value_type<math>::type;
        const math value =
            i < steps / 2 ? along(first, step, static_cast<count>(i)) : along(last, -step, static_cast<count>(steps - i - 1));
        data[i] = static_cast<scalar_t>(value);
      }
    });
  });
}

void logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, std::optional<ScalarType>, std::optional<Layout>,
              std::optional<Device>, std::optional<bool>, const Tensor& out) {
  CRESSET_DISPATCH(out.scalar_type(), "logspace_cpu", CRESSET_CASES_LINSPACE, [&] {
    using math = std::conditional_t<std::is_integral_v<scalar_t>, double, opmath_type<scalar_t>>;
    using count = typename scalar_value_type<math>::type;
    // The exponents of integers are integers at both ends.
    using given = std::conditional_t<std::is_integral_v<scalar_t>, scalar_t, math>;
    const math first = static_cast<math>(number_as<given>(start)), last = static_cast<math>(number_as<given>(end));
    const count root = static_cast<count>(base);
    scalar_t* data = out.mutable_data_ptr<scalar_t>();
    if (steps == 1) {  // nothing lies between: the exponent is what was given
      data[0] = static_cast<scalar_t>(static_cast<math>(std::pow(root, number_as<math>(start))));
      return;
    }
    const math step = (last - first) / static_cast<count>(steps - 1);
    for (int64_t i = 0; i < steps; ++i) {
      const math power = i < steps / 2 ? along(first, step, static_cast<count>(i)) : along(last, -step, static_cast<count>(steps - i - 1));
      data[i] = static_cast<scalar_t>(static_cast<math>(std::pow(root, power)));
    }
  });
}

void eye_m(int64_t n, int64_t m, std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>, std::optional<bool>,
           const Tensor& out) {
  CRESSET_DISPATCH(out.scalar_type(), "eye", CRESSET_STORED_AND_ALL_TYPES, [&] {
    scalar_t* data = out.mutable_data_ptr<scalar_t>();
    std::fill(data, data + n * m, scalar_t(0));
    for (int64_t i = 0; i < std::min(n, m); ++i) data[i * m + i] = scalar_t(1);
  });
}

void eye(int64_t n, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
         std::optional<bool> pin_memory, const Tensor& out) {
  eye_m(n, n, dtype, layout, device, pin_memory, out);
}

namespace {

// Copies the columns [begin(row), end(row)) of each row and zeroes the others. Inputs have any strides.
template <class Columns>
void copy_triangle(const Tensor& self, const Tensor& out, const Columns& columns) {
  CRESSET_DISPATCH(self.scalar_type(), "triangle_cpu", CRESSET_ALL_TYPES, [&] {
    const int64_t dims = self.dim(), rows = self.size(-2), cols = self.size(-1);
    if (self.numel() == 0) return;
    const scalar_t* from = self.const_data_ptr<scalar_t>();
    scalar_t* to = out.mutable_data_ptr<scalar_t>();
    const int64_t row_stride = self.stride(-2), col_stride = self.stride(-1);
    const auto batch_sizes = self.sizes(), batch_strides = self.strides();
    parallel_for(0, self.numel() / cols, std::max<int64_t>(1, kGrain / cols), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t row = at % rows;
        int64_t rest = at / rows, offset = row * row_stride;
        for (int64_t d = dims - 3; d >= 0; --d) {
          const auto i = static_cast<std::size_t>(d);
          offset += rest % batch_sizes[i] * batch_strides[i];
          rest /= batch_sizes[i];
        }
        const auto [first, last] = columns(row, cols);
        scalar_t* line = to + at * cols;
        for (int64_t c = 0; c < cols; ++c) line[c] = c >= first && c < last ? from[offset + c * col_stride] : scalar_t(0);
      }
    });
  });
}

// Indices of the columns that `columns` gives for the rows [begin, end); rows without any lie outside.
template <class Columns>
void write_indices(int64_t begin, int64_t end, int64_t col, const Tensor& out, const Columns& columns) {
  if (out.numel() == 0) return;
  CRESSET_DISPATCH(out.scalar_type(), "tril_indices", CRESSET_REAL_TYPES, [&] {
    scalar_t* rows = out.mutable_data_ptr<scalar_t>();
    scalar_t* cols = rows + out.size(1);
    for (int64_t r = begin; r < end; ++r) {
      const auto [first, last] = columns(r, col);
      for (int64_t c = first; c < last; ++c) {
        *rows++ = static_cast<scalar_t>(r);
        *cols++ = static_cast<scalar_t>(c);
      }
    }
  });
}

// Further diagonals are as good as the nearest one outside of the matrix, and sums with them could overflow.
int64_t near_diagonal(int64_t diagonal, int64_t rows, int64_t cols) { return std::clamp<int64_t>(diagonal, -rows - 1, cols + 1); }

auto lower(int64_t diagonal) {
  return [diagonal](int64_t row, int64_t cols) { return std::pair<int64_t, int64_t>(0, std::clamp<int64_t>(row + diagonal + 1, 0, cols)); };
}
auto upper(int64_t diagonal) {
  return [diagonal](int64_t row, int64_t cols) { return std::pair<int64_t, int64_t>(std::clamp<int64_t>(row + diagonal, 0, cols), cols); };
}

}  // namespace

void tril(const Tensor& self, int64_t diagonal, const Tensor& out) {
  copy_triangle(self, out, lower(near_diagonal(diagonal, self.size(-2), self.size(-1))));
}
void triu(const Tensor& self, int64_t diagonal, const Tensor& out) {
  copy_triangle(self, out, upper(near_diagonal(diagonal, self.size(-2), self.size(-1))));
}

void tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>,
                  std::optional<bool>, const Tensor& out) {
  offset = near_diagonal(offset, row, col);
  write_indices(std::clamp<int64_t>(-offset, 0, row), row, col, out, lower(offset));
}
void triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>,
                  std::optional<bool>, const Tensor& out) {
  offset = near_diagonal(offset, row, col);
  write_indices(0, std::clamp<int64_t>(col - offset, 0, row), col, out, upper(offset));
}

}  // namespace cresset::cpu
