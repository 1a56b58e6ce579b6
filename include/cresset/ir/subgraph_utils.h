// Nodes that hold other nodes in a graph of their own (attribute Subgraph): putting nodes in, and taking them out again.
//
// Inputs of the node are those of its graph, in order, and so are its outputs. Constants that a node needs are copied into the graph.
// Moving a node into a subgraph must be legal: nothing between the two may depend on it or write what it reads (AliasDb says so).
#pragma once

#include <string>

#include <cresset/ir/alias_analysis.h>

namespace cresset::jit::SubgraphUtils {

CRESSET_API bool hasSubgraph(const Node* n);
CRESSET_API std::shared_ptr<Graph> getSubgraph(Node* n);

/// A node of this kind in the place of `n`, with `n` as the only node in its graph.
CRESSET_API Node* createSingletonSubgraph(Node* n, Symbol kind);
/// Moves a node of the same block into a subgraph: to its front when it stands in front of the subgraph, else to its end. Of a node with a
/// subgraph of the same kind it moves what is in it. The node goes, unless `destroy` says otherwise.
CRESSET_API void mergeNodeIntoSubgraph(Node* n, Node* subgraph, bool destroy = true);
// The same with an analysis that stays valid.
CRESSET_API Node* createSingletonSubgraphAndUpdateAliasing(Node* n, Symbol kind, AliasDb& aliases);
CRESSET_API void mergeNodeIntoSubgraphAndUpdateAliasing(Node* n, Node* subgraph, AliasDb& aliases);

/// Puts what is in the subgraph into its place; the node goes.
CRESSET_API void unmergeSubgraph(Node* subgraph);
/// Takes nodes out of the end of a subgraph as long as one of its outputs may alias another output or an input. Gives whether any did.
CRESSET_API bool unmergeAliasedOutputs(Node* subgraph);
/// The same for outputs that may alias inputs only.
CRESSET_API bool unmergeOutputsAlisingInputs(Node* subgraph);
CRESSET_API bool unmergeAliasedOutputsAndUpdateAliasing(Node* subgraph, AliasDb& aliases);

/// "fused_mul_add": the kinds of the graph's nodes behind a prefix. One longer than `longest` is cut, with a number that stands for the
/// rest.
CRESSET_API std::string generateNameForGraph(const std::shared_ptr<Graph>& graph, std::size_t longest = 40,
                                             const std::string& prefix = "fused");

}  // namespace cresset::jit::SubgraphUtils

namespace cresset::jit {

/// Is the value only asked for its size?
CRESSET_API bool usedOnlyInSize(const Value* v);
/// The common shape of shapes (lists of ints), as a new node where the graph inserts; `aliases`, where given, learns of it. There must be
/// one.
CRESSET_API Value* broadcastSizes(ArrayRef<Value*> sizes, AliasDb* aliases);

}  // namespace cresset::jit
