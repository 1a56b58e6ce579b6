// Merges nodes that certainly compute the same values: same operator, operands, attributes and result types. A node sees the nodes before
// it in its block and in the blocks around it. Needs nothing before it.
//
// Not merged: effects, random numbers, what somebody writes, nodes with blocks, nodes with a fallback mark, results that the caller would
// then see as one object, and values whose identity is asked for.
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/pass.h>

namespace cresset::jit {
namespace {

std::size_t mixed(std::size_t seed, std::size_t v) { return seed ^ (v + 0x9e3779b97f4a7c15 + (seed << 6) + (seed >> 2)); }

// Of what is cheap; equality decides.
std::size_t hash_of(const AttributeValue& v) {
  return std::visit(
      [](const auto& x) -> std::size_t {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, double>) {
          return std::hash<uint64_t>()(std::bit_cast<uint64_t>(x));
        } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, std::string>) {
          return std::hash<T>()(x);
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          std::size_t h = x.size();
          for (const int64_t i : x) h = mixed(h, static_cast<std::size_t>(i));
          return h;
        } else if constexpr (std::is_same_v<T, Tensor>) {
          if (!x.defined()) return 0;
          std::size_t h = static_cast<std::size_t>(x.scalar_type());
          for (const int64_t n : x.sizes()) h = mixed(h, static_cast<std::size_t>(n));
          if (x.has_storage() && x.device().is_cpu() && x.is_contiguous() && x.numel() > 0)
            h = mixed(h, std::hash<std::string_view>()({static_cast<const char*>(x.data_ptr()), std::min<std::size_t>(x.nbytes(), 256)}));
          return h;
        } else {
          return 0;
        }
      },
      v);
}

std::size_t hash_of(const Node* n) {
  std::size_t h = mixed(n->kind(), n->outputs().size());
  for (const Value* v : n->inputs()) h = mixed(h, v->unique());
  for (const Attribute& a : n->attributes()) h = mixed(mixed(h, a.name), hash_of(a.value));
  return h;
}

bool same_attribute(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) -> bool {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, std::shared_ptr<Graph>> || std::is_same_v<T, std::vector<std::shared_ptr<Graph>>>)
          return false;
        else if constexpr (std::is_same_v<T, TypePtr>)
          return *x == *y;
        else if constexpr (std::is_same_v<T, std::vector<TypePtr>>)
          return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const TypePtr& s, const TypePtr& t) { return *s == *t; });
        else
          return sameConstant(IValue(x), IValue(y));
      },
      a);
}

bool same_node(const Node* a, const Node* b) {
  if (a->kind() != b->kind() || a->inputs() != b->inputs() || a->outputs().size() != b->outputs().size() ||
      a->attributes().size() != b->attributes().size())
    return false;
  for (std::size_t i = 0; i < a->outputs().size(); ++i)
    if (!(*a->output(i)->type() == *b->output(i)->type())) return false;
  for (const Attribute& x : a->attributes())
    if (!b->hasAttribute(x.name) || !same_attribute(x.value, b->attribute(x.name))) return false;
  return true;
}

// `a is b` of two objects is a question that merging would answer differently.
bool identity_is_asked(const Node* n) {
  for (const Value* v : n->outputs()) {
    if (!AliasDb::isMutableType(*v->type())) continue;
    for (const Use& u : v->uses())
      if ((u.user->kind() == aten::__is__ || u.user->kind() == aten::__isnot__) && !u.user->input(1 - u.offset)->mustBeNone()) return true;
  }
  return false;
}

// Gives an object that is there already: the same one each time, as long as nobody writes what it is taken from.
bool takes_out(Symbol kind) {
  switch (kind) {
    case prim::GetAttr:
    case prim::TupleIndex:
    case prim::TupleUnpack:
    case prim::ListUnpack:
    case prim::unchecked_cast:
    case prim::unchecked_unwrap_optional:
    case aten::_unwrap_optional: return true;
    default: return false;
  }
}

class Merging {
 public:
  explicit Merging(const std::shared_ptr<Graph>& graph) : graph_(graph), aliases_(graph) {}

  bool run() {
    struct Frame {
      Node* next;
      std::vector<std::pair<std::size_t, Node*>> added;  // candidates that leave with the block
    };
    std::vector<Frame> stack;
    stack.push_back({graph_->block()->param_node()->next(), {}});
    while (!stack.empty()) {
      Frame& f = stack.back();
      Node* n = f.next;
      if (n->kind() == prim::Return) {
        for (const auto& [hash, node] : f.added) forget(hash, node);
        stack.pop_back();
        continue;
      }
      f.next = n->next();
      if (!n->blocks().empty()) {
        for (std::size_t i = n->blocks().size(); i-- > 0;) stack.push_back({n->blocks()[i]->param_node()->next(), {}});
        continue;
      }
      if (n->hasAttribute(attr::Subgraph) && n->kindOf(attr::Subgraph) == AttributeKind::g) {
        changed_ = eliminate_common_subexpressions(n->g(attr::Subgraph)) || changed_;
        continue;
      }
      if (!mergeable(n)) continue;
      const std::size_t hash = hash_of(n);
      if (merge(n, hash)) continue;
      candidates_.emplace(hash, n);
      f.added.emplace_back(hash, n);
    }
    return changed_;
  }

 private:
  bool mergeable(const Node* n) const {
    if (n->outputs().empty() || n->hasAttribute(attr::to_compile)) return false;
    if (takes_out(n->kind())) return !aliases_.hasInputWriters(n);
    return n->kind() != prim::CreateObject && !n->hasSideEffects() && !n->isNondeterministic() && !aliases_.hasWriters(n) &&
           !aliases_.isMutable(n) && !identity_is_asked(n);
  }

  bool merge(Node* n, std::size_t hash) {
    const auto [begin, end] = candidates_.equal_range(hash);
    for (auto at = begin; at != end; ++at) {
      Node* earlier = at->second;
      if (!same_node(earlier, n)) continue;
      // Two objects that the caller sees stay two; a node that took over such an object counts as seen itself.
      const bool seen = !takes_out(n->kind()) && aliases_.escapesScope({n->outputs().begin(), n->outputs().end()});
      if (seen && (seen_.count(earlier) || aliases_.escapesScope({earlier->outputs().begin(), earlier->outputs().end()}))) continue;
      if (seen) seen_.insert(earlier);
      for (std::size_t i = 0; i < n->outputs().size(); ++i) n->output(i)->replaceAllUsesWith(earlier->output(i));
      n->destroy();
      changed_ = true;
      return true;
    }
    return false;
  }

  void forget(std::size_t hash, const Node* n) {
    const auto [begin, end] = candidates_.equal_range(hash);
    for (auto at = begin; at != end; ++at)
      if (at->second == n) {
        candidates_.erase(at);
        return;
      }
  }

  std::shared_ptr<Graph> graph_;
  AliasDb aliases_;
  std::unordered_multimap<std::size_t, Node*> candidates_;
  std::unordered_set<const Node*> seen_;
  bool changed_ = false;
};

const RegisterPass registered({
    .name = "cse",
    .phase = "cleanup",
    .summary = "merges nodes that compute the same values",
    .needs = {},
    .keeps = {"names", "marks", "aliasing"},
    .run = eliminate_common_subexpressions,
    .title = "eliminate-common-subexpression",
});

}  // namespace

bool eliminate_common_subexpressions(const std::shared_ptr<Graph>& graph) { return Merging(graph).run(); }

}  // namespace cresset::jit
