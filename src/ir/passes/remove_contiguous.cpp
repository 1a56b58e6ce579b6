// Removes contiguous(x): where a backend keeps tensors in its own layout, the copy is no work of the graph.
//
// It stays
// - for memory formats other than the default or preserve, unless the backend owns the layout (option layout_is_managed);
// - where the result or x is written: x must not change with the copy;
// - where a result of the graph would become an alias of what the caller has (option outputs_may_alias_inputs allows it);
// - where somebody behind it looks at strides (view, as_strided, stride, operators nobody knows), unless the backend owns the layout.
// So view-to-reshape should run before.
#include <unordered_set>

#include <cresset/core/layout.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Site;

bool looks_at_strides(const Node* n) {
  static const std::unordered_set<Symbol> kinds = [] {
    std::unordered_set<Symbol> out;
    for (const char* name :
         {"aten::view", "aten::view_as", "aten::as_strided", "aten::_unsafe_view", "aten::stride", "aten::is_contiguous",
          "aten::storage_offset", "aten::data_ptr", "aten::set_", "aten::resize_", "aten::view_as_complex", "aten::unfold_copy"})
      out.insert(Symbol::fromQualString(name));
    return out;
  }();
  if (kinds.count(n->kind())) return true;
  return n->blocks().empty() && n->hasSideEffects() && n->kind() != prim::Print && n->kind() != prim::RaiseException;
}

// Layouts travel through element-wise operators, so a value matters when anything that looks at strides is computed from it. All such
// values, found backwards from those operators.
ValueSet values_whose_strides_matter(const Graph& graph) {
  ValueSet found;
  std::vector<const Value*> pending;
  const auto add = [&](const std::vector<Value*>& values) {
    for (const Value* v : values)
      if (AliasDb::isMutableType(*v->type()) && found.insert(v).second) pending.push_back(v);
  };
  graph.block()->visit([&](Node* n) {
    if (looks_at_strides(n)) add(n->inputs());
  });
  while (!pending.empty()) {
    const Node* origin = pending.back()->node();
    pending.pop_back();
    if (origin->kind() == prim::Param) {
      // What a loop carries comes from its operands and from the round before.
      if (const Node* owner = origin->owningBlock()->owningNode()) {
        add(owner->inputs());
        add(origin->owningBlock()->outputs());
      }
      continue;
    }
    add(origin->inputs());
    for (const Block* b : origin->blocks()) add(b->outputs());
  }
  return found;
}

bool format_allows(const Node* n) {
  if (n->inputs().size() < 2) return true;
  const auto format = constant_as<int64_t>(n->input(1));
  return format && (*format == static_cast<int64_t>(MemoryFormat::Contiguous) || *format == static_cast<int64_t>(MemoryFormat::Preserve));
}

Value* remove(const Site& site, const ValueSet& strides_matter) {
  const Node* n = site.node;
  if (!rewrite::is_tensor(n->input(0)) || !rewrite::is_tensor(n->output())) return nullptr;
  if (!site.context.options.layout_is_managed && (!format_allows(n) || strides_matter.count(n->output()))) return nullptr;
  if (!rewrite::may_forward(n->input(0), n->output(), site.context, *site.aliases)) return nullptr;
  return n->input(0);
}

bool remove_contiguous(PassContext& context) {
  const ValueSet strides_matter = context.options.layout_is_managed ? ValueSet() : values_whose_strides_matter(*context.graph);
  return rewrite::rewrite_nodes(context, {"aten::contiguous"}, [&](const Site& site) { return remove(site, strides_matter); });
}

const RegisterPass remove_contiguous_pass({
    .name = "remove_contiguous",
    .phase = "lower",
    .summary = "removes contiguous",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = remove_contiguous,
});

}  // namespace
}  // namespace cresset::jit
