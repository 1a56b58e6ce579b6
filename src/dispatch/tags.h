// Tags of operators, by name.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <cresset/dispatch/dispatcher.h>

namespace cresset {

inline bool has_tag(const OperatorHandle& op, std::string_view tag) {
  const std::vector<std::string>& tags = op.getTags();
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

}  // namespace cresset
