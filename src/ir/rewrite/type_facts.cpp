#include "ir/rewrite/type_facts.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include <cresset/ir/operator.h>

#include "dispatch/tags.h"
#include "ir/rewrite/module_reads.h"

namespace cresset::jit {
namespace {

// The same type around other tensors; the type itself where all stay.
TypePtr with_tensors(const TypePtr& type, const std::function<TypePtr(const TypePtr&)>& tensor) {
  if (type->kind == TypeKind::Tensor) return tensor(type);
  if (type->contained.empty() || type->kind == TypeKind::Object) return type;
  std::vector<TypePtr> parts;
  for (const TypePtr& t : type->contained) parts.push_back(with_tensors(t, tensor));
  if (parts == type->contained) return type;
  switch (type->kind) {
    case TypeKind::List: return list_of(parts[0]);
    case TypeKind::Optional: return optional_of(parts[0]);
    case TypeKind::Dict: return dict_of(parts[0], parts[1]);
    case TypeKind::Tuple:
      if (const auto named = type->cast<NamedTupleType>()) return named_tuple_of(named->name, named->fields, std::move(parts));
      return tuple_of(std::move(parts));
    default: return type;
  }
}

}  // namespace

bool may_reshape(const Node* n) {
  static const std::unordered_set<Symbol> kinds{prim::CallFunction,    prim::CallMethod,         prim::PythonOp,
                                                prim::IgnoredPythonOp, Symbol::aten("set_data"), Symbol::aten("swap_tensors")};
  if (kinds.contains(n->kind())) return true;
  if (!n->kind().is_aten() || !n->kind().toUnqualString().ends_with('_')) return false;
  const std::vector<const Operator*> overloads = operators_of(n->kind());
  return std::any_of(overloads.begin(), overloads.end(),
                     [](const Operator* op) { return op->handle() && has_tag(*op->handle(), "inplace_view"); });
}

TypePtr hint_from(const Tensor& t) {
  auto type = TensorType::create(t);
  type->hint = true;
  return type;
}

TypePtr without_facts(const TypePtr& type) {
  return with_tensors(type, [](const TypePtr&) { return TensorType::get(); });
}

TypePtr without_hints(const TypePtr& type) {
  return with_tensors(type, [](const TypePtr& t) {
    const auto* tensor = dynamic_cast<const TensorType*>(t.get());
    return tensor && tensor->hint ? TensorType::get() : t;
  });
}

void erase_hints(const std::shared_ptr<Graph>& graph) {
  const auto erase = [](const std::vector<Value*>& values) {
    for (Value* v : values)
      if (TypePtr certain = without_hints(v->type()); certain != v->type()) v->setType(std::move(certain));
  };
  for (const auto& g : with_subgraphs(graph)) {
    erase(g->inputs());
    g->block()->visit([&](Node* n) {
      for (const Block* b : n->blocks()) erase(b->inputs());
      erase(n->outputs());
    });
  }
}

}  // namespace cresset::jit
