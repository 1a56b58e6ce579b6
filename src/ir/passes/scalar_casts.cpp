// Numbers that a graph puts into tensors of rank 0 and takes out again, as tracing records sizes. Three passes:
//
//   remove-unnecessary-casts       Int, Float, Bool and their implicit forms of NumToTensor(s) -> s, or the cast of s
//   remove-single-use-0d-tensors   Int or Float of one operator on NumToTensor(s) and constants, used only there -> the operator on numbers
//   replace-aten-int               Int of a whole tree of integer operators -> the tree on numbers
//
// All are exact: integers stay integers, only float64 counts as float, division of integers that gives a fraction stays with tensors (it is
// done in the default dtype), rounding divisions of floats stay too. Tensors of rank above 0, other dtypes, written and marked ones stay.
#include "ir/passes/scalar_expression.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::ScalarExpressions, rewrite::Site;

constexpr int kDeepestTree = 64;

// The number of kind `have` as the cast gives it.
Value* converted(const Site& site, Value* number, TypeKind have) {
  const TypeKind wanted = site.node->output()->type()->kind;
  if (have == wanted) return number;
  const Emitter emit(site.node);
  switch (wanted) {
    case TypeKind::Int: return emit("aten::Int", {number});
    case TypeKind::Float: return emit("aten::Float", {number});
    case TypeKind::Bool: return emit("aten::Bool", {number});
    default: return nullptr;
  }
}

bool is_scalar(TypeKind kind) { return kind == TypeKind::Int || kind == TypeKind::Float || kind == TypeKind::Bool; }

bool is_implicit(const Node* n) { return std::string_view(n->kind().toQualString()).ends_with("Implicit"); }

Value* remove_cast(const Site& site) {
  Node* n = site.node;
  if (n->inputs().size() != 1 || !rewrite::is_tensor(n->input())) return nullptr;
  Value* number = ScalarExpressions::number_in(n->input());
  if (!number || site.aliases->hasWriters(n->input())) return nullptr;
  const TypeKind have = number->type()->kind, wanted = n->output()->type()->kind;
  if (!is_scalar(have)) return nullptr;
  // Implicit casts accept no other kind; ScalarImplicit gives whatever there is.
  if (is_implicit(n)) return have == wanted || (wanted == TypeKind::Number && have != TypeKind::Bool) ? number : nullptr;
  if (!is_scalar(wanted)) return nullptr;
  return converted(site, number, have);
}

// Is the tensor used here only, and made of numbers that are?
bool used_once(const Value* tensor) {
  if (tensor->use_count() != 1) return false;
  for (const Value* operand : tensor->node()->inputs())
    if (rewrite::is_tensor(operand) && operand->node()->kind() != prim::Constant && operand->use_count() != 1) return false;
  return true;
}

Value* remove_single_use(const Site& site) {
  Node* n = site.node;
  if (n->inputs().size() != 1 || !rewrite::is_tensor(n->input()) || n->input()->node()->kind() == prim::NumToTensor ||
      n->input()->node()->kind() == prim::Constant || !used_once(n->input()))
    return nullptr;
  ScalarExpressions expressions(site.aliases);
  const auto kind = expressions.kind_of(n->input(), 1);
  if (!kind) return nullptr;
  const Value* tensor = n->input();
  return converted(site, expressions.emit(Emitter(n), tensor), *kind);
}

Value* replace_int(const Site& site) {
  Node* n = site.node;
  if (n->inputs().size() != 1 || !rewrite::is_tensor(n->input())) return nullptr;
  ScalarExpressions expressions(site.aliases);
  if (expressions.kind_of(n->input(), kDeepestTree) != TypeKind::Int) return nullptr;
  return expressions.emit(Emitter(n), n->input());
}

// The tensors are often left without users.
bool with_operands(PassContext& context, const std::vector<std::string>& kinds, const rewrite::Rule& rule) {
  rewrite::Aliases aliases(context.graph);
  bool changed = false;
  for (Node* n : rewrite::nodes_of(*context.graph, kinds)) {
    Value* fresh = rule({n, context, aliases});
    if (!fresh) continue;
    rewrite::replace_value(n->output(), fresh, &aliases);
    rewrite::destroy_with_operands(n, aliases);
    changed = true;
  }
  return changed;
}

const RegisterPass scalar_casts_unnecessary_pass({
    .name = "remove_unnecessary_casts",
    .phase = "simplify",
    .summary = "numbers that become tensors and numbers again",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run_in =
        [](PassContext& c) {
          return with_operands(
              c, {"aten::Int", "aten::Float", "aten::Bool", "aten::IntImplicit", "aten::FloatImplicit", "aten::ScalarImplicit"},
              remove_cast);
        },
});
const RegisterPass scalar_casts_single_use_pass({
    .name = "remove_single_use_0d_tensors",
    .phase = "simplify",
    .summary = "one operator on tensors of rank 0 to the operator on numbers",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run_in = [](PassContext& c) { return with_operands(c, {"aten::Int", "aten::Float"}, remove_single_use); },
});
const RegisterPass scalar_casts_replace_pass({
    .name = "replace_aten_int",
    .phase = "simplify",
    .summary = "integer arithmetic on tensors of rank 0 to arithmetic on numbers",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run_in = [](PassContext& c) { return with_operands(c, {"aten::Int"}, replace_int); },
});

}  // namespace
}  // namespace cresset::jit
