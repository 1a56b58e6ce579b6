// Activations that write their operand instead of making a new tensor, and the other way round.
//
// The first direction is for graphs that run without gradients: what other derivatives keep may be what is written.
#include <cresset/ir/operator.h>
#include <cresset/ir/pass_functions.h>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

bool is_floating(const Value* v) {
  const auto* type = v->type()->castRaw<TensorType>();
  return type && type->dtype && isFloatingType(*type->dtype);
}

// Is the value made by a node here, for this one user, with memory of its own?
bool is_private(const Value* v, const AliasDb& aliases) {
  const Node* maker = v->node();
  if (v->use_count() != 1 || !maker->maybeOperator() || aliases.hasWriters(v) || aliases.mayAliasWildcard(v)) return false;
  return std::ranges::none_of(maker->inputs(), [&](const Value* input) { return aliases.mayContainAlias(input, v); });
}

void write_in_place(Node* n) {
  Graph& graph = *n->owningGraph();
  Node* fresh = graph.create(Symbol::aten(std::string(n->kind().toUnqualString()) + "_"), n->inputs())->insertBefore(n)->copyMetadata(n);
  fresh->output()->copyMetadata(n->output());
  n->output()->replaceAllUsesWith(fresh->output());
  n->destroy();
}

}  // namespace

const std::unordered_map<Symbol, bool> activation_type_promotion_mapping = {
    {aten::sigmoid, true},     {aten::tanh, true},         {aten::celu, false},      {aten::elu, false},
    {aten::gelu, false},       {aten::hardsigmoid, false}, {aten::hardswish, false}, {aten::hardtanh, false},
    {aten::leaky_relu, false}, {aten::relu, false},        {aten::relu6, false},     {Symbol::aten("rrelu"), false},
    {aten::selu, false},       {aten::silu, false}};

bool FunctionalToInplaceRewriter::FunctionalToInplace(Block* block) {
  std::vector<Node*> candidates;
  {
    const AliasDb aliases(graph_);
    block->visit([&](Node* n) {
      const auto found = activation_type_promotion_mapping.find(n->kind());
      if (found == activation_type_promotion_mapping.end() || is_marked(n)) return;
      const Value* x = n->input(0);
      // Where it runs more often than what makes x, it would write x more than once.
      if (x->owningBlock() != n->owningBlock() || !is_private(x, aliases)) return;
      if (!found->second || is_floating(x)) candidates.push_back(n);
    });
  }
  for (Node* n : candidates) write_in_place(n);
  return !candidates.empty();
}

namespace {

const RegisterPass functional_to_inplace_pass({
    .name = "functional_to_inplace_activation",
    .phase = "simplify",
    .summary = "activations write values that nothing else needs; for graphs that run without gradients",
    .needs = {},
    .keeps = {"marks", "names"},
    .run = [](const std::shared_ptr<Graph>& g) { return FunctionalToInplaceRewriter(g).FunctionalToInplace(g->block()); },
});

const RegisterPass inplace_to_functional_pass({
    .name = "inplace_to_functional_activation",
    .phase = "simplify",
    .summary = "activations that write new memory make new tensors instead",
    .needs = {},
    .keeps = {"marks"},
    .run =
        [](const std::shared_ptr<Graph>& g) {
          return remove_tensor_mutation(g, [](const Node* n) {
            const std::string_view name = n->kind().toUnqualString();
            return n->kind().is_aten() && name.ends_with('_') &&
                   activation_type_promotion_mapping.contains(Symbol::aten(std::string(name.substr(0, name.size() - 1))));
          });
        },
});

}  // namespace
}  // namespace cresset::jit
