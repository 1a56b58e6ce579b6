// Runs nodes whose operands are constants, takes the known arm of If nodes, removes loops that never run, and hands values through that do
// not change.
#include <algorithm>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass.h>

#include "ir/graph/autocast_class.h"
#include "ir/graph/fetch_ahead.h"

namespace cresset::jit {
namespace {

// Larger results stay computations: a graph must not grow by what one operator can make.
constexpr int64_t kLargestTensorBytes = 1 << 20;
constexpr std::size_t kLongestContainer = 4096;

bool small_enough(const IValue& v) {
  switch (v.tag()) {
    case IValue::Tag::Tensor: return v.toTensor().defined() && static_cast<int64_t>(v.toTensor().nbytes()) <= kLargestTensorBytes;
    case IValue::Tag::String: return v.toStringRef().size() <= kLongestContainer;
    case IValue::Tag::List:
    case IValue::Tag::Tuple:
      if (v.toListRef().size() > kLongestContainer) return false;
      for (const IValue& e : v.toListRef())
        if (!small_enough(e)) return false;
      return true;
    case IValue::Tag::Dict: return v.toDictImpl().items.size() <= kLongestContainer;
    default: return true;
  }
}

class Propagation {
 public:
  explicit Propagation(const std::shared_ptr<Graph>& graph) : graph_(graph), aliases_(graph) {}

  // One walk from front to back; operands are final when a node is reached.
  bool run() {
    struct Frame {
      Block* block;
      Node* next;
    };
    std::vector<Frame> stack{{graph_->block(), graph_->block()->param_node()->next()}};
    // Nodes whose blocks are done and that are simplified then, innermost last.
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next->kind() == prim::Return) {
        Node* owner = f.block->owningNode();
        stack.pop_back();
        if (owner && owner->blocks().back() == f.block) leave(owner);
        continue;
      }
      Node* n = f.next;
      f.next = n->next();
      fetch_later_node(n);
      if (n->blocks().empty()) {
        if (is_edge_of_autocast(n)) casting_ += n->kind() == prim::Enter ? 1 : -1;
        plain(n);
        continue;
      }
      if (n->kind() == prim::If && take_known_arm(n)) {
        // The arm's nodes stand in front of the next one: go on with them.
        f.next = resume_ ? resume_ : f.next;
        continue;
      }
      if (n->kind() == prim::Loop && remove_idle_loop(n)) continue;
      for (std::size_t i = n->blocks().size(); i-- > 0;) stack.push_back({n->blocks()[i], n->blocks()[i]->param_node()->next()});
    }
    return changed_;
  }
  /// Inner loops were left before an outer one lost a carried value: they may lose one now.
  bool again() const { return again_; }

 private:
  void plain(Node* n) {
    const auto is_constant = [](const Value* v) { return v->node()->kind() == prim::Constant; };
    if (n->kind() == prim::Constant || n->outputs().empty() || !std::all_of(n->inputs().begin(), n->inputs().end(), is_constant) ||
        stays_in_fallback(n) || (casting_ > 0 && gives_tensors(n)))
      return;
    std::vector<IValue> stack;
    for (const Value* v : n->inputs()) {
      auto constant = toIValue(v);
      if (!constant) return;
      stack.push_back(std::move(*constant));
    }
    if (n->hasSideEffects() || n->isNondeterministic() || aliases_.hasWriters(n) || aliases_.isMutable(n)) return;
    // A constant is one object for all runs: what the caller may change must stay new each time.
    for (const Value* v : n->outputs())
      if (AliasDb::isMutableType(*v->type()) && aliases_.escapesScope({v})) return;
    if (!evaluate(n, stack) || stack.size() != n->outputs().size()) return;
    for (IValue& v : stack) {
      if (v.isTensor() && v.toTensor().defined() && v.toTensor().requires_grad()) return;
      if (!isConstantValue(v) || !small_enough(v)) return;
    }
    const WithInsertPoint guard(n);
    for (std::size_t i = 0; i < stack.size(); ++i) {
      const TypePtr& declared = n->output(i)->type();
      const bool keep_type = declared->kind == TypeKind::List || declared->kind == TypeKind::Dict || declared->kind == TypeKind::Tuple ||
                             declared->kind == TypeKind::Optional;
      const auto constant = tryInsertConstant(*graph_, stack[i], keep_type ? declared : nullptr);
      if (!constant) return;
      (*constant)->node()->setSourceRange(n->sourceRange());
      if (n->output(i)->hasDebugName()) {
        const std::string name = n->output(i)->debugName();
        n->output(i)->setDebugName("");
        (*constant)->setDebugName(name);
      }
      aliases_.copyValue(n->output(i), *constant);
      n->output(i)->replaceAllUsesWith(*constant);
    }
    n->destroy();
    changed_ = true;
  }

