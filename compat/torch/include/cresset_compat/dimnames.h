// Names of dimensions, as types alone, and the factories that take them: zeros(sizes, std::nullopt, dtype, layout, device, pinned).
#pragma once

#include <cresset_compat/c10.h>
#include <cresset_compat/functions.h>

#include <cresset/core/tensor_options.h>

namespace at {

struct Dimname {
  static Dimname fromSymbol(Symbol s) { return Dimname(std::move(s)); }
  static Dimname wildcard() { return Dimname(Symbol::dimname("*")); }
  const Symbol& symbol() const { return symbol_; }
  bool isBasic() const { return symbol_.toUnqualString() != "*"; }
  bool isWildcard() const { return !isBasic(); }
  friend bool operator==(const Dimname&, const Dimname&) = default;

 private:
  explicit Dimname(Symbol s) : symbol_(std::move(s)) {}
  Symbol symbol_;
};
using DimnameList = c10::ArrayRef<Dimname>;
namespace namedinference {
inline void propagate_names(const Tensor&, const Tensor&) {}
inline bool has_names(TensorList) { return false; }
}  // namespace namedinference
struct NoNamesGuard {
  NoNamesGuard() {}
  void reset() {}
};
using NameVector = c10::SmallVector<int64_t>;

template <class T>
concept DimensionNames =
    std::is_same_v<T, std::nullopt_t> || std::is_same_v<T, DimnameList> || std::is_same_v<T, std::optional<DimnameList>>;

namespace detail {
template <DimensionNames N>
void check_no_names(const N& names) {
  if constexpr (std::is_same_v<N, std::optional<DimnameList>>)
    CRESSET_CHECK_NOT_IMPLEMENTED(!names, "Dimensions have no names: tensors with names are not part of Cresset.");
  else
    CRESSET_CHECK_NOT_IMPLEMENTED((std::is_same_v<N, std::nullopt_t>),
                                  "Dimensions have no names: tensors with names are not part of Cresset.");
}
}  // namespace detail

#define CRESSET_COMPAT_NAMED_(name)                                                                            \
  template <DimensionNames N>                                                                                  \
  Tensor name(IntArrayRef size, const N& names, const TensorOptions& options = {}) {                           \
    detail::check_no_names(names);                                                                             \
    return cresset::name(size, options);                                                                       \
  }                                                                                                            \
  template <DimensionNames N>                                                                                  \
  Tensor name(IntArrayRef size, const N& names, std::optional<ScalarType> dtype, std::optional<Layout> layout, \
              std::optional<Device> device, std::optional<bool> pin_memory) {                                  \
    detail::check_no_names(names);                                                                             \
    return cresset::name(size, dtype, layout, device, pin_memory);                                             \
  }
CRESSET_COMPAT_NAMED_(ones)
CRESSET_COMPAT_NAMED_(rand)
CRESSET_COMPAT_NAMED_(randn)
CRESSET_COMPAT_NAMED_(zeros)
#undef CRESSET_COMPAT_NAMED_
template <DimensionNames N>
Tensor full(IntArrayRef size, const Scalar& fill_value, const N& names, const TensorOptions& options = {}) {
  detail::check_no_names(names);
  return cresset::full(size, fill_value, options);
}
template <DimensionNames N>
Tensor full(IntArrayRef size, const Scalar& fill_value, const N& names, std::optional<ScalarType> dtype, std::optional<Layout> layout,
            std::optional<Device> device, std::optional<bool> pin_memory) {
  detail::check_no_names(names);
  return cresset::full(size, fill_value, dtype, layout, device, pin_memory);
}
template <DimensionNames N>
Tensor empty(IntArrayRef size, const N& names, const TensorOptions& options = {},
             std::optional<MemoryFormat> memory_format = std::nullopt) {
  detail::check_no_names(names);
  return cresset::empty(size, options, memory_format);
}
template <DimensionNames N>
Tensor empty(IntArrayRef size, const N& names, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
             std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  detail::check_no_names(names);
  return cresset::empty(size, dtype, layout, device, pin_memory, memory_format);
}

}  // namespace at
