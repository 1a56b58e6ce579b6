// A profile of a scope as a file: what the profiler (dispatch/profiler.h) recorded, in Chrome's trace format.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include <cresset/dispatch/profiler.h>

namespace cresset::autograd::profiler {

/// Writes a profile as a JSON array of events, times in microseconds: chrome://tracing and Perfetto read it.
CRESSET_API void write_chrome_trace(std::ostream& out, const cresset::profiler::Profile& profile);

/// Records what this thread, and what it hands work to, runs in a scope, and writes it at the end. Raises when a profiler runs already, and
/// when the file cannot be written; what fails at the end is a warning.
class CRESSET_API RecordProfile {
 public:
  explicit RecordProfile(std::ostream& out);
  explicit RecordProfile(const std::string& path);
  ~RecordProfile();
  RecordProfile(const RecordProfile&) = delete;

 private:
  std::unique_ptr<std::ostream> file_;
  std::ostream& out_;
};

}  // namespace cresset::autograd::profiler
