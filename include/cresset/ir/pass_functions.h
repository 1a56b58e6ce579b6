// The passes under PyTorch's names, for programs written to them. pass.h has the same passes with their options.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <cresset/ir/alias_analysis.h>
#include <cresset/ir/canonicalize.h>
#include <cresset/ir/custom_passes.h>
#include <cresset/ir/lowering.h>
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
/// Constants stand at the front of the graph, as if one after another were moved there; one that stood behind a use is in front of it then.
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
/// Runs of nodes that neither write nor see writes become prim::FunctionalGraph nodes, of at least six nodes each.
CRESSET_API void CreateFunctionalGraphs(const std::shared_ptr<Graph>& graph);
CRESSET_API void InlineFunctionalGraphs(const std::shared_ptr<Graph>& graph);

/// aten::cat and aten::stack of lists as prim::VarConcat and prim::VarStack of their members; with the second form changes of lists go into
/// their construction first. UseVariadicOp does it for any operator whose first argument is a list.
CRESSET_API bool UseVariadicOp(const std::shared_ptr<Graph>& graph, Symbol op, Symbol variadic);
CRESSET_API bool RemoveListMutationAndUseVariadicOp(const std::shared_ptr<Graph>& graph, Symbol op, Symbol variadic);
CRESSET_API bool UseVariadicCat(const std::shared_ptr<Graph>& graph);
CRESSET_API bool RemoveListMutationAndUseVariadicCat(const std::shared_ptr<Graph>& graph);
CRESSET_API bool UseVariadicStack(const std::shared_ptr<Graph>& graph);
CRESSET_API bool RemoveListMutationAndUseVariadicStack(const std::shared_ptr<Graph>& graph);
/// A prim::VarConcat whose first or last parts another one concatenates takes that one's result.
CRESSET_API bool EliminateConcatCommonInputs(const std::shared_ptr<Graph>& graph);
/// aten::cat of what aten::cat gives along the same dimension, and that nothing else needs, becomes one.
CRESSET_API bool CombineConcats(const std::shared_ptr<Graph>& graph);
/// aten::cat of known sizes becomes writes of its parts into one buffer; what is then computed twice goes.
CRESSET_API void ExpandConcatAndEliminateRedundancy(const std::shared_ptr<Graph>& graph);
/// Operators with a decomposition, a graph of others that computes the same, become it. Those of var are known; a program registers more,
/// of operators that write nothing: the graph's inputs are the arguments, its outputs the results.
CRESSET_API void RunDecompositions(std::shared_ptr<Graph> graph);
CRESSET_API void RegisterDecomposition(const FunctionSchema& schema, std::shared_ptr<Graph> graph);
CRESSET_API std::optional<std::shared_ptr<Graph>> GetDecomposition(const FunctionSchema& schema);
/// An If that only chooses between two values becomes prim::IfThenElse.
CRESSET_API bool AddIfThenElseOp(const std::shared_ptr<Graph>& graph);

/// Expansions with the flag `implicit`, which tracers and compilers put in, go.
CRESSET_API void RemoveExpands(const std::shared_ptr<Graph>& graph);
/// Pointwise operators on constant tensors without dimensions take a number instead, where promotion is the same; what takes a chunk()'s
/// list apart becomes a prim::ConstantChunk.
CRESSET_API void CanonicalizeOps(const std::shared_ptr<Graph>& graph);
/// addmm whose factors are 1 becomes mm and add. (Norms stay, as PyTorch leaves them on the CPU.)
CRESSET_API void DecomposeOps(std::shared_ptr<Graph>& graph);
/// A sum of at least four products of matrices becomes one prim::MMTreeReduce, which multiplies once where sizes allow it.
CRESSET_API void BatchMM(std::shared_ptr<Graph>& graph);
/// Forked graphs whose futures are only waited for stand where they were forked.
CRESSET_API void InlineForkWait(const std::shared_ptr<Graph>& graph);

