// What is done to a finished graph: known arithmetic is done, constants stand once, at the front; tuples that are only taken apart go, and
// so does code without use.
#include <cresset/ir/operator.h>
#include <cresset/ir/pass.h>

#include "ir/frontend/emitter.h"

namespace cresset::jit {
namespace {

constexpr std::size_t kLongestString = 4096;

void share_constants(Graph& g) {
  std::unordered_map<std::string, std::vector<Value*>> known;
  std::vector<Node*> constants, kept;
  g.block()->visit([&](Node* n) {
    if (n->kind() == prim::Constant) constants.push_back(n);
  });
  for (Node* n : constants) {
    if (!n->output()->hasUses()) {
      n->destroy();
      continue;
    }
    const auto v = toIValue(n->output());
    // Objects keep their identity; large values are compared, not printed.
    const bool compared = v && v->isPtrType() && !v->isString();
    const std::string key = n->output()->type()->str() + "|" + (!v ? n->str() : compared ? v->tagKind() : to_string(*v));
    std::vector<Value*>& same = known[key];
    Value* found = nullptr;
    for (Value* other : same)
      if (v && sameConstant(*toIValue(other), *v)) found = other;
    if (found) {
      n->output()->replaceAllUsesWith(found);
      n->destroy();
      continue;
    }
    same.push_back(n->output());
    kept.push_back(n);
  }
  for (auto n = kept.rbegin(); n != kept.rend(); ++n)
    if (*g.nodes().begin() != *n) (*n)->moveBefore(*g.nodes().begin());
}

bool is_immutable(const TypePtr& t) {
  switch (t->kind) {
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Bool:
    case TypeKind::Complex:
    case TypeKind::Number:
    case TypeKind::String: return true;
    default: return false;
  }
}

// Arithmetic of numbers and strings that are known: lengths of ranges, bounds, messages. What raises stays for the run.
void fold_constants(Graph& g) {
  g.block()->visit([&](Node* n) {
    if (n->kind() == prim::Constant || n->inputs().empty() || n->outputs().size() != 1 || !n->blocks().empty()) return;
    if (!is_immutable(n->output()->type())) return;
    Stack stack;
    for (const Value* v : n->inputs()) {
      auto known = is_immutable(v->type()) || v->type()->kind == TypeKind::None ? toIValue(v) : std::nullopt;
      if (!known) return;
      stack.push_back(std::move(*known));
    }
    const Operator* op = n->maybeOperator();
    if (!op || !op->function() || op->schema().is_vararg() || n->hasSideEffects() || n->isNondeterministic()) return;
    try {
      op->call(stack);
    } catch (const Error&) {
      return;
    }
    if (stack.size() != 1 || (stack[0].isString() && stack[0].toStringRef().size() > kLongestString)) return;
    const WithInsertPoint here(n);
    Value* result = g.insertConstant(stack[0], n->sourceRange());
    if (*result->type() != *n->output()->type()) return;
    n->output()->replaceAllUsesWith(result);
  });
}

// The members of a tuple that was made in this graph.
const Node* made_tuple(const Value* v) { return v->node()->kind() == prim::TupleConstruct ? v->node() : nullptr; }

// The member takes the name that the script gives it.
void forward(Value* unpacked, Value* member) {
  if (unpacked->hasDebugName() && !member->hasDebugName()) member->setDebugName(unpacked->debugName());
  unpacked->replaceAllUsesWith(member);
}

void forward_tuples(Graph& g) {
  std::vector<Node*> taken_apart;
  g.block()->visit([&](Node* n) {
    if (n->kind() == prim::TupleUnpack || n->kind() == prim::TupleIndex) taken_apart.push_back(n);
  });
  for (Node* n : taken_apart) {
    const Node* tuple = made_tuple(n->input(0));
    if (!tuple) continue;
    if (n->kind() == prim::TupleUnpack) {
      if (n->outputs().size() != tuple->inputs().size()) continue;
      for (std::size_t i = 0; i < n->outputs().size(); ++i) forward(n->output(i), tuple->input(i));
    } else {
      const auto at = constant_as<int64_t>(n->input(1));
      if (!at) continue;
      n->output()->replaceAllUsesWith(
          tuple->input(static_cast<std::size_t>(*at < 0 ? *at + static_cast<int64_t>(tuple->inputs().size()) : *at)));
    }
    n->destroy();
  }
}

// Is there a write whose result nobody uses, in a graph of a size for which questions of aliasing, which are not linear, may be asked?
bool may_have_dead_writes(const Graph& g) {
  constexpr std::size_t kMostNodes = 1000;
  std::size_t count = 0;
  bool found = false;
  g.block()->visit([&](const Node* n) {
    ++count;
    found = found || (!n->hasUses() && n->kind().is_aten() && n->isInplaceOrWrites());
  });
  return found && count <= kMostNodes;
}

// One form of what can be said in two: rsub(y, x) of tensors is sub(x, y), and bools that are the same one are equal.
void take_normal_forms(Graph& g) {
  static const Symbol rsub = Symbol::aten("rsub"), sub = Symbol::aten("sub"), eq = Symbol::aten("eq"), ne = Symbol::aten("ne");
  std::vector<Node*> found;
  g.block()->visit([&](Node* n) {
    if (n->kind() == rsub || n->kind() == aten::__is__ || n->kind() == aten::__isnot__) found.push_back(n);
  });
  for (Node* n : found) {
    const TypeKind asked = n->kind() == rsub ? TypeKind::Tensor : TypeKind::Bool;
    if (n->inputs().size() < 2 || n->input(0)->type()->kind != asked || n->input(1)->type()->kind != asked) continue;
    std::vector<Value*> operands = n->inputs();
    if (n->kind() == rsub) std::swap(operands[0], operands[1]);
    const Symbol kind = n->kind() == rsub ? sub : n->kind() == aten::__is__ ? eq : ne;
    Node* normal = g.create(kind, operands)->insertBefore(n)->copyMetadata(n);
    normal->output()->copyMetadata(n->output());
    n->output()->replaceAllUsesWith(normal->output());
    n->destroy();
  }
}

}  // namespace

void tidy(const std::shared_ptr<Graph>& g) {
  forward_tuples(*g);
  take_normal_forms(*g);
  fold_constants(*g);
  eliminate_dead_code(g, {.with_aliases = may_have_dead_writes(*g)});
  share_constants(*g);
}

}  // namespace cresset::jit
