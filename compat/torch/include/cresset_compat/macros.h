// PyTorch's macros for visibility, hints and errors.
#pragma once

#include <cresset_compat/namespaces.h>

#include <cresset/base/error.h>
#include <cresset/base/macros.h>

#include <cresset_compat/text.h>
#include <cresset_compat/warning.h>

#define C10_EXPORT CRESSET_API
#define C10_IMPORT CRESSET_API
#define C10_HIDDEN CRESSET_HIDDEN
#define C10_API CRESSET_API
#define C10_API_ENUM CRESSET_API
#define TORCH_API CRESSET_API
#define TORCH_API_ENUM CRESSET_API
#define TORCH_PYTHON_API CRESSET_API
#define TORCH_XPU_API CRESSET_API
#define TORCH_CUDA_CPP_API CRESSET_API
#define TORCH_CUDA_CU_API CRESSET_API
#define AT_API CRESSET_API
#define CAFFE2_API CRESSET_API

#define C10_LIKELY(x) CRESSET_LIKELY(x)
#define C10_UNLIKELY(x) CRESSET_UNLIKELY(x)
#define C10_LIKELY_OR_CONST(x) CRESSET_LIKELY(x)
#define C10_UNLIKELY_OR_CONST(x) CRESSET_UNLIKELY(x)
#define C10_NOINLINE CRESSET_NOINLINE
#define C10_ALWAYS_INLINE CRESSET_ALWAYS_INLINE
#define C10_ALWAYS_INLINE_ATTRIBUTE __attribute__((__always_inline__))
#define C10_ATTR_VISIBILITY_HIDDEN CRESSET_HIDDEN
#define C10_ERASE CRESSET_ALWAYS_INLINE CRESSET_HIDDEN
#define C10_NODISCARD [[nodiscard]]
#define C10_UNUSED [[maybe_unused]]
#define C10_USED __attribute__((__used__))
#define C10_FALLTHROUGH [[fallthrough]]
#define C10_DEPRECATED [[deprecated]]
#define C10_DEPRECATED_MESSAGE(message) [[deprecated(message)]]
#define C10_DEFINE_DEPRECATED_USING(TypeName, TypeThingy) using TypeName [[deprecated]] = TypeThingy;
#define C10_RESTRICT __restrict
#define C10_LIFETIME_BOUND
#define C10_CPP14_CONSTEXPR constexpr
#define C10_CONSTEXPR_EXCEPT_WIN_CUDA constexpr
#define C10_HOST_CONSTEXPR_EXCEPT_WIN_CUDA constexpr
#define C10_HOST_CONSTEXPR constexpr
#define C10_HOST_CONSTEXPR_VAR constexpr
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#define C10_HAS_CPP_ATTRIBUTE(x) __has_cpp_attribute(x)
#define C10_CLANG_DIAGNOSTIC_PUSH()
#define C10_CLANG_DIAGNOSTIC_POP()
#define C10_CLANG_DIAGNOSTIC_IGNORE(flag)
#define C10_CLANG_HAS_WARNING(flag) 0
#define C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED(warning) _Pragma("GCC diagnostic push")
#define C10_DIAGNOSTIC_POP() _Pragma("GCC diagnostic pop")
#define C10_DISABLE_COPY_AND_ASSIGN(T) \
  T(const T&) = delete;                \
  T& operator=(const T&) = delete
#define C10_CONCATENATE(a, b) CRESSET_CONCAT(a, b)
#define C10_CONCATENATE_IMPL(a, b) CRESSET_CONCAT_(a, b)
#define C10_STRINGIZE(x) CRESSET_STRINGIZE(x)
#define C10_STRINGIZE_IMPL(x) CRESSET_STRINGIZE_(x)
#define C10_MACRO_EXPAND(args) args
#define C10_EXPAND_MSVC_WORKAROUND(x) x
#define C10_UID __COUNTER__
#define C10_ANONYMOUS_VARIABLE(name) CRESSET_UNIQUE(name)
#define C10_RETURN_MOVE_IF_OLD_COMPILER 0
#define C10_WARP_SIZE 32
#define CONCAT_IMPL(a, b) CRESSET_CONCAT_(a, b)
#define MACRO_CONCAT(a, b) CRESSET_CONCAT(a, b)
#define __ubsan_ignore_float_divide_by_zero__
#define __ubsan_ignore_undefined__
#define __ubsan_ignore_signed_int_overflow__
#define __ubsan_ignore_pointer_overflow__
#define __ubsan_ignore_function__

