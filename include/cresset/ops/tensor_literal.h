// tensor({1, 2, 3}): tensors from values written in C++, and manual_seed.
#pragma once

#include <initializer_list>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset {

/// A new tensor with a copy of row-major `values`; the type is that of options, or the one of `dtype` when options has none.
/// Raises when sizes and the number of values differ.
CRESSET_API Tensor tensor_from_values(const void* values, std::size_t count, ScalarType dtype, IntArrayRef sizes,
                                      const TensorOptions& options);

namespace detail {
/// As PyTorch's tensor(): floating literals become the default dtype, integral ones int64.
template <class T>
ScalarType literal_type() {
  if constexpr (std::is_same_v<T, double>) return get_default_dtype();
  if constexpr (std::is_same_v<T, int>) return kLong;
  return CppTypeToScalarType<T>::value;
}
template <class T>
TensorOptions literal_options(const TensorOptions& o) {
  return o.has_dtype() ? o : o.dtype(literal_type<T>());
}
}  // namespace detail

/// One dimension: tensor({1, 2, 3}), or a vector or ArrayRef.
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  return tensor_from_values(values.data(), values.size(), CppTypeToScalarType<T>::value, {static_cast<int64_t>(values.size())},
                            detail::literal_options<T>(options));
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values.begin(), values.size()), options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
/// Two dimensions: tensor({{1, 2}, {3, 4}}); the rows must have one length.
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, const TensorOptions& options = {}) {
  const std::size_t columns = rows.size() ? rows.begin()->size() : 0;
  std::vector<T> values;
  for (const auto& row : rows) {
    CRESSET_CHECK_VALUE(row.size() == columns, "tensor: rows of one length were required; the first has ", columns, ", another ",
                        row.size(), ".");
    values.insert(values.end(), row.begin(), row.end());
  }
  return tensor_from_values(values.data(), values.size(), CppTypeToScalarType<T>::value,
                            {static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns)}, detail::literal_options<T>(options));
}
/// No dimension: tensor(3.5).
template <class T>
  requires(std::is_arithmetic_v<T> || requires { CppTypeToScalarType<T>::value; })
Tensor tensor(T value, const TensorOptions& options = {}) {
  return tensor_from_values(&value, 1, CppTypeToScalarType<T>::value, {}, detail::literal_options<T>(options));
}

/// Seeds the default generator of the CPU.
CRESSET_API void manual_seed(uint64_t seed);

}  // namespace cresset
