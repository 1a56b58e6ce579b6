// Names that a mistyped one may have meant.
#pragma once

#include <string>
#include <vector>

#include <cresset/base/macros.h>

namespace cresset::impl {
/// Up to three candidates within a small edit distance of `name`, nearest first, joined by ", ".
CRESSET_API std::string near_misses(const std::string& name, const std::vector<std::string>& candidates);
}  // namespace cresset::impl
