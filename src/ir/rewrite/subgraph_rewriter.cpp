// Matching and rewriting. Rewrites are done one at a time, each on the graph as the one before left it, so chains resolve by themselves.
#include <cresset/ir/subgraph_rewriter.h>

#include <regex>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/class_type.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/module.h>
#include <cresset/ir/operator.h>

#include "ir/graph/node_equality.h"
#include "ir/graph/pointer_map.h"
#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

const Symbol kModuleMatch = Symbol::fromQualString("match::module");

// Operators that give a view of their operand or a copy, as they find it.
bool may_copy(Symbol kind) {
  static const std::unordered_set<Symbol> kinds = [] {
    std::unordered_set<Symbol> out;
    for (const char* name :
         {"aten::contiguous", "aten::to", "aten::type_as", "aten::reshape", "aten::reshape_as", "aten::flatten", "aten::ravel"})
      out.insert(Symbol::fromQualString(name));
    return out;
  }();
  return kinds.count(kind) > 0;
}

bool fits_attribute(const AttributeValue& pattern, const AttributeValue& target) {
  if (pattern.index() != target.index()) return false;
  if (const auto* s = std::get_if<std::string>(&pattern)) {
    const std::string& text = std::get<std::string>(target);
    if (*s == text) return true;
    try {
      return std::regex_match(text, std::regex(*s));
    } catch (const std::regex_error&) {
      return false;  // a text that is no expression matches itself only
    }
  }
  return equal_attributes(pattern, target);
}

bool fit_attributes(const Node* pattern, const Node* target) {
  if (pattern->attributes().size() != target->attributes().size()) return false;
  for (const Attribute& a : pattern->attributes())
    if (!target->hasAttribute(a.name) || !fits_attribute(a.value, target->attribute(a.name))) return false;
  return true;
}

// "match::module"[name="Conv2d"]: the attribute read of a module whose class name ends so.
bool is_module(const Node* pattern, const Node* target) {
  if (target->kind() != prim::GetAttr || target->output()->type()->kind != TypeKind::Object) return false;
  const std::string name = unmangled_name(target->output()->type()->name);
  return name.ends_with(pattern->s(attr::name));
}

class Matcher {
 public:
  Matcher(const Graph& pattern, bool skip_marked) : pattern_(pattern), skip_marked_(skip_marked) {
    const Node* last = pattern.return_node()->prev();
    CRESSET_CHECK(last->kind() != prim::Param, "pattern: at least one node is required.");
    for (const Node* n : pattern.nodes()) CRESSET_CHECK(n->blocks().empty(), "pattern: nodes with blocks cannot be matched: ", n->str());
    anchor_ = last;
    require_reached();
  }
  const Node* anchor() const { return anchor_; }

  std::optional<Match> at(Node* n) const {
    Match m;
    m.anchor = n;
    if (!node(anchor_, n, m)) return std::nullopt;
    for (const Value* v : pattern_.inputs())
      if (v->hasUses() && !m.values_map.count(v)) return std::nullopt;
    return m;
  }

 private:
  // Matching goes backwards from the anchor: a node that it does not reach would match nothing. A constant that nothing uses asks for
  // nothing.
  void require_reached() const {
    std::unordered_set<const Node*> reached{anchor_};
    std::vector<const Node*> pending{anchor_};
    while (!pending.empty()) {
      const Node* n = pending.back();
      pending.pop_back();
      for (const Value* v : n->inputs())
        if (v->node()->kind() != prim::Param && reached.insert(v->node()).second) pending.push_back(v->node());
    }
    for (const Node* n : pattern_.nodes())
      CRESSET_CHECK(
          reached.count(n) || (n->kind() == prim::Constant && !n->output()->hasUses()),
          "pattern: every node must be one that the last node's results are computed from, for matching begins there; this one is not: ",
          n->str());
  }
  // Backwards from the anchor with an explicit stack; pattern and target in step.
  bool node(const Node* pattern, Node* target, Match& m) const {
    std::vector<std::pair<const Node*, Node*>> pending{{pattern, target}};
    while (!pending.empty()) {
      const auto [p, t] = pending.back();
      pending.pop_back();
      if (const auto known = m.nodes_map.find(p); known != m.nodes_map.end()) {
        if (known->second != t) return false;
        continue;
      }
      const bool constant = p->kind() == prim::Constant;
      if (t->kind() != p->kind() && !(p->kind() == kModuleMatch && is_module(p, t))) return false;
      if (!constant && t->owningBlock() != m.anchor->owningBlock()) return false;
      if ((skip_marked_ && is_marked(t)) || !t->blocks().empty()) return false;
      if (p->inputs().size() != t->inputs().size() || p->outputs().size() != t->outputs().size()) return false;
      if (p->kind() != kModuleMatch && !fit_attributes(p, t)) return false;
      if (constant && p->output()->type()->kind != t->output()->type()->kind && p->output()->type()->kind != TypeKind::Tensor) return false;
      m.nodes_map.emplace(p, t);
      for (std::size_t i = 0; i < p->outputs().size(); ++i)
        if (!value(p->outputs()[i], t->outputs()[i], m)) return false;
      for (std::size_t i = 0; i < p->inputs().size(); ++i) {
        const Value* x = p->inputs()[i];
        Value* y = t->inputs()[i];
        if (!value(x, y, m)) return false;
        if (x->node()->kind() == prim::Param) continue;
        if (x->offset() != y->offset()) return false;
        pending.emplace_back(x->node(), y->node());
      }
    }
    return true;
  }

