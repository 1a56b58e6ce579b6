// Symbols and the names that are constants.
#pragma once

#include <cresset_compat/namespaces.h>

#include <cresset/ir/symbols.h>

namespace c10 {
// The same namespaces everywhere, so that sources that use two of them find one name.
namespace aten = cresset::jit::aten;
namespace attr = cresset::jit::attr;
namespace prim = cresset::jit::prim;
}  // namespace c10
namespace torch::jit {
using c10::Symbol;
namespace aten = cresset::jit::aten;
namespace attr = cresset::jit::attr;
namespace prim = cresset::jit::prim;
}  // namespace torch::jit
