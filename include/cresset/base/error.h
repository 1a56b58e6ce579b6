// Errors: user errors (one C++ class for each Python exception), internal errors and device errors.
//
// CRESSET_CHECK(cond, pieces...) raises Error (RuntimeError in Python) with the pieces concatenated; a piece is
// text, a number, or anything with `std::string to_string(const T&)` found by argument-dependent lookup.
// Text style: `op: what was required; what was given. What to do.`
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <cresset/base/macros.h>

namespace cresset {

/// Base of everything Cresset throws; Python sees RuntimeError.
class CRESSET_API Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::make_shared<std::string>(std::move(message))) {}
  /// PyTorch's form; the backtrace is not kept.
  Error(std::string message, const std::string& /*backtrace*/) : Error(std::move(message)) {}
  const char* what() const noexcept override { return message_->c_str(); }
  const std::string& msg() const noexcept { return *message_; }
  /// The same message; PyTorch's name for the text without a C++ backtrace.
  const char* what_without_backtrace() const noexcept { return what(); }
  /// Appends a line of context while the exception travels up.
  void add_context(std::string_view line) { message_ = std::make_shared<std::string>(*message_ + "\n" + std::string(line)); }

 private:
  std::shared_ptr<std::string> message_;  // shared: copying an exception must not throw
};

#define CRESSET_ERROR_CLASS(Name, Base)  \
  class CRESSET_API Name : public Base { \
   public:                               \
    using Base::Base;                    \
  }
CRESSET_ERROR_CLASS(ValueError, Error);
CRESSET_ERROR_CLASS(TypeError, Error);
CRESSET_ERROR_CLASS(IndexError, Error);
CRESSET_ERROR_CLASS(KeyError, Error);
CRESSET_ERROR_CLASS(AttributeError, Error);
CRESSET_ERROR_CLASS(NotImplementedError, Error);
CRESSET_ERROR_CLASS(ZeroDivisionError, Error);
/// An allocation that could not be made (Python: RuntimeError subclass OutOfMemoryError).
CRESSET_ERROR_CLASS(OutOfMemoryError, Error);
/// A matrix that a factorisation or solve cannot handle, such as a singular one (Python: cresset.linalg.LinAlgError).
CRESSET_ERROR_CLASS(LinAlgError, Error);
/// A defect of Cresset itself: names file and line.
CRESSET_ERROR_CLASS(InternalError, Error);
/// A device failed: names device and code.
CRESSET_ERROR_CLASS(DeviceError, Error);
#undef CRESSET_ERROR_CLASS

namespace detail {

/// One piece of a message. Constructed only on the failing path.
struct CRESSET_API Piece {
  std::string text;
  Piece(const char* s) : text(s) {}
  Piece(std::string s) : text(std::move(s)) {}
  Piece(std::string_view s) : text(s) {}
  Piece(char c) : text(1, c) {}
  Piece(bool b) : text(b ? "true" : "false") {}
  Piece(int v);
  Piece(long v);
  Piece(long long v);
  Piece(unsigned v);
  Piece(unsigned long v);
  Piece(unsigned long long v);
  Piece(double v);
  Piece(float v) : Piece(static_cast<double>(v)) {}
  template <class T, std::enable_if_t<!std::is_arithmetic_v<T> && !std::is_convertible_v<const T&, std::string_view> &&
                                          !std::is_same_v<T, std::string> && !std::is_same_v<T, Piece>,
                                      int> = 0>
  Piece(const T& value) : text(to_string(value)) {}
};

CRESSET_API std::string join_pieces(std::initializer_list<Piece> pieces);
[[noreturn]] CRESSET_API void raise_internal(const char* file, int line, const char* condition, std::string message);

template <class E>
[[noreturn]] CRESSET_COLD void raise(std::initializer_list<Piece> pieces) {
  throw E(join_pieces(pieces));
}

}  // namespace detail

/// Concatenates pieces into a string (c10::str).
template <class... Args>
std::string str(const Args&... args) {
  return detail::join_pieces({detail::Piece(args)...});
}

/// Called for every warning; Python installs one that calls warnings.warn. Default prints to stderr.
using WarningHandler = void (*)(std::string_view category, const std::string& message);
CRESSET_API WarningHandler set_warning_handler(WarningHandler handler);
/// Issues a warning ("UserWarning" unless category says otherwise).
CRESSET_API void warn(const std::string& message, std::string_view category = "UserWarning");

}  // namespace cresset

#define CRESSET_THROW(ErrorClass, ...) ::cresset::detail::raise<::cresset::ErrorClass>({__VA_ARGS__})
#define CRESSET_CHECK_AS(ErrorClass, cond, ...)                            \
  do {                                                                     \
    if (CRESSET_UNLIKELY(!(cond))) CRESSET_THROW(ErrorClass, __VA_ARGS__); \
  } while (false)
#define CRESSET_CHECK(cond, ...) CRESSET_CHECK_AS(Error, cond, __VA_ARGS__)
#define CRESSET_CHECK_VALUE(cond, ...) CRESSET_CHECK_AS(ValueError, cond, __VA_ARGS__)
#define CRESSET_CHECK_TYPE(cond, ...) CRESSET_CHECK_AS(TypeError, cond, __VA_ARGS__)
#define CRESSET_CHECK_INDEX(cond, ...) CRESSET_CHECK_AS(IndexError, cond, __VA_ARGS__)
#define CRESSET_CHECK_NOT_IMPLEMENTED(cond, ...) CRESSET_CHECK_AS(NotImplementedError, cond, __VA_ARGS__)
/// For conditions only a defect of Cresset can break.
#define CRESSET_INTERNAL_ASSERT(cond, ...)                                                                         \
  do {                                                                                                             \
    if (CRESSET_UNLIKELY(!(cond)))                                                                                 \
      ::cresset::detail::raise_internal(__FILE__, __LINE__, #cond, ::cresset::detail::join_pieces({__VA_ARGS__})); \
  } while (false)
/// Warns once in the life of the process from this place.
#define CRESSET_WARN_ONCE(...)                                                                          \
  do {                                                                                                  \
    static const bool warned_ = (::cresset::warn(::cresset::detail::join_pieces({__VA_ARGS__})), true); \
    (void)warned_;                                                                                      \
  } while (false)
