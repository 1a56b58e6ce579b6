// From graphs to flat code. Values get registers when they are defined; the results of arms and the values carried by loops share registers
// with what they become, where lifetimes allow it.
#include <algorithm>
#include <climits>
#include <unordered_set>

#include "ir/builtin_call.h"
#include "ir/code.h"
#include "ir/fast_operators.h"

namespace cresset::jit {
namespace {

enum class Bank : uint8_t { Int, Float, Bool, Boxed };

Bank bank_of(const Type& t) {
  switch (t.kind) {
    case TypeKind::Int:
    case TypeKind::SymInt: return Bank::Int;
    case TypeKind::Float: return Bank::Float;
    case TypeKind::Bool: return Bank::Bool;
    default: return Bank::Boxed;
  }
}

struct Register {
  Bank bank;
  uint32_t index;
  friend bool operator==(const Register& a, const Register& b) {
    return (a.bank == Bank::Boxed) == (b.bank == Bank::Boxed) && a.index == b.index;
  }
};

// Comparisons and the jumps on them stand in the same order among the opcodes.
constexpr Opcode shifted(Opcode op, Opcode from, Opcode to) {
  return static_cast<Opcode>(static_cast<int>(to) + (static_cast<int>(op) - static_cast<int>(from)));
}
constexpr bool is_comparison(Opcode op) {
  return (op >= Opcode::LT_INT && op <= Opcode::NE_INT) || (op >= Opcode::LT_FLOAT && op <= Opcode::NE_FLOAT);
}
constexpr Opcode jump_unless(Opcode comparison) {
  return comparison <= Opcode::NE_INT ? shifted(comparison, Opcode::LT_INT, Opcode::JUMP_UNLESS_LT_INT)
                                      : shifted(comparison, Opcode::LT_FLOAT, Opcode::JUMP_UNLESS_LT_FLOAT);
}
constexpr Opcode comparison_of(Opcode jump_unless) {
  return jump_unless <= Opcode::JUMP_UNLESS_NE_INT ? shifted(jump_unless, Opcode::JUMP_UNLESS_LT_INT, Opcode::LT_INT)
                                                   : shifted(jump_unless, Opcode::JUMP_UNLESS_LT_FLOAT, Opcode::LT_FLOAT);
}
constexpr Opcode jump_if(Opcode jump_unless) { return shifted(jump_unless, Opcode::JUMP_UNLESS_LT_INT, Opcode::JUMP_IF_LT_INT); }

class Compiler {
 public:
  Compiler(std::shared_ptr<const Graph> graph, std::string name) : impl_(std::make_unique<Code::Impl>()) {
    impl_->graph = std::move(graph);
    impl_->name = std::move(name);
  }

  std::unique_ptr<Code::Impl> run() {
    const Graph& g = *impl_->graph;
    find_last_uses(g);
    collect_scalar_constants(g);
    for (const Value* v : g.inputs()) impl_->inputs.push_back(v->hasUses() ? destination(v) : Operand{Operand::Kind::Discard});
    blocks(g.block());
    for (std::size_t i = 0; i < g.outputs().size(); ++i) impl_->outputs.push_back(source(g.return_node(), i));
    current_ = g.return_node();
    emit(Opcode::RETURN);
    impl_->scalars = next_scalar_;
    impl_->boxed = next_boxed_;
    return std::move(impl_);
  }

 private:
  // ---- blocks, with an explicit stack

  struct Frame {
    enum class Kind { Top, Then, Else, Body } kind;
    const Block* block;
    const Node* next;
    std::size_t patch = 0;  // the jump to set when the block is done
    std::size_t second_patch = 0;
    std::size_t start = 0;  // of a loop's body
    Register limit{Bank::Int, 0};
    bool counted = false;  // the loop's condition is the constant true
    bool endless = false;  // the condition alone ends the loop, and nobody asks for the number of the round
    bool guarded = false;
  };

  void blocks(const Block* top) {
    std::vector<Frame> stack{{Frame::Kind::Top, top, top->param_node()->next()}};
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next->kind() == prim::Return) {
        const Frame done = f;
        stack.pop_back();
        leave(done, stack);
        continue;
      }
      const Node* n = f.next;
      f.next = n->next();
      current_ = n;
      if (n->kind() == prim::If) {
        enter_if(n, stack);
      } else if (n->kind() == prim::Loop) {
        enter_loop(n, stack);
      } else {
        node(n);
        drop_dead(n);
      }
    }
  }

