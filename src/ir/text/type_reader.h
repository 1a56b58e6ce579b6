// Reading types out of a longer text.
#pragma once

#include <string_view>

#include <cresset/ir/class_type.h>

namespace cresset::jit {

/// What is wrong and where; readers of whole texts add the line.
struct SyntaxError {
  std::size_t at;
  std::string message;
};

/// Reads one type from text[at...]; moves `at` behind it. Throws SyntaxError.
TypePtr read_type(std::string_view text, std::size_t& at, const TypeResolver& resolver);

}  // namespace cresset::jit
