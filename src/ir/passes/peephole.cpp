// Small local rules until nothing changes, then dead code: no-op expand, x.t().t(), questions that types answer, numbers, None, containers
// that nobody changes. The families are in peephole_*.cpp. Values that somebody writes are left alone where a copy would become an alias.
// Nothing need run before it. Fusing mm and add into addmm and using what conditions say of lengths are switches, off by default; types can
// be distrusted.
#include "ir/passes/peephole.h"

#include <cresset/ir/pass.h>

namespace cresset::jit {
namespace {

// Each round simplifies what the last one made; rules shrink the graph or move constants to the right, so rounds end.
constexpr int kMostRounds = 64;

// What is done with a node of each kind, families in order.
struct PeepholeWork {
  std::vector<PeepholeEdit> edits;
  std::vector<PeepholeRule> rules;
};
using WorkByKind = std::unordered_map<Symbol, PeepholeWork>;

WorkByKind work_of(const std::vector<const PeepholeRules*>& rules) {
  WorkByKind out;
  for (const PeepholeEdits* family : {&control_edits(), &container_edits()})
    for (const auto& [kind, edit] : *family) out[Symbol::fromQualString(kind)].edits.push_back(edit);
  for (const PeepholeRules* family : rules)
    for (const auto& [kind, rule] : *family) out[Symbol::fromQualString(kind)].rules.push_back(rule);
  return out;
}

const WorkByKind& work(bool fuse_addmm) {
  static const WorkByKind plain = work_of({&tensor_rules(), &number_rules(), &optional_rules(), &container_rules()});
  static const WorkByKind with_addmm = work_of({&tensor_rules(), &number_rules(), &optional_rules(), &container_rules(), &addmm_rules()});
  return fuse_addmm ? with_addmm : plain;
}

// A value that can only be None: users need not wait for what gives it.
bool gives_none(const Node* n) {
  const bool asks = n->kind() == prim::CallFunction || n->kind() == prim::CallMethod || n->kind() == prim::GetAttr;
  if (n->blocks().empty() && !asks) return false;
  return n->outputs().size() == 1 && n->output()->type()->kind == TypeKind::None && n->output()->hasUses();
}

bool apply_rules(Node* n, Peephole& p, const std::vector<PeepholeRule>& rules) {
  if (n->outputs().size() != 1 || !n->output()->hasUses()) return false;
  const WithInsertPoint guard(n);
  for (const PeepholeRule rule : rules) {
    Value* v = rule(n, p);
    if (!v || v == n->output()) continue;
    if (v->node()->sourceRange().known() == false) v->node()->setSourceRange(n->sourceRange());
    if (!v->node()->callstack()) v->node()->setCallStack(n->callstack());
    p.aliases.copyValue(n->output(), v);
    n->output()->replaceAllUsesWith(v);
    return true;
  }
  return false;
}

bool round(const std::shared_ptr<Graph>& graph, const WorkByKind& work, const LoweringOptions& options) {
  const std::vector<Node*> nodes =
      nodes_where(*graph, [&](const Node* n) { return (work.count(n->kind()) || gives_none(n)) && !is_marked(n); });
  if (nodes.empty()) return false;
  Peephole p(graph, options);
  bool changed = false;
  for (Node* n : nodes) {
    if (gives_none(n)) {
      n->output()->replaceAllUsesWith(constant_before(n, IValue()));
      changed = true;
    }
    const auto found = work.find(n->kind());
    if (found == work.end()) continue;
    for (const PeepholeEdit edit : found->second.edits) changed = edit(n, p) || changed;
    changed = apply_rules(n, p, found->second.rules) || changed;
  }
  return changed;
}

const RegisterPass peephole_pass({
    .name = "peephole",
    .phase = "simplify",
    .summary = "small local simplifications",
    .needs = {},
    .keeps = {"marks", "aliasing"},
    .run_in = [](PassContext& c) { return peephole(c.graph, c.options); },
    .title = "peephole-optimize",
});

}  // namespace

bool peephole(const std::shared_ptr<Graph>& graph, const LoweringOptions& options) {
  bool changed = false;
  for (int i = 0; i < kMostRounds && round(graph, work(options.fuse_addmm), options); ++i) {
    changed = true;
    eliminate_dead_code(graph);
  }
  return in_subgraphs(*graph, [&](const std::shared_ptr<Graph>& g) { return peephole(g, options); }) || changed;
}

}  // namespace cresset::jit
