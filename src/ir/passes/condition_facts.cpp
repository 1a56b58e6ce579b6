// Conditions `v == n` and what they are made of.
#include "ir/passes/condition_facts.h"

#include <algorithm>

#include "ir/rewrite/pass_tools.h"

namespace cresset::jit {
namespace {

using Subject = std::function<const Value*(const Value*)>;
using Numbers = std::vector<std::pair<const Value*, int64_t>>;

// What is which number when the flag is true (false). Ifs that give flags are what `and` and `or` are compiled to: an arm with the other
// flag was not the one.
Numbers numbers_when(const Value* flag, bool is, const Subject& subject, int depth = 0) {
  static const Symbol eq = Symbol::aten("eq"), ne = Symbol::aten("ne"), no = Symbol::aten("__not__");
  constexpr int kDeepest = 32;
  const Node* n = flag->node();
  if (depth > kDeepest) return {};
  if (n->kind() == no) return numbers_when(n->input(0), !is, subject, depth + 1);
  Numbers out;
  if ((n->kind() == eq || n->kind() == ne) && n->inputs().size() == 2) {
    for (std::size_t i = 0; i < 2; ++i) {
      const bool same = (n->kind() == eq) == is;
      if (const auto other = constant_as<bool>(n->input(1 - i))) return numbers_when(n->input(i), same == *other, subject, depth + 1);
      const auto number = constant_as<int64_t>(n->input(1 - i));
      const Value* about = same && number ? subject(n->input(i)) : nullptr;
      if (about) out.emplace_back(about, *number);
    }
    return out;
  }
  if (n->kind() != prim::If) return out;
  for (const std::size_t arm : {0, 1}) {
    const auto known = constant_as<bool>(n->blocks()[1 - arm]->outputs()[flag->offset()]);
    if (!known || *known == is) continue;
    for (const Numbers& more : {numbers_when(n->input(0), arm == 0, subject, depth + 1),
                                numbers_when(n->blocks()[arm]->outputs()[flag->offset()], is, subject, depth + 1)})
      out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  return out;
}

// Whatever runs into the block raises.
bool never_ends(const Block* block) {
  for (const Node* n : block->nodes()) {
    if (n->kind() == prim::RaiseException) return true;
    if (n->kind() == prim::If && never_ends(n->blocks()[0]) && never_ends(n->blocks()[1])) return true;
  }
  return false;
}

std::size_t arm_of(const Node* branch, const Block* block) { return branch->blocks()[0] == block ? 0 : 1; }

}  // namespace

NumberFacts number_facts(const Graph& graph, const Subject& subject) {
  NumberFacts out;
  graph.block()->visit([&](const Node* branch) {
    if (branch->kind() != prim::If) return;
    for (const bool is : {true, false})
      for (const auto& [about, number] : numbers_when(branch->input(0), is, subject))
        out[about].push_back({branch, is ? std::size_t{0} : std::size_t{1}, number});
  });
  return out;
}

bool holds_at(const NumberFact& fact, Node* n) {
  if (in_block(n, fact.branch->blocks()[fact.arm])) return true;
  // Behind the If, and behind those around it whose other arm raises too.
  const Node* branch = fact.branch;
  for (std::size_t arm = fact.arm; never_ends(branch->blocks()[1 - arm]);) {
    const Block* around = branch->owningBlock();
    if (const Node* here = in_block(n, around)) return branch->isBefore(here);
    branch = around->owningNode();
    if (!branch || branch->kind() != prim::If) return false;
    arm = arm_of(branch, around);
  }
  return false;
}

}  // namespace cresset::jit
