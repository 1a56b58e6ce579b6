// Rules on ints and bools: neutral operands, constants to the right, comparisons. Floats are left alone (not-a-number, zeros of two signs).
#include "ir/passes/peephole.h"

namespace cresset::jit {
namespace {

bool int_operands(const Node* n) {
  return n->inputs().size() == 2 && is_kind(n->input(0), TypeKind::Int) && is_kind(n->input(1), TypeKind::Int);
}

template <int64_t Neutral>
Value* neutral_int(Node* n, Peephole&) {
  return int_operands(n) && int_constant(n, 1) == std::optional(Neutral) ? n->input(0) : nullptr;
}

// (x + c1) + c2 → x + (c1 + c2), wrapping as the run would
Value* merge_constants(Node* n, Peephole& p) {
  if (!int_operands(n)) return nullptr;
  const auto outer = int_constant(n, 1);
  const Node* inner = n->input(0)->node();
  if (!outer || inner->kind() != n->kind() || !int_operands(inner) || is_marked(inner)) return nullptr;
  const auto first = int_constant(inner, 1);
  if (!first || toIValue(inner->input(0))) return nullptr;
  const auto a = static_cast<uint64_t>(*first), b = static_cast<uint64_t>(*outer);
  const bool adds = n->kind().toUnqualString() == "add";
  Value* constant = p.graph->insertConstant(static_cast<int64_t>(adds ? a + b : a * b));
  Node* merged = p.graph->insertNode(p.graph->create(n->kind(), {inner->input(0), constant}));
  merged->output()->setType(n->output()->type());
  return merged->output();
}

// c + x → x + c
bool constant_to_the_right(Node* n, Peephole&) {
  if (!int_operands(n) || !toIValue(n->input(0)) || toIValue(n->input(1))) return false;
  n->permuteInputs({1, 0});
  return true;
}

template <bool Result>
Value* same_operands(Node* n, Peephole& p) {
  if (n->inputs().size() != 2 || n->input(0) != n->input(1)) return nullptr;
  // Not of floats, where NaN is another one; a list is equal to itself when its elements are.
  const Type& type = *n->input(0)->type();
  const TypeKind k = type.kind == TypeKind::List ? type.element()->kind : type.kind;
  return k == TypeKind::Int || k == TypeKind::Bool || k == TypeKind::String ? p.graph->insertConstant(Result) : nullptr;
}

// not not b → b; not (a == b) → a != b and the other way round; of ints also the orders
Value* negation(Node* n, Peephole& p) {
  const Node* inner = n->input(0)->node();
  if (is_marked(inner)) return nullptr;
  if (inner->kind() == aten::__not__) return inner->input(0);
  static const std::unordered_map<std::string, std::string> exact{{"aten::eq", "aten::ne"}, {"aten::ne", "aten::eq"}};
  static const std::unordered_map<std::string, std::string> ordered{
      {"aten::lt", "aten::ge"}, {"aten::ge", "aten::lt"}, {"aten::gt", "aten::le"}, {"aten::le", "aten::gt"}};
  const std::string& kind = inner->kind().toQualString();
  if (inner->inputs().size() != 2 || !is_kind(inner->output(0), TypeKind::Bool)) return nullptr;
  const auto scalar = [](const Value* v) {
    const TypeKind k = v->type()->kind;
    return k == TypeKind::Int || k == TypeKind::Float || k == TypeKind::Bool || k == TypeKind::String;
  };
  const auto found = exact.count(kind) ? exact.find(kind) : ordered.count(kind) && int_operands(inner) ? ordered.find(kind) : exact.end();
  if (found == exact.end() || !scalar(inner->input(0)) || !scalar(inner->input(1))) return nullptr;
  Node* opposite = p.graph->insertNode(p.graph->create(Symbol::fromQualString(found->second), inner->inputs()));
  opposite->output()->setType(basic_type(TypeKind::Bool));
  return opposite->output();
}

// int(x) of an int
template <TypeKind K>
Value* converted_to_its_type(Node* n, Peephole&) {
  return n->inputs().size() == 1 && is_kind(n->input(0), K) ? n->input(0) : nullptr;
}

// An If whose arms return true and false is its condition, or the opposite.
bool condition_as_result(Node* n, Peephole& p) {
  bool changed = false;
  for (std::size_t i = 0; i < n->outputs().size(); ++i) {
    Value* out = n->output(i);
    if (!out->hasUses() || !is_kind(out, TypeKind::Bool)) continue;
    const auto yes = constant_as<bool>(n->blocks()[0]->outputs()[i]), no = constant_as<bool>(n->blocks()[1]->outputs()[i]);
    if (!yes || !no || *yes == *no) continue;
    Value* replacement = n->input();
    if (!*yes) {
      const WithInsertPoint guard(n);
      replacement = p.graph->insert(aten::__not__, {n->input()}, {}, n->sourceRange());
    }
    out->replaceAllUsesWith(replacement);
    changed = true;
  }
  return changed;
}

// A result that may be None by its type although no arm gives None.
bool refine_optional_result(Node* n, Peephole&) {
  bool changed = false;
  for (std::size_t i = 0; i < n->outputs().size(); ++i) {
    Value* out = n->output(i);
    if (!is_kind(out, TypeKind::Optional)) continue;
    const TypePtr element = out->type()->element();
    bool all = true;
    for (const Block* arm : n->blocks()) all = all && arm->outputs()[i]->type()->is_subtype_of(*element);
    if (!all) continue;
    out->setType(element);
    changed = true;
  }
  return changed;
}

}  // namespace

const PeepholeRules& number_rules() {
  static const PeepholeRules rules{
      {"aten::add", neutral_int<0>},
      {"aten::sub", neutral_int<0>},
      {"aten::mul", neutral_int<1>},
      {"aten::floordiv", neutral_int<1>},
      {"aten::add", merge_constants},
      {"aten::mul", merge_constants},
      {"aten::eq", same_operands<true>},
      {"aten::ne", same_operands<false>},
      {"aten::__not__", negation},
      {"aten::Int", converted_to_its_type<TypeKind::Int>},
      {"aten::Float", converted_to_its_type<TypeKind::Float>},
      {"aten::Bool", converted_to_its_type<TypeKind::Bool>},
  };
  return rules;
}

const PeepholeEdits& control_edits() {
  static const PeepholeEdits edits{
      {"prim::If", condition_as_result},
      {"prim::If", refine_optional_result},
      {"aten::add", constant_to_the_right},
      {"aten::mul", constant_to_the_right},
  };
  return edits;
}

}  // namespace cresset::jit
