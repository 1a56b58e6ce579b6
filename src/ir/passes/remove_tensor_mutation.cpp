// Replaces op_(x, …) by op(x, …) where x is new memory that nobody has looked at since it was made: not an input, attribute, constant,
// view, or element of a container. Later users of x get the new value. fill_, zero_ and normal_ become full_like, zeros_like and a normal
// of the sizes, dtype and device of x. An in-place operator keeps the dtype of x, so operands that are known to promote it forbid the
// change. Nothing need run before it.
#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass.h>

#include "ir/operators/operand_results.h"
#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

// Is the result of the node memory of its own?
bool makes_new_memory(const Node* n) {
  if (n->kind() == prim::Constant || is_marked(n) || may_give_operand(n)) return false;
  const Operator* op = n->maybeOperator();
  if (!op || op->facts().side_effects || op->schema().is_mutable() || op->facts().alias == AliasAnalysisKind::CONSERVATIVE) return false;
  if (op->schema().returns().size() != n->outputs().size()) return false;
  for (const Argument& r : op->schema().returns())
    if (r.alias) return false;
  return n->outputs().size() == 1;
}

// An If of which each arm makes the value itself and only returns it.
bool arms_make_new_memory(const Value* v) {
  const Node* n = v->node();
  if (n->kind() != prim::If || is_marked(n)) return false;
  for (const Block* arm : n->blocks()) {
    const Value* result = arm->outputs()[v->offset()];
    if (result->owningBlock() != arm || result->node()->kind() == prim::Param || result->use_count() != 1 ||
        !makes_new_memory(result->node()))
      return false;
  }
  return true;
}

// Could the functional operator give another dtype than x has?
bool promotes(const Node* n) {
  const auto* x = dynamic_cast<const TensorType*>(n->input(0)->type().get());
  if (!x || !x->dtype) return false;
  for (std::size_t i = 1; i < n->inputs().size(); ++i) {
    const Type& t = *n->input(i)->type();
    const auto* other = dynamic_cast<const TensorType*>(&t);
    if (other && other->dtype && *other->dtype != *x->dtype) return true;
    if (t.kind == TypeKind::Float && !isFloatingType(*x->dtype) && !isComplexType(*x->dtype)) return true;
    if (t.kind == TypeKind::Complex && !isComplexType(*x->dtype)) return true;
  }
  return false;
}

// The functional operator for these operands; nothing when there is none.
std::optional<Symbol> functional(const Node* n) {
  std::string name = n->kind().toQualString();
  if (!name.ends_with("_") || name.ends_with("__")) return std::nullopt;
  name.pop_back();
  const Symbol kind = Symbol::fromQualString(name);
  for (const Operator* op : operators_of(kind))
    if (!op->schema().is_mutable() && op->schema().returns().size() == 1 && inputs_match_schema(*n, op->schema())) return kind;
  return std::nullopt;
}

// A functional node in place of n, or null.
Value* replacement(Node* n) {
  const WithInsertPoint guard(n);
  Graph& g = *n->owningGraph();
  static const Symbol fill = Symbol::aten("fill_"), zero = Symbol::aten("zero_"), normal = Symbol::aten("normal_");
  if (n->kind() == fill && n->input(1)->type()->kind != TypeKind::Tensor)
    return g.insert(Symbol::aten("full_like"), {n->input(0), n->input(1)}, {}, n->sourceRange());
  if (n->kind() == zero) return g.insert(Symbol::aten("zeros_like"), {n->input(0)}, {}, n->sourceRange());
  if (n->kind() == normal && n->inputs().size() == 4) {
    Value* x = n->input(0);
    const auto asked = [&](Symbol what) { return g.insert(what, {x}, {}, n->sourceRange()); };
    Value *sizes = asked(Symbol::aten("size")), *dtype = asked(Symbol::prim("dtype")), *device = asked(Symbol::prim("device"));
    return g.insert(Symbol::aten("normal"), {n->input(1), n->input(2), sizes},
                    {{"generator", n->input(3)}, {"dtype", dtype}, {"device", device}}, n->sourceRange());
  }
  const auto kind = functional(n);
  if (!kind || promotes(n)) return nullptr;
  Node* fresh = g.insertNode(g.create(*kind, n->inputs()));
  fresh->copyMetadata(n)->copyAttributes(*n);
  fresh->output()->setType(n->output()->type());
  return fresh->output();
}

// An operator that writes its first operand and nothing else.
bool writes_one_tensor(const Node* n) {
  const FunctionSchema* s = n->maybeSchema();
  return s && !is_marked(n) && !n->inputs().empty() && n->outputs().size() == 1 && n->input(0)->type()->kind == TypeKind::Tensor &&
         s->arguments()[0].is_mutable() &&
         std::count_if(s->arguments().begin(), s->arguments().end(), [](const Argument& a) { return a.is_mutable(); }) == 1;
}

bool make_functional(Node* n, AliasDb& aliases) {
  Value* x = n->input(0);
  if (x->owningBlock() != n->owningBlock() || x->node()->kind() == prim::Param) return false;
  if (!makes_new_memory(x->node()) && !arms_make_new_memory(x)) return false;
  // Nobody may have looked at x before: then the node that makes it could stand right in front.
  if (!aliases.couldMoveBeforeTopologically(x->node(), n)) return false;
  Value* fresh = replacement(n);
  if (!fresh) return false;
  aliases.copyValue(n->output(), fresh);
  hand_on(n->output(), fresh);
  x->replaceAllUsesAfterNodeWith(n, fresh);
  n->destroy();
  return true;
}

}  // namespace

bool remove_tensor_mutation(const std::shared_ptr<Graph>& graph, const std::function<bool(Node*)>& filter) {
  bool changed = false;
  // A write less may free the next one: look again with an analysis of the new graph.
  for (bool again = true; again;) {
    again = false;
    const std::vector<Node*> writers = nodes_where(*graph, [&](Node* n) { return writes_one_tensor(n) && (!filter || filter(n)); });
    if (writers.empty()) break;
    AliasDb aliases(graph);
    for (Node* n : writers) again = make_functional(n, aliases) || again;
    changed = changed || again;
  }
  return in_subgraphs(*graph, [&](const std::shared_ptr<Graph>& g) { return remove_tensor_mutation(g, filter); }) || changed;
}

namespace {
const RegisterPass remove_tensor_mutation_pass({
    .name = "remove_tensor_mutation",
    .phase = "simplify",
    .summary = "replaces in-place operators on new memory by functional ones",
    .needs = {},
    .keeps = {"marks"},
    .run = [](const std::shared_ptr<Graph>& g) { return remove_tensor_mutation(g); },
});
}  // namespace

}  // namespace cresset::jit
