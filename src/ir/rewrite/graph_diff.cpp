// Two graphs beside each other: nodes that match, nodes that changed, nodes of one side.
#include <cresset/ir/graph_diff.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/rewrite/pass_tools.h"
#include "ir/text/text.h"

namespace cresset::jit {
namespace {

using Kind = DiffLine::Kind;
constexpr std::size_t kLargestTable = 16'000'000;  // cells; beyond it only what stands at both ends is aligned

std::string written(const std::string& name) { return "%" + (is_plain_name(name) ? name : in_quotes(name)); }

// What the line does not show.
std::string hidden_of(const Node& n) {
  std::string out;
  for (const Value* v : n.outputs()) out += v->type()->str() + ";";
  if (n.kind() == prim::Constant)
    if (const auto value = toIValue(n.outputs()[0]); value && value->isTensor() && value->toTensor().defined())
      out += std::to_string(std::hash<std::string>()(tensor_bytes(value->toTensor())));
  if (const auto body = subgraph_of(&n)) out += body->toString(PrintOptions{.source_ranges = false, .constants = true});
  return out;
}

struct DiffEntry {
  Node* node;
  std::string core, hidden;
  std::size_t hash = 0;  // of what it computes from the graph's inputs
};

std::size_t mixed(std::size_t a, std::size_t b) { return a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2)); }

// What each value is computed from; names do not count.
class Hashes {
 public:
  explicit Hashes(const Graph& g) {
    for (std::size_t i = 0; i < g.inputs().size(); ++i) of_[g.inputs()[i]] = mixed(1, i);
    block(g.block());
  }
  std::size_t node(const Node* n) const { return nodes_.at(n); }

 private:
  std::size_t block(const Block* b) {
    std::size_t h = 17;
    for (std::size_t i = 0; i < b->inputs().size(); ++i) of_.try_emplace(b->inputs()[i], mixed(b->owningNode() ? inner_ : 0, i));
    for (const Node* n : b->nodes()) {
      std::size_t own = std::hash<std::string>()(kind_and_attributes(*n) + hidden_of(*n));
      for (const Value* v : n->inputs()) own = mixed(own, of_[v]);
      for (const Block* inner : n->blocks()) {
        inner_ = own;
        own = mixed(own, block(inner));
      }
      nodes_[n] = own;
      for (std::size_t i = 0; i < n->outputs().size(); ++i) of_[n->outputs()[i]] = mixed(own, i);
      if (n->kind() != prim::Constant) h = mixed(h, own);
    }
    for (const Value* v : b->outputs()) h = mixed(h, of_[v]);
    return h;
  }
  std::size_t inner_ = 0;
  std::unordered_map<const Value*, std::size_t> of_;
  std::unordered_map<const Node*, std::size_t> nodes_;
};

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

