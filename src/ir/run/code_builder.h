// Emitting flat code: registers of values, operands of instructions, moves. What the nodes become is the compiler's knowledge.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "ir/run/code.h"

namespace cresset::jit {

/// Where values of a type live.
enum class Bank : uint8_t { Int, Float, Bool, Boxed };
Bank bank_of(const Type& t);

struct Register {
  Bank bank;
  uint32_t index;
  friend bool operator==(const Register& a, const Register& b) {
    return (a.bank == Bank::Boxed) == (b.bank == Bank::Boxed) && a.index == b.index;
  }
};

class CodeBuilder {
 public:
  CodeBuilder(std::shared_ptr<const Graph> graph, std::string name);

 protected:
  // ---- registers
  /// Gives the value a register unless it has one.
  void assign(const Value* v);
  /// The register that the value lies in: its own, or a fresh one with the value unboxed (boxed, copied from the constants).
  Register scalar(const Value* v);
  uint32_t boxed(const Value* v);
  Register scalar_constant(int64_t v);
  uint32_t float_constant(double v);

  // ---- operands of calls
  Operand destination(const Value* v);
  Operand result(const Value* v) { return v->hasUses() ? destination(v) : Operand{Operand::Kind::Discard}; }
  Operand operand(const Value* v, bool last);
  /// Operand i of a node; the last use of a boxed register takes the value out of it.
  Operand source(const Node* user, std::size_t i);

  // ---- instructions
  std::size_t emit(Opcode op, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0);
  /// Lets the jump go to the next instruction.
  void patch(std::size_t jump);
  void move(const Operand& from, const Value* to);
  /// Moves that happen at once: when a destination is also read by another, all go through fresh registers.
  void parallel_moves(const std::vector<std::pair<Operand, const Value*>>& all);
  /// `take`: may the call empty registers on their last use?
  Call& call(Opcode op, const Node* n, bool take = true);
  /// The value is another name of `from`.
  void rename(const Value* from, const Value* to);
  /// Empties the registers of values that nobody needs after the node.
  void drop_dead(const Node* n);
  [[noreturn]] static void refuse(const Node* n, const std::string& why);
  static bool is_register(const Operand& o, const Register& r);

  std::unique_ptr<Code::Impl> impl_;
  const Node* current_ = nullptr;  // what instructions are emitted for
  uint32_t next_scalar_ = 0, next_boxed_ = 0;
  std::size_t barrier_ = SIZE_MAX;  // instructions before it must not be merged with later ones: something jumps here
  std::unordered_map<const Value*, Register> registers_;

 private:
  void collect_scalar_constants(const Graph& g);
  void find_last_uses(const Graph& g);
  Opcode form_of(Opcode op, uint32_t b, uint32_t c) const;
  Operand constant(const Value* v);
  void to_boxed(const Operand& from, uint32_t r);

  std::unordered_map<int64_t, uint32_t> int_constants_;
  std::unordered_map<const Value*, uint32_t> constant_numbers_;
  std::unordered_map<const Value*, const Node*> last_use_;
  std::unordered_map<const Node*, std::vector<const Value*>> dies_at_;
  std::unordered_set<const Value*> taken_;
};

}  // namespace cresset::jit