/// A convolution and the batch norm behind it.
struct ConvBNParameters {
  Tensor conv_w, conv_b, bn_rm, bn_rv;
  double bn_eps = 0.0;
  Tensor bn_w, bn_b;
};
/// Weight and bias of the convolution that does both: w * s and (b - mean) * s + bn_b, where s = bn_w / sqrt(var + eps) for each channel of
/// the result.
CRESSET_API std::tuple<Tensor, Tensor> computeUpdatedConvWeightAndBias(const ConvBNParameters& p);

/// A linear layer and the batch norm behind it.
struct LinearBNParameters {
  Tensor linear_w, linear_b, bn_rm, bn_rv;
  double bn_eps = 0.0;
  Tensor bn_w, bn_b;
};
/// The same for the layer that does both; s is one number for each row of w.
CRESSET_API std::tuple<Tensor, Tensor> computeUpdatedLinearWeightAndBias(const LinearBNParameters& p);
/// Raises where a call of Python writes its arguments.
CRESSET_API void CheckInplace(std::shared_ptr<Graph>& graph);
/// Operators that write give a new tensor instead, where nobody can see the difference.
CRESSET_API void RemoveInplaceOps(const std::shared_ptr<Graph>& graph);
/// Types of tensors say nothing but that.
CRESSET_API void RemoveTensorTypeSpecializations(std::shared_ptr<Graph>& graph);
/// prim::profile nodes go; what they saw of tensors that a graph of this type may be compiled for stays in the types of their operands.
CRESSET_API void RemoveProfileNodesAndSpecializeTypes(std::shared_ptr<Graph>& graph);

/// Activations that have a form that writes; true for those that give integers another dtype.
CRESSET_API extern const std::unordered_map<Symbol, bool> activation_type_promotion_mapping;
/// Activations of values that nothing else needs, and whose memory nobody else sees, write them: for graphs that run without gradients.
class CRESSET_API FunctionalToInplaceRewriter {
 public:
  explicit FunctionalToInplaceRewriter(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) {}
  /// In the block and those in it; whether anything changed.
  bool FunctionalToInplace(Block* block);

 private:
  std::shared_ptr<Graph> graph_;
};

/// What the script compiler does to a finished graph: known arithmetic is done, constants stand once, tuples that are only taken apart go,
/// and so does code without use.
CRESSET_API void runCleanupPasses(const std::shared_ptr<Graph>& graph);

CRESSET_API void Inline(Graph& graph);
CRESSET_API void LowerSimpleTuples(const std::shared_ptr<Graph>& graph);
/// Raises for tuples that cannot go.
CRESSET_API void LowerAllTuples(const std::shared_ptr<Graph>& graph);
CRESSET_API bool UnrollLoops(std::shared_ptr<Graph>& graph);
CRESSET_API bool UnrollConstantLoops(std::shared_ptr<Graph>& graph);
/// Tuples that are constructed get the types of their members.
CRESSET_API void RefineTupleTypes(std::shared_ptr<Graph>& graph);
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
/// The module itself becomes the frozen one.
CRESSET_API void freeze_module_inplace(Module* module, std::vector<std::string> preserved = {}, bool freeze_interfaces = true,
                                       bool preserve_parameters = false);
/// Puts a function's graph (with use_graph = false the one that runs, or `body`) into the place of a node that calls it: the node goes, and
/// what was put there knows where it comes from. Gives what takes the place of the node's outputs.
CRESSET_API std::vector<Value*> inlineCallTo(Node* to_replace, GraphFunction* callee, bool use_graph = true);
CRESSET_API std::vector<Value*> inlineCallTo(Node* to_replace, GraphFunction* callee, Graph* body);
/// The graph without self and the values of the inputs that attributes became.
CRESSET_API std::pair<std::shared_ptr<Graph>, std::vector<IValue>> LowerGraph(Graph& graph, const ModulePtr& self);

}  // namespace cresset::jit