  // In a block of autocast operators give other tensors than here.
  static bool is_edge_of_autocast(const Node* n) {
    return (n->kind() == prim::Enter || n->kind() == prim::Exit) && !n->inputs().empty() && is_autocast_class(*n->input(0)->type());
  }
  static bool gives_tensors(const Node* n) {
    return std::any_of(n->outputs().begin(), n->outputs().end(), [](const Value* v) { return AliasDb::isMutableType(*v->type()); });
  }

  // Marked nodes compute tensors where the mark says. Numbers, flags and lists of them are no such work: they decide which marked nodes
  // there are.
  static bool stays_in_fallback(const Node* n) {
    if (!n->hasAttribute(attr::to_compile)) return false;
    return std::any_of(n->outputs().begin(), n->outputs().end(), [](const Value* v) {
      const Type& t = v->type()->kind == TypeKind::List ? *v->type()->element() : *v->type();
      return AliasDb::isMutableType(t);
    });
  }

  // Runs the node on the stack; false when it cannot run here or raises.
  static bool evaluate(const Node* n, std::vector<IValue>& stack) {
    try {
      switch (n->kind()) {
        case prim::ListConstruct: {
          const TypePtr& t = n->output()->type();
          if (t->kind != TypeKind::List) return false;
          IValue list(make_intrusive<ivalue::ListImpl>(std::move(stack), t->element()));
          stack.clear();
          stack.push_back(std::move(list));
          return true;
        }
        case prim::TupleConstruct: {
          const TypePtr& t = n->output()->type();
          IValue tuple(make_intrusive<ivalue::TupleImpl>(std::move(stack), t->name.empty() ? nullptr : t));
          stack.clear();
          stack.push_back(std::move(tuple));
          return true;
        }
        case prim::TupleUnpack:
        case prim::ListUnpack: {
          const IValue all = stack[0];
          stack.assign(all.toListRef().begin(), all.toListRef().end());
          return true;
        }
        case prim::TupleIndex: {
          const IValue all = stack[0];
          const auto size = static_cast<int64_t>(all.toTupleElements().size());
          const int64_t i = stack[1].toInt(), at = i < 0 ? i + size : i;
          if (at < 0 || at >= size) return false;
          stack = {all.toTupleElements()[static_cast<std::size_t>(at)]};
          return true;
        }
        case prim::unchecked_cast:
        case prim::unchecked_unwrap_optional: return stack.size() == 1;
        default: break;
      }
      const Operator* op = n->maybeOperator();
      if (!op) return false;
      if (op->schema().is_vararg() && op->function()) stack.emplace_back(static_cast<int64_t>(stack.size()));
      const NoGradGuard no_grad;
      op->call(stack);
      return true;
    } catch (const std::exception&) {
      return false;  // it will raise when the graph runs
    }
  }

