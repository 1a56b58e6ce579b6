// Trees as text.
#pragma once

#include "ir/frontend/tree.h"

namespace cresset::jit {

CRESSET_API std::string tree_text(const SourceFile& file);

}  // namespace cresset::jit