  void enter_if(const Node* n, std::vector<Frame>& stack) {
    for (const Value* o : n->outputs()) assign(o);
    for (const Block* arm : n->blocks()) share_results(arm, n, 0);
    const std::size_t jump = jump_if_not(n->input());
    Frame f{Frame::Kind::Then, n->blocks()[0], n->blocks()[0]->param_node()->next()};
    f.patch = jump;
    stack.push_back(f);
  }

  // The condition was computed by the instruction just emitted and is used nowhere else: compare and jump at once.
  std::size_t jump_if_not(const Value* condition) {
    if (const auto fused = fuse_comparison(condition)) return *fused;
    const Register c = scalar(condition);
    return emit(Opcode::JUMP_IF_NOT, c.index, 0);
  }
  std::optional<std::size_t> fuse_comparison(const Value* condition) {
    if (impl_->instructions.empty() || condition->uses().size() != 1 || impl_->sources.back() != condition->node() ||
        barrier_ == impl_->instructions.size())
      return std::nullopt;
    Instruction& last = impl_->instructions.back();
    if (!is_comparison(last.op) || !(registers_.at(condition) == Register{Bank::Bool, last.a})) return std::nullopt;
    last = {jump_unless(last.op), last.b, last.c, 0};
    return impl_->instructions.size() - 1;
  }

  // The comparison that decides about the next round and was just emitted, taken back: it may jump by itself behind the moves, unless they
  // overwrite its operands.
  std::optional<Instruction> held_back_comparison(const Value* go_on, const std::vector<std::pair<Operand, const Value*>>& moves) {
    const auto fused = fuse_comparison(go_on);
    if (!fused) return std::nullopt;
    const Instruction last = impl_->instructions.back();
    const bool clobbered = std::any_of(moves.begin(), moves.end(), [&](const auto& m) {
      const Register r = registers_.at(m.second);
      return r.bank != Bank::Boxed && (r.index == last.a || r.index == last.b);
    });
    if (clobbered) {
      impl_->instructions.back() = {comparison_of(last.op), registers_.at(go_on).index, last.a, last.b};
      return std::nullopt;
    }
    impl_->instructions.pop_back();
    impl_->sources.pop_back();
    return last;
  }

  // Gives values that an arm or a body returns the registers of what they become, when they are computed there and returned once.
  void share_results(const Block* b, const Node* owner, std::size_t skip) {
    for (std::size_t i = skip; i < b->outputs().size(); ++i) {
      const Value* v = b->outputs()[i];
      const Value* target = owner->outputs()[i - skip];
      if (v->node()->owningBlock() != b || v->node()->kind() == prim::Param || v->node()->kind() == prim::Constant) continue;
      if (registers_.count(v) || bank_of(*v->type()) != bank_of(*target->type())) continue;
      if (std::count(b->outputs().begin(), b->outputs().end(), v) != 1) continue;
      if (skip && !carried_is_dead_before(b->inputs()[i], v->node())) continue;
      registers_.emplace(v, skip ? registers_.at(b->inputs()[i]) : registers_.at(target));
    }
  }

  // Is every use of a loop's block input before the node, or a plain operand of it?
  static bool carried_is_dead_before(const Value* input, const Node* n) {
    for (const Use& u : input->uses()) {
      if (u.user == n && n->blocks().empty()) continue;
      const Node* at = u.user;
      while (at->owningBlock() != n->owningBlock()) at = at->owningBlock()->owningNode();
      if (!at->isBefore(n)) return false;
    }
    return true;
  }

