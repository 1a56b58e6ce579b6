// Where a compilation stands: errors say which calls led to the function that is being compiled.
#pragma once

#include <string>

#include <cresset/ir/source_range.h>

namespace cresset::jit {

/// While it lives, this thread compiles the function of this name.
class CRESSET_API CompilingFunction {
 public:
  explicit CompilingFunction(std::string name);
  ~CompilingFunction();
  CompilingFunction(const CompilingFunction&) = delete;
};

/// While it lives, the function that is being compiled calls something at this place: what is compiled meanwhile is compiled because of it.
class CRESSET_API CallPlace {
 public:
  explicit CallPlace(const SourceRange& range);
  ~CallPlace();
  CallPlace(const CallPlace&) = delete;

 private:
  bool is_set_ = false;
};

/// The lines of a range with two lines around them and marks below the range.
CRESSET_API std::string source_excerpt(const SourceRange& range);

}  // namespace cresset::jit
