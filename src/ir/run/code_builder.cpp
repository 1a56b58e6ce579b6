#include "ir/run/code_builder.h"

#include <algorithm>

namespace cresset::jit {

Bank bank_of(const Type& t) {
  switch (t.kind) {
    case TypeKind::Int:
    case TypeKind::SymInt: return Bank::Int;
    case TypeKind::Float: return Bank::Float;
    case TypeKind::Bool: return Bank::Bool;
    default: return Bank::Boxed;
  }
}

namespace {

// Is the value used by nodes that are nested in its user as well?
bool used_inside(const Value* v, const Node* user) {
  if (user->blocks().empty()) return false;
  return std::any_of(v->uses().begin(), v->uses().end(), [&](const Use& u) {
    const Node* at = u.user;
    while (at && at != user) at = at->owningBlock()->owningNode();
    return at && u.user != user;
  });
}

}  // namespace

CodeBuilder::CodeBuilder(std::shared_ptr<const Graph> graph, std::string name) : impl_(std::make_unique<Code::Impl>()) {
  impl_->graph = std::move(graph);
  impl_->name = std::move(name);
  find_last_uses(*impl_->graph);
  collect_scalar_constants(*impl_->graph);
}

void CodeBuilder::parallel_moves(const std::vector<std::pair<Operand, const Value*>>& all) {
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
  const auto read_by_another = [&](std::size_t i, const Register& r) {
    for (std::size_t j = 0; j < moves.size(); ++j)
      if (j != i && is_register(moves[j].first, r)) return true;
    return false;
  };
  while (!moves.empty()) {
    // One whose destination nobody else reads any more, and that does not take what another one copies.
    std::size_t next = 0, overwriting = 0;
    for (; next < moves.size(); ++next) {
      const auto& [from, to] = moves[next];
      if (read_by_another(next, registers_.at(to)))
        overwriting = next;
      else if (from.kind != Operand::Kind::Take || !read_by_another(next, {Bank::Boxed, from.index}))
        break;
    }
    if (next < moves.size()) {
      move(moves[next].first, moves[next].second);
      moves.erase(moves.begin() + static_cast<std::ptrdiff_t>(next));
      continue;
    }
    // They go round in a circle: what one of them overwrites is kept in a fresh register for its readers.
    const Register lost = registers_.at(moves[overwriting].second);
    const bool boxed = lost.bank == Bank::Boxed;
    const uint32_t kept = boxed ? next_boxed_++ : next_scalar_++;
    emit(boxed ? Opcode::COPY : Opcode::MOVE, kept, lost.index);
    for (auto& [from, to] : moves)
      if (is_register(from, lost)) from.index = kept;
  }
}
bool CodeBuilder::is_register(const Operand& o, const Register& r) {
  const bool boxed = o.kind == Operand::Kind::Copy || o.kind == Operand::Kind::Take;
  const bool scalar = o.kind == Operand::Kind::Int || o.kind == Operand::Kind::Float || o.kind == Operand::Kind::Bool;
  return (r.bank == Bank::Boxed ? boxed : scalar) && o.index == r.index;
}

void CodeBuilder::assign(const Value* v) {
  if (registers_.count(v)) return;
  const Bank b = bank_of(*v->type());
  registers_.emplace(v, Register{b, b == Bank::Boxed ? next_boxed_++ : next_scalar_++});
}

// Scalar constants occupy the first scalar registers, so they must be known before any other register is given.
void CodeBuilder::collect_scalar_constants(const Graph& g) {
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
Register CodeBuilder::scalar_constant(int64_t v) {
  const auto [found, fresh] = int_constants_.emplace(v, static_cast<uint32_t>(impl_->initial.size()));
  if (fresh) {
    CRESSET_INTERNAL_ASSERT(next_scalar_ == 0, "constants come first");
    impl_->initial.push_back({.i = v});
  }
  return {Bank::Int, found->second};
}
uint32_t CodeBuilder::float_constant(double v) {
  impl_->initial.push_back({.d = v});
  return static_cast<uint32_t>(impl_->initial.size() - 1);
}

Operand CodeBuilder::destination(const Value* v) {
  assign(v);
  const Register r = registers_.at(v);
  return {r.bank == Bank::Int     ? Operand::Kind::Int
          : r.bank == Bank::Float ? Operand::Kind::Float
          : r.bank == Bank::Bool  ? Operand::Kind::Bool
                                  : Operand::Kind::Copy,
          r.index};
}

Operand CodeBuilder::operand(const Value* v, bool last) {
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
Operand CodeBuilder::constant(const Value* v) {
  auto iv = toIValue(v);
  CRESSET_CHECK(iv, "compile: the constant ", v->node()->str(), " has no value.");
  if (iv->isNone()) return {Operand::Kind::None};
  const auto [found, fresh] = constant_numbers_.emplace(v, static_cast<uint32_t>(impl_->constants.size()));
  if (fresh) impl_->constants.push_back(std::move(*iv));
  return {Operand::Kind::Constant, found->second};
}

Operand CodeBuilder::source(const Node* user, std::size_t i) {
  const Value* v = user->inputs()[i];
  bool last = false;
  const auto found = last_use_.find(v);
  const bool arm =
      user->kind() == prim::Return && user->owningBlock()->owningNode() && user->owningBlock()->owningNode()->kind() == prim::If;
  // What an arm returns and nobody needs behind the If may be taken out here, whatever the other arm does with it.
  const Node* at = arm && found != last_use_.end() && found->second == user->owningBlock()->owningNode() ? found->second : user;
  if (found != last_use_.end() && found->second == at && v->node()->kind() != prim::Constant) {
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

Register CodeBuilder::scalar(const Value* v) {
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
uint32_t CodeBuilder::boxed(const Value* v) {
  const auto found = registers_.find(v);
  if (found != registers_.end() && found->second.bank == Bank::Boxed) return found->second.index;
  const uint32_t r = next_boxed_++;
  to_boxed(operand(v, false), r);
  return r;
}
void CodeBuilder::to_boxed(const Operand& from, uint32_t r) {
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
void CodeBuilder::move(const Operand& from, const Value* to) {
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
void CodeBuilder::find_last_uses(const Graph& g) {
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
void CodeBuilder::drop_dead(const Node* n) {
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

// Numbers that the instruction before has just computed need not be read from memory again, which would take longer than most operations.
// The operands stay what they are: another instruction may come to stand in between (plain_form).
Opcode CodeBuilder::form_of(Opcode op, uint32_t b, uint32_t c) const {
  if (!is_arithmetic(op) || impl_->instructions.empty() || barrier_ == impl_->instructions.size()) return op;
  const Instruction& before = impl_->instructions.back();
  const bool computes = is_arithmetic(before.op) || (before.op >= Opcode::LIST_LEN && before.op <= Opcode::LIST_GET_BOOL);
  if (!computes) return op;
  if (before.a == b) return shifted(op, Opcode::ADD_INT, Opcode::ADD_INT_B);
  return scalar_instruction(op).binary && before.a == c ? shifted(op, Opcode::ADD_INT, Opcode::ADD_INT_C) : op;
}
std::size_t CodeBuilder::emit(Opcode op, uint32_t a, uint32_t b, uint32_t c) {
  impl_->instructions.push_back({form_of(op, b, c), a, b, c});
  impl_->sources.push_back(current_);
  return impl_->instructions.size() - 1;
}
void CodeBuilder::patch(std::size_t at) {
  Instruction& i = impl_->instructions[at];
  const auto here = static_cast<uint32_t>(impl_->instructions.size());
  barrier_ = here;
  if (i.op == Opcode::JUMP)
    i.a = here;
  else if (i.op == Opcode::JUMP_IF_NOT || i.op == Opcode::JUMP_IF)
    i.b = here;
  else
    i.c = here;
}

Call& CodeBuilder::call(Opcode op, const Node* n, bool take) {
  Call c;
  c.node = n;
  c.in_begin = static_cast<uint32_t>(impl_->operands.size());
  c.in_count = static_cast<uint32_t>(n->inputs().size());
  for (std::size_t i = 0; i < n->inputs().size(); ++i) impl_->operands.push_back(take ? source(n, i) : operand(n->input(i), false));
  c.out_begin = static_cast<uint32_t>(impl_->operands.size());
  c.out_count = static_cast<uint32_t>(n->outputs().size());
  for (const Value* v : n->outputs()) impl_->operands.push_back(result(v));
  impl_->calls.push_back(std::move(c));
  emit(op, static_cast<uint32_t>(impl_->calls.size() - 1));
  return impl_->calls.back();
}

void CodeBuilder::refuse(const Node* n, const std::string& why) {
  CRESSET_THROW(Error, "compile: ", why, "\nin ", n->str(), n->sourceRange().known() ? "\n" + n->sourceRange().highlight() : "");
}

void CodeBuilder::rename(const Value* from, const Value* to) {
  assign(to);
  move(operand(from, false), to);
}
}  // namespace cresset::jit
