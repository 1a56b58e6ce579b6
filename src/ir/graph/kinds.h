// Kinds of nodes that are part of the language itself. Most have no operator whose schema could say what they do: one row each says it.
//
// The verifier, analyses of effects and memory, and what asks whether a node needs an operator read this table.
#pragma once

#include <array>

#include <cresset/ir/symbol.h>

namespace cresset::jit {

/// What a node does with memory, for alias analysis.
enum class MemoryRole : uint8_t {
  schema,          // what its operator's schema says
  constructs,      // makes a new container or object of its operands
  fresh,           // gives something that nothing else knows
  from_tuple,      // gives elements of an operand that keeps them apart
  from_outside,    // gives what an object or a list holds
  sets_attribute,  // writes operand 0, which then holds operand 1
  hands_on,        // gives an operand itself
  forks,
  waits,
  calls,       // may do anything with its operands
  normalizes,  // as its schema says, and may write its running statistics
};

enum class Needs : uint8_t { an_operator, nothing };
enum class Effect : uint8_t { none, own };  // own: never removed, duplicated or reordered with others
constexpr int kAnyNumber = -1;

struct KindRow {
  Symbol kind;
  Needs needs;
  Effect effect;
  MemoryRole memory;
  int inputs = kAnyNumber, outputs = kAnyNumber, blocks = kAnyNumber;
};

namespace detail {
using enum MemoryRole;
using enum Needs;
constexpr Effect none = Effect::none, own = Effect::own;
constexpr int any = kAnyNumber;

inline constexpr KindRow kKindRows[] = {
    // kind, needs, effect, memory; inputs, outputs, blocks
    {prim::Param, nothing, none, schema},
    {prim::Return, nothing, none, schema},
    {prim::Constant, nothing, none, constructs, 0, 1, 0},
    {prim::Uninitialized, nothing, none, fresh, 0, 1, 0},
    {prim::If, nothing, none, schema, 1, any, 2},
    {prim::Loop, nothing, none, schema, any, any, 1},
    {prim::ListConstruct, nothing, none, constructs, any, 1, 0},
    {prim::ListUnpack, nothing, none, from_outside, 1, any, 0},
    {prim::TupleConstruct, nothing, none, constructs, any, 1, 0},
    {prim::TupleUnpack, nothing, none, from_tuple, 1, any, 0},
    {prim::TupleIndex, nothing, none, from_tuple, 2, 1, 0},
    {prim::TupleSlice, nothing, none, from_tuple, 1, 1, 0},
    {prim::DictConstruct, nothing, none, constructs, any, 1, 0},
    {prim::CreateObject, nothing, none, constructs, 0, 1, 0},
    {prim::GetAttr, nothing, none, from_outside, 1, 1, 0},
    {prim::SetAttr, nothing, own, sets_attribute, 2, 0, 0},
    {prim::HasAttr, nothing, none, fresh, 1, 1, 0},
    {prim::CallMethod, nothing, own, calls},
    {prim::CallFunction, nothing, own, calls},
    {prim::isinstance, nothing, none, fresh, 1, 1, 0},
    {prim::unchecked_cast, nothing, none, hands_on, 1, 1, 0},
    {prim::unchecked_unwrap_optional, an_operator, none, hands_on},
    {aten::_unwrap_optional, an_operator, none, hands_on},
    {prim::Print, an_operator, own, fresh},
    {prim::RaiseException, an_operator, own, fresh},
    {prim::fork, nothing, none, forks},
    {prim::awaitable, nothing, none, forks},
    {aten::wait, an_operator, none, waits},
    {prim::awaitable_wait, an_operator, none, waits},
    {prim::Enter, nothing, own, calls, 1, any, 0},
    {prim::Exit, nothing, own, calls, 1, any, 0},
    {prim::PythonOp, nothing, own, calls},
    {prim::IgnoredPythonOp, nothing, own, calls},
    // Profiling, guards and what stands behind them.
    {prim::profile, nothing, none, hands_on},
    {prim::profile_ivalue, nothing, none, hands_on},
    {prim::Guard, nothing, none, hands_on, 1, 1, 0},
    {prim::TypeCheck, nothing, none, hands_on},
    {prim::RequiresGradCheck, nothing, none, hands_on},
    {prim::BailOut, nothing, own, hands_on},
    {prim::BailoutTemplate, nothing, own, calls},
    {prim::ConstantChunk, an_operator, none, hands_on},
    {prim::AutogradAdd, an_operator, none, hands_on},
    {prim::AutogradZero, an_operator, none, fresh},
    // Graphs within a graph.
    {prim::DifferentiableGraph, nothing, none, schema},
    {prim::FusionGroup, nothing, none, schema},
    {prim::FunctionalGraph, nothing, none, schema},
    {prim::CudaFusionGroup, nothing, none, schema},
    {prim::GradOf, nothing, none, schema},
    {prim::TracedModuleForward, nothing, none, schema},
    // While a script is compiled.
    {prim::Load, nothing, none, schema, 0, 1, 0},
    {prim::Store, nothing, own, schema, 1, 0, 0},
    {prim::LoopContinuation, nothing, none, schema},
    {prim::ReturnStmt, nothing, own, schema},
    {prim::BreakStmt, nothing, own, schema},
    {prim::ContinueStmt, nothing, own, schema},
    // Operators whose schemas keep something back.
    {aten::batch_norm, an_operator, none, normalizes},
    {aten::instance_norm, an_operator, none, normalizes},
};

constexpr std::size_t kNamed = CRESSET_LISTED_SYMBOLS + 1;
/// By number of the symbol, for those of src/ops/symbols.txt, among which all kinds with a row are: 0 for those without a row, else the
/// row's place and one.
constexpr auto kKindPlaces = [] {
  std::array<uint8_t, kNamed> out{};
  uint8_t place = 0;
  for (const KindRow& row : kKindRows) out[row.kind.id()] = ++place;
  return out;
}();
inline constexpr KindRow kNoKindRow{Symbol(), an_operator, none, schema};
}  // namespace detail

/// The row of a kind; one without any claim for those that have none.
constexpr const KindRow& kind_row(Symbol kind) {
  const std::size_t place = kind.id() < detail::kNamed ? detail::kKindPlaces[kind.id()] : 0;
  return place == 0 ? detail::kNoKindRow : detail::kKindRows[place - 1];
}

}  // namespace cresset::jit