  bool take_known_arm(Node* n) {
    resume_ = nullptr;
    const auto condition = constant_as<bool>(n->input());
    if (!condition) return false;
    Block* arm = n->blocks()[*condition ? 0 : 1];
    while (arm->nodes().begin() != arm->nodes().end()) {
      Node* m = *arm->nodes().begin();
      m->moveBefore(n);
      if (n->hasAttribute(attr::to_compile) && m->kind() != prim::Constant) m->i_(attr::to_compile, n->i(attr::to_compile));
      if (!resume_) resume_ = m;
    }
    for (std::size_t i = 0; i < n->outputs().size(); ++i) n->output(i)->replaceAllUsesWith(arm->outputs()[i]);
    n->destroy();
    changed_ = true;
    return true;
  }

  bool remove_idle_loop(Node* n) {
    const auto trip = constant_as<int64_t>(n->input(0));
    const auto start = constant_as<bool>(n->input(1));
    if (!(trip && *trip <= 0) && !(start && !*start)) return false;
    for (std::size_t i = 0; i < n->outputs().size(); ++i) n->output(i)->replaceAllUsesWith(n->input(i + 2));
    n->destroy();
    changed_ = true;
    return true;
  }

  // Behind its blocks: outputs that are the same value on every path.
  void leave(Node* n) {
    if (n->kind() == prim::If) {
      for (std::size_t i = n->outputs().size(); i-- > 0;) {
        Value *a = n->blocks()[0]->outputs()[i], *b = n->blocks()[1]->outputs()[i];
        Value* common = a == b ? a : same_constants(a, b, n);
        if (!common) continue;
        n->output(i)->replaceAllUsesWith(common);
        n->eraseOutput(i);
        for (Block* arm : n->blocks()) arm->eraseOutput(i);
        changed_ = true;
      }
    } else if (n->kind() == prim::Loop) {
      // A value less that is carried may make another one constant.
      while (drop_unchanged(n)) changed_ = again_ = true;
    }
  }

  // Carried values that the body hands on as they are; true when there was one.
  static bool drop_unchanged(Node* n) {
    bool dropped = false;
    Block* body = n->blocks()[0];
    for (std::size_t i = n->outputs().size(); i-- > 0;) {
      Value *initial = n->input(i + 2), *inside = body->inputs()[i + 1], *result = body->outputs()[i + 1];
      if (result != inside && result != initial) continue;
      n->output(i)->replaceAllUsesWith(initial);
      inside->replaceAllUsesWith(initial);
      n->eraseOutput(i);
      body->eraseOutput(i + 1);
      body->eraseInput(i + 1);
      n->removeInput(i + 2);
      dropped = true;
    }
    return dropped;
  }

  // Two equal immutable constants: one copy in front of the If.
  Value* same_constants(const Value* a, const Value* b, Node* n) {
    const auto x = toIValue(a), y = toIValue(b);
    if (!x || !y || AliasDb::isMutableType(*a->type()) || !(*a->type() == *b->type()) || !sameConstant(*x, *y)) return nullptr;
    Node* copy = graph_->createClone(a->node(), [](Value* v) { return v; });
    copy->output()->setDebugName("");
    copy->insertBefore(n);
    return copy->output();
  }

  std::shared_ptr<Graph> graph_;
  AliasDb aliases_;
  Node* resume_ = nullptr;
  bool changed_ = false;
  bool again_ = false;
  int casting_ = 0;  // blocks of autocast around the node
};

const RegisterPass constant_propagation_pass({
    .name = "constant_propagation",
    .phase = "simplify",
    .summary = "computes what depends on constants only",
    .needs = {},
    .keeps = {"marks", "aliasing"},
    .run = [](const std::shared_ptr<Graph>& g) { return propagate_constants(g); },
});

}  // namespace

bool propagate_constants(const std::shared_ptr<Graph>& graph) {
  bool changed = false;
  for (bool again = true; again;) {
    Propagation propagation(graph);
    changed = propagation.run() || changed;
    again = propagation.again();
  }
  return eliminate_dead_code(graph) || changed;
}

}  // namespace cresset::jit
