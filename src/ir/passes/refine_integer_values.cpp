// Behind a condition `x == 4` the int x is 4: its uses there take the constant. Where one arm gives the constant that x is there and the
// other gives x, both give x.
#include <cresset/ir/pass.h>

#include "ir/passes/condition_facts.h"
#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

const Value* compared_int(const Value* v) { return v->type()->kind == TypeKind::Int && v->node()->kind() != prim::Constant ? v : nullptr; }

// Results of an If that are x in each arm, because the constant of the arm is what x is in it.
bool same_in_both_arms(Node* branch, const NumberFacts& facts) {
  bool changed = false;
  for (std::size_t i = 0; i < branch->outputs().size(); ++i) {
    for (const std::size_t arm : {0, 1}) {
      const auto number = constant_as<int64_t>(branch->blocks()[arm]->outputs()[i]);
      Value* other = branch->blocks()[1 - arm]->outputs()[i];
      const auto known = facts.find(other);
      if (!number || known == facts.end() || !branch->output(i)->hasUses()) continue;
      if (std::none_of(known->second.begin(), known->second.end(),
                       [&](const NumberFact& f) { return f.branch == branch && f.arm == arm && f.number == *number; }))
        continue;
      branch->output(i)->replaceAllUsesWith(other);
      changed = true;
    }
  }
  return changed;
}

bool refine_integers(const std::shared_ptr<Graph>& graph) {
  const NumberFacts facts = number_facts(*graph, compared_int);
  if (facts.empty()) return false;
  bool changed = false;
  for (Node* branch : nodes_where(*graph, [](const Node* n) { return n->kind() == prim::If; }))
    changed = same_in_both_arms(branch, facts) || changed;
  for (const auto& [v, known] : facts) {
    for (const Use& use : v->uses()) {
      // What a block gives is used at its end.
      if (is_marked(use.user)) continue;
      const auto fact = std::find_if(known.begin(), known.end(), [&](const NumberFact& f) { return holds_at(f, use.user); });
      if (fact == known.end()) continue;
      const WithInsertPoint guard(use.user);
      use.user->replaceInput(use.offset, graph->insertConstant(fact->number, use.user->sourceRange()));
      changed = true;
    }
  }
  return changed;
}

const RegisterPass refine_integer_values_pass({
    .name = "refine_integer_values",
    .phase = "simplify",
    .summary = "ints that conditions compare with constants are these, behind the conditions",
    .needs = {},
    .keeps = {"marks", "names", "aliasing"},
    .run = refine_integers,
});

}  // namespace
}  // namespace cresset::jit
