// From graphs to flat code. Values get registers when they are defined; the results of arms and the values carried by loops share registers
// with what they become, where lifetimes allow it.
#include <algorithm>

#include "ir/operators/custom_class_function.h"
#include "ir/run/code_builder.h"
#include "ir/run/fast_operators.h"
#include "ir/run/frame.h"

namespace cresset::jit {
namespace {

// Comparisons and the jumps on them stand in the same order among the opcodes.
constexpr bool is_comparison(Opcode op) { return is_int_comparison(op) || is_float_comparison(op); }
constexpr Opcode jump_unless(Opcode comparison) {
  return comparison <= Opcode::NE_INT ? shifted(comparison, Opcode::LT_INT, Opcode::JUMP_UNLESS_LT_INT)
                                      : shifted(comparison, Opcode::LT_FLOAT, Opcode::JUMP_UNLESS_LT_FLOAT);
}
constexpr Opcode comparison_of(Opcode jump_unless) {
  return jump_unless <= Opcode::JUMP_UNLESS_NE_INT ? shifted(jump_unless, Opcode::JUMP_UNLESS_LT_INT, Opcode::LT_INT)
                                                   : shifted(jump_unless, Opcode::JUMP_UNLESS_LT_FLOAT, Opcode::LT_FLOAT);
}
constexpr Opcode jump_if(Opcode jump_unless) { return shifted(jump_unless, Opcode::JUMP_UNLESS_LT_INT, Opcode::JUMP_IF_LT_INT); }

class Compiler : CodeBuilder {
 public:
  using CodeBuilder::CodeBuilder;

