// Output to C++ streams: everything that has a to_string, and tensors with their elements.
#pragma once

#include <concepts>
#include <ostream>
#include <string>

#include <cresset/core/tensor.h>

namespace cresset {

template <class T>
concept StreamedAsText = (std::is_class_v<T> || std::is_enum_v<T>) && !std::is_convertible_v<const T&, std::string_view> &&
                         !std::is_convertible_v<const T&, double> && requires(const T& v) {
                           { to_string(v) } -> std::same_as<std::string>;
                         };
template <StreamedAsText T>
std::ostream& operator<<(std::ostream& out, const T& v) {
  return out << to_string(v);
}
/// "[1, 2]".
template <class T>
  requires(!StreamedAsText<ArrayRef<T>>)
std::ostream& operator<<(std::ostream& out, ArrayRef<T> values) {
  out << "[";
  for (std::size_t i = 0; i < values.size(); ++i) out << (i ? ", " : "") << values[i];
  return out << "]";
}
inline std::ostream& operator<<(std::ostream& out, TypeMeta t) { return out << t.name(); }
/// C++'s names, "SparseCsr" and "ChannelsLast"; to_string has Python's.
CRESSET_API std::ostream& operator<<(std::ostream& out, Layout layout);
CRESSET_API std::ostream& operator<<(std::ostream& out, MemoryFormat format);
/// C++'s spelling, "true" and "(1,2)", with the stream's precision; to_string has Python's.
CRESSET_API std::ostream& operator<<(std::ostream& out, const Scalar& number);
/// "TensorOptions(dtype=double, device=cpu (default), …)".
CRESSET_API std::ostream& operator<<(std::ostream& out, const TensorOptions& options);

/// Rows and columns of the last two dimensions, then "[ CPUFloatType{2,3} ]"; "[ Tensor (undefined) ]" for an undefined tensor.
CRESSET_API std::ostream& print(std::ostream& out, const Tensor& t, int64_t line_width = 80);
/// To std::cout.
CRESSET_API void print(const Tensor& t, int64_t line_width = 80);
inline std::ostream& operator<<(std::ostream& out, const Tensor& t) { return print(out, t); }

}  // namespace cresset