  bool value(const Value* p, Value* t, Match& m) const {
    const auto [known, fresh] = m.values_map.emplace(p, t);
    if (!fresh) return known->second == t;
    if (p->node()->kind() == prim::Param || p->node()->kind() == prim::Constant) return true;
    for (const Use& u : p->uses())
      if (u.user->kind() == prim::Return) return true;  // a result: others may use it
    return p->use_count() == t->use_count();
  }

  const Graph& pattern_;
  const bool skip_marked_;
  const Node* anchor_;
};

std::vector<Node*> nodes_of_kind(Graph& g, Symbol kind) {
  std::vector<Node*> out;
  g.block()->visit([&](Node* n) {
    if (n->kind() == kind || (kind == kModuleMatch && n->kind() == prim::GetAttr)) out.push_back(n);
  });
  return out;
}

}  // namespace

std::optional<Match> match_at(const Graph& pattern, Node* anchor, bool skip_marked) { return Matcher(pattern, skip_marked).at(anchor); }

std::vector<Match> findPatternMatches(const Graph& pattern, Graph& graph, bool skip_marked) {
  const Matcher matcher(pattern, skip_marked);
  std::vector<Match> out;
  for (Node* n : nodes_of_kind(graph, matcher.anchor()->kind()))
    if (auto m = matcher.at(n)) out.push_back(std::move(*m));
  return out;
}

namespace {

struct Effects {
  std::vector<std::vector<bool>> aliases;  // by output, which inputs it may share memory with
  bool writes = false;
};

// What a graph of a rule does to operands of the given types. Patterns carry no types, so those of the match go in and schemas give the
// rest.
Effects effects_of(const Graph& rule_graph, const std::vector<TypePtr>& inputs) {
  const std::shared_ptr<Graph> g = rule_graph.copy();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) g->inputs()[i]->setType(inputs[i]);
  for (Node* n : g->nodes()) {
    const FunctionSchema* s = n->maybeSchema();
    if (!s) continue;
    const std::vector<TypePtr> types = output_types(*s, n->inputs());
    for (std::size_t i = 0; i < std::min(types.size(), n->outputs().size()); ++i) n->output(i)->setType(types[i]);
  }
  AliasDb::Options options;
  options.independent_inputs = true;
  options.unknown_is_pure = true;
  const AliasDb db(g, options);
  Effects e;
  for (const Value* o : g->outputs()) {
    e.aliases.emplace_back();
    for (const Value* i : g->inputs()) e.aliases.back().push_back(o == i || db.mayContainAlias(o, i));
  }
  for (const Node* n : g->nodes()) e.writes = e.writes || db.isMutable(n);
  return e;
}

}  // namespace