// The longest common subsequence of two stretches; pairs of places.
template <class Same>
Pairs aligned(std::size_t a0, std::size_t a1, std::size_t b0, std::size_t b1, Same&& same) {
  Pairs front, back;
  while (a0 < a1 && b0 < b1 && same(a0, b0)) front.emplace_back(a0++, b0++);
  while (a0 < a1 && b0 < b1 && same(a1 - 1, b1 - 1)) back.emplace_back(--a1, --b1);
  const std::size_t rows = a1 - a0, columns = b1 - b0;
  if (rows && columns && rows * columns <= kLargestTable) {
    std::vector<uint32_t> table((rows + 1) * (columns + 1), 0);
    const auto at = [&](std::size_t i, std::size_t j) -> uint32_t& { return table[i * (columns + 1) + j]; };
    for (std::size_t i = rows; i-- > 0;)
      for (std::size_t j = columns; j-- > 0;) at(i, j) = same(a0 + i, b0 + j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    for (std::size_t i = 0, j = 0; i < rows && j < columns;) {
      if (same(a0 + i, b0 + j))
        front.emplace_back(a0 + i++, b0 + j++);
      else
        at(i + 1, j) >= at(i, j + 1) ? ++i : ++j;
    }
  }
  front.insert(front.end(), back.rbegin(), back.rend());
  return front;
}

class Comparison {
 public:
  Comparison(const Graph& before, const Graph& after) : before_(before), after_(after), hashes_a_(before), hashes_b_(after) {}

  GraphDiff run() {
    collect_names(before_);
    for (std::size_t i = 0; i < std::min(before_.inputs().size(), after_.inputs().size()); ++i)
      match(before_.inputs()[i], after_.inputs()[i]);
    text(formals(before_.inputs(), false, "graph(", "):"), formals(after_.inputs(), true, "graph(", "):"), 0, true);
    block(before_.block(), after_.block(), 1);
    text(results(before_.outputs(), false, "return ("), results(after_.outputs(), true, "return ("), 1, true);
    return std::move(out_);
  }

 private:
  // ---- names

  void collect_names(const Graph& g) {
    for (const Value* v : g.inputs()) taken_.insert(v->debugName());
    g.block()->visit([&](const Node* n) {
      for (const Value* v : n->outputs()) taken_.insert(v->debugName());
      for (const Block* b : n->blocks())
        for (const Value* v : b->inputs()) taken_.insert(v->debugName());
    });
  }
  void match(const Value* a, const Value* b) { names_[b] = written(a->debugName()); }
  std::string name(const Value* v, bool second) {
    if (!second) return written(v->debugName());
    std::string& known = names_[v];
    if (!known.empty()) return known;
    std::string fresh = v->debugName();
    while (!taken_.insert(fresh).second) fresh += ".new";
    return known = written(fresh);
  }
  std::string formal(const Value* v, bool second) { return name(v, second) + " : " + v->type()->str(); }
  std::string formals(const std::vector<Value*>& values, bool second, const std::string& open, const std::string& close) {
    std::string out = open;
    for (std::size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + formal(values[i], second);
    return out + close;
  }
  std::string results(const std::vector<Value*>& values, bool second, const std::string& open) {
    std::string out = open;
    for (std::size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + name(values[i], second);
    return out + ")";
  }
  std::string line(const DiffEntry& e, bool second) {
    return formals(e.node->outputs(), second, "", " = ") + e.core + results(e.node->inputs(), second, "(");
  }

  // ---- lines

  void text(const std::string& a, const std::string& b, std::size_t depth, bool signature = false) {
    if (a != b && signature) out_.signature_equal = false;
    add(a == b ? Kind::Same : a.empty() ? Kind::New : b.empty() ? Kind::Gone : Kind::Changed, a, b, depth);
  }
  void add(Kind kind, const std::string& a, const std::string& b, std::size_t depth) {
    const std::string indent(2 * depth, ' ');
    out_.lines.push_back({kind, a.empty() ? a : indent + a, b.empty() ? b : indent + b});
  }

  std::vector<DiffEntry> entries(const Block* b, const Hashes& hashes) {
    std::vector<DiffEntry> out;
    for (Node* n : b->nodes()) out.push_back({n, kind_and_attributes(*n), hidden_of(*n), hashes.node(n)});
    return out;
  }

  // Constants of one type; of other nodes the kind says what they are.
  static bool same_sort(const Node& a, const Node& b) {
    return a.kind() == b.kind() && (a.kind() != prim::Constant || *a.outputs()[0]->type() == *b.outputs()[0]->type());
  }

  void block(const Block* first, const Block* second, std::size_t depth) {
    const std::vector<DiffEntry> a = first ? entries(first, hashes_a_) : std::vector<DiffEntry>(),
                                 b = second ? entries(second, hashes_b_) : std::vector<DiffEntry>();
    Pairs pairs = aligned(0, a.size(), 0, b.size(), [&](std::size_t i, std::size_t j) { return a[i].hash == b[j].hash; });
    refine(pairs, a.size(), b.size(), [&](std::size_t i, std::size_t j) { return a[i].core == b[j].core && a[i].hidden == b[j].hidden; });
    refine(pairs, a.size(), b.size(), [&](std::size_t i, std::size_t j) { return same_sort(*a[i].node, *b[j].node); });
    // Names first: a line shows values of the same block that stand behind it never, but those of nodes that only move do.
    for (const auto& [i, j] : pairs)
      for (std::size_t k = 0; k < std::min(a[i].node->outputs().size(), b[j].node->outputs().size()); ++k)
        match(a[i].node->outputs()[k], b[j].node->outputs()[k]);
    std::size_t i = 0, j = 0;
    pairs.emplace_back(a.size(), b.size());
    for (const auto& [next_a, next_b] : pairs) {
      for (; i < next_a; ++i) single(a[i], false, depth);
      for (; j < next_b; ++j) single(b[j], true, depth);
      if (i < a.size() && j < b.size()) pair(a[i++], b[j++], depth);
    }
  }
  template <class Same>
  static void refine(Pairs& pairs, std::size_t a, std::size_t b, Same&& same) {
    Pairs all;
    std::size_t i = 0, j = 0;
    pairs.emplace_back(a, b);
    for (const auto& [next_a, next_b] : pairs) {
      const Pairs inner = aligned(i, next_a, j, next_b, same);
      all.insert(all.end(), inner.begin(), inner.end());
      if (next_a < a || next_b < b) all.emplace_back(next_a, next_b);
      i = next_a + 1;
      j = next_b + 1;
    }
    pairs = std::move(all);
  }

  void single(const DiffEntry& e, bool second, std::size_t depth) {
    const std::string own = line(e, second);
    add(second ? Kind::New : Kind::Gone, second ? "" : own, second ? own : "", depth);
    ++(second ? out_.fresh : out_.gone);
    for (std::size_t k = 0; k < e.node->blocks().size(); ++k)
      second ? inner(nullptr, e.node->blocks()[k], k, depth) : inner(e.node->blocks()[k], nullptr, k, depth);
  }

  void pair(const DiffEntry& a, const DiffEntry& b, std::size_t depth) {
    const std::string one = line(a, false), other = line(b, true);
    const bool same = one == other && a.hidden == b.hidden;
    add(same ? Kind::Same : Kind::Changed, one, other, depth);
    ++(same ? out_.same : out_.changed);
    const auto &first = a.node->blocks(), &second = b.node->blocks();
    for (std::size_t k = 0; k < std::max(first.size(), second.size()); ++k)
      inner(k < first.size() ? first[k] : nullptr, k < second.size() ? second[k] : nullptr, k, depth);
  }

  void inner(const Block* a, const Block* b, std::size_t number, std::size_t depth) {
    const std::string open = "block" + std::to_string(number) + "(";
    if (a && b)
      for (std::size_t i = 0; i < std::min(a->inputs().size(), b->inputs().size()); ++i) match(a->inputs()[i], b->inputs()[i]);
    text(a ? formals(a->inputs(), false, open, "):") : "", b ? formals(b->inputs(), true, open, "):") : "", depth + 1);
    block(a, b, depth + 2);
    const std::string one = a ? results(a->outputs(), false, "-> (") : "", other = b ? results(b->outputs(), true, "-> (") : "";
    if (a && b && one != other) out_.signature_equal = false;
    text(one, other, depth + 2);
  }

  const Graph &before_, &after_;
  const Hashes hashes_a_, hashes_b_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<const Value*, std::string> names_;  // of the second graph's values
  GraphDiff out_;
};

}  // namespace

std::string GraphDiff::str() const {
  std::string out;
  for (const DiffLine& l : lines) {
    if (l.kind == Kind::Same) {
      out += "  " + l.before + "\n";
      continue;
    }
    if (!l.before.empty()) out += "- " + l.before + "\n";
    if (!l.after.empty()) out += "+ " + l.after + "\n";
  }
  return out;
}

GraphDiff diff_graphs(const Graph& before, const Graph& after) { return Comparison(before, after).run(); }

}  // namespace cresset::jit
