// Symbol: an interned qualified name, "aten::add", "prim::Constant", "attr::value". Compared as a number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <cresset/base/macros.h>

namespace cresset::jit {

// Names that the library itself mentions. They have fixed numbers, so they can be cases of a switch.
#define CRESSET_FORALL_SYMBOLS(_)    \
  _(prim, Param)                     \
  _(prim, Return)                    \
  _(prim, Constant)                  \
  _(prim, If)                        \
  _(prim, Loop)                      \
  _(prim, ListConstruct)             \
  _(prim, ListUnpack)                \
  _(prim, TupleConstruct)            \
  _(prim, TupleUnpack)               \
  _(prim, TupleIndex)                \
  _(prim, TupleSlice)                \
  _(prim, DictConstruct)             \
  _(prim, GetAttr)                   \
  _(prim, SetAttr)                   \
  _(prim, HasAttr)                   \
  _(prim, CallMethod)                \
  _(prim, CallFunction)              \
  _(prim, CreateObject)              \
  _(prim, RaiseException)            \
  _(prim, Print)                     \
  _(prim, NumToTensor)               \
  _(prim, Uninitialized)             \
  _(prim, unchecked_cast)            \
  _(prim, unchecked_unwrap_optional) \
  _(prim, isinstance)                \
  _(prim, fork)                      \
  _(prim, awaitable)                 \
  _(prim, Enter)                     \
  _(prim, Exit)                      \
  _(prim, profile)                   \
  _(prim, profile_ivalue)            \
  _(prim, Guard)                     \
  _(prim, TypeCheck)                 \
  _(prim, RequiresGradCheck)         \
  _(prim, BailOut)                   \
  _(prim, BailoutTemplate)           \
  _(prim, DifferentiableGraph)       \
  _(prim, FusionGroup)               \
  _(prim, FunctionalGraph)           \
  _(prim, CudaFusionGroup)           \
  _(prim, GradOf)                    \
  _(prim, ConstantChunk)             \
  _(prim, PythonOp)                  \
  _(prim, IgnoredPythonOp)           \
  _(prim, dtype)                     \
  _(prim, device)                    \
  _(prim, shape)                     \
  _(prim, layout)                    \
  _(prim, rangelist)                 \
  _(prim, rpc_async)                 \
  _(prim, rpc_sync)                  \
  _(prim, rpc_remote)                \
  _(prim, ModuleContainerIndex)      \
  _(prim, TracedModuleForward)       \
  _(prim, Load)                      \
  _(prim, Store)                     \
  _(prim, LoopContinuation)          \
  _(prim, ReturnStmt)                \
  _(prim, BreakStmt)                 \
  _(prim, ContinueStmt)              \
  _(prim, Closure)                   \
  _(prim, EmptyListLiteral)          \
  _(prim, EnumName)                  \
  _(prim, EnumValue)                 \
  _(prim, tolist)                    \
  _(prim, min)                       \
  _(prim, max)                       \
  _(prim, abs)                       \
  _(prim, data)                      \
  _(prim, AutogradZero)              \
  _(prim, AutogradAnyNonZero)        \
  _(prim, AutogradAllNonZero)        \
  _(prim, AutogradAdd)               \
  _(prim, StringIndex)               \
  _(aten, wait)                      \
  _(aten, warn)                      \
  _(aten, _unwrap_optional)          \
  _(aten, __getitem__)               \
  _(aten, __isnot__)                 \
  _(aten, __is__)                    \
  _(aten, __not__)                   \
  _(aten, len)                       \
  _(aten, format)                    \
  _(aten, append)                    \
  _(aten, size)                      \
  _(aten, cat)                       \
  _(aten, stack)                     \
  _(aten, batch_norm)                \
  _(aten, instance_norm)             \
  _(aten, dropout)                   \
  _(attr, value)                     \
  _(attr, name)                      \
  _(attr, Subgraph)                  \
  _(attr, types)                     \
  _(attr, beg)                       \
  _(attr, end)                       \
  _(attr, compilation_edge)          \
  _(attr, to_compile)

/// An interned name. Two symbols are equal exactly when their texts are.
class CRESSET_API Symbol {
 public:
  constexpr Symbol() = default;
  explicit constexpr Symbol(uint32_t id) : id_(id) {}
  static Symbol fromQualString(std::string_view qualified);
  static Symbol attr(std::string_view name) { return fromQualString("attr::" + std::string(name)); }
  static Symbol aten(std::string_view name) { return fromQualString("aten::" + std::string(name)); }
  static Symbol prim(std::string_view name) { return fromQualString("prim::" + std::string(name)); }
  /// "aten::add"; valid for ever.
  const std::string& toQualString() const;
  /// "add".
  std::string_view toUnqualString() const;
  /// "aten".
  std::string_view ns() const;
  bool is_attr() const { return ns() == "attr"; }
  bool is_aten() const { return ns() == "aten"; }
  bool is_prim() const { return ns() == "prim"; }
  constexpr uint32_t id() const { return id_; }
  constexpr operator uint32_t() const { return id_; }

 private:
  uint32_t id_ = 0;
};
inline std::string to_string(Symbol s) { return s.toQualString(); }

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

template <>
struct std::hash<cresset::jit::Symbol> {
  std::size_t operator()(cresset::jit::Symbol s) const noexcept { return s.id(); }
};
