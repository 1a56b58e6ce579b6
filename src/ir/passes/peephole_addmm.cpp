// mm and add as addmm, where the added tensor certainly broadcasts to the product and nothing promotes.
#include "ir/passes/peephole.h"

namespace cresset::jit {
namespace {

// add broadcasts both ways, addmm only its first operand: sizes must say that nothing else would happen.
bool expands_to(const TensorType* added, const TensorType* product) {
  if (!added || !product || !added->dtype || added->dtype != product->dtype) return false;
  const auto from = added->concrete_sizes(), to = product->concrete_sizes();
  if (!from || !to || to->size() != 2 || from->size() > 2) return false;
  for (std::size_t i = 0; i < from->size(); ++i) {
    const int64_t have = (*from)[from->size() - 1 - i], want = (*to)[to->size() - 1 - i];
    if (have != want && have != 1) return false;
  }
  return true;
}

Value* fuse(Node* n, Peephole& p) {
  static const Symbol mm = Symbol::aten("mm"), addmm = Symbol::aten("addmm");
  if (n->inputs().size() != 3 || int_constant(n, 2) != std::optional(int64_t{1})) return nullptr;
  for (std::size_t i = 0; i < 2; ++i) {
    const Node* product = n->input(i)->node();
    if (product->kind() != mm || is_marked(product) || product->output()->use_count() != 1) continue;
    Value* added = n->input(1 - i);
    if (!is_kind(added, TypeKind::Tensor) || !expands_to(p.tensor(added), p.tensor(product->output()))) continue;
    if (p.aliases.hasWriters(product) || p.aliases.hasWriters(added)) continue;
    Value* one = n->input(2);
    Node* fused = p.graph->insertNode(p.graph->create(addmm, {added, product->input(0), product->input(1), one, one}));
    fused->output()->setType(n->output()->type());
    return fused->output();
  }
  return nullptr;
}

}  // namespace

const PeepholeRules& addmm_rules() {
  static const PeepholeRules rules{{"aten::add", fuse}};
  return rules;
}

}  // namespace cresset::jit
