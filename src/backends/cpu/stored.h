// How elements lie in memory, and how they are read.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cresset/base/macros.h>

namespace cresset::cpu {

/// Bools are read as bytes, any of which but 0 is true: views of other types and memory of other programs have more than 0 and 1.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

// Inlined into code for any instruction set.
template <class T>
CRESSET_ALWAYS_INLINE T loaded(const Stored<T>& element) {
  if constexpr (std::is_same_v<T, bool>)
    return element != 0;
  else
    return element;
}
}  // namespace cresset::cpu
