// Patterns: finding a small graph in a larger one, and replacing it.
//
// A pattern is a graph with one block, anchored at its last node. Rules of a match: same kinds, numbers of operands and results, attributes
// (numbers exactly; strings of the pattern are regular expressions over the whole text); intermediate values have no other users; a value
// that occurs twice is one value; all nodes lie in one block, constants excepted. Nodes that carry a fallback mark (attribute to_compile)
// match nothing.
#pragma once

#include <cresset/ir/ir.h>

namespace cresset::jit {

struct Match {
  Node* anchor = nullptr;
  std::unordered_map<const Node*, Node*> nodes;  // pattern to graph
  std::unordered_map<const Value*, Value*> values;
};
/// Decides about a match; receives the pattern's values by name ("x" of %x).
using MatchFilter = std::function<bool(const Match&, const std::unordered_map<std::string, Value*>&)>;

/// Matches in the order of the program, in all blocks, none sharing a node with another.
CRESSET_API std::vector<Match> findPatternMatches(const Graph& pattern, Graph& graph);
CRESSET_API std::optional<Match> match_at(const Graph& pattern, Node* anchor);

class CRESSET_API SubgraphRewriter {
 public:
  /// Both graphs have the same inputs and outputs, in the same order. With `values`, nodes that define a value named first in the
  /// replacement take place and scope of the node that defines the value named second in the pattern; others those of the anchor.
  void RegisterRewritePattern(const std::string& pattern, const std::string& replacement,
                              std::vector<std::pair<std::string, std::string>> values = {});
  /// Rewrites until nothing matches any more (a replacement is not rewritten by its own rule). Gives the number of rewrites.
  ///
  /// The replacement stands in the block of the anchor, where all operands are defined and no result is used yet; its results take the
  /// types and names of the replaced ones. A match is left alone when the meaning would change: something in between writes what it
  /// reads, a write of the pattern is visible elsewhere and the replacement does not write, or a result would become (or cease to be) an
  /// alias that somebody can see. Operators without a schema are taken as pure here: the rule says what they do.
  std::size_t runOnGraph(const std::shared_ptr<Graph>& graph, const std::vector<MatchFilter>& filters = {});
  std::size_t runOnGraph(const std::shared_ptr<Graph>& graph, const MatchFilter& filter) {
    return runOnGraph(graph, std::vector<MatchFilter>{filter});
  }

 private:
  struct Rule {
    std::shared_ptr<Graph> pattern, replacement;
    std::unordered_map<std::string, Value*> pattern_values, replacement_values;
    std::unordered_map<const Node*, const Node*> places;  // replacement to pattern
  };
  struct Run;
  std::vector<Rule> rules_;
};

}  // namespace cresset::jit