// Checks. The condition alone gives PyTorch's generic sentence; further arguments are the message, of anything that has a
// stream operator.
#define CRESSET_COMPAT_FAIL_(ErrorClass, condition, ...) \
  ::c10::detail::fail<::cresset::ErrorClass>(            \
      ::c10::detail::check_message("Expected " condition " to be true, but got false.", ##__VA_ARGS__))
#define CRESSET_COMPAT_CHECK_(ErrorClass, cond, ...)        \
  if (CRESSET_UNLIKELY(!(cond))) {                          \
    CRESSET_COMPAT_FAIL_(ErrorClass, #cond, ##__VA_ARGS__); \
  }
#define TORCH_CHECK(cond, ...) CRESSET_COMPAT_CHECK_(Error, cond, ##__VA_ARGS__)
#define TORCH_CHECK_WITH(error_t, cond, ...) CRESSET_COMPAT_CHECK_(error_t, cond, ##__VA_ARGS__)
#define TORCH_CHECK_WITH_MSG(error_t, cond, type, ...) CRESSET_COMPAT_CHECK_(error_t, cond, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(cond, ...) CRESSET_COMPAT_CHECK_(IndexError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) CRESSET_COMPAT_CHECK_(ValueError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) CRESSET_COMPAT_CHECK_(TypeError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_BUFFER(cond, ...) CRESSET_COMPAT_CHECK_(BufferError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_LINALG(cond, ...) CRESSET_COMPAT_CHECK_(LinAlgError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) CRESSET_COMPAT_CHECK_(NotImplementedError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_TENSOR_ALL(cond, ...) TORCH_CHECK((cond)._is_all_true().item<bool>(), ##__VA_ARGS__)
#define TORCH_CHECK_IF_NOT_ON_CUDA(cond, ...) TORCH_CHECK(cond, ##__VA_ARGS__)
#define TORCH_CHECK_MSG(cond, type, ...) ::c10::detail::check_message("Expected " #cond " to be true, but got false.", ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(cond, ...)                                                   \
  if (CRESSET_UNLIKELY(!(cond))) {                                                         \
    ::cresset::detail::raise_internal(__FILE__, __LINE__, #cond, ::c10::str(__VA_ARGS__)); \
  }
#ifdef NDEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) \
  while (false) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#endif
#define TORCH_WARN(...) ::cresset::warn(::c10::str(__VA_ARGS__))
#define TORCH_WARN_WITH(category, ...) ::cresset::warn(::c10::str(__VA_ARGS__), #category)
#define TORCH_WARN_DEPRECATION(...) ::cresset::warn(::c10::str(__VA_ARGS__), "DeprecationWarning")
// A whole statement, as PyTorch's is: programs leave out the semicolon.
#define TORCH_WARN_ONCE(...)                                                      \
  {                                                                               \
    static const bool warned_ = (::cresset::warn(::c10::str(__VA_ARGS__)), true); \
    (void)warned_;                                                                \
  }
#define TORCH_RETHROW(e, ...)               \
  do {                                      \
    e.add_context(::c10::str(__VA_ARGS__)); \
    throw;                                  \
  } while (false)
#define AT_ERROR(...) ::c10::detail::fail<::cresset::Error>(::c10::str(__VA_ARGS__))
#define C10_THROW_ERROR(ErrorClass, message) throw ::c10::ErrorClass({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, message)
#define AT_INDEX_ERROR(...) ::c10::detail::fail<::cresset::IndexError>(::c10::str(__VA_ARGS__))
#define AT_ASSERT(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond, ##__VA_ARGS__)
#define AT_WARN(...) TORCH_WARN(__VA_ARGS__)
#define AT_CHECK(cond, ...) TORCH_CHECK(cond, ##__VA_ARGS__)
#define TORCH_UTIL_ASSERT(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
