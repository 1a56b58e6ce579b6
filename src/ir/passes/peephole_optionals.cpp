// Rules on None, optionals and casts: what types decide.
#include "ir/passes/peephole.h"

namespace cresset::jit {
namespace {

// x is None, None is x; a tensor is itself
template <bool Is>
Value* compared_with_none(Node* n, Peephole& p) {
  if (n->inputs().size() != 2) return nullptr;
  const Value *a = n->input(0), *b = n->input(1);
  if (a->mustBeNone() && b->mustBeNone()) return p.graph->insertConstant(Is);
  if (a == b && is_kind(a, TypeKind::Tensor)) return p.graph->insertConstant(Is);
  if ((a->mustBeNone() && b->mustNotBeNone()) || (b->mustBeNone() && a->mustNotBeNone())) return p.graph->insertConstant(!Is);
  return nullptr;
}

// Of a value that is no optional; of None it raises when it runs and stays.
Value* unwrap(Node* n, Peephole&) { return n->input(0)->mustNotBeNone() ? n->input(0) : nullptr; }

// To a type that says no more than the operand's.
Value* cast(Node* n, Peephole&) {
  const Type& from = *n->input(0)->type();
  return from.is_subtype_of(*n->output()->type()) ? n->input(0) : nullptr;
}

// Types whose values no other type's test can accept.
bool decides(const Type& t) {
  switch (t.kind) {
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Bool:
    case TypeKind::Complex:
    case TypeKind::String:
    case TypeKind::None:
    case TypeKind::Device:
    case TypeKind::Tensor:
    case TypeKind::List:
    case TypeKind::Dict:
    case TypeKind::Tuple: return true;
    default: return false;
  }
}

Value* isinstance(Node* n, Peephole& p) {
  if (!n->hasAttribute(attr::types) || n->kindOf(attr::types) != AttributeKind::tys) return nullptr;
  const Type& t = *n->input(0)->type();
  bool never = decides(t);
  for (const TypePtr& asked : n->tys(attr::types)) {
    if (t.is_subtype_of(*asked) && (t.kind != TypeKind::Tensor || *asked == *TensorType::get())) return p.graph->insertConstant(true);
    never = never && decides(*asked) && asked->kind != t.kind;
  }
  return never ? p.graph->insertConstant(false) : nullptr;
}

}  // namespace

const PeepholeRules& optional_rules() {
  static const PeepholeRules rules{
      {"aten::__is__", compared_with_none<true>},
      {"aten::__isnot__", compared_with_none<false>},
      {"aten::_unwrap_optional", unwrap},
      {"prim::unchecked_unwrap_optional", unwrap},
      {"prim::unchecked_cast", cast},
      {"prim::isinstance", isinstance},
  };
  return rules;
}

}  // namespace cresset::jit
