// The passes under PyTorch's names, for programs written to them. pass.h has the same passes with their options.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/canonicalize.h>
#include <cresset/ir/custom_passes.h>
#include <cresset/ir/module.h>

namespace cresset::jit {

// Those that give a truth value say whether they changed the graph.

CRESSET_API bool EliminateCommonSubexpression(const std::shared_ptr<Graph>& graph);

enum class DCESideEffectPolicy : uint8_t { DONT_DELETE_NODES_WITH_SIDE_EFFECTS, ALLOW_DELETING_NODES_WITH_SIDE_EFFECTS };
CRESSET_API void EliminateDeadCode(const std::shared_ptr<Graph>& graph,
                                   DCESideEffectPolicy policy = DCESideEffectPolicy::DONT_DELETE_NODES_WITH_SIDE_EFFECTS);
/// The graph of the block.
CRESSET_API void EliminateDeadCode(Block* block, bool recurse = true,
                                   DCESideEffectPolicy policy = DCESideEffectPolicy::DONT_DELETE_NODES_WITH_SIDE_EFFECTS);
/// `live` is given the values that are needed before something goes.
CRESSET_API void EliminateDeadCode(Block* block, std::function<void(const std::unordered_set<const Value*>&)> live,
                                   DCESideEffectPolicy policy = DCESideEffectPolicy::DONT_DELETE_NODES_WITH_SIDE_EFFECTS);

CRESSET_API bool ConstantPropagation(std::shared_ptr<Graph>& graph, bool ignore_custom_classes = false);
/// Nodes that take or give something with memory stay.
CRESSET_API bool ConstantPropagationImmutableTypes(std::shared_ptr<Graph>& graph);
/// What the node gives when its inputs are constants and running it now is as good as later.
CRESSET_API std::optional<Stack> runNodeIfInputsAreConstant(const Node* node, bool ignore_custom_classes = false,
                                                            AliasDb* aliases = nullptr);
/// Constants stand at the front of the graph; one that stood behind a use is in front of it then.
CRESSET_API void ConstantPooling(const std::shared_ptr<Graph>& graph);

/// Without shapes: what types say of tensors is not looked at.
CRESSET_API bool PeepholeOptimize(const std::shared_ptr<Graph>& graph, bool disable_shape_peepholes = false);
CRESSET_API bool PeepholeOptimize(Block* block, bool disable_shape_peepholes = false);
CRESSET_API bool FuseAddMM(const std::shared_ptr<Graph>& graph);
CRESSET_API void FuseLinear(std::shared_ptr<Graph>& graph);

CRESSET_API void EliminateRedundantGuards(std::shared_ptr<Graph> graph);
CRESSET_API void EliminateExceptions(std::shared_ptr<Graph>& graph);

CRESSET_API bool RemoveListMutation(const std::shared_ptr<Graph>& graph);
/// Nodes for which the filter says no stay.
CRESSET_API bool RemoveTensorMutation(const std::shared_ptr<Graph>& graph, const std::function<bool(Node*)>& filter = nullptr);
/// Runs of nodes that neither write nor see writes become prim::FunctionalGraph nodes, of at least two nodes each.
CRESSET_API void CreateFunctionalGraphs(const std::shared_ptr<Graph>& graph);
CRESSET_API void InlineFunctionalGraphs(const std::shared_ptr<Graph>& graph);

CRESSET_API void Inline(Graph& graph);
CRESSET_API void LowerSimpleTuples(const std::shared_ptr<Graph>& graph);
/// Raises for tuples that cannot go.
CRESSET_API void LowerAllTuples(const std::shared_ptr<Graph>& graph);
CRESSET_API bool UnrollLoops(std::shared_ptr<Graph>& graph);
CRESSET_API bool UnrollConstantLoops(std::shared_ptr<Graph>& graph);
CRESSET_API void EraseShapeInformation(const std::shared_ptr<Graph>& graph);
CRESSET_API void PropagateInputShapes(const std::shared_ptr<Graph>& graph);
/// Numbers become tensors without dimensions, and conversions between the two go: for exporters that know tensors only.
CRESSET_API void EraseNumberTypes(const std::shared_ptr<Graph>& graph);
CRESSET_API void EraseNumberTypesOnBlock(Block* block);
CRESSET_API std::shared_ptr<Graph> Canonicalize(const std::shared_ptr<Graph>& graph, bool keep_unique_names = true);
CRESSET_API void removeDropout(std::shared_ptr<Graph>& graph);
CRESSET_API void removeDropout(Module& module);

/// As the one of lowering.h; parameters stay attributes when they are to be preserved. Interfaces are frozen like other modules.
CRESSET_API Module freeze_module(const Module& module, std::vector<std::string> preserved, bool freeze_interfaces,
                                 bool preserve_parameters = false);
inline Module freeze_module(const Module& module) { return freeze_module(module, {}, true); }
/// The module itself becomes the frozen one.
CRESSET_API void freeze_module_inplace(Module* module, std::vector<std::string> preserved = {}, bool freeze_interfaces = true,
                                       bool preserve_parameters = false);
/// The graph without self and the values of the inputs that attributes became.
CRESSET_API std::pair<std::shared_ptr<Graph>, std::vector<IValue>> LowerGraph(Graph& graph, const ModulePtr& self);

}  // namespace cresset::jit
