// torch/csrc/jit: graphs, their text, operators, patterns and passes.
#pragma once

#include <cresset_compat/functional.h>
#include <cresset_compat/script.h>

#include <cresset/ir/autodiff.h>
#include <cresset/ir/file_check.h>
#include <cresset/ir/graph_iterator.h>
#include <cresset/ir/import_source.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/ir_views.h>
#include <cresset/ir/jit_log.h>
#include <cresset/ir/logging.h>
#include <cresset/ir/node_hashing.h>
#include <cresset/ir/pass_functions.h>
#include <cresset/ir/subgraph_rewriter.h>
#include <cresset/ir/subgraph_utils.h>
#include <cresset/ir/tracer.h>

namespace cresset::jit {
// Functions of graphs stand where graphs do: programs call them by their names alone.

/// There is no fuser of tensor expressions.
inline void FuseTensorExprs(std::shared_ptr<Graph>& /*graph*/, std::size_t /*min_group_size*/ = 2, bool /*composed*/ = false,
                            bool /*dynamic_shapes*/ = false) {
  TORCH_CHECK(false, "FuseTensorExprs: there is no fuser of tensor expressions here.");
}
/// Passes for kernels of other processors and for other layouts of weights, which here are the engines' business: graphs stay as they are.
inline void FuseFrozenConvAddRelu(std::shared_ptr<Graph>& /*graph*/) {}
inline void ConvertFrozenOpsToMKLDNN(std::shared_ptr<Graph>& /*graph*/) {}
inline bool FrozenLinearTranspose(std::shared_ptr<Graph>& /*graph*/) { return false; }
inline bool FrozenConcatLinear(std::shared_ptr<Graph>& /*graph*/) { return false; }
/// Types say nothing of undefined tensors here, so there is nothing to clear.
inline void ClearUndefinedness(const std::shared_ptr<Graph>& /*graph*/) {}
}  // namespace cresset::jit

namespace torch {
namespace jit {
using cresset::jit::ClearUndefinedness;
using cresset::jit::ConvertFrozenOpsToMKLDNN;
using cresset::jit::FrozenConcatLinear;
using cresset::jit::FrozenLinearTranspose;
using cresset::jit::FuseFrozenConvAddRelu;
using cresset::jit::FuseTensorExprs;

// alias_analysis.h, ir_parser.h, ir_views.h, node_hashing.h
using cresset::jit::DepthFirstGraphNodeIterator;
using cresset::jit::EqualNode;
using cresset::jit::EqualType;
using cresset::jit::HashNode;
using cresset::jit::HashType;
using cresset::jit::IfView;
using cresset::jit::LoopView;
using cresset::jit::parse_ir;
using cresset::jit::parseIR;
/// There is no fuser of tensor expressions: it is off, and turning it on raises. Engines and compiled loops are Cresset's own ways.
inline bool tensorExprFuserEnabled() { return false; }
inline bool setTensorExprFuserEnabled(bool on) {
  TORCH_CHECK(!on, "setTensorExprFuserEnabled: there is no fuser of tensor expressions here.");
  return false;
}
inline bool getFusionGroupInlining() { return false; }
/// Nor is there one that compiles graphs for CUDA.
namespace fuser::cuda {
inline bool canBeEnabled() { return false; }
inline bool isEnabled() { return false; }
inline bool setEnabled(bool on) {
  TORCH_CHECK(!on, "fuser::cuda::setEnabled: there is no fuser for CUDA here.");
  return false;
}
}  // namespace fuser::cuda
/// An error's text on a stream.
struct ExceptionMessage {
  explicit ExceptionMessage(const std::exception& error) : error_(error) {}
  friend std::ostream& operator<<(std::ostream& out, const ExceptionMessage& message) { return out << message.error_.what(); }

