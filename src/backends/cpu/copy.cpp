// Copies, fills and single values in host memory.
#include <algorithm>
#include <atomic>
#include <cstring>

#include <cresset/base/parallel.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_compare.h>

#include "backends/cpu/convert.h"
#include "backends/cpu/strided.h"
#include "cpu/cpu_decl_copy.h"
#include "ops/shared/number_range.h"

namespace cresset::cpu {
namespace {

constexpr int64_t kTile = 32;       // side of a square tile of a transposing copy
constexpr int64_t kLongTile = 256;  // its other side when the plane is larger than kCached bytes: memory is fetched ahead along it
constexpr int64_t kCached = 1 << 18;
constexpr int64_t kBytesGrain = 1 << 18;  // bytes a thread must have to be worth waking

struct Block16 {
  uint64_t low, high;
};

bool expands_to(IntArrayRef from, IntArrayRef to) {
  if (from.size() > to.size()) return false;
  for (std::size_t i = 1; i <= from.size(); ++i)
    if (from[from.size() - i] != 1 && from[from.size() - i] != to[to.size() - i]) return false;
  return true;
}

// One plane of n by rows elements: strides in bytes, inner dimension first. Tiles when the source runs across the destination.
template <class T>
void copy_plane(char* to, const char* from, const int64_t* to_strides, const int64_t* from_strides, int64_t n, int64_t rows) {
  constexpr int64_t size = sizeof(T);
  const int64_t t0 = to_strides[0], f0 = from_strides[0], t1 = to_strides[1], f1 = from_strides[1];
  const auto row = [&](char* t, const char* f, int64_t count) {
    if (t0 == size && f0 == size) {
      std::memcpy(t, f, static_cast<size_t>(count * size));
    } else if (t0 == size) {
      for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(t)[i] = *reinterpret_cast<const T*>(f + i * f0);
    } else {
      for (int64_t i = 0; i < count; ++i) *reinterpret_cast<T*>(t + i * t0) = *reinterpret_cast<const T*>(f + i * f0);
    }
  };
  if (f0 != size && f1 == size && n > kTile / 2 && rows > kTile / 2) {
    const TransposeFunction transpose = t0 != size  ? nullptr
                                        : size == 4 ? convert_table().transpose4
                                        : size == 8 ? convert_table().transpose8
                                                    : nullptr;
    const int64_t step = transpose && n * rows * size > kCached ? kLongTile : kTile;
    for (int64_t r = 0; r < rows; r += kTile)
      for (int64_t i = 0; i < n; i += step) {
        const int64_t columns = std::min(step, n - i), last = std::min(r + kTile, rows);
        if (transpose) {
          transpose(to + r * t1 + i * t0, t1, from + r * f1 + i * f0, f0, columns, last - r);
          continue;
        }
        for (int64_t k = r; k < last; ++k) row(to + k * t1 + i * t0, from + k * f1 + i * f0, columns);
      }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) row(to + r * t1, from + r * f1, n);
}

using PlaneFunction = void (*)(char*, const char*, const int64_t*, const int64_t*, int64_t, int64_t);
PlaneFunction plane_function(std::size_t element) {
  switch (element) {
    case 1: return copy_plane<uint8_t>;
    case 2: return copy_plane<uint16_t>;
    case 4: return copy_plane<uint32_t>;
    case 8: return copy_plane<uint64_t>;
    default: return copy_plane<Block16>;
  }
}

// Copies elements of one type, whatever it is: planes of the two innermost dimensions, split over threads.
void copy_same_type(const Traversal& t, std::size_t element) {
  const PlaneFunction plane = plane_function(element);
  const Operand &to = t.operands[0], &from = t.operands[1];
  const bool flat = t.ndim == 1;
  int64_t to_strides[2] = {to.strides[0], flat ? 0 : to.strides[1]}, from_strides[2] = {from.strides[0], flat ? 0 : from.strides[1]};
  int64_t n = t.sizes[0], rows = flat ? 1 : t.sizes[1];
  // One row: cut it so that threads can share it.
  if (flat && t.numel * static_cast<int64_t>(element) >= 2 * kBytesGrain) {
    constexpr int64_t kRow = 16384;
    const int64_t whole = n / kRow;
    if (n % kRow) {
      const int64_t done = whole * kRow;
      plane(to.data + done * to_strides[0], from.data + done * from_strides[0], to_strides, from_strides, n - done, 1);
    }
    to_strides[1] = kRow * to_strides[0];
    from_strides[1] = kRow * from_strides[0];
    n = kRow;
    rows = whole;
  }
  int64_t planes = 1;
  for (int d = 2; d < t.ndim; ++d) planes *= t.sizes[d];
  const int64_t grain = std::max<int64_t>(1, kBytesGrain / (n * static_cast<int64_t>(element)));
  // Rows of all planes in one range, so that few big planes and many small ones split alike.
  parallel_for(0, planes * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      int64_t rest = at / rows, to_offset = 0, from_offset = 0;
      const int64_t first = at % rows, count = std::min(rows - first, end - at);
      for (int d = 2; d < t.ndim; ++d) {
        const int64_t i = rest % t.sizes[d];
        rest /= t.sizes[d];
        to_offset += i * to.strides[d];
        from_offset += i * from.strides[d];
      }
      plane(to.data + to_offset + first * to_strides[1], from.data + from_offset + first * from_strides[1], to_strides, from_strides, n,
            count);
      at += count;
    }
  });
}

}  // namespace

