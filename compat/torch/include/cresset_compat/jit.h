// torch/csrc/jit: graphs, their text, operators, patterns and passes.
#pragma once

#include <cresset_compat/functional.h>
#include <cresset_compat/script.h>

#include <cresset/ir/graph_iterator.h>
#include <cresset/ir/ir_parser.h>
#include <cresset/ir/ir_views.h>
#include <cresset/ir/logging.h>
#include <cresset/ir/node_hashing.h>
#include <cresset/ir/pass_functions.h>
#include <cresset/ir/subgraph_rewriter.h>

namespace torch {
namespace jit {

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
// subgraph_rewriter.h
using cresset::jit::findPatternMatches;
using cresset::jit::Match;
using cresset::jit::MatchFilter;
using SubgraphRewriter = cresset::jit::TrustingSubgraphRewriter;
// pass_functions.h
using cresset::jit::Canonicalize;
using cresset::jit::clearAllPostPasses;
using cresset::jit::clearAllPrePasses;
using cresset::jit::clearPostPass;
using cresset::jit::clearPrePass;
using cresset::jit::ConstantPooling;
using cresset::jit::ConstantPropagation;
using cresset::jit::ConstantPropagationImmutableTypes;
using cresset::jit::CreateFunctionalGraphs;
using cresset::jit::DCESideEffectPolicy;
using cresset::jit::EliminateCommonSubexpression;
using cresset::jit::EliminateDeadCode;
using cresset::jit::EliminateExceptions;
using cresset::jit::EliminateRedundantGuards;
using cresset::jit::EraseNumberTypes;
using cresset::jit::EraseNumberTypesOnBlock;
using cresset::jit::EraseShapeInformation;
using cresset::jit::freeze_module;
using cresset::jit::freeze_module_inplace;
using cresset::jit::FuseAddMM;
using cresset::jit::FuseLinear;
using cresset::jit::getCustomPostPasses;
using cresset::jit::getCustomPrePasses;
using cresset::jit::GraphPass;
using cresset::jit::GraphPassNameType;
using cresset::jit::Inline;
using cresset::jit::InlineFunctionalGraphs;
using cresset::jit::LowerAllTuples;
using cresset::jit::LowerGraph;
using cresset::jit::LowerSimpleTuples;
using cresset::jit::PeepholeOptimize;
using cresset::jit::PropagateInputShapes;
using cresset::jit::registerPostPass;
using cresset::jit::registerPrePass;
using cresset::jit::removeDropout;
using cresset::jit::RemoveListMutation;
using cresset::jit::RemoveTensorMutation;
using cresset::jit::runNodeIfInputsAreConstant;
using cresset::jit::UnrollConstantLoops;
using cresset::jit::UnrollLoops;
using RegisterPass = cresset::jit::RegisterGraphPass;

}  // namespace jit
}  // namespace torch

// jit_log.h: to the current logger, at level debug; graphs at level graph.
#define CRESSET_GRAPH_LOG(level, ...)                                                               \
  do {                                                                                              \
    if (::cresset::jit::logging::current()->enabled(::cresset::jit::logging::Level::level))         \
      ::cresset::jit::logging::log(::cresset::jit::logging::Level::level, ::c10::str(__VA_ARGS__)); \
  } while (0)
#define GRAPH_DEBUG(...) CRESSET_GRAPH_LOG(debug, __VA_ARGS__)
#define GRAPH_UPDATE(...) CRESSET_GRAPH_LOG(debug, __VA_ARGS__)
#define GRAPH_DUMP(message, shown) CRESSET_GRAPH_LOG(graph, message, "\n", (shown)->toString())
#define GRAPH_EXPORT(message, shown) CRESSET_GRAPH_LOG(graph, message, "\n", (shown)->toString())
#define GRAPH_DEBUG_ENABLED ::cresset::jit::logging::current()->enabled(::cresset::jit::logging::Level::debug)
#define GRAPH_UPDATE_ENABLED GRAPH_DEBUG_ENABLED