void SubgraphRewriter::RegisterRewritePattern(const std::string& pattern, const std::string& replacement,
                                              std::vector<std::pair<std::string, std::string>> values) {
  Rule r;
  r.pattern = parse_ir(pattern, {}, &r.pattern_values);
  r.replacement = parse_ir(replacement, {}, &r.replacement_values);
  CRESSET_CHECK(
      r.pattern->inputs().size() == r.replacement->inputs().size() && r.pattern->outputs().size() == r.replacement->outputs().size(),
      "RegisterRewritePattern: pattern and replacement must have the same inputs and outputs; ", r.pattern->inputs().size(), " and ",
      r.replacement->inputs().size(), " inputs, ", r.pattern->outputs().size(), " and ", r.replacement->outputs().size(),
      " outputs were given.");
  const Matcher check(*r.pattern, options_.skip_marked);
  for (const auto& [fresh, old] : values) {
    const auto a = r.replacement_values.find(fresh), b = r.pattern_values.find(old);
    CRESSET_CHECK(a != r.replacement_values.end() && b != r.pattern_values.end(), "RegisterRewritePattern: no values '", fresh, "' and '",
                  old, "'.");
    r.places.emplace(a->second->node(), b->second->node());
  }
  // Names of the replacement must not compete with the graph's.
  for (const auto& [name, v] : r.replacement_values) v->setDebugName("");
  rules_.push_back(std::move(r));
}

struct SubgraphRewriter::Run {
  const Rule& rule;
  const std::shared_ptr<Graph>& graph;
  const std::vector<MatchFilter>& filters;
  const RewriteOptions& options;
  std::unordered_set<const Node*> created;  // by this rule: not matched by it alone
  std::size_t count = 0;
  std::optional<std::unordered_map<uint32_t, std::vector<std::shared_ptr<Handle<Value>>>>> names_;  // by memory, of this sweep

  // One walk over the graph; true when something was rewritten.
  bool sweep() {
    const Matcher matcher(*rule.pattern, options.skip_marked);
    std::vector<std::pair<Node*, std::shared_ptr<Handle<Node>>>> candidates;
    for (Node* n : nodes_of_kind(*graph, matcher.anchor()->kind())) candidates.emplace_back(n, n->handle());
    if (candidates.empty()) return false;
    std::optional<AliasDb> aliases;  // without one, rules are trusted to keep the meaning
    if (!options.trust_rules) aliases.emplace(graph);
    names_.reset();
    bool changed = false;
    for (const auto& [n, handle] : candidates) {
      if (!handle->target) continue;
      const auto m = matcher.at(n);
      if (!m || only_created(*m) || !wanted(*m)) continue;
      Node* place = insertion_point(*m);
      if (!place) continue;
      Effects after;
      if (aliases) {
        const std::vector<TypePtr> types = types_of_inputs(*m);
        after = effects_of(*rule.replacement, types);
        if (!keeps_meaning(*m, place, *aliases, effects_of(*rule.pattern, types), after)) continue;
      }
      rewrite(*m, place, aliases ? &*aliases : nullptr);
      ++count;
      changed = true;
      // Writes of new nodes are not in the analysis: look at the rest with a new one.
      if (after.writes) return true;
    }
    return changed;
  }

  // What the match has for the pattern's inputs; null for one that no node uses.
  std::vector<TypePtr> types_of_inputs(const Match& m) const {
    std::vector<TypePtr> types;
    for (const Value* i : rule.pattern->inputs()) {
      const auto found = m.values_map.find(i);
      types.push_back(found == m.values_map.end() ? nullptr : found->second->type());
    }
    return types;
  }

  bool only_created(const Match& m) const {
    for (const auto& [p, t] : m.nodes_map)
      if (p->kind() != prim::Constant && !created.count(t)) return false;
    return true;
  }
  bool wanted(const Match& m) const {
    for (const MatchFilter& f : filters)
      if (!f(m, rule.pattern_values)) return false;
    return true;
  }

  bool is_matched(const Match& m, const Node* n) const {
    for (const auto& [p, t] : m.nodes_map)
      if (t == n && p->kind() != prim::Constant) return true;
    return false;
  }

  // In front of the anchor, or in front of the first user of a result when that comes earlier; null when an operand is not defined there.
  Node* insertion_point(const Match& m) const {
    Node* place = m.anchor;
    for (const Value* o : rule.pattern->outputs()) {
      const auto found = m.values_map.find(o);
      if (found == m.values_map.end()) continue;
      for (const Use& u : found->second->uses()) {
        if (is_matched(m, u.user)) continue;
        Node* user = in_block(u.user, m.anchor->owningBlock());
        if (user && user->isBefore(place)) place = user;
      }
    }
    for (const Value* i : rule.pattern->inputs()) {
      const auto found = m.values_map.find(i);
      if (found != m.values_map.end() && found->second->node() != place && !found->second->node()->isBefore(place)) return nullptr;
    }
    return place;
  }

