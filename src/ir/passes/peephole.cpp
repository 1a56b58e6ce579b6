// Small local rules until nothing changes, then dead code: no-op expand, x.t().t(), questions that types answer, numbers, None, containers
// that nobody changes. The families are in peephole_*.cpp. Values that somebody writes are left alone where a copy would become an alias.
// Nothing need run before it. Fusing mm and add into addmm is a switch, off by default; types can be distrusted.
#include "ir/passes/peephole.h"

#include <cresset/ir/pass.h>

namespace cresset::jit {
namespace {

// Each round simplifies what the last one made; rules shrink the graph or move constants to the right, so rounds end.
constexpr int kMostRounds = 64;

struct Families {
  std::vector<const PeepholeRules*> rules;
  std::vector<const PeepholeEdits*> edits;
};

bool apply_rules(Node* n, Peephole& p, const Families& families) {
  if (n->outputs().size() != 1 || !n->output()->hasUses()) return false;
  const WithInsertPoint guard(n);
  for (const PeepholeRules* family : families.rules) {
    const auto [begin, end] = family->equal_range(n->kind().toQualString());
    for (auto rule = begin; rule != end; ++rule) {
      Value* v = rule->second(n, p);
      if (!v || v == n->output()) continue;
      if (v->node()->sourceRange().known() == false) v->node()->setSourceRange(n->sourceRange());
      if (!v->node()->callstack()) v->node()->setCallStack(n->callstack());
      p.aliases.copyValue(n->output(), v);
      n->output()->replaceAllUsesWith(v);
      return true;
    }
  }
  return false;
}

bool round(const std::shared_ptr<Graph>& graph, const Families& families, bool trust_types) {
  Peephole p(graph, trust_types);
  bool changed = false;
  for (Node* n : nodes_where(*graph, [](const Node* m) { return !is_marked(m); })) {
    bool edited = false;
    for (const PeepholeEdits* family : families.edits) {
      const auto [begin, end] = family->equal_range(n->kind().toQualString());
      for (auto edit = begin; edit != end; ++edit) edited = edit->second(n, p) || edited;
    }
    changed = apply_rules(n, p, families) || edited || changed;
  }
  return changed;
}

const RegisterPass registered({
    .name = "peephole",
    .phase = "simplify",
    .summary = "small local simplifications",
    .needs = {},
    .keeps = {"marks", "aliasing"},
    .run_in = [](PassContext& c) { return peephole(c.graph, c.options.fuse_addmm, c.options.trust_types); },
    .title = "peephole-optimize",
});

}  // namespace

bool peephole(const std::shared_ptr<Graph>& graph, bool fuse_addmm, bool trust_types) {
  Families families{{&tensor_rules(), &number_rules(), &optional_rules(), &container_rules()}, {&control_edits(), &container_edits()}};
  if (fuse_addmm) families.rules.push_back(&addmm_rules());
  bool changed = false;
  for (int i = 0; i < kMostRounds && round(graph, families, trust_types); ++i) {
    changed = true;
    eliminate_dead_code(graph);
  }
  return in_subgraphs(*graph, [&](const std::shared_ptr<Graph>& g) { return peephole(g, fuse_addmm, trust_types); }) || changed;
}

}  // namespace cresset::jit
