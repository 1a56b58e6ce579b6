// Patterns: finding a small graph in a larger one, and replacing it.
//
// A pattern is a graph with one block, anchored at its last node. Rules of a match: same kinds, numbers of operands and results, attributes
// (numbers exactly; strings of the pattern are regular expressions over the whole text); intermediate values have no other users; a value
// that occurs twice is one value; all nodes lie in one block, constants excepted. A rewriter leaves nodes that carry a fallback mark
// (attribute to_compile) alone unless it is told otherwise; findPatternMatches sees them unless it is told otherwise.
#pragma once

#include <cresset/ir/ir.h>

namespace cresset::jit {

class Module;

struct Match {
  Node* anchor = nullptr;
  std::unordered_map<const Node*, Node*> nodes_map;  // pattern to graph
  std::unordered_map<const Value*, Value*> values_map;
};
/// Decides about a match; receives the pattern's values by name: match.values_map.at(names.at("x")) is what %x matches.
using MatchFilter = std::function<bool(const Match& match, const std::unordered_map<std::string, Value*>& names)>;

/// Matches in the order of the program, in all blocks. They may have nodes in common.
CRESSET_API std::vector<Match> findPatternMatches(const Graph& pattern, Graph& graph, bool skip_marked = false);
CRESSET_API std::optional<Match> match_at(const Graph& pattern, Node* anchor, bool skip_marked = false);

struct RewriteOptions {
  /// The rules keep the meaning as they stand. Off, a match is left alone where the meaning would change (see runOnGraph).
  bool trust_rules = false;
  /// Nodes that carry a fallback mark match nothing.
  bool skip_marked = true;
};

class CRESSET_API SubgraphRewriter {
 public:
  explicit SubgraphRewriter(RewriteOptions options = {}) : options_(options) {}
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
  /// On the graphs of all methods of the module and of those below it; gives the module.
  Module runOnModule(const Module& module);

 private:
  struct Rule {
    std::shared_ptr<Graph> pattern, replacement;
    std::unordered_map<std::string, Value*> pattern_values, replacement_values;
    std::unordered_map<const Node*, const Node*> places;  // replacement to pattern
  };
  struct Run;
  RewriteOptions options_;
  std::vector<Rule> rules_;
};

/// As PyTorch's: rules are trusted, and marked nodes are nodes like others.
class TrustingSubgraphRewriter : public SubgraphRewriter {
 public:
  TrustingSubgraphRewriter() : SubgraphRewriter({.trust_rules = true, .skip_marked = false}) {}
};

}  // namespace cresset::jit
