// Points-to graph of alias analysis: elements with edges "may be the same as" and "contains".
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cresset::jit {

/// A sorted set of element numbers.
using Locations = std::vector<uint32_t>;

inline bool intersects(const Locations& a, const Locations& b) {
  auto i = a.begin(), j = b.begin();
  while (i != a.end() && j != b.end()) {
    if (*i == *j) return true;
    *i < *j ? ++i : ++j;
  }
  return false;
}
inline void unite(Locations& into, const Locations& more) {
  if (more.empty()) return;
  Locations out;
  out.reserve(into.size() + more.size());
  std::set_union(into.begin(), into.end(), more.begin(), more.end(), std::back_inserter(out));
  into = std::move(out);
}

class MemoryGraph {
 public:
  uint32_t add() {
    elements_.emplace_back();
    return static_cast<uint32_t>(elements_.size() - 1);
  }
  void point(uint32_t from, uint32_t to) {
    if (from == to) return;
    auto& edges = elements_[from].points_to;
    if (std::find(edges.begin(), edges.end(), to) == edges.end()) edges.push_back(to);
  }
  void contain(uint32_t container, uint32_t element) {
    auto& edges = elements_[container].contains;
    if (std::find(edges.begin(), edges.end(), element) == edges.end()) edges.push_back(element);
  }
  std::size_t size() const { return elements_.size(); }
  const std::vector<uint32_t>& targets(uint32_t e) const { return elements_[e].points_to; }

  /// The ends of all points-to paths (in cycles: every member), computed once. The graph must be complete.
  const Locations& locations(uint32_t e) {
    Element& x = elements_[e];
    if (!x.resolved) x.locations = reach(e, false), x.resolved = true;
    return x.locations;
  }
  /// The same, with all that is contained, and contained in that.
  const Locations& reachable(uint32_t e) {
    Element& x = elements_[e];
    if (!x.reach_resolved) x.reachable = reach(e, true), x.reach_resolved = true;
    return x.reachable;
  }
  void forget() {
    for (Element& e : elements_) e.resolved = e.reach_resolved = false;
  }

 private:
  struct Element {
    std::vector<uint32_t> points_to, contains;
    Locations locations, reachable;
    bool resolved = false, reach_resolved = false;
  };
  // A cycle of points-to edges without an end (values carried by a loop that starts with nothing) stands for all its members.
  Locations reach(uint32_t start, bool through_contents) {
    Locations out;
    std::vector<uint32_t> stack{start};
    std::vector<uint32_t> seen{start};
    const auto visit = [&](uint32_t e) {
      // Small sets mostly; large ones are kept sorted by insertion.
      const auto at = std::lower_bound(seen.begin(), seen.end(), e);
      if (at != seen.end() && *at == e) return;
      seen.insert(at, e);
      stack.push_back(e);
    };
    while (!stack.empty()) {
      const uint32_t e = stack.back();
      stack.pop_back();
      const Element& x = elements_[e];
      if (x.points_to.empty()) out.push_back(e);
      for (uint32_t t : x.points_to) visit(t);
      if (through_contents)
        for (uint32_t c : x.contains) visit(c);
    }
    if (out.empty()) return seen;
    std::sort(out.begin(), out.end());
    return out;
  }

  std::vector<Element> elements_;
};

}  // namespace cresset::jit
