// The conversions of convert.h. Compiled once for each instruction set, with CRESSET_ISA_NAMESPACE defined as its name.
#include <complex>
#include <cstring>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cresset/base/half.h>

#include "backends/cpu/convert.h"
// Last, because it changes the instruction set.
#include "backends/cpu/isa_begin.h"

#include "backends/cpu/reduced_strips.h"
#include "backends/cpu/transpose_loops.h"

namespace cresset::cpu::CRESSET_ISA_NAMESPACE {
namespace {

// Value conversions as PyTorch's casts: complex to real drops the imaginary part, anything but zero is true, floating to
// small integers goes through a wider integer and wraps.
template <class T>
constexpr bool through_float = is_reduced_floating_point_v<T> || is_float8_v<T>;

template <class To, class From>
inline To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (through_float<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To>) {
      using R = typename To::value_type;
      return To(convert<R>(value.real()), convert<R>(value.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return value.real() != 0 || value.imag() != 0;
    } else {
      return convert<To>(value.real());
    }
  } else if constexpr (is_complex_v<To>) {
    return To(convert<typename To::value_type>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (through_float<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_unsigned_v<To>) {
    // Negative numbers wrap; only uint64_t has numbers beyond int64_t.
    if constexpr (std::is_same_v<To, uint64_t>)
      if (value >= From(0x1p63)) return static_cast<To>(value);
    return static_cast<To>(static_cast<int64_t>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<int32_t>(value));
  } else {
    return static_cast<To>(value);
  }
}

// One contiguous row.
template <class To, class From>
inline void convert_row(To* to, const Stored<From>* from, int64_t n) {
  if constexpr (std::is_same_v<To, From> && !std::is_same_v<To, bool>) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(To));
    return;
  }
  int64_t i = 0;
  if constexpr (has_strips<From> && std::is_same_v<To, float>) {
    for (; i + kStrip <= n; i += kStrip) widen_strip(from + i, to + i);
  } else if constexpr (has_strips<To> && std::is_same_v<From, float>) {
    if constexpr (kPairsStrips && std::is_same_v<To, BFloat16>)
      for (; i + 2 * kStrip <= n; i += 2 * kStrip) narrow_strips(from + i, from + i + kStrip, to + i);
    for (; i + kStrip <= n; i += kStrip) narrow_strip(from + i, to + i);
  }
  for (; i < n; ++i) to[i] = convert<To>(loaded<From>(from[i]));
}

template <class From, class To>
void load(void* block, Rows from, int64_t n, int64_t rows) {
  To* __restrict to = static_cast<To*>(block);
  if constexpr (std::is_same_v<From, To> && (sizeof(To) == 4 || sizeof(To) == 8)) {
    using Bits = std::conditional_t<sizeof(To) == 4, uint32_t, uint64_t>;
    constexpr int64_t size = sizeof(To);
    if (rows > 1 && from.row_stride == size && from.stride != size && from.stride != 0)
      return transpose<Bits>(static_cast<char*>(block), n * size, from.data, from.stride, n, rows);
  }
  for (int64_t r = 0; r < rows; ++r, to += n) {
    const char* p = from.data + r * from.row_stride;
    if (from.stride == static_cast<int64_t>(sizeof(From))) {
      convert_row<To, From>(to, reinterpret_cast<const Stored<From>*>(p), n);
    } else if (from.stride == 0) {
      const To value = convert<To>(loaded<From>(*reinterpret_cast<const Stored<From>*>(p)));
      for (int64_t i = 0; i < n; ++i) to[i] = value;
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(loaded<From>(*reinterpret_cast<const Stored<From>*>(p + i * from.stride)));
    }
  }
}

template <class From, class To>
void store(Rows to, const void* block, int64_t n, int64_t rows) {
  const From* __restrict from = static_cast<const From*>(block);
  for (int64_t r = 0; r < rows; ++r, from += n) {
    char* p = to.data + r * to.row_stride;
    if (to.stride == static_cast<int64_t>(sizeof(To))) {
      convert_row<To, From>(reinterpret_cast<To*>(p), reinterpret_cast<const Stored<From>*>(from), n);
    } else {
      for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(p + i * to.stride) = convert<To>(from[i]);
    }
  }
}

template <class Compute>
constexpr void fill_column(ConvertTable& table, ComputeType compute) {
  const int c = static_cast<int>(compute);
#define CRESSET_ENTRY(T, Name, number, text)                            \
  table.load[static_cast<int>(ScalarType::Name)][c] = load<T, Compute>; \
  table.store[c][static_cast<int>(ScalarType::Name)] = store<Compute, T>;
  CRESSET_FORALL_SCALAR_TYPES(CRESSET_ENTRY)
#undef CRESSET_ENTRY
}

constexpr ConvertTable make_table() {
  ConvertTable table{};
  fill_column<bool>(table, ComputeType::Bool);
  fill_column<int32_t>(table, ComputeType::Int32);
  fill_column<int64_t>(table, ComputeType::Int64);
  fill_column<float>(table, ComputeType::Float);
  fill_column<double>(table, ComputeType::Double);
  fill_column<std::complex<float>>(table, ComputeType::ComplexFloat);
  fill_column<std::complex<double>>(table, ComputeType::ComplexDouble);
  table.transpose4 = transpose<uint32_t>;
  table.transpose8 = transpose<uint64_t>;
  return table;
}

}  // namespace

extern constexpr ConvertTable convert_functions = make_table();

}  // namespace cresset::cpu::CRESSET_ISA_NAMESPACE
