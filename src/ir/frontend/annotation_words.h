// Words about annotations that several parts of the compiler say.
#pragma once

#include <string>

namespace cresset::jit {

/// What is said of `List` where `List[int]` was meant.
std::string missing_contained_type(const std::string& word);

}  // namespace cresset::jit
