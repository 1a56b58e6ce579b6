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

/// A place in source code.
struct SourceLocation {
  const char* function;
  const char* file;
  uint32_t line;
};

/// Base of everything Cresset throws; Python sees RuntimeError.
class CRESSET_API Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::make_shared<std::string>(std::move(message))) {}
  /// PyTorch's forms; the place and the backtrace are not kept.
  Error(SourceLocation /*where*/, std::string message) : Error(std::move(message)) {}
  Error(std::string message, const std::string& /*backtrace*/) : Error(std::move(message)) {}
  const char* what() const noexcept override { return message_->c_str(); }
  const std::string& msg() const noexcept { return *message_; }
  /// The same message; PyTorch's name for the text without a C++ backtrace.
  const char* what_without_backtrace() const noexcept { return what(); }
  /// Appends a line of context while the exception travels up.
  void add_context(std::string_view line);
  ~Error() override;
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;

 private:
  std::shared_ptr<std::string> message_;  // shared: copying an exception must not throw
};

// Destructors, and raise() below, are in the library: they would be repeated in every file that checks something.
#define CRESSET_ERROR_CLASS(Name, Base)     \
  class CRESSET_API Name : public Base {    \
   public:                                  \
    using Base::Base;                       \
    ~Name() override;                       \
    Name(const Name&) = default;            \
    Name& operator=(const Name&) = default; \
  }
CRESSET_ERROR_CLASS(ValueError, Error);
CRESSET_ERROR_CLASS(TypeError, Error);
CRESSET_ERROR_CLASS(IndexError, Error);
CRESSET_ERROR_CLASS(KeyError, Error);
CRESSET_ERROR_CLASS(AttributeError, Error);
CRESSET_ERROR_CLASS(NotImplementedError, Error);
CRESSET_ERROR_CLASS(ZeroDivisionError, Error);
/// Memory that cannot be given to another library.
CRESSET_ERROR_CLASS(BufferError, Error);
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

/// One piece of a message: refers to what it was made from, which lives until the end of the full expression. It has no
/// destructor and writes its text only when a message is made, so that a check costs little code where it stands.
class Piece {
 public:
  Piece(const char* s) : Piece(std::string_view(s)) {}
  Piece(const std::string& s) : Piece(std::string_view(s)) {}
  Piece(std::string_view s) : size_(s.size()), append_(append_text) { value_.text = s.data(); }
  Piece(char c) : append_(append_char) { value_.i = c; }
  Piece(bool b) : Piece(b ? "true" : "false") {}
  Piece(double v) : append_(append_double) { value_.d = v; }
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Piece(T v) : append_(std::is_signed_v<T> ? append_signed : append_unsigned) {
    if constexpr (std::is_floating_point_v<T>) {
      append_ = append_double;
      value_.d = v;
    } else {
      value_.i = static_cast<int64_t>(v);
    }
  }
  template <class T, std::enable_if_t<!std::is_arithmetic_v<T> && !std::is_convertible_v<const T&, std::string_view>, int> = 0>
  Piece(const T& value) : append_(append_object<T>) {
    value_.object = &value;
  }
  void append_to(std::string& out) const { append_(*this, out); }

 private:
  CRESSET_API static void append_text(const Piece& p, std::string& out);
  CRESSET_API static void append_char(const Piece& p, std::string& out);
  CRESSET_API static void append_signed(const Piece& p, std::string& out);
  CRESSET_API static void append_unsigned(const Piece& p, std::string& out);
  CRESSET_API static void append_double(const Piece& p, std::string& out);
  template <class T>
  static void append_object(const Piece& p, std::string& out) {
    out += to_string(*static_cast<const T*>(p.value_.object));
  }

  union {
    const char* text;
    const void* object;
    int64_t i;
    double d;
  } value_;
  std::size_t size_ = 0;
  void (*append_)(const Piece&, std::string&);
};

CRESSET_API std::string join_pieces(std::initializer_list<Piece> pieces);
[[noreturn]] CRESSET_API void raise_internal(const char* file, int line, const char* condition, std::string message);

template <class E>
[[noreturn]] CRESSET_COLD void raise(std::initializer_list<Piece> pieces) {
  throw E(join_pieces(pieces));
}
extern template CRESSET_API void raise<Error>(std::initializer_list<Piece>);
extern template CRESSET_API void raise<ValueError>(std::initializer_list<Piece>);
extern template CRESSET_API void raise<TypeError>(std::initializer_list<Piece>);
extern template CRESSET_API void raise<IndexError>(std::initializer_list<Piece>);
extern template CRESSET_API void raise<NotImplementedError>(std::initializer_list<Piece>);

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