  // Operators that nobody knows do what the rule says: they are no writers here.
  static bool writes(const Node* n, const AliasDb& aliases) {
    return (n->maybeOperator() || is_structural(n->kind())) && aliases.isMutable(n);
  }

  bool keeps_meaning(const Match& m, Node* place, const AliasDb& aliases, const Effects& before, const Effects& after) {
    ValueSet operands, internal;
    for (const auto& [p, t] : m.values_map) (p->node()->kind() == prim::Param ? operands : internal).insert(t);
    // Nodes between the first matched one and the last that write what the match reads.
    const Node* first = m.anchor;
    for (const auto& [p, t] : m.nodes_map)
      if (p->kind() != prim::Constant && t->isBefore(first)) first = t;
    ValueSet touched = operands;
    touched.insert(internal.begin(), internal.end());
    for (const Node* n = first; n != m.anchor; n = n->next())
      if (!is_matched(m, n) && aliases.writesToAlias(n, touched)) return false;
    if (place != m.anchor)
      for (const Node* n = place; n != m.anchor; n = n->next())
        if (is_matched(m, n) && writes(n, aliases)) return false;

    if (before.writes && !after.writes && write_is_seen(m, aliases)) return false;
    if (before.writes) return true;
    bool perhaps_copies = false;
    for (const Node* n : rule.pattern->nodes()) perhaps_copies = perhaps_copies || may_copy(n->kind());
    for (std::size_t o = 0; o < rule.pattern->outputs().size(); ++o) {
      const Value* result = m.values_map.at(rule.pattern->outputs()[o]);
      for (std::size_t i = 0; i < rule.pattern->inputs().size(); ++i) {
        // A result that was perhaps a copy and becomes the operand itself.
        const bool forwarded = perhaps_copies && rule.replacement->outputs()[o] == rule.replacement->inputs()[i];
        if (before.aliases[o][i] == after.aliases[o][i] && !forwarded) continue;
        const auto operand = m.values_map.find(rule.pattern->inputs()[i]);
        if (operand == m.values_map.end() || operand->second == result) continue;
        if (!AliasDb::isMutableType(*operand->second->type())) continue;
        if (before.aliases[o][i] && forwarded) {
          if (aliases.hasWriters(result) || aliases.hasWriters(operand->second)) return false;
          continue;
        }
        if (!aliases.safeToChangeAliasingRelationship(result, operand->second)) return false;
      }
    }
    return true;
  }

  // Does anything besides the results of the match see what it writes?
  bool write_is_seen(const Match& m, const AliasDb& aliases) {
    ValueSet results;
    for (const auto& [pv, tv] : m.values_map)
      if (pv->node()->kind() != prim::Param) results.insert(tv);
    for (const auto& [p, t] : m.nodes_map) {
      if (!writes(t, aliases)) continue;
      if (aliases.writesToWildcard(t)) return true;
      for (const uint32_t memory : aliases.writtenMemory(t)) {
        const std::vector<const Value*> names = names_of(aliases, memory);
        for (const Value* v : names) {
          if (results.count(v)) continue;
          for (const Use& u : v->uses())
            if (!is_matched(m, u.user) && sees(u.user, t, names)) return true;
        }
      }
    }
    return false;
  }

  // The values in use through which a piece of memory can be reached. They are found for all pieces at once.
  std::vector<const Value*> names_of(const AliasDb& aliases, uint32_t memory) {
    if (!names_) {
      names_.emplace();
      PointerSet known;
      const auto add = [&](const Node* n) {
        for (Value* v : n->inputs())
          if (known.insert(v).second) add_name(aliases, v);
      };
      graph->block()->visit([&](const Node* n) {
        add(n);
        for (const Block* b : n->blocks()) add(b->return_node());
      });
      add(graph->block()->return_node());
    }
    std::vector<const Value*> out;
    for (const auto& name : (*names_)[memory])
      if (name->target) out.push_back(name->target);
    return out;
  }
  void add_name(const AliasDb& aliases, Value* v) {
    for (const uint32_t memory : aliases.reachableMemory(v)) (*names_)[memory].push_back(v->handle());
  }

