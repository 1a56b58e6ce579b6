// Run a generic lambda for the C++ type of a run-time ScalarType.
//
//   CRESSET_DISPATCH(self.scalar_type(), "sum_cpu", CRESSET_FLOATING_TYPES, [&] { use scalar_t; });
// The list names the accepted types; any other gives NotImplementedError `"sum_cpu" not implemented for 'Bool'`.
#pragma once

#include <cresset/core/scalar_type.h>

namespace cresset::detail {
[[noreturn]] CRESSET_API void raise_dtype_not_implemented(const char* name, ScalarType t);
}

#define CRESSET_TYPE_CASE(T, Name, number, text, ...) \
  case ::cresset::ScalarType::Name: {                 \
    using scalar_t [[maybe_unused]] = T;              \
    return __VA_ARGS__();                             \
  }

#define CRESSET_CASES_INTEGRAL(...) CRESSET_INTEGER_TYPES(CRESSET_TYPE_CASE, __VA_ARGS__)
#define CRESSET_CASES_FLOATING(...) CRESSET_WIDE_FLOAT_TYPES(CRESSET_TYPE_CASE, __VA_ARGS__)
#define CRESSET_CASES_REDUCED(...) CRESSET_HALF_TYPES(CRESSET_TYPE_CASE, __VA_ARGS__)
#define CRESSET_CASES_COMPLEX(...) CRESSET_COMPLEX_TYPES(CRESSET_TYPE_CASE, __VA_ARGS__)
#define CRESSET_CASES_BOOL(...) CRESSET_BOOL_TYPES(CRESSET_TYPE_CASE, __VA_ARGS__)
#define CRESSET_CASES_WIDE_UNSIGNED(...) CRESSET_WIDE_UNSIGNED_TYPES(CRESSET_TYPE_CASE, __VA_ARGS__)
#define CRESSET_CASES_STORED(...)                      \
  CRESSET_CASES_WIDE_UNSIGNED(__VA_ARGS__)             \
  CRESSET_FLOAT8_TYPES(CRESSET_TYPE_CASE, __VA_ARGS__) \
  CRESSET_COMPLEX_HALF_TYPES(CRESSET_TYPE_CASE, __VA_ARGS__)

#define CRESSET_FLOATING_TYPES(...) CRESSET_CASES_FLOATING(__VA_ARGS__)
#define CRESSET_FLOATING_AND_HALF_TYPES(...) CRESSET_CASES_FLOATING(__VA_ARGS__) CRESSET_CASES_REDUCED(__VA_ARGS__)
#define CRESSET_FLOATING_AND_COMPLEX_TYPES(...) \
  CRESSET_CASES_FLOATING(__VA_ARGS__) CRESSET_CASES_REDUCED(__VA_ARGS__) CRESSET_CASES_COMPLEX(__VA_ARGS__)
#define CRESSET_REAL_TYPES(...) CRESSET_CASES_INTEGRAL(__VA_ARGS__) CRESSET_CASES_FLOATING(__VA_ARGS__) CRESSET_CASES_REDUCED(__VA_ARGS__)
#define CRESSET_REAL_AND_BOOL_TYPES(...) CRESSET_REAL_TYPES(__VA_ARGS__) CRESSET_CASES_BOOL(__VA_ARGS__)
#define CRESSET_INDEX_TYPES(...) CRESSET_TYPE_CASE(int32_t, Int, , , __VA_ARGS__) CRESSET_TYPE_CASE(int64_t, Long, , , __VA_ARGS__)
#define CRESSET_ALL_TYPES(...) CRESSET_REAL_AND_BOOL_TYPES(__VA_ARGS__) CRESSET_CASES_COMPLEX(__VA_ARGS__)
/// Also the types that are only stored (uint16, float8_e5m2, complex32, …): for kernels that move elements.
#define CRESSET_STORED_AND_ALL_TYPES(...) CRESSET_ALL_TYPES(__VA_ARGS__) CRESSET_CASES_STORED(__VA_ARGS__)

/// Calls the lambda with `scalar_t` bound to the C++ type of `type`, which must be in `LIST`.
#define CRESSET_DISPATCH(type, name, LIST, ...)                                      \
  [&] {                                                                              \
    const ::cresset::ScalarType dispatch_type_ = (type);                             \
    switch (dispatch_type_) {                                                        \
      LIST(__VA_ARGS__)                                                              \
      default: ::cresset::detail::raise_dtype_not_implemented(name, dispatch_type_); \
    }                                                                                \
  }()
