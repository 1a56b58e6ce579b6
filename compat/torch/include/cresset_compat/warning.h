// c10::Warning and the handlers that a thread may put in place of the process's.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <cresset/base/error.h>
#include <cresset/base/warn_always.h>

namespace c10 {

using cresset::Error;
using cresset::SourceLocation;

class Warning {
 public:
  struct UserWarning {};
  struct DeprecationWarning {};
  using warning_variant_t = std::variant<UserWarning, DeprecationWarning>;

  Warning(warning_variant_t type, const SourceLocation& location, std::string message, bool verbatim)
      : type_(type), location_(location), message_(std::move(message)), verbatim_(verbatim) {}
  warning_variant_t type() const { return type_; }
  const SourceLocation& source_location() const { return location_; }
  const std::string& msg() const { return message_; }
  bool verbatim() const { return verbatim_; }

 private:
  warning_variant_t type_;
  SourceLocation location_;
  std::string message_;
  bool verbatim_;
};

class WarningHandler {
 public:
  virtual ~WarningHandler() = default;
  virtual void process(const Warning& warning) = 0;
};

using UserWarning = Warning::UserWarning;

namespace WarningUtils {
namespace detail {
inline thread_local WarningHandler* handler = nullptr;

/// What the process does with a warning on threads without a handler.
inline cresset::WarningHandler& of_process() {
  static cresset::WarningHandler previous = nullptr;
  return previous;
}
inline void forward(std::string_view category, const std::string& message) {
  if (!handler) return of_process()(category, message);
  const bool deprecated = category == "DeprecationWarning";
  const Warning::warning_variant_t type =
      deprecated ? Warning::warning_variant_t(Warning::DeprecationWarning()) : Warning::warning_variant_t(Warning::UserWarning());
  handler->process(Warning(type, {"", "", 0}, message, false));
}
}  // namespace detail

/// The handler of this thread; null stands for the process's.
inline WarningHandler* get_warning_handler() noexcept { return detail::handler; }
inline void set_warning_handler(WarningHandler* handler) noexcept {
  [[maybe_unused]] static const bool installed = [] {
    // Set before the exchange: another thread may warn in between.
    detail::of_process() = [](std::string_view, const std::string&) {};
    detail::of_process() = cresset::set_warning_handler(&detail::forward);
    return true;
  }();
  detail::handler = handler;
}
/// Warnings that come once in the life of a process come each time.
inline bool get_warnAlways() noexcept { return cresset::warn_always(); }
inline void set_warnAlways(bool always) noexcept { cresset::set_warn_always(always); }
struct WarnAlways {
  explicit WarnAlways(bool always = true) : previous_(get_warnAlways()) { set_warnAlways(always); }
  ~WarnAlways() { set_warnAlways(previous_); }
  WarnAlways(const WarnAlways&) = delete;
  WarnAlways& operator=(const WarnAlways&) = delete;

 private:
  bool previous_;
};
class WarningHandlerGuard {
 public:
  explicit WarningHandlerGuard(WarningHandler* handler) : previous_(get_warning_handler()) { set_warning_handler(handler); }
  ~WarningHandlerGuard() { set_warning_handler(previous_); }
  WarningHandlerGuard(const WarningHandlerGuard&) = delete;
  WarningHandlerGuard& operator=(const WarningHandlerGuard&) = delete;

 private:
  WarningHandler* previous_;
};
}  // namespace WarningUtils

inline void warn(const Warning& warning) {
  cresset::warn(warning.msg(), std::holds_alternative<Warning::DeprecationWarning>(warning.type()) ? "DeprecationWarning" : "UserWarning");
}

}  // namespace c10
