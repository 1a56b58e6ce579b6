// std::from_chars for all numbers: libc++ has it for integers only before its release 20.
#pragma once

#include <charconv>
#include <type_traits>

#include <cresset/base/macros.h>

namespace cresset {

/// As std::from_chars: no spaces and no plus sign in front, no hexadecimal digits, the same in every locale. `v` is left alone when there
/// is no number (invalid_argument) or one that is no finite double or rounds to zero (result_out_of_range).
CRESSET_API std::from_chars_result parse_double(const char* first, const char* last, double& v);

namespace detail {
/// The same by the C library, for parse_double where the C++ library cannot.
CRESSET_API std::from_chars_result parse_double_by_strtod(const char* first, const char* last, double& v);
}  // namespace detail

template <class T>
std::from_chars_result parse_number(const char* first, const char* last, T& v) {
  if constexpr (std::is_same_v<T, double>)
    return parse_double(first, last, v);
  else
    return std::from_chars(first, last, v);
}

}  // namespace cresset
