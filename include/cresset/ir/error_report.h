// ErrorReport: an error at a place of a source text, written like a stream.
#pragma once

#include <exception>
#include <memory>
#include <sstream>
#include <string>

#include <cresset/ir/source_range.h>

namespace cresset::jit {

/// `throw ErrorReport(range) << "what is wrong";`. What it says are these words, the lines with marks below the range, and the functions
/// that were being compiled when it was made.
class CRESSET_API ErrorReport : public std::exception {
 public:
  explicit ErrorReport(SourceRange range);
  ErrorReport(const ErrorReport& o);
  ~ErrorReport() override;
  const char* what() const noexcept override;
  /// The functions that are being compiled now, with the places that call them; empty for none or one.
  static std::string current_call_stack();

  /// While it lives, this thread compiles the function of this name, called at a place of the one around it.
  class CRESSET_API CallStack {
   public:
    CallStack(const std::string& name, const SourceRange& range);
    ~CallStack();
    CallStack(const CallStack&) = delete;
    /// The place in the innermost function that is being compiled.
    static void update_pending_range(const SourceRange& range);
  };

  template <class T>
  friend const ErrorReport& operator<<(const ErrorReport& report, const T& words) {
    report.words_ << words;
    return report;
  }

 private:
  mutable std::ostringstream words_;
  SourceRange range_;
  std::string calls_;
  mutable std::string message_;  // what() points to it
};

}  // namespace cresset::jit
