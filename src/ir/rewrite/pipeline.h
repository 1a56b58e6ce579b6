// The order of lowering without what others registered into it.
#pragma once

#include <string>
#include <vector>

namespace cresset::jit {

const std::vector<std::string>& built_in_order();

}  // namespace cresset::jit
