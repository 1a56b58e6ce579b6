// Removes guards (prim::Guard: a check that a tensor has a type, whose result has it) that cannot fail: repeated ones, and those on results
// of operators whose results' types follow from operands that are guarded themselves. The result takes the guarded type. Guards move up to
// what they guard first. A graph without guards stays as it is. Nothing need run before it.
#include <algorithm>
#include <unordered_set>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass.h>

#include "dispatch/tags.h"
#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

constexpr int kRounds = 5;

// How a result's type follows from the operands.
enum class Follows : uint8_t {
  Never,          // from their elements, or nobody knows
  WithConstants,  // from the types of the tensors and the values of the rest, but for numbers that are Scalars
  FromTypes       // from the types alone: element by element
};

// The table's tags say it of its operators. Extensions' operators are not trusted: their tags may be missing.
Follows type_of_result(const Node& n) {
  if (n.kind() == prim::ConstantChunk) return Follows::WithConstants;
  const Operator* op = n.kind().is_aten() ? n.maybeOperator() : nullptr;
  if (!op || !op->handle() || op->schema().is_mutable()) return Follows::Never;
  const OperatorHandle& handle = *op->handle();
  if (has_tag(handle, "dynamic_output_shape") || has_tag(handle, "data_dependent_output")) return Follows::Never;
  return has_tag(handle, "pointwise") ? Follows::FromTypes : Follows::WithConstants;
}

// A list of numbers that is put together from constants counts as one.
bool is_constant(const Value* v) {
  const Node* n = v->node();
  if (n->kind() == prim::Constant) return true;
  return n->kind() == prim::ListConstruct &&
         std::all_of(n->inputs().begin(), n->inputs().end(), [](const Value* e) { return e->node()->kind() == prim::Constant; });
}
// A number of known kind given as a Scalar: its value changes neither sizes nor dtype. Plain ints are dimensions and sizes, and flags and
// factors say what a result is like, unless it is made element by element.
bool is_number(const FunctionSchema* s, std::size_t i, const Value* v, Follows follows) {
  const TypeKind k = v->type()->kind;
  if (!s || i >= s->arguments().size() || !(k == TypeKind::Int || k == TypeKind::Float || k == TypeKind::Bool || k == TypeKind::Complex))
    return false;
  const TypeKind declared = s->arguments()[i].type->kind;
  return declared == TypeKind::Number || (follows == Follows::FromTypes && declared != TypeKind::Int);
}

class Guards {
 public:
  explicit Guards(const std::shared_ptr<Graph>& graph) : graph_(graph), aliases_(graph) {}

  bool round() {
    bool changed = false;
    for (Node* g : guards()) changed = move_up(g) || changed;
    for (Node* g : guards()) changed = remove_repeated(g) || changed;
    std::vector<Node*> all = guards();
    for (auto g = all.rbegin(); g != all.rend(); ++g) changed = remove_determined(*g) || changed;
    return changed;
  }

 private:
  std::vector<Node*> guards() const {
    return nodes_where(*graph_, [](const Node* n) {
      if (n->kind() != prim::Guard || is_marked(n) || n->inputs().size() != 1) return false;
      // What goes back to the interpreter when it fails must know where.
      return std::none_of(n->output()->uses().begin(), n->output()->uses().end(),
                          [](const Use& u) { return u.user->kind() == prim::BailOut || u.user->kind() == prim::BailoutTemplate; });
    });
  }

  // Behind the operand's definition and the guards that stand there already, or to the front of its block.
  bool move_up(Node* g) {
    const Node* made = g->input()->node();
    Node* target = made->owningBlock() == g->owningBlock() ? const_cast<Node*>(made) : g->owningBlock()->param_node();
    while (target->next()->kind() == prim::Guard && target->next() != g) target = target->next();
    if (target->next() == g) return false;
    return aliases_.moveAfterTopologicallyValid(g, target);
  }

  void remove(Node* g, Value* instead) {
    hand_on(g->output(), instead);
    g->destroy();
  }

  bool remove_repeated(Node* g) {
    Value* v = g->input();
    if (v->node()->kind() == prim::Guard && *v->type() == *g->output()->type()) {
      remove(g, v);
      return true;
    }
    if (aliases_.hasWriters(v)) return false;
    for (const Use& u : v->uses()) {
      Node* earlier = u.user;
      if (earlier == g || earlier->kind() != prim::Guard || is_marked(earlier) || !(*earlier->output()->type() == *g->output()->type()))
        continue;
      const Node* here = in_block(g, earlier->owningBlock());
      if (!here || !earlier->isBefore(here)) continue;
      remove(g, earlier->output());
      return true;
    }
    return false;
  }

  bool is_guarded(const Value* v) const {
    return v->node()->kind() == prim::Guard || v->node()->kind() == prim::Constant || settled_.count(v);
  }

  bool remove_determined(Node* g) {
    Value* v = g->input();
    const Node* n = v->node();
    const Follows follows = type_of_result(*n);
    if (is_marked(n) || aliases_.hasWriters(v) || follows == Follows::Never) return false;
    const FunctionSchema* s = n->maybeSchema();
    bool of_tensors = false;
    for (std::size_t i = 0; i < n->inputs().size(); ++i) {
      const Value* operand = n->input(i);
      of_tensors |= operand->type()->kind == TypeKind::Tensor;
      if (operand->mustBeNone() || is_constant(operand)) continue;
      if (operand->type()->kind == TypeKind::Tensor ? is_guarded(operand) : is_number(s, i, operand, follows)) continue;
      const Node* list = operand->node();
      if (list->kind() == prim::ListConstruct && list->next() == n &&
          std::all_of(list->inputs().begin(), list->inputs().end(), [&](const Value* e) { return is_guarded(e); })) {
        of_tensors = true;
        continue;
      }
      return false;
    }
    if (!of_tensors) return false;
    v->setType(g->output()->type());
    settled_.insert(v);
    remove(g, v);
    return true;
  }

  std::shared_ptr<Graph> graph_;
  AliasDb aliases_;
  std::unordered_set<const Value*> settled_;  // their guards went because their operands are guarded
};

bool eliminate_redundant_guards(const std::shared_ptr<Graph>& graph) {
  bool any = false;
  graph->block()->visit([&](const Node* n) { any = any || n->kind() == prim::Guard; });
  bool changed = false;
  if (any) {
    Guards guards(graph);
    for (int i = 0; i < kRounds && guards.round(); ++i) changed = true;
  }
  return in_subgraphs(*graph, eliminate_redundant_guards) || changed;
}

const RegisterPass guard_elimination_pass({
    .name = "eliminate_redundant_guards",
    .phase = "checks",
    .summary = "removes type guards that cannot fail",
    .needs = {},
    .keeps = {"names", "marks", "aliasing"},
    .run = eliminate_redundant_guards,
});

}  // namespace
}  // namespace cresset::jit
