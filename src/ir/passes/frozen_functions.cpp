// What frozen and profiled graphs get, as functions.
#include <algorithm>
#include <array>

#include <cresset/core/grad_mode.h>
#include <cresset/ir/frozen_functions.h>
#include <cresset/ir/lowering.h>
#include <cresset/ir/pass_functions.h>

#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {

// Passes that a frozen graph gets; the second ones change results by roundings, until nothing is left to fold.
constexpr std::array kSimplifications = {"remove_dropout", "cse", "peephole", "dce"};
constexpr std::array kFoldings = {"fold_frozen_conv_bn", "fold_frozen_conv_add_or_sub", "fold_frozen_conv_mul_or_div",
                                  "fold_frozen_linear_bn"};
constexpr int kMostRounds = 100;

bool run_pass(const char* pass, const std::shared_ptr<Graph>& graph) { return find_pass(pass)->run(graph); }

void optimize_frozen(const Module& module, bool optimize_numerics, const std::vector<std::string>& preserved) {
  std::vector<std::string> methods = {"forward"};
  methods.insert(methods.end(), preserved.begin(), preserved.end());
  for (const std::string& name : methods) {
    const auto method = module.find_method(name);
    if (!method) continue;
    std::shared_ptr<Graph> graph = method->graph();
    OptimizeFrozenGraph(graph, optimize_numerics);
    toGraphFunction(method->function()).invalidate();
  }
}

}  // namespace

bool FoldFrozenConvBatchnorm(std::shared_ptr<Graph>& graph) { return run_pass("fold_frozen_conv_bn", graph); }
bool FoldFrozenConvAddOrSub(std::shared_ptr<Graph>& graph) { return run_pass("fold_frozen_conv_add_or_sub", graph); }
bool FoldFrozenConvMulOrDiv(std::shared_ptr<Graph>& graph) { return run_pass("fold_frozen_conv_mul_or_div", graph); }
bool FoldFrozenLinearBatchnorm(std::shared_ptr<Graph>& graph) { return run_pass("fold_frozen_linear_bn", graph); }
void OptimizeFrozenGraph(std::shared_ptr<Graph>& graph, bool optimize_numerics) {
  for (int i = 0; optimize_numerics && i < kMostRounds; ++i)
    if (!run_passes(graph, {kFoldings.begin(), kFoldings.end()})) break;
  run_passes(graph, {kSimplifications.begin(), kSimplifications.end()});
}

namespace {
// w * s and (b - mean) * s + bn_b for the norm behind a layer with these weights, s = bn_w / sqrt(var + eps) for each row of w.
template <class Norm>
std::tuple<Tensor, Tensor> scaled_by_norm(const Tensor& w, const Tensor& b, const Norm& norm) {
  const NoGradGuard no_grad;
  const Tensor scale = norm.bn_w.mul(norm.bn_rv.add(norm.bn_eps).rsqrt());
  std::vector<int64_t> sizes(static_cast<std::size_t>(w.dim()), 1);
  sizes[0] = -1;
  return {w.mul(scale.reshape(sizes)), b.sub(norm.bn_rm).mul(scale).add(norm.bn_b)};
}
}  // namespace
std::tuple<Tensor, Tensor> computeUpdatedConvWeightAndBias(const ConvBNParameters& p) { return scaled_by_norm(p.conv_w, p.conv_b, p); }
std::tuple<Tensor, Tensor> computeUpdatedLinearWeightAndBias(const LinearBNParameters& p) {
  return scaled_by_norm(p.linear_w, p.linear_b, p);
}

bool nonConstantParameters(Node* n) {
  return std::ranges::any_of(n->inputs().slice(std::min<std::size_t>(1, n->inputs().size())),
                             [](const Value* v) { return v->node()->kind() != prim::Constant; });
}

void CheckInplace(std::shared_ptr<Graph>& graph) {
  static const Symbol inplace = Symbol::attr("inplace");
  graph->block()->visit([](Node* n) {
    if (n->kind() != prim::PythonOp || !n->hasAttribute(inplace)) return;
    CRESSET_CHECK(n->i(inplace) == 0, "inplace ", n->str(), " not supported in the JIT");
  });
}
void RemoveInplaceOps(const std::shared_ptr<Graph>& graph) { RemoveTensorMutation(graph); }

void RemoveTensorTypeSpecializations(std::shared_ptr<Graph>& graph) {
  const auto plain = [](Value* v) {
    if (v->type()->kind == TypeKind::Tensor) v->setType(TensorType::get());
  };
  for (Value* v : graph->inputs()) plain(v);
  graph->block()->visit([&](Node* n) {
    for (Value* v : n->outputs()) plain(v);
    for (const Block* b : n->blocks())
      for (Value* v : b->inputs()) plain(v);
  });
}
void RemoveProfileNodesAndSpecializeTypes(std::shared_ptr<Graph>& graph) {
  static const Symbol profiled_type = Symbol::attr("profiled_type");
  for (Node* n : rewrite::nodes_of(*graph, {"prim::profile"})) {
    if (!n->outputs().empty()) {
      Value* operand = n->input(0);
      const auto* known = operand->type()->castRaw<TensorType>();
      if (known && n->hasAttribute(profiled_type)) operand->setType(n->ty(profiled_type)->expect<TensorType>()->copy());
      n->output()->replaceAllUsesWith(operand);
    }
    n->destroy();
  }
}

Module freeze(const Module& module, const std::optional<std::vector<std::string>>& preserved, bool optimize_numerics) {
  CRESSET_CHECK(!module.hasattr("training") || !module.is_training(),
                "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing.");
  const std::vector<std::string> names = preserved.value_or(std::vector<std::string>());
  const Module frozen = freeze_module(module, names);
  optimize_frozen(frozen, optimize_numerics, names);
  return frozen;
}
Module optimize_for_inference(Module& module, const std::vector<std::string>& other_methods) {
  if (module.hasattr("training")) return freeze(module, other_methods);
  optimize_frozen(module, true, other_methods);
  return module;
}

}  // namespace cresset::jit
