// Points-to graph of alias analysis: elements with edges "may be the same as" and "contains".
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace cresset::jit {

/// A sorted set of element numbers, owned and looked at.
using Locations = std::vector<uint32_t>;
using LocationView = std::span<const uint32_t>;

inline bool intersects(LocationView a, LocationView b) {
  // A value against all memory that is written: look the few up among the many.
  constexpr std::size_t kMuchLarger = 16;
  if (a.size() * kMuchLarger < b.size() || b.size() * kMuchLarger < a.size()) {
    const LocationView few = a.size() < b.size() ? a : b, many = a.size() < b.size() ? b : a;
    return std::any_of(few.begin(), few.end(), [&](uint32_t e) { return std::binary_search(many.begin(), many.end(), e); });
  }
  auto i = a.begin(), j = b.begin();
  while (i != a.end() && j != b.end()) {
    if (*i == *j) return true;
    *i < *j ? ++i : ++j;
  }
  return false;
}
inline void unite(Locations& into, LocationView more) {
  if (more.empty() || (more.size() == 1 && std::binary_search(into.begin(), into.end(), more[0]))) return;
  Locations out;
  out.reserve(into.size() + more.size());
  std::set_union(into.begin(), into.end(), more.begin(), more.end(), std::back_inserter(out));
  into = std::move(out);
}

/// Large graphs have an element for each value, so all edges lie in one array, and so do all answers.
class MemoryGraph {
 public:
  void reserve(std::size_t elements) {
    elements_.reserve(elements);
    edges_.reserve(elements);
  }
  uint32_t add() {
    elements_.emplace_back();
    return static_cast<uint32_t>(elements_.size() - 1);
  }
  /// The same for one that gets no edges. What was answered already stays: it may come between questions.
  uint32_t add_alone() {
    const uint32_t e = add();
    for (Answers* answers : {&own_, &deep_}) {
      if (answers->set_of.size() != e || answers->sets.empty()) continue;
      answers->set_of.push_back(static_cast<uint32_t>(answers->sets.size()));
      answers->sets.push_back({answers->members.size(), 1});
      answers->members.push_back(e);
    }
    return e;
  }
  void point(uint32_t from, uint32_t to) {
    if (from != to) connect(elements_[from].points_to, to);
  }
  void contain(uint32_t container, uint32_t element) { connect(elements_[container].contains, element); }

  /// The memory that an element may be: the ends of all points-to paths. The graph must be complete before the first question.
  LocationView locations(uint32_t e) { return answer(own_, e, false); }
  /// The same, with all that is contained, and contained in that.
  LocationView reachable(uint32_t e) { return answer(deep_, e, true); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Edges of an element are a list through the array.
  struct Element {
    uint32_t points_to = kNone, contains = kNone;
  };
  struct Edge {
    uint32_t to, next;
  };
  void connect(uint32_t& list, uint32_t to) {
    edges_.push_back({to, list});
    list = static_cast<uint32_t>(edges_.size() - 1);
  }

  // Elements on a common cycle have the same answer: one set a component. A component that only hands on another's set shares it.
  struct Answers {
    std::vector<uint32_t> set_of;
    struct Range {
      std::size_t begin, size;
    };
    std::vector<Range> sets;
    Locations members;
    LocationView view(uint32_t set) const { return {members.data() + sets[set].begin, sets[set].size}; }
  };

  LocationView answer(Answers& answers, uint32_t e, bool with_contents) {
    if (answers.set_of.size() != elements_.size()) solve(answers, with_contents);
    return answers.view(answers.set_of[e]);
  }

  // Where a walk over the edges of an element stands.
  struct Frame {
    uint32_t element;
    uint32_t edge;
    bool contents_left;
  };
  Frame start(uint32_t e, bool with_contents) const { return {e, elements_[e].points_to, with_contents}; }
  // The next neighbour, or kNone behind the last.
  uint32_t advance(Frame& f) const {
    if (f.edge == kNone && f.contents_left) {
      f.edge = elements_[f.element].contains;
      f.contents_left = false;
    }
    if (f.edge == kNone) return kNone;
    const Edge& edge = edges_[f.edge];
    f.edge = edge.next;
    return edge.to;
  }

  // Tarjan's components with an explicit stack; they come out behind all that they reach.
  void solve(Answers& answers, bool with_contents) {
    const auto n = static_cast<uint32_t>(elements_.size());
    answers.set_of.assign(n, kNone);
    answers.sets.clear();
    answers.members.clear();
    std::vector<uint32_t> index(n, kNone), low(n, 0), open;
    std::vector<Frame> stack;
    uint32_t counter = 0;
    const auto enter = [&](uint32_t e) {
      stack.push_back(start(e, with_contents));
      index[e] = low[e] = counter++;
      open.push_back(e);
    };
    for (uint32_t first = 0; first < n; ++first) {
      if (index[first] != kNone) continue;
      enter(first);
      while (!stack.empty()) {
        const uint32_t e = stack.back().element, to = advance(stack.back());
        if (to != kNone) {
          if (index[to] == kNone)
            enter(to);
          else if (answers.set_of[to] == kNone)
            low[e] = std::min(low[e], index[to]);
          continue;
        }
        stack.pop_back();
        if (!stack.empty()) low[stack.back().element] = std::min(low[stack.back().element], low[e]);
        if (low[e] == index[e]) close(answers, open, e, with_contents);
      }
    }
  }

  void close(Answers& answers, std::vector<uint32_t>& open, uint32_t root, bool with_contents) {
    const auto first = std::find(open.rbegin(), open.rend(), root).base() - 1;
    const LocationView members(first, open.end());
    Locations& own = component_own_;                     // memory of the component itself
    std::vector<uint32_t>& others = component_reaches_;  // sets that it reaches
    own.clear();
    others.clear();
    for (const uint32_t m : members) {
      if (elements_[m].points_to == kNone) own.push_back(m);
      Frame f = start(m, with_contents);
      for (uint32_t to = advance(f); to != kNone; to = advance(f))
        if (const uint32_t set = answers.set_of[to]; set != kNone && (others.empty() || others.back() != set)) others.push_back(set);
    }
    uint32_t set = static_cast<uint32_t>(answers.sets.size());
    if (own.empty() && others.size() == 1) {
      set = others[0];
    } else {
      // A cycle without an end (values that a loop carries and that start with nothing) stands for all its members.
      if (own.empty() && others.empty()) own.assign(members.begin(), members.end());
      std::sort(own.begin(), own.end());
      for (const uint32_t other : others) unite(own, answers.view(other));
      answers.sets.push_back({answers.members.size(), own.size()});
      answers.members.insert(answers.members.end(), own.begin(), own.end());
    }
    for (const uint32_t m : members) answers.set_of[m] = set;
    open.erase(first, open.end());
  }

  std::vector<Element> elements_;
  std::vector<Edge> edges_;
  Answers own_, deep_;
  Locations component_own_;  // of close(), kept for their memory
  std::vector<uint32_t> component_reaches_;
};

}  // namespace cresset::jit
