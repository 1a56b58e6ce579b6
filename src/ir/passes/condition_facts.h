// What the conditions of a graph say of numbers that are compared with constants.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// A number is `number` in an arm of an If and, where the other arm does not come to its end, behind the If.
struct NumberFact {
  const Node* branch;
  std::size_t arm;
  int64_t number;
};
using NumberFacts = std::unordered_map<const Value*, std::vector<NumberFact>>;

/// What `v == n` and `v != n` say, with `not`, `and` and `or`. `subject` gives the value that a fact about v is about, null for none.
NumberFacts number_facts(const Graph& graph, const std::function<const Value*(const Value*)>& subject);
/// Does the node run only where the fact holds?
bool holds_at(const NumberFact& fact, Node* n);

}  // namespace cresset::jit
