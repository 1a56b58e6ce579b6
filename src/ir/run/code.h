// The instructions of compiled graphs.
#pragma once

#include <cresset/ir/function.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/operator.h>

#include "ir/native/loops.h"
#include "ir/run/scalar_instructions.h"

namespace cresset::jit {

// Scalar registers are named s[i], boxed ones r[i]. Operands of an instruction are a, b, c; what they are stands behind each opcode.
// clang-format off

#define CRESSET_FORALL_OPCODES(_)                                                                                                          \
  _(RETURN) _(JUMP) /* to a */ _(JUMP_IF_NOT) _(JUMP_IF) /* s[a], to b */ _(LOOP_NEXT) /* s[a] += 1; if s[a] < s[b] jump to c */            \
  _(LOOP) /* the first instruction of loop a: native code of it may run; counts s[b] down to asking for some */                            \
  /* moves */                                                                                                                              \
  _(MOVE) /* s[a] = s[b] */ _(COPY) /* r[a] = r[b] */ _(TAKE) /* r[a] = moved r[b] */ _(LOAD) /* r[a] = constant b */ _(DROP) /* r[a] */    \
  _(BOX_INT) _(BOX_FLOAT) _(BOX_BOOL) /* r[a] = s[b] */ _(UNBOX_INT) _(UNBOX_FLOAT) _(UNBOX_BOOL) /* s[a] = r[b] */                         \
  /* numbers: s[a] = s[b] op s[c], or s[a] = op s[b]; the forms _B and _C stand behind the instruction whose result is their operand b or c */\
  CRESSET_FORALL_SCALAR_INSTRUCTIONS(_, ) CRESSET_FORALL_SCALAR_INSTRUCTIONS(_, _B) CRESSET_FORALL_SCALAR_INSTRUCTIONS(_, _C)              \
  /* comparison and jump: unless (if) s[a] op s[b] jump to c */                                                                            \
  CRESSET_FORALL_COMPARISONS(_, JUMP_UNLESS_) CRESSET_FORALL_COMPARISONS(_, JUMP_IF_)                                                      \
  /* lists: r[b] is the list, s[c] the place */                                                                                            \
  _(LIST_LEN) /* s[a] = len(r[b]) */ _(LIST_GET_INT) _(LIST_GET_FLOAT) _(LIST_GET_BOOL) /* s[a] */ _(LIST_GET) /* r[a] */                  \
  _(LIST_SET_INT) _(LIST_SET_FLOAT) _(LIST_SET_BOOL) /* = s[a] */ _(LIST_SET) /* = r[a] */                                                 \
  _(LIST_APPEND_INT) _(LIST_APPEND_FLOAT) _(LIST_APPEND_BOOL) /* s[a] to r[b] */ _(LIST_APPEND) /* r[a] to r[b] */                         \
  /* everything else: calls[a] */                                                                                                          \
  _(CALL_OPERATOR) _(CALL_BUILTIN) _(CALL_IN_PLACE) _(APPEND_TEXT) /* to a string that nobody else needs */                                \
  _(CALL_GRAPH) _(CALL_FUNCTION) _(CALL_METHOD) _(CALL_VALUE) _(MAKE_LIST) _(MAKE_TUPLE) _(MAKE_DICT) _(MAKE_OBJECT)                       \
  _(UNPACK_TUPLE) _(UNPACK_LIST) _(INDEX_TUPLE) _(SLICE_TUPLE) _(GET_ATTRIBUTE) _(SET_ATTRIBUTE) _(HAS_ATTRIBUTE) _(IS_INSTANCE)           \
  _(FORK) _(CHECK_TYPES) _(GUARD) _(ENTER) _(EXIT) _(PYTHON) _(CALL_OPERATION)

// clang-format on
enum class Opcode : uint16_t {
#define CRESSET_OPCODE(name, ...) name,
  CRESSET_FORALL_OPCODES(CRESSET_OPCODE)
#undef CRESSET_OPCODE
};

/// Opcodes that stand in the same order in two rows.
constexpr Opcode shifted(Opcode op, Opcode from, Opcode to) {
  return static_cast<Opcode>(static_cast<int>(to) + (static_cast<int>(op) - static_cast<int>(from)));
}
/// What a row of scalar_instructions.h says: the kinds are i for ints and bools, d for floats.
struct ScalarInstruction {
  bool binary;
  char operands, result;
};
constexpr ScalarInstruction kScalarInstructions[] = {
#define CRESSET_ROW(name, arity, how, in, out, ...) {#arity[0] == 'b', #in[0], #out[0]},
    CRESSET_FORALL_SCALAR_INSTRUCTIONS(CRESSET_ROW, )
#undef CRESSET_ROW
};
constexpr int kScalarInstructionCount = sizeof(kScalarInstructions) / sizeof(kScalarInstructions[0]);

constexpr bool is_arithmetic(Opcode op) { return op >= Opcode::ADD_INT && op < Opcode::JUMP_UNLESS_LT_INT; }
/// The row of an instruction that is_arithmetic, in any form.
constexpr const ScalarInstruction& scalar_instruction(Opcode op) {
  return kScalarInstructions[(static_cast<int>(op) - static_cast<int>(Opcode::ADD_INT)) % kScalarInstructionCount];
}
/// The form that reads both operands from registers.
constexpr Opcode plain_form(Opcode op) {
  if (!is_arithmetic(op)) return op;
  constexpr int first = static_cast<int>(Opcode::ADD_INT);
  return static_cast<Opcode>(first + (static_cast<int>(op) - first) % kScalarInstructionCount);
}
constexpr bool is_int_comparison(Opcode plain) { return plain >= Opcode::LT_INT && plain <= Opcode::NE_INT; }
constexpr bool is_float_comparison(Opcode plain) { return plain >= Opcode::LT_FLOAT && plain <= Opcode::NE_FLOAT; }

struct Instruction {
  Opcode op;
  uint32_t a = 0, b = 0, c = 0;
};
static_assert(sizeof(Instruction) == 16);

/// Where an operand lies and how it is taken or stored.
struct Operand {
  enum class Kind : uint32_t { Int, Float, Bool, Copy, Take, Constant, None, Discard } kind;
  uint32_t index = 0;
};

/// One call: what is called, and where its operands come from and its results go.
struct Call {
  const Node* node = nullptr;
  uint32_t in_begin = 0, in_count = 0, out_begin = 0, out_count = 0;
  bool vararg = false;
  // One of these, by opcode.
  const Operator* op = nullptr;
  BuiltinFunction function = nullptr;
  InPlaceFunction in_place = nullptr;
  Operation operation;
  std::shared_ptr<const Code> graph;
  Function* callee = nullptr;
  std::string name;  // attribute or method
  std::optional<std::size_t> slot;
  TypePtr type;                // of lists, tuples, dicts, objects
  std::vector<TypePtr> types;  // of checks
  int64_t begin = 0, end = 0;  // of slices
};

union Slot {
  int64_t i;
  double d;
};

struct Code::Impl {
  std::shared_ptr<const Graph> graph;
  std::string name;
  std::vector<Instruction> instructions;
  std::vector<const Node*> sources;  // the node of each instruction
  std::vector<Slot> initial;         // scalar constants: the first scalar registers
  std::vector<IValue> constants;
  std::vector<Call> calls;
  std::vector<Operand> operands;
  std::vector<Operand> inputs;  // where the arguments go
  std::vector<Operand> outputs;
  uint32_t scalars = 0, boxed = 0;
  mutable native::Loops loops;  // all else stays as it was compiled
};

}  // namespace cresset::jit