  std::unique_ptr<Code::Impl> run() {
    const Graph& g = *impl_->graph;
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

  struct Open {
    enum class Kind { Top, Then, Else, Body } kind;
    const Block* block;
    const Node* next;
    std::size_t patch = 0;  // the jump to set when the block is done
    std::size_t second_patch = 0;
    std::size_t start = 0;  // of a loop's body
    std::optional<uint32_t> loop = std::nullopt;
    Register limit{Bank::Int, 0};
    bool counted = false;  // the loop's condition is the constant true
    bool endless = false;  // the condition alone ends the loop, and nobody asks for the number of the round
    bool guarded = false;
    bool inverted = false;  // the jump over the then arm became one over the else arm
  };

  void blocks(const Block* top) {
    std::vector<Open> stack{{Open::Kind::Top, top, top->param_node()->next()}};
    while (!stack.empty()) {
      Open& f = stack.back();
      if (f.next->kind() == prim::Return) {
        const Open done = f;
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

  void enter_if(const Node* n, std::vector<Open>& stack) {
    for (const Value* o : n->outputs()) assign(o);
    for (const Block* arm : n->blocks()) share_results(arm, n, 0);
    const std::size_t jump = jump_over_then(n->input());
    Open f{Open::Kind::Then, n->blocks()[0], n->blocks()[0]->param_node()->next()};
    f.patch = jump;
    stack.push_back(f);
  }

  std::size_t jump_over_then(const Value* condition) {
    if (just_computed(condition) && plain_form(impl_->instructions.back().op) == Opcode::NOT) {
      Instruction& last = impl_->instructions.back();
      last = {Opcode::JUMP_IF, last.b, 0, 0};
      return impl_->instructions.size() - 1;
    }
    return jump_if_not(condition);
  }
  // By the instruction just emitted, and is it used nowhere else?
  bool just_computed(const Value* condition) const {
    return !impl_->instructions.empty() && condition->use_count() == 1 && impl_->sources.back() == condition->node() &&
           barrier_ != impl_->instructions.size() && registers_.at(condition) == Register{Bank::Bool, impl_->instructions.back().a};
  }

  // Compares and jumps at once when that is possible.
  std::size_t jump_if_not(const Value* condition) {
    if (const auto fused = fuse_comparison(condition)) return *fused;
    const Register c = scalar(condition);
    return emit(Opcode::JUMP_IF_NOT, c.index, 0);
  }
  std::optional<std::size_t> fuse_comparison(const Value* condition) {
    if (!just_computed(condition)) return std::nullopt;
    Instruction& last = impl_->instructions.back();
    const Opcode comparison = plain_form(last.op);
    if (!is_comparison(comparison)) return std::nullopt;
    last = {jump_unless(comparison), last.b, last.c, 0};
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
      if (skip && !over_when_written(b->inputs()[i], v, b)) continue;
      registers_.emplace(v, skip ? registers_.at(b->inputs()[i]) : registers_.at(target));
    }
  }

  // Are all uses of a loop's block input inside of `b` over when result `v` of `b`, which becomes the next round's input, is written? An If
  // writes where its arms compute it; what an arm only passes on is written by its last instructions.
  static bool over_when_written(const Value* input, const Value* v, const Block* b, int depth = 0) {
    constexpr int kDeepest = 6;
    constexpr std::size_t kMostUses = 64;  // programs of any size are compiled in linear time
    if (depth > kDeepest || input->use_count() > kMostUses) return false;
    const Node* n = v->node();
    if (n->owningBlock() != b || n->kind() == prim::Param || n->kind() == prim::Constant) return true;
    for (const Use& u : input->uses()) {
      const Node* at = u.user;
      while (at && at->owningBlock() != b) at = at->owningBlock()->owningNode();
      if (!at || (at == n && (n->blocks().empty() || n->kind() == prim::If))) continue;
      if (at == n || !at->isBefore(n)) return false;
    }
    return n->kind() != prim::If || std::all_of(n->blocks().begin(), n->blocks().end(), [&](const Block* arm) {
             return over_when_written(input, arm->outputs()[v->offset()], arm, depth + 1);
           });
  }

  void enter_loop(const Node* n, std::vector<Open>& stack) {
    const Block* body = n->blocks()[0];
    // The carried values live in the registers of the loop's outputs.
    for (std::size_t i = 0; i < n->outputs().size(); ++i) {
      assign(n->outputs()[i]);
      if (bank_of(*n->outputs()[i]->type()) == bank_of(*body->inputs()[i + 1]->type()))
        registers_.emplace(body->inputs()[i + 1], registers_.at(n->outputs()[i]));
      else
        assign(body->inputs()[i + 1]);
    }
    Open f{Open::Kind::Body, body, body->param_node()->next()};
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
    if (native::available()) {
      f.loop = impl_->loops.open(static_cast<uint32_t>(f.start));
      emit(Opcode::LOOP, *f.loop, next_scalar_++);
    }
    share_results(body, n, 1);
    stack.push_back(f);
  }

  void leave(const Open& f, std::vector<Open>& stack) {
    switch (f.kind) {
      case Open::Kind::Top: return;
      case Open::Kind::Then: {
        const Node* n = f.block->owningNode();
        current_ = n;
        return_arm(f.block, n);
        Open other{Open::Kind::Else, n->blocks()[1], n->blocks()[1]->param_node()->next()};
        other.inverted = impl_->instructions.size() == f.patch + 1;
        if (other.inverted) {  // nothing to do in this arm: only the other one is jumped over
          invert(impl_->instructions[f.patch]);
          other.patch = f.patch;
        } else {
          other.patch = emit(Opcode::JUMP);
          patch(f.patch);
          other.second_patch = f.patch;
        }
        stack.push_back(other);
        return;
      }
      case Open::Kind::Else: {
        const Node* n = f.block->owningNode();
        current_ = n;
        return_arm(f.block, n);
        // An empty else needs no jump over it.
        if (!f.inverted && impl_->instructions.size() == f.patch + 1) {
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
      case Open::Kind::Body: {
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
        if (f.loop) impl_->loops.close(*f.loop, static_cast<uint32_t>(impl_->instructions.size()));
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

  void next_round(const Open& f) {
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

  static void invert(Instruction& jump) {
    switch (jump.op) {
      case Opcode::JUMP_IF: jump.op = Opcode::JUMP_IF_NOT; return;
      case Opcode::JUMP_IF_NOT: jump.op = Opcode::JUMP_IF; return;
      default: jump.op = jump_if(jump.op);
    }
  }

  void return_arm(const Block* arm, const Node* n) {
    std::vector<std::pair<Operand, const Value*>> moves;
    for (std::size_t i = 0; i < n->outputs().size(); ++i) moves.emplace_back(source(arm->return_node(), i), n->outputs()[i]);
    parallel_moves(moves);
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
        if (custom_class_of(*n->output()->type())) {  // its __init__ makes it
          call(Opcode::MAKE_OBJECT, n);
          return;
        }
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
        if (c.name == "__init__" && custom_class_of(*n->input(0)->type())) c.type = n->input(0)->type();
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
      case prim::fork:
      case prim::awaitable: subgraph(call(Opcode::FORK, n), n); return;
      case prim::Enter: call(Opcode::ENTER, n); return;
      case prim::Exit: call(Opcode::EXIT, n); return;
      case prim::unchecked_cast:
      case prim::profile:
      case prim::profile_ivalue:
      case prim::BailOut:
        if (n->outputs().size() == 1 && !n->inputs().empty()) rename(n->input(0), n->output());
        return;
      case prim::Guard: call(Opcode::GUARD, n).types = {n->output()->type()}; return;
      case prim::TypeCheck:
      case prim::RequiresGradCheck: call(Opcode::CHECK_TYPES, n).types = n->tys(attr::types); return;
      case prim::PythonOp:
      case prim::IgnoredPythonOp: call(Opcode::PYTHON, n); return;
      default: break;
    }
    if (const Operator* op = n->maybeOperator(); op && op->creates_operations()) {
      call(Opcode::CALL_OPERATION, n).operation = op->getOperation(n);
      return;
    }
    if (n->hasAttribute(attr::Subgraph)) {
      subgraph(call(Opcode::CALL_GRAPH, n), n);
      return;
    }
    operation(n);
  }

  void subgraph(Call& c, const Node* n) {
    c.graph = Code::compile(n->g(attr::Subgraph), std::string(n->kind().toUnqualString()));
    const TypeKind kind = n->outputs().size() == 1 ? n->output()->type()->kind : TypeKind::None;
    if (kind == TypeKind::Future || kind == TypeKind::Await) c.type = n->output()->type()->element();
  }
  static void attribute(Call& c, const Node* n) {
    c.name = n->s(attr::name);
    const auto cls = n->input(0)->type()->cast<ClassType>();
    if (cls && !cls->is_opaque()) c.slot = cls->getAttributeSlot(c.name);
  }

  void operation(const Node* n) {
    const Operator& op = n->getOperator();
    if (op.function() && fast(n, op)) return;
    const bool in_place = op.in_place() && n->inputs().size() <= Frame::kMostInPlace && !op.schema().is_vararg();
    Call& c =
        in_place ? call(Opcode::CALL_IN_PLACE, n, /*take=*/false) : call(op.function() ? Opcode::CALL_BUILTIN : Opcode::CALL_OPERATOR, n);
    c.in_place = op.in_place();
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
      if (constant_as<int64_t>(n->input(2)) == 1) {
        const Register index = scalar(n->input(0)), start = scalar(n->input(1));
        assign(n->output());
        emit(Opcode::ADD_INT, registers_.at(n->output()).index, start.index, index.index);
        return true;
      }
      const Register index = scalar(n->input(0)), start = scalar(n->input(1)), step = scalar(n->input(2));
      assign(n->output());
      const uint32_t product = next_scalar_++;
      emit(Opcode::MUL_INT, product, index.index, step.index);
      emit(Opcode::ADD_INT, registers_.at(n->output()).index, start.index, product);
      return true;
    }
    if (name == "prim::unchecked_unwrap_optional") {
      rename(n->input(0), n->output());
      return true;
    }
    if (name == "aten::add.str") return append_text(n);
    return list_operation(n, name);
  }

  bool append_text(const Node* n) {
    const Operand left = source(n, 0);
    if (left.kind != Operand::Kind::Take) return false;
    impl_->operands[call(Opcode::APPEND_TEXT, n, /*take=*/false).in_begin] = left;
    return true;
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
};

}  // namespace

std::shared_ptr<const Code> Code::compile(std::shared_ptr<const Graph> graph, std::string function_name) {
  graph->lint();  // what follows, and the interpreter, rely on it; graphs come out of files, too
  return std::shared_ptr<const Code>(new Code(Compiler(std::move(graph), std::move(function_name)).run()));
}

}  // namespace cresset::jit