 private:
  const std::exception& error_;
};
/// Graphs are not profiled when they run: the question which nodes to profile is never asked.
inline void RegisterProfilingNode(const std::function<bool(const Node*)>& /*wanted*/) {}
// subgraph_utils.h
using cresset::jit::broadcastSizes;
using cresset::jit::usedOnlyInSize;
// autodiff.h, file_check.h, import_source.h, jit_log.h, subgraph_utils.h
using cresset::jit::differentiate;
using cresset::jit::get_jit_logging_levels;
using cresset::jit::get_jit_logging_output_stream;
using cresset::jit::getHeader;
using cresset::jit::Gradient;
using cresset::jit::is_enabled;
using cresset::jit::jit_log_prefix;
using cresset::jit::JitLoggingLevels;
using cresset::jit::LowerGradOf;
using cresset::jit::set_jit_logging_levels;
using cresset::jit::set_jit_logging_output_stream;
using cresset::jit::SourceLoader;
using SourceImporter = cresset::jit::TextImporter;
namespace SubgraphUtils = cresset::jit::SubgraphUtils;
namespace testing {
using cresset::jit::testing::FileCheck;
}
// subgraph_rewriter.h
using cresset::jit::findPatternMatches;
using cresset::jit::Match;
using cresset::jit::MatchFilter;
using SubgraphRewriter = cresset::jit::TrustingSubgraphRewriter;
// pass_functions.h
using cresset::jit::activation_type_promotion_mapping;
using cresset::jit::AddIfThenElseOp;
using cresset::jit::BatchMM;
using cresset::jit::Canonicalize;
using cresset::jit::CanonicalizeOps;
using cresset::jit::CheckInplace;
using cresset::jit::clearAllPostPasses;
using cresset::jit::clearAllPrePasses;
using cresset::jit::clearPostPass;
using cresset::jit::clearPrePass;
using cresset::jit::CombineConcats;
using cresset::jit::computeUpdatedConvWeightAndBias;
using cresset::jit::computeUpdatedLinearWeightAndBias;
using cresset::jit::ConstantPooling;
using cresset::jit::ConstantPropagation;
using cresset::jit::ConstantPropagationImmutableTypes;
using cresset::jit::ConvBNParameters;
using cresset::jit::CreateFunctionalGraphs;
using cresset::jit::DCESideEffectPolicy;
using cresset::jit::DecomposeOps;
using cresset::jit::EliminateCommonSubexpression;
using cresset::jit::EliminateConcatCommonInputs;
using cresset::jit::EliminateDeadCode;
using cresset::jit::EliminateExceptions;
using cresset::jit::EliminateRedundantGuards;
using cresset::jit::EraseNumberTypes;
using cresset::jit::EraseNumberTypesOnBlock;
using cresset::jit::EraseShapeInformation;
using cresset::jit::ExpandConcatAndEliminateRedundancy;
using cresset::jit::freeze_module;
using cresset::jit::freeze_module_inplace;
using cresset::jit::FunctionalToInplaceRewriter;
using cresset::jit::FuseAddMM;
using cresset::jit::FuseLinear;
using cresset::jit::getCustomPostPasses;
using cresset::jit::getCustomPrePasses;
using cresset::jit::GraphPass;
using cresset::jit::GraphPassNameType;
using cresset::jit::Inline;
using cresset::jit::inlineCallTo;
using cresset::jit::InlineForkWait;
using cresset::jit::InlineFunctionalGraphs;
using cresset::jit::LinearBNParameters;
using cresset::jit::LowerAllTuples;
using cresset::jit::LowerGraph;
using cresset::jit::LowerSimpleTuples;
using cresset::jit::PassManager;
using cresset::jit::PeepholeOptimize;
using cresset::jit::PropagateInputShapes;
using cresset::jit::RefineTupleTypes;
using cresset::jit::registerPostPass;
using cresset::jit::registerPrePass;
using cresset::jit::removeDropout;
using cresset::jit::RemoveExpands;
using cresset::jit::RemoveInplaceOps;
using cresset::jit::RemoveListMutation;
using cresset::jit::RemoveListMutationAndUseVariadicCat;
using cresset::jit::RemoveListMutationAndUseVariadicOp;
using cresset::jit::RemoveListMutationAndUseVariadicStack;
using cresset::jit::RemoveProfileNodesAndSpecializeTypes;
using cresset::jit::RemoveTensorMutation;
using cresset::jit::RemoveTensorTypeSpecializations;
using cresset::jit::runCleanupPasses;
using cresset::jit::runNodeIfInputsAreConstant;
using cresset::jit::UnrollConstantLoops;
using cresset::jit::UnrollLoops;
using cresset::jit::UseVariadicCat;
using cresset::jit::UseVariadicOp;
using cresset::jit::UseVariadicStack;
using RegisterPass = cresset::jit::RegisterGraphPass;

}  // namespace jit
}  // namespace torch

// jit_log.h: to the current logger, at level debug, graphs at level graph; and to the stream of jit_log.h for files that it names.
#define CRESSET_GRAPH_LOG(level, file_level, ...)                                                                                       \
  do {                                                                                                                                  \
    if (::cresset::jit::logging::current()->enabled(::cresset::jit::logging::Level::level))                                             \
      ::cresset::jit::logging::log(::cresset::jit::logging::Level::level, ::c10::str(__VA_ARGS__));                                     \
    if (::cresset::jit::is_enabled(__FILE__, ::cresset::jit::JitLoggingLevels::file_level))                                             \
      ::cresset::jit::get_jit_logging_output_stream()                                                                                   \
          << ::cresset::jit::jit_log_prefix(::cresset::jit::JitLoggingLevels::file_level, __FILE__, __LINE__, ::c10::str(__VA_ARGS__)); \
  } while (0)
#define GRAPH_DEBUG(...) CRESSET_GRAPH_LOG(debug, GRAPH_DEBUG, __VA_ARGS__)
#define GRAPH_UPDATE(...) CRESSET_GRAPH_LOG(debug, GRAPH_UPDATE, __VA_ARGS__)
#define GRAPH_DUMP(message, shown) CRESSET_GRAPH_LOG(graph, GRAPH_DUMP, message, "\n", (shown)->toString())
#define GRAPH_EXPORT(message, shown) CRESSET_GRAPH_LOG(graph, GRAPH_DEBUG, message, "\n", (shown)->toString())
#define JIT_LOG(level, ...)                        \
  if (::cresset::jit::is_enabled(__FILE__, level)) \
  ::cresset::jit::get_jit_logging_output_stream() << ::cresset::jit::jit_log_prefix(level, __FILE__, __LINE__, ::c10::str(__VA_ARGS__))
#define GRAPH_DEBUG_ENABLED                                                              \
  (::cresset::jit::logging::current()->enabled(::cresset::jit::logging::Level::debug) || \
   ::cresset::jit::is_enabled(__FILE__, ::cresset::jit::JitLoggingLevels::GRAPH_DEBUG))
#define GRAPH_UPDATE_ENABLED                                                             \
  (::cresset::jit::logging::current()->enabled(::cresset::jit::logging::Level::debug) || \
   ::cresset::jit::is_enabled(__FILE__, ::cresset::jit::JitLoggingLevels::GRAPH_UPDATE))
