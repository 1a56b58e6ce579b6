// What rewrites may take for certain of a tensor. What a trace saw on its example is a hint: printed, and never relied on.
#pragma once

#include <cresset/ir/ir.h>
#include <cresset/ir/lowering_options.h>

namespace cresset::jit {

/// What the value's type says for certain; null when it says nothing, when types are not to be trusted, and for hints, unless the caller
/// says that all inputs are like the example.
inline const TensorType* tensor_facts(const Value* v, const LoweringOptions& options) {
  const auto* t = options.trust_types ? dynamic_cast<const TensorType*>(v->type().get()) : nullptr;
  return t && (!t->hint || options.trust_examples) ? t : nullptr;
}
/// All that was ever said of the value, true or not: for rules that refuse.
inline const TensorType* tensor_rumours(const Value* v) { return dynamic_cast<const TensorType*>(v->type().get()); }

/// May the node give a tensor that exists other sizes, strides or memory (t_, resize_, a call)? Behind it types of what is written are old.
bool may_reshape(const Node* n);

/// What a tensor is, as a hint.
TypePtr hint_from(const Tensor& t);
/// The type with nothing known of the tensors in it, or only with what is certain.
TypePtr without_facts(const TypePtr& type);
TypePtr without_hints(const TypePtr& type);
/// Takes the hints out of the types of all values, subgraphs included.
void erase_hints(const std::shared_ptr<Graph>& graph);

}  // namespace cresset::jit
