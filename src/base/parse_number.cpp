#include "base/parse_number.h"

#include <locale.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#include <cctype>
#include <cerrno>
#include <cmath>
#include <string>

namespace cresset {

std::from_chars_result parse_double(const char* first, const char* last, double& v) {
#if defined(__cpp_lib_to_chars)
  return std::from_chars(first, last, v);
#else
  return detail::parse_double_by_strtod(first, last, v);
#endif
}

namespace detail {

std::from_chars_result parse_double_by_strtod(const char* first, const char* last, double& v) {
  const char* digits = first + (first != last && *first == '-' ? 1 : 0);
  // strtod takes more: spaces and a plus sign in front, hexadecimal digits.
  if (digits == last || !(std::isalnum(static_cast<unsigned char>(*digits)) || *digits == '.')) return {first, std::errc::invalid_argument};
  const bool hexadecimal = *digits == '0' && digits + 1 != last && (digits[1] == 'x' || digits[1] == 'X');
  const std::string text(first, hexadecimal ? digits + 1 : last);
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  char* end = nullptr;
  errno = 0;
  const double found = strtod_l(text.c_str(), &end, plain);
  if (end == text.c_str()) return {first, std::errc::invalid_argument};
  const char* rest = first + (end - text.c_str());
  // Numbers below the normal ones are found, though the C library reports them as well.
  if (errno == ERANGE && (found == 0 || std::isinf(found))) return {rest, std::errc::result_out_of_range};
  v = found;
  return {rest, std::errc()};
}

}  // namespace detail
}  // namespace cresset
