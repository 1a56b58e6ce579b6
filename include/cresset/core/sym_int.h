// SymInt: the integer type that PyTorch's symbolic shapes use in signatures. Shapes are always known here, so it is an
// int64_t under another name; kernels with either type have one signature.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <cresset/base/array_ref.h>

namespace cresset {

struct SymInt {
  constexpr SymInt() = default;
  constexpr SymInt(int64_t v) : value(v) {}
  constexpr operator int64_t() const { return value; }
  /// The number; the place is for PyTorch's error, which cannot happen.
  constexpr int64_t guard_int(const char* /*file*/ = nullptr, int64_t /*line*/ = 0) const { return value; }
  constexpr int64_t expect_int() const { return value; }
  constexpr int64_t as_int_unchecked() const { return value; }
  constexpr std::optional<int64_t> maybe_as_int() const { return value; }
  constexpr bool is_symbolic() const { return false; }
  constexpr bool is_heap_allocated() const { return false; }

  int64_t value = 0;
};
static_assert(sizeof(SymInt) == sizeof(int64_t));
inline std::string to_string(SymInt v) { return std::to_string(v.value); }

template <>
inline constexpr bool has_layout_of<SymInt, int64_t> = true;
template <>
inline constexpr bool has_layout_of<int64_t, SymInt> = true;

using SymIntArrayRef = ArrayRef<SymInt>;
using OptionalSymIntArrayRef = OptionalArrayRef<SymInt>;
inline std::string to_string(SymIntArrayRef values) { return to_string(IntArrayRef(values)); }

inline SymIntArrayRef fromIntArrayRefSlow(IntArrayRef values) { return values; }
inline SymIntArrayRef fromIntArrayRefUnchecked(IntArrayRef values) { return values; }
inline IntArrayRef asIntArrayRefUnchecked(SymIntArrayRef values) { return values; }
inline IntArrayRef asIntArrayRefSlow(SymIntArrayRef values, const char* /*file*/ = nullptr, int64_t /*line*/ = 0) { return values; }
inline std::optional<IntArrayRef> asIntArrayRefSlowOpt(SymIntArrayRef values) { return IntArrayRef(values); }

}  // namespace cresset

template <>
struct std::hash<cresset::SymInt> {
  std::size_t operator()(cresset::SymInt v) const noexcept { return std::hash<int64_t>()(v.value); }
};
