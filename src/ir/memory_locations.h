// Points-to graph of alias analysis: elements with edges "may be the same as" and "contains".
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace cresset::jit {

/// A sorted set of element numbers.
using Locations = std::vector<uint32_t>;

inline bool intersects(const Locations& a, const Locations& b) {
  // A value against all memory that is written: look the few up among the many.
  constexpr std::size_t kMuchLarger = 16;
  if (a.size() * kMuchLarger < b.size() || b.size() * kMuchLarger < a.size()) {
    const Locations &few = a.size() < b.size() ? a : b, &many = a.size() < b.size() ? b : a;
    return std::any_of(few.begin(), few.end(), [&](uint32_t e) { return std::binary_search(many.begin(), many.end(), e); });
  }
  auto i = a.begin(), j = b.begin();
  while (i != a.end() && j != b.end()) {
    if (*i == *j) return true;
    *i < *j ? ++i : ++j;
  }
  return false;
}
inline void unite(Locations& into, const Locations& more) {
  if (more.empty() || (more.size() == 1 && std::binary_search(into.begin(), into.end(), more[0]))) return;
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
    if (from != to) elements_[from].points_to.push_back(to);
  }
  void contain(uint32_t container, uint32_t element) { elements_[container].contains.push_back(element); }

  /// The memory that an element may be: the ends of all points-to paths. The graph must be complete before the first question.
  const Locations& locations(uint32_t e) { return answer(own_, e, false); }
  /// The same, with all that is contained, and contained in that.
  const Locations& reachable(uint32_t e) { return answer(deep_, e, true); }

 private:
  struct Element {
    std::vector<uint32_t> points_to, contains;
  };
  // Elements on a common cycle have the same answer: one set a component.
  struct Answers {
    std::vector<uint32_t> component;
    std::vector<Locations> sets;
  };

  const Locations& answer(Answers& answers, uint32_t e, bool with_contents) {
    if (answers.component.size() != elements_.size()) solve(answers, with_contents);
    return answers.sets[answers.component[e]];
  }

  // Tarjan's components with an explicit stack; they come out behind all that they reach.
  void solve(Answers& answers, bool with_contents) {
    constexpr uint32_t kNone = UINT32_MAX;
    const auto n = static_cast<uint32_t>(elements_.size());
    answers.component.assign(n, kNone);
    answers.sets.clear();
    std::vector<uint32_t> index(n, kNone), low(n, 0), members;
    struct Frame {
      uint32_t element;
      std::size_t next;
    };
    std::vector<Frame> stack;
    uint32_t counter = 0;
    const auto edge = [&](uint32_t e, std::size_t i) -> uint32_t {
      const Element& x = elements_[e];
      if (i < x.points_to.size()) return x.points_to[i];
      i -= x.points_to.size();
      return with_contents && i < x.contains.size() ? x.contains[i] : kNone;
    };
    for (uint32_t start = 0; start < n; ++start) {
      if (index[start] != kNone) continue;
      stack.push_back({start, 0});
      while (!stack.empty()) {
        Frame& f = stack.back();
        const uint32_t e = f.element;
        if (f.next == 0) {
          index[e] = low[e] = counter++;
          members.push_back(e);
        }
        const uint32_t to = edge(e, f.next++);
        if (to != kNone) {
          if (index[to] == kNone)
            stack.push_back({to, 0});
          else if (answers.component[to] == kNone)
            low[e] = std::min(low[e], index[to]);
          continue;
        }
        stack.pop_back();
        if (!stack.empty()) low[stack.back().element] = std::min(low[stack.back().element], low[e]);
        if (low[e] == index[e]) close(answers, members, e, edge);
      }
    }
  }

  template <class F>
  void close(Answers& answers, std::vector<uint32_t>& members, uint32_t root, const F& edge) {
    const auto number = static_cast<uint32_t>(answers.sets.size());
    const auto first = std::find(members.rbegin(), members.rend(), root).base() - 1;
    Locations set;
    for (auto m = first; m != members.end(); ++m) answers.component[*m] = number;
    for (auto m = first; m != members.end(); ++m) {
      if (elements_[*m].points_to.empty()) unite(set, {*m});
      for (std::size_t i = 0; edge(*m, i) != UINT32_MAX; ++i)
        if (const uint32_t c = answers.component[edge(*m, i)]; c != number) unite(set, answers.sets[c]);
    }
    // A cycle without an end (values that a loop carries and that start with nothing) stands for all its members.
    if (set.empty()) {
      set.assign(first, members.end());
      std::sort(set.begin(), set.end());
    }
    answers.sets.push_back(std::move(set));
    members.erase(first, members.end());
  }

  std::vector<Element> elements_;
  Answers own_, deep_;
};

}  // namespace cresset::jit