  void enter_loop(const Node* n, std::vector<Frame>& stack) {
    const Block* body = n->blocks()[0];
    // The carried values live in the registers of the loop's outputs.
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      assign(n->outputs()[i]);
      if (bank_of(*n->outputs()[i]->type()) == bank_of(*body->inputs()[i + 1]->type()))
        registers_.emplace(body->inputs()[i + 1], registers_.at(n->outputs()[i]));
      else
        assign(body->inputs()[i + 1]);
    }
    Frame f{Frame::Kind::Body, body, body->param_node()->next()};
    const Value* counter = body->inputs()[0];
    f.endless = !counter->hasUses() && constant_as<int64_t>(n->input(0)) == std::numeric_limits<int64_t>::max();
    f.counted = !f.endless && constant_as<bool>(body->outputs()[0]).value_or(false);
    std::vector<std::pair<Operand, const Value*>> moves;
    for (std::size_t k = 0; k < n->outputs().size(); ++k) moves.emplace_back(source(n, k + 2), body->inputs()[k + 1]);
    parallel_moves(moves);
    // Outputs of another bank than the block's inputs hold the initial values until the loop ends.
    if (!f.endless) {
      assign(counter);
      f.limit = scalar(n->input(0));
      emit(Opcode::MOVE, registers_.at(counter).index, scalar_constant(0).index);
      f.patch = emit(Opcode::JUMP_UNLESS_LT_INT, registers_.at(counter).index, f.limit.index, 0);
    }
    const auto start = constant_as<bool>(n->input(1));
    if (!start.value_or(false)) {
      f.second_patch = emit(Opcode::JUMP_IF_NOT, scalar(n->input(1)).index, 0);
      f.guarded = true;
    }
    f.start = impl_->instructions.size();
    barrier_ = f.start;
    share_results(body, n, 1);
    stack.push_back(f);
  }

  void leave(const Frame& f, std::vector<Frame>& stack) {
    switch (f.kind) {
      case Frame::Kind::Top: return;
      case Frame::Kind::Then: {
        const Node* n = f.block->owningNode();
        current_ = n;
        return_arm(f.block, n);
        const std::size_t over = emit(Opcode::JUMP);
        patch(f.patch);
        Frame other{Frame::Kind::Else, n->blocks()[1], n->blocks()[1]->param_node()->next()};
        other.second_patch = f.patch;
        other.patch = over;
        stack.push_back(other);
        return;
      }
      case Frame::Kind::Else: {
        const Node* n = f.block->owningNode();
        current_ = n;
        return_arm(f.block, n);
        // An empty else needs no jump over it.
        if (impl_->instructions.size() == f.patch + 1) {
          impl_->instructions.pop_back();
          impl_->sources.pop_back();
          patch(f.second_patch);
        } else {
          patch(f.patch);
        }
        barrier_ = impl_->instructions.size();
        drop_dead(n);
        return;
      }
      case Frame::Kind::Body: {
        const Node* n = f.block->owningNode();
        current_ = n;
        std::vector<std::pair<Operand, const Value*>> moves;
        for (std::size_t k = 0; k < n->outputs().size(); ++k)
          moves.emplace_back(source(f.block->return_node(), k + 1), f.block->inputs()[k + 1]);
        const Value* go_on = f.block->outputs()[0];
        if (f.counted) {
          parallel_moves(moves);
          next_round(f);
        } else {
          const std::size_t jump = leave_unless(go_on, moves, n);
          if (f.endless) {
            jump_back_if(jump, f.start);
          } else {
            next_round(f);
            patch(jump);
          }
        }
        if (!f.endless) patch(f.patch);
        if (f.guarded) patch(f.second_patch);
        for (std::size_t k = 0; k < n->outputs().size(); ++k)
          if (!(registers_.at(n->outputs()[k]) == registers_.at(f.block->inputs()[k + 1])))
            move(operand(f.block->inputs()[k + 1], false), n->outputs()[k]);
        barrier_ = impl_->instructions.size();
        drop_dead(n);
        return;
      }
    }
  }

  void next_round(const Frame& f) {
    emit(Opcode::LOOP_NEXT, registers_.at(f.block->inputs()[0]).index, f.limit.index, static_cast<uint32_t>(f.start));
  }

  // The moves of a round's end and the jump out of the loop `n` when its condition does not hold; gives the jump.
  std::size_t leave_unless(const Value* go_on, std::vector<std::pair<Operand, const Value*>> moves, const Node* n) {
    std::erase_if(moves, [&](const auto& m) { return is_register(m.first, registers_.at(m.second)); });
    if (const auto comparison = held_back_comparison(go_on, moves)) {
      parallel_moves(moves);
      current_ = go_on->node();
      const std::size_t jump = emit(comparison->op, comparison->a, comparison->b);
      current_ = n;
      return jump;
    }
    if (moves.empty()) return jump_if_not(go_on);
    // The condition may be a carried value that the moves overwrite.
    Register c = scalar(go_on);
    if (std::any_of(moves.begin(), moves.end(), [&](const auto& m) { return registers_.at(m.second) == c; })) {
      const Register keep{Bank::Bool, next_scalar_++};
      emit(Opcode::MOVE, keep.index, c.index);
      c = keep;
    }
    parallel_moves(moves);
    return emit(Opcode::JUMP_IF_NOT, c.index, 0);
  }

  // The jump out, which is the last instruction, becomes a jump back on the opposite.
  void jump_back_if(std::size_t jump, std::size_t start) {
    Instruction& i = impl_->instructions[jump];
    const auto to = static_cast<uint32_t>(start);
    if (i.op == Opcode::JUMP_IF_NOT)
      i = {Opcode::JUMP_IF, i.a, to, 0};
    else
      i = {jump_if(i.op), i.a, i.b, to};
  }

  void return_arm(const Block* arm, const Node* n) {
    std::vector<std::pair<Operand, const Value*>> moves;
    for (std::size_t i = 0; i < n->outputs().size(); ++i) moves.emplace_back(source(arm->return_node(), i), n->outputs()[i]);
    parallel_moves(moves);
  }

  // Moves that happen at once: when a destination is also read by another, all go through fresh registers.
  void parallel_moves(const std::vector<std::pair<Operand, const Value*>>& all) {
    std::vector<std::pair<Operand, const Value*>> moves;
    std::unordered_set<uint32_t> staying;  // boxed registers whose value stays where it is: others may only copy it
    for (const auto& [from, to] : all) {
      if (!is_register(from, registers_.at(to)))
        moves.emplace_back(from, to);
      else if (registers_.at(to).bank == Bank::Boxed)
        staying.insert(from.index);
    }
    for (auto& [from, to] : moves)
      if (from.kind == Operand::Kind::Take && staying.count(from.index)) from.kind = Operand::Kind::Copy;
    bool conflict = false;
    for (std::size_t i = 0; i < moves.size(); ++i)
      for (std::size_t j = 0; j < moves.size(); ++j)
        conflict = conflict || (i != j && is_register(moves[j].first, registers_.at(moves[i].second)));
    if (!conflict) {
      for (const auto& [from, to] : moves) move(from, to);
      return;
    }
    std::vector<Operand> kept;
    for (const auto& [from, to] : moves) {
      const bool boxed = from.kind == Operand::Kind::Copy || from.kind == Operand::Kind::Take || from.kind == Operand::Kind::Constant ||
                         from.kind == Operand::Kind::None;
      if (boxed) {
        const Register r{Bank::Boxed, next_boxed_++};
        to_boxed(from, r.index);
        kept.push_back({Operand::Kind::Take, r.index});
      } else {
        const uint32_t s = next_scalar_++;
        emit(Opcode::MOVE, s, from.index);
        kept.push_back({from.kind, s});
      }
    }
    for (std::size_t i = 0; i < moves.size(); ++i) move(kept[i], moves[i].second);
  }
  static bool is_register(const Operand& o, const Register& r) {
    const bool boxed = o.kind == Operand::Kind::Copy || o.kind == Operand::Kind::Take;
    const bool scalar = o.kind == Operand::Kind::Int || o.kind == Operand::Kind::Float || o.kind == Operand::Kind::Bool;
    return (r.bank == Bank::Boxed ? boxed : scalar) && o.index == r.index;
  }

  // ---- registers and operands

  void assign(const Value* v) {
    if (registers_.count(v)) return;
    const Bank b = bank_of(*v->type());
    registers_.emplace(v, Register{b, b == Bank::Boxed ? next_boxed_++ : next_scalar_++});
  }

  // Scalar constants occupy the first scalar registers, so they must be known before any other register is given.
  void collect_scalar_constants(const Graph& g) {
    scalar_constant(0);
    const auto collect = [&](const Node* n) {
      if (n->kind() != prim::Constant) return;
      const auto v = toIValue(n->output());
      if (!v) return;
      switch (bank_of(*n->output()->type())) {
        case Bank::Int:
          if (v->isInt()) registers_.emplace(n->output(), scalar_constant(v->toInt()));
          break;
        case Bank::Bool:
          if (v->isBool()) registers_.emplace(n->output(), Register{Bank::Bool, scalar_constant(v->toBool()).index});
          break;
        case Bank::Float:
          if (v->isDouble()) registers_.emplace(n->output(), Register{Bank::Float, float_constant(v->toDouble())});
          break;
        default: break;
      }
    };
    g.block()->visit([&](Node* n) { collect(n); });
    next_scalar_ = static_cast<uint32_t>(impl_->initial.size());
  }
  Register scalar_constant(int64_t v) {
    const auto [found, fresh] = int_constants_.emplace(v, static_cast<uint32_t>(impl_->initial.size()));
    if (fresh) {
      CRESSET_INTERNAL_ASSERT(next_scalar_ == 0, "constants come first");
      impl_->initial.push_back({.i = v});
    }
    return {Bank::Int, found->second};
  }
  uint32_t float_constant(double v) {
    impl_->initial.push_back({.d = v});
    return static_cast<uint32_t>(impl_->initial.size() - 1);
  }

  Operand destination(const Value* v) {
    assign(v);
    const Register r = registers_.at(v);
    return {r.bank == Bank::Int     ? Operand::Kind::Int
            : r.bank == Bank::Float ? Operand::Kind::Float
            : r.bank == Bank::Bool  ? Operand::Kind::Bool
                                    : Operand::Kind::Copy,
            r.index};
  }
  Operand result(const Value* v) { return v->hasUses() ? destination(v) : Operand{Operand::Kind::Discard}; }

  Operand operand(const Value* v, bool last) {
    if (const auto found = registers_.find(v); found != registers_.end()) {
      const Register r = found->second;
      switch (r.bank) {
        case Bank::Int: return {Operand::Kind::Int, r.index};
        case Bank::Float: return {Operand::Kind::Float, r.index};
        case Bank::Bool: return {Operand::Kind::Bool, r.index};
        default: return {last ? Operand::Kind::Take : Operand::Kind::Copy, r.index};
      }
    }
    if (v->node()->kind() == prim::Constant) return constant(v);
    if (v->node()->kind() == prim::Uninitialized) return {Operand::Kind::None};
    CRESSET_CHECK(false, "compile: %", v->debugName(), " is used before it is defined.");
  }
  Operand constant(const Value* v) {
    auto iv = toIValue(v);
    CRESSET_CHECK(iv, "compile: the constant ", v->node()->str(), " has no value.");
    if (iv->isNone()) return {Operand::Kind::None};
    const auto [found, fresh] = constant_numbers_.emplace(v, static_cast<uint32_t>(impl_->constants.size()));
    if (fresh) impl_->constants.push_back(std::move(*iv));
    return {Operand::Kind::Constant, found->second};
  }

  // Operand i of a node; the last use of a boxed register takes the value out of it.
  Operand source(const Node* user, std::size_t i) {
    const Value* v = user->inputs()[i];
    bool last = false;
    const auto found = last_use_.find(v);
    if (found != last_use_.end() && found->second == user && v->node()->kind() != prim::Constant) {
      last = true;
      for (std::size_t k = i + 1; k < user->inputs().size(); ++k) last = last && user->inputs()[k] != v;
      // A value that shares its register with an operand of the same node is still needed.
      for (std::size_t k = i + 1; k < user->inputs().size() && last; ++k) {
        const auto other = registers_.find(user->inputs()[k]), own = registers_.find(v);
        last = !(other != registers_.end() && own != registers_.end() && user->inputs()[k] != v && other->second == own->second);
      }
      if (taken_.count(v) || (last && used_inside(v, user))) last = false;
      if (last && user->kind() != prim::Return) taken_.insert(v);
    }
    return operand(v, last);
  }

  // Is the value used by nodes that are nested in its user as well?
  static bool used_inside(const Value* v, const Node* user) {
    if (user->blocks().empty()) return false;
    return std::any_of(v->uses().begin(), v->uses().end(), [&](const Use& u) {
      const Node* at = u.user;
      while (at && at != user) at = at->owningBlock()->owningNode();
      return at && u.user != user;
    });
  }

  // A scalar register with the value: its own, or unboxed into a fresh one.
  Register scalar(const Value* v) {
    const auto found = registers_.find(v);
    if (found != registers_.end() && found->second.bank != Bank::Boxed) return found->second;
    const Bank b = bank_of(*v->type());
    CRESSET_CHECK(b != Bank::Boxed, "compile: %", v->debugName(), " of type '", v->type()->str(), "' is used as a number.");
    const Register fresh{b, next_scalar_++};
    if (v->node()->kind() == prim::Uninitialized) return fresh;
    const uint32_t box = boxed(v);
    emit(b == Bank::Int ? Opcode::UNBOX_INT : b == Bank::Float ? Opcode::UNBOX_FLOAT : Opcode::UNBOX_BOOL, fresh.index, box);
    return fresh;
  }
  // A boxed register with the value.
  uint32_t boxed(const Value* v) {
    const auto found = registers_.find(v);
    if (found != registers_.end() && found->second.bank == Bank::Boxed) return found->second.index;
    const uint32_t r = next_boxed_++;
    to_boxed(operand(v, false), r);
    return r;
  }
  void to_boxed(const Operand& from, uint32_t r) {
    switch (from.kind) {
      case Operand::Kind::Int: emit(Opcode::BOX_INT, r, from.index); break;
      case Operand::Kind::Float: emit(Opcode::BOX_FLOAT, r, from.index); break;
      case Operand::Kind::Bool: emit(Opcode::BOX_BOOL, r, from.index); break;
      case Operand::Kind::Copy: emit(Opcode::COPY, r, from.index); break;
      case Operand::Kind::Take: emit(Opcode::TAKE, r, from.index); break;
      case Operand::Kind::Constant: emit(Opcode::LOAD, r, from.index); break;
      default: emit(Opcode::DROP, r); break;
    }
  }
  void move(const Operand& from, const Value* to) {
    const Register r = registers_.at(to);
    if (r.bank == Bank::Boxed) {
      to_boxed(from, r.index);
      return;
    }
    switch (from.kind) {
      case Operand::Kind::Int: emit(r.bank == Bank::Float ? Opcode::INT_TO_FLOAT : Opcode::MOVE, r.index, from.index); break;
      case Operand::Kind::Float:
      case Operand::Kind::Bool: emit(Opcode::MOVE, r.index, from.index); break;
      case Operand::Kind::None: break;  // uninitialized
      default: {
        uint32_t box = from.index;
        if (from.kind == Operand::Kind::Constant) {
          box = next_boxed_++;
          emit(Opcode::LOAD, box, from.index);
        }
        emit(r.bank == Bank::Int ? Opcode::UNBOX_INT : r.bank == Bank::Float ? Opcode::UNBOX_FLOAT : Opcode::UNBOX_BOOL, r.index, box);
      }
    }
  }

  // For each boxed value the node of its own block after which nobody needs it.
  void find_last_uses(const Graph& g) {
    const auto look = [&](const Value* v) {
      if (bank_of(*v->type()) != Bank::Boxed) return;
      const Block* home = v->node()->owningBlock();
      const Node* last = nullptr;
      for (const Use& u : v->uses()) {
        const Node* at = u.user;
        while (at->owningBlock() != home) at = at->owningBlock()->owningNode();
        if (!last || last->isBefore(at)) last = at;
      }
      if (last) last_use_.emplace(v, last);
      if (last && last->kind() != prim::Return) dies_at_[last].push_back(v);
    };
    for (const Value* v : g.inputs()) look(v);
    g.block()->visit([&](Node* n) {
      if (n->kind() == prim::Constant) return;
      for (const Value* v : n->outputs()) look(v);
      for (const Block* b : n->blocks())
        for (const Value* v : b->inputs()) look(v);
    });
  }
  void drop_dead(const Node* n) {
    const auto found = dies_at_.find(n);
    if (found == dies_at_.end()) return;
    for (const Value* v : found->second) {
      const auto r = registers_.find(v);
      if (r == registers_.end() || r->second.bank != Bank::Boxed || taken_.count(v)) continue;
      bool reused = false;
      for (const Value* o : n->outputs()) {
        const auto out = registers_.find(o);
        reused = reused || (out != registers_.end() && out->second == r->second);
      }
      if (!reused) emit(Opcode::DROP, r->second.index);
    }
  }

  // ---- instructions

  std::size_t emit(Opcode op, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0) {
    impl_->instructions.push_back({op, a, b, c});
    impl_->sources.push_back(current_);
    return impl_->instructions.size() - 1;
  }
  void patch(std::size_t at) {
    Instruction& i = impl_->instructions[at];
    const auto here = static_cast<uint32_t>(impl_->instructions.size());
    barrier_ = here;
    if (i.op == Opcode::JUMP)
      i.a = here;
    else if (i.op == Opcode::JUMP_IF_NOT)
      i.b = here;
    else
      i.c = here;
  }

  Call& call(Opcode op, const Node* n) {
    Call c;
    c.node = n;
    c.in_begin = static_cast<uint32_t>(impl_->operands.size());
    c.in_count = static_cast<uint32_t>(n->inputs().size());
    for (std::size_t i = 0; i < n->inputs().size(); ++i) impl_->operands.push_back(source(n, i));
    c.out_begin = static_cast<uint32_t>(impl_->operands.size());
    c.out_count = static_cast<uint32_t>(n->outputs().size());
    for (const Value* v : n->outputs()) impl_->operands.push_back(result(v));
    impl_->calls.push_back(std::move(c));
    emit(op, static_cast<uint32_t>(impl_->calls.size() - 1));
    return impl_->calls.back();
  }

  [[noreturn]] void refuse(const Node* n, const std::string& why) {
    CRESSET_THROW(Error, "compile: ", why, "\nin ", n->str(), n->sourceRange().known() ? "\n" + n->sourceRange().highlight() : "");
  }

  void rename(const Value* from, const Value* to, bool last) {
    assign(to);
    move(operand(from, last), to);
  }

  void node(const Node* n) {
    switch (n->kind()) {
      case prim::Constant:
      case prim::Uninitialized: return;
      case prim::ListConstruct:
        call(Opcode::MAKE_LIST, n).type = n->output()->type()->kind == TypeKind::List ? n->output()->type()->element() : nullptr;
        return;
      case prim::TupleConstruct:
        call(Opcode::MAKE_TUPLE, n).type = n->output()->type()->name.empty() ? nullptr : n->output()->type();
        return;
      case prim::DictConstruct: call(Opcode::MAKE_DICT, n).type = n->output()->type(); return;
      case prim::CreateObject: {
        const auto cls = n->output()->type()->cast<ClassType>();
        if (!cls || cls->is_opaque()) refuse(n, "the class '" + n->output()->type()->str() + "' is not known");
        call(Opcode::MAKE_OBJECT, n).type = cls;
        return;
      }
      case prim::TupleUnpack: call(Opcode::UNPACK_TUPLE, n); return;
      case prim::ListUnpack: call(Opcode::UNPACK_LIST, n); return;
      case prim::TupleIndex: call(Opcode::INDEX_TUPLE, n); return;
      case prim::TupleSlice: {
        Call& c = call(Opcode::SLICE_TUPLE, n);
        c.begin = n->i(attr::beg);
        c.end = n->i(attr::end);
        return;
      }
      case prim::GetAttr: attribute(call(Opcode::GET_ATTRIBUTE, n), n); return;
      case prim::SetAttr: attribute(call(Opcode::SET_ATTRIBUTE, n), n); return;
      case prim::HasAttr: call(Opcode::HAS_ATTRIBUTE, n).name = n->s(attr::name); return;
      case prim::CallMethod: {
        Call& c = call(Opcode::CALL_METHOD, n);
        c.name = n->s(attr::name);
        const auto cls = n->input(0)->type()->cast<ClassType>();
        if (cls && !cls->is_opaque()) c.callee = &cls->getMethod(c.name);
        return;
      }
      case prim::CallFunction: {
        const auto f = n->input(0)->type()->cast<FunctionType>();
        if (f) {
          call(Opcode::CALL_FUNCTION, n).callee = f->function();
        } else if (n->input(0)->node()->kind() != prim::Constant) {
          call(Opcode::CALL_VALUE, n);
        } else {
          refuse(n, "the function is not known");
        }
        return;
      }
      case prim::isinstance: {
        Call& c = call(Opcode::IS_INSTANCE, n);
        c.types = n->kindOf(attr::types) == AttributeKind::tys ? n->tys(attr::types) : std::vector<TypePtr>{n->ty(attr::types)};
        return;
      }
      case prim::fork: subgraph(call(Opcode::FORK, n), n); return;
      case prim::Enter: call(Opcode::ENTER, n); return;
      case prim::Exit: call(Opcode::EXIT, n); return;
      case prim::unchecked_cast:
      case prim::profile:
      case prim::profile_ivalue:
      case prim::BailOut:
        if (n->outputs().size() == 1 && !n->inputs().empty()) rename(n->input(0), n->output(), false);
        return;
      case prim::Guard: call(Opcode::GUARD, n).types = {n->output()->type()}; return;
      case prim::TypeCheck:
      case prim::RequiresGradCheck: call(Opcode::CHECK_TYPES, n).types = n->tys(attr::types); return;
      case prim::PythonOp:
      case prim::IgnoredPythonOp: call(Opcode::PYTHON, n); return;
      default: break;
    }
    if (n->hasAttribute(attr::Subgraph)) {
      subgraph(call(Opcode::CALL_GRAPH, n), n);
      return;
    }
    operation(n);
  }

  void subgraph(Call& c, const Node* n) {
    c.graph = Code::compile(n->g(attr::Subgraph), std::string(n->kind().toUnqualString()));
    if (n->kind() == prim::fork && n->output()->type()->kind == TypeKind::Future) c.type = n->output()->type()->element();
  }
  static void attribute(Call& c, const Node* n) {
    c.name = n->s(attr::name);
    const auto cls = n->input(0)->type()->cast<ClassType>();
    if (cls && !cls->is_opaque()) c.slot = cls->getAttributeSlot(c.name);
  }

  void operation(const Node* n) {
    const Operator& op = n->getOperator();
    if (op.function() && fast(n, op)) return;
    Call& c = call(op.function() ? Opcode::CALL_BUILTIN : Opcode::CALL_OPERATOR, n);
    c.op = &op;
    c.function = op.function();
    c.vararg = op.schema().is_vararg();
    if (!op.schema().is_varret() && op.schema().returns().size() != n->outputs().size())
      refuse(n, "the operator has " + std::to_string(op.schema().returns().size()) + " results: " + op.schema().str());
  }

  // One or two instructions for operators on numbers and lists.
  bool fast(const Node* n, const Operator& op) {
    const std::string name = op.schema().operator_name().str();
    if (const auto found = fast_operators().find(name); found != fast_operators().end()) {
      const FastOperator& f = found->second;
      uint32_t in[2] = {0, 0};
      for (std::size_t i = 0; f.banks[i]; ++i) {
        const Register r = scalar(n->input(i));
        in[i] = r.index;
        if (f.banks[i] == 'f' && r.bank != Bank::Float) {
          in[i] = next_scalar_++;
          emit(Opcode::INT_TO_FLOAT, in[i], r.index);
        }
      }
      assign(n->output());
      const Register out = registers_.at(n->output());
      CRESSET_CHECK(out.bank != Bank::Boxed, "compile: ", n->str(), " gives a number.");
      emit(f.op, out.index, in[0], in[1]);
      return true;
    }
    if (name == "aten::__derive_index") {
      // start + index * step
      const Register index = scalar(n->input(0)), start = scalar(n->input(1)), step = scalar(n->input(2));
      assign(n->output());
      const uint32_t product = next_scalar_++;
      emit(Opcode::MUL_INT, product, index.index, step.index);
      emit(Opcode::ADD_INT, registers_.at(n->output()).index, start.index, product);
      return true;
    }
    if (name == "prim::unchecked_unwrap_optional") {
      rename(n->input(0), n->output(), false);
      return true;
    }
    return list_operation(n, name);
  }

  bool list_operation(const Node* n, const std::string& name) {
    const auto by_bank = [](Bank b, Opcode first) { return static_cast<Opcode>(static_cast<int>(first) + static_cast<int>(b)); };
    static_assert(static_cast<int>(Bank::Boxed) == 3);
    const auto element_register = [&](const Value* v) { return bank_of(*v->type()) == Bank::Boxed ? boxed(v) : scalar(v).index; };
    if (name == "aten::len.t") {
      const uint32_t list = boxed(n->input(0));
      assign(n->output());
      emit(Opcode::LIST_LEN, registers_.at(n->output()).index, list);
      return true;
    }
    if (name == "aten::__getitem__.t") {
      const uint32_t list = boxed(n->input(0)), at = scalar(n->input(1)).index;
      assign(n->output());
      const Register out = registers_.at(n->output());
      emit(by_bank(out.bank, Opcode::LIST_GET_INT), out.index, list, at);
      return true;
    }
    const bool set = name == "aten::_set_item.t", append = name == "aten::append.t";
    if (!set && !append) return false;
    const uint32_t list = boxed(n->input(0)), at = set ? scalar(n->input(1)).index : 0;
    const Value* element = n->input(set ? 2 : 1);
    // An int in a list of floats and the like stays what the graph says it is.
    const uint32_t v = element_register(element);
    emit(by_bank(bank_of(*element->type()), set ? Opcode::LIST_SET_INT : Opcode::LIST_APPEND_INT), v, list, at);
    if (n->outputs().size() == 1 && n->output()->hasUses()) {
      assign(n->output());
      emit(Opcode::COPY, registers_.at(n->output()).index, list);
    }
    return true;
  }

  std::unique_ptr<Code::Impl> impl_;
  const Node* current_ = nullptr;
  uint32_t next_scalar_ = 0, next_boxed_ = 0;
  std::size_t barrier_ = SIZE_MAX;  // instructions before it must not be merged with later ones: something jumps here
  std::unordered_map<const Value*, Register> registers_;
  std::unordered_map<int64_t, uint32_t> int_constants_;
  std::unordered_map<const Value*, uint32_t> constant_numbers_;
  std::unordered_map<const Value*, const Node*> last_use_;
  std::unordered_map<const Node*, std::vector<const Value*>> dies_at_;
  std::unordered_set<const Value*> taken_;
};

}  // namespace

std::shared_ptr<const Code> Code::compile(std::shared_ptr<const Graph> graph, std::string function_name) {
  return std::shared_ptr<const Code>(new Code(Compiler(std::move(graph), std::move(function_name)).run()));
}

}  // namespace cresset::jit
