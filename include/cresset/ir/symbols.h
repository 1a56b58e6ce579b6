// The names that are constants of C++: prim::If, aten::add, attr::value. They have fixed numbers, so they can be cases of a switch.
#pragma once

#include <cresset/ir/symbol.h>
#include <cresset/ir/symbol_names.h>  // generated

namespace cresset::jit {

namespace detail {
enum class SymbolNumber : uint32_t {
  none,
#define CRESSET_NUMBER(ns, name) ns##_##name,
  CRESSET_FORALL_SYMBOLS(CRESSET_NUMBER)
#undef CRESSET_NUMBER
      count
};
}  // namespace detail

#define CRESSET_SYMBOL(space, name)                                                          \
  namespace space {                                                                          \
  inline constexpr Symbol name{static_cast<uint32_t>(detail::SymbolNumber::space##_##name)}; \
  }
CRESSET_FORALL_SYMBOLS(CRESSET_SYMBOL)
#undef CRESSET_SYMBOL

}  // namespace cresset::jit
