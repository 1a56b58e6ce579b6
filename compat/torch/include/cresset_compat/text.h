// c10::str and the text of checks: anything with a stream operator becomes text.
#pragma once

#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <cresset_compat/namespaces.h>

#include <cresset/base/error.h>

// PyTorch's logging header lets sources print containers; they find it beside std::vector only.
namespace std {
template <class T, class A>
  requires requires(ostream& out, const T& value) { out << value; }
ostream& operator<<(ostream& out, const vector<T, A>& values) {
  for (size_t i = 0; i < values.size(); ++i) out << (i ? " " : "") << values[i];
  return out;
}
template <class T, class C, class A>
  requires requires(ostream& out, const T& value) { out << value; }
ostream& operator<<(ostream& out, const set<T, C, A>& values) {
  const char* between = "";
  for (const T& value : values) out << std::exchange(between, " ") << value;
  return out;
}
}  // namespace std

namespace c10 {
using std::stod;
using std::stoi;
using std::stoll;
using std::stoull;
namespace detail {

template <class... A>
std::string text_of(const A&... a) {
  if constexpr (sizeof...(A) == 1 && (std::is_convertible_v<const A&, std::string> && ...)) {
    return std::string(a...);
  } else {
    std::ostringstream out;
    (out << ... << a);
    return out.str();
  }
}
inline std::string text_of() { return {}; }

template <class... A>
std::string check_message(const char* generic, const A&... a) {
  if constexpr (sizeof...(A) == 0)
    return std::string(generic) +
           "  (Could this error message be improved?  If so, please report an enhancement request to the author of this extension.)";
  else
    return text_of(a...);
}

template <class E>
[[noreturn]] CRESSET_COLD void fail(std::string message) {
  throw E(std::move(message));
}

}  // namespace detail

template <class... A>
std::string str(const A&... a) {
  return detail::text_of(a...);
}

/// The elements with `separator` between them.
template <class Container>
std::string Join(const std::string& separator, const Container& values) {
  std::ostringstream out;
  bool first = true;
  for (const auto& v : values) {
    if (!first) out << separator;
    first = false;
    out << v;
  }
  return out.str();
}

}  // namespace c10
