// Where scripts spend their time, by lines of their sources.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <cresset/ir/source_range.h>

namespace cresset::jit {

/// How often lines ran while the profile was enabled, and for how long: a line that calls a function is charged for what the function does
/// outside of its own lines. Threads that run scripts are counted together.
///
/// While any profile is enabled, functions run in a form that tells when they come to another line; they are compiled to it, and back, at
/// their next call.
class CRESSET_API LineProfile {
 public:
  struct Line {
    std::size_t number;  // in the file
    uint64_t hits, nanoseconds;
  };
  struct SourceLines {
    std::shared_ptr<const Source> source;
    std::vector<Line> lines;  // ordered
  };
  LineProfile();
  ~LineProfile();
  LineProfile(const LineProfile&) = delete;
  void enable();
  void disable();
  /// Of all sources of which a line ran, in the order in which they were first met.
  std::vector<SourceLines> lines() const;

  struct Counts;

 private:
  std::shared_ptr<Counts> counts_;
};

}  // namespace cresset::jit