  // Does a node that uses the memory run behind the writer? In a loop also what stands in front of it does, in the next iteration, unless
  // the memory is new in each iteration: then all its names are made in the body.
  static bool sees(const Node* user, const Node* writer, const std::vector<const Value*>& names) {
    // What a block hands on has another name behind the block.
    if (user->kind() == prim::Return && user->owningBlock()->owningNode()) return false;
    if (user->isAfter(writer)) return true;
    for (const Block* b = writer->owningBlock(); b->owningNode(); b = b->owningNode()->owningBlock()) {
      if (b->owningNode()->kind() != prim::Loop || !within(user, b)) continue;
      for (const Value* v : names)
        if (v->node() == b->param_node() || !within(v->node(), b)) return true;
    }
    return false;
  }
  static bool within(const Node* n, const Block* b) { return in_block(const_cast<Node*>(n), b) != nullptr; }

  void rewrite(const Match& m, Node* place, AliasDb* aliases) {
    std::unordered_map<const Value*, Value*> map;
    for (std::size_t i = 0; i < rule.pattern->inputs().size(); ++i) {
      const auto found = m.values_map.find(rule.pattern->inputs()[i]);
      if (found != m.values_map.end()) map[rule.replacement->inputs()[i]] = found->second;
    }
    const auto mapped = [&](Value* v) {
      const auto found = map.find(v);
      CRESSET_CHECK(found != map.end(), "rewriter: the replacement uses %", v->debugName(), ", which the pattern does not bind.");
      return found->second;
    };
    const WithInsertPoint guard(place);
    for (const Node* n : rule.replacement->nodes()) {
      Node* copy = graph->insertNode(graph->createClone(n, mapped));
      const auto from = rule.places.find(n);
      const Node* like = from != rule.places.end() ? m.nodes_map.at(from->second) : m.anchor;
      copy->setSourceRange(like->sourceRange())->setScope(like->scope());
      copy->setCallStack(like->callstack());
      created.insert(copy);
      for (std::size_t i = 0; i < n->outputs().size(); ++i) map[n->outputs()[i]] = copy->outputs()[i];
    }
    for (std::size_t i = 0; i < rule.pattern->outputs().size(); ++i) {
      Value* old = m.values_map.at(rule.pattern->outputs()[i]);
      Value* fresh = mapped(rule.replacement->outputs()[i]);
      if (created.count(fresh->node())) {
        fresh->setType(old->type());
        if (aliases) aliases->copyValue(old, fresh);
        if (names_) add_name(*aliases, fresh);
        if (old->hasDebugName() && !fresh->hasDebugName()) {
          const std::string name = old->debugName();
          old->setDebugName("");
          fresh->setDebugName(name);
        }
      }
      old->replaceAllUsesWith(fresh);
    }
    // Users before what they use: the anchor is last in the pattern.
    std::vector<const Node*> order;
    for (const Node* n : rule.pattern->nodes()) order.push_back(n);
    for (auto p = order.rbegin(); p != order.rend(); ++p) {
      Node* t = m.nodes_map.at(*p);
      if (t->hasUses()) continue;  // constants that others use
      created.erase(t);
      t->destroy();
    }
  }
};

Module SubgraphRewriter::runOnModule(const Module& module) {
  for (const Module& m : module.modules())
    for (Function* f : m.type()->methods()) {
      auto* method = tryToGraphFunction(*f);
      if (method && runOnGraph(method->graph()) > 0) method->invalidate();
    }
  return module;
}

std::size_t SubgraphRewriter::runOnGraph(const std::shared_ptr<Graph>& graph, const std::vector<MatchFilter>& filters) {
  std::size_t total = 0;
  // Rules can feed each other: sweeps go on until a whole round changes nothing. The bound only stops rules that undo one another.
  const std::size_t bound = 16 + graph->node_count();
  std::vector<Run> runs;
  for (const Rule& r : rules_) runs.push_back(Run{r, graph, filters, options_, {}, 0, {}});
  for (std::size_t round = 0; round < bound; ++round) {
    bool changed = false;
    for (Run& run : runs) changed = run.sweep() || changed;
    if (!changed) break;
  }
  for (const Run& run : runs) total += run.count;
  return total;
}

}  // namespace cresset::jit