Tensor standard_bools(const Tensor& t) {
  if (t.scalar_type() != kBool) return t;
  const Tensor dense = t.is_non_overlapping_and_dense() ? t : t.contiguous();
  const auto* const bytes = static_cast<const uint8_t*>(dense.const_data_ptr());
  const int64_t n = dense.numel();
  std::atomic<bool> others{false};
  parallel_for(0, n, kBytesGrain, [&](int64_t begin, int64_t end) {
    uint8_t all = 0;
    for (int64_t i = begin; i < end; ++i) all |= bytes[i];
    if (all > 1) others = true;
  });
  return others ? cresset::ne(dense, Scalar(0)) : t;
}

Tensor copy_from(const Tensor& self, const Tensor& dst, bool) {
  CRESSET_CHECK(self.is_cpu() && dst.is_cpu(), "_copy_from: tensors on the CPU were required; given ", self.device(), " and ", dst.device(),
                ". The backend must register _copy_from.");
  const ScalarType type = dst.scalar_type();
  const bool same_type = self.scalar_type() == type;
  if (same_type && self.is_contiguous() && dst.is_contiguous() && self.sizes() == dst.sizes() &&
      static_cast<int64_t>(dst.nbytes()) < 2 * kBytesGrain) {
    if (dst.nbytes()) std::memcpy(dst.data_ptr(), self.data_ptr(), dst.nbytes());
    return dst;
  }
  CRESSET_CHECK(expands_to(self.sizes(), dst.sizes()), "_copy_from: a source that expands to ", dst.sizes(), " was required; ",
                self.sizes(), " was given.");
  if (dst.numel() == 0) return dst;
  // Numbers of uint64 beyond int64_t are known by their type only.
  const bool straight = self.scalar_type() == kUInt64 && !isIntegralType(type);
  const ComputeType compute = compute_type(straight ? type : self.scalar_type());
  Traversal traversal;
  traversal.set_sizes(dst.sizes());
  traversal.add(dst, compute);
  traversal.add(self, compute);
  traversal.coalesce();
  if (same_type)
    copy_same_type(traversal, dst.itemsize());
  else
    traversal.run(nullptr, nullptr);
  return dst;
}

Tensor& zero_(Tensor& self) {
  if (self.is_non_overlapping_and_dense()) {
    char* data = static_cast<char*>(self.data_ptr());
    parallel_for(0, static_cast<int64_t>(self.nbytes()), 4 * kBytesGrain,
                 [&](int64_t begin, int64_t end) { std::memset(data + begin, 0, static_cast<size_t>(end - begin)); });
    return self;
  }
  return fill_scalar_(self, 0);
}

Tensor& fill_scalar_(Tensor& self, const Scalar& value) {
  // As in PyTorch one element of the small types becomes infinite where several raise.
  const bool converts = self.numel() == 1 && (isReducedFloatingType(self.scalar_type()) || isFloat8Type(self.scalar_type()));
  if (!converts) ops::check_number(value, self.scalar_type());
  CRESSET_DISPATCH(self.scalar_type(), "fill_cpu", CRESSET_STORED_AND_ALL_TYPES, [&] {
    const auto number = [&] {
      if constexpr (std::is_same_v<scalar_t, Half> || std::is_same_v<scalar_t, BFloat16>)
        return scalar_t(static_cast<float>(value.toDouble()));
      else
        return value.to<scalar_t>();
    }();
    const int64_t n = self.numel();
    if (n == 0) return;
    scalar_t* data = static_cast<scalar_t*>(self.data_ptr());
    if (self.is_non_overlapping_and_dense()) {
      parallel_for(0, n, kBytesGrain, [&](int64_t begin, int64_t end) { std::fill(data + begin, data + end, number); });
      return;
    }
    const Tensor one = detail::empty_cpu({}, self.scalar_type());
    *static_cast<scalar_t*>(one.data_ptr()) = number;
    copy_from(one, self, false);
  });
  return self;
}

Scalar local_scalar_dense(const Tensor& self) {
  CRESSET_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
  return CRESSET_DISPATCH(self.scalar_type(), "_local_scalar_dense_cpu", CRESSET_STORED_AND_ALL_TYPES,
                          [&] { return Scalar(loaded<scalar_t>(*static_cast<const Stored<scalar_t>*>(self.data_ptr()))); });
}

}  // namespace cresset::cpu
