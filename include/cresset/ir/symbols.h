// The names that are constants of C++: prim::If, aten::add, attr::value. They can be cases of a switch.
#pragma once

#include <cresset/ir/symbol.h>
#include <cresset/ir/symbol_names.h>  // generated

namespace cresset::jit {

#define CRESSET_SYMBOL(space, name, number) \
  namespace space {                         \
  inline constexpr Symbol name{number};     \
  }
CRESSET_FORALL_SYMBOLS(CRESSET_SYMBOL)
#undef CRESSET_SYMBOL

}  // namespace cresset::jit
