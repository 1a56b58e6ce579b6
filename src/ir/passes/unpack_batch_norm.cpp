// batch_norm out of training becomes (x - mean) / sqrt(var + eps) * weight + bias, with one number a channel. Not in the order of lowering:
// backends have batch norm.
//
// Needs to know that it does not train, that there are running statistics, whether there are weight and bias, the rank of x, and that all
// have one dtype.
#include "ir/passes/rewrite.h"

namespace cresset::jit {
namespace {
using rewrite::Emitter, rewrite::Site;

// Operands: input, weight, bias, mean, var, training, momentum, eps, cudnn.
bool legal(const Node* n, const LoweringOptions& options) {
  const auto& in = n->inputs();
  const auto training = rewrite::flag_of(in[5]);
  const auto rank = rewrite::rank_of(in[0], options);
  const auto dtype = rewrite::dtype_of(in[0], options);
  if (!training || *training || !rank || *rank < 2 || !dtype) return false;
  for (const std::size_t i : {1, 2})
    if (!in[i]->mustBeNone() && rewrite::dtype_of(in[i], options) != dtype) return false;
  for (const std::size_t i : {3, 4})
    if (rewrite::dtype_of(in[i], options) != dtype) return false;
  return true;
}

Value* unpack_batch_norm(const Site& site) {
  Node* n = site.node;
  if (!rewrite::calls(n, "aten::batch_norm") || !legal(n, site.context.options)) return nullptr;
  const Emitter emit(n);
  const auto& in = n->inputs();
  std::vector<int64_t> shape(*rewrite::rank_of(in[0], site.context.options), 1);
  shape[1] = -1;
  Value* per_channel = emit.integers(shape);
  const auto spread = [&](Value* v) { return emit("aten::reshape", {v, per_channel}); };
  Value* deviation = emit("aten::sqrt", {emit("aten::add", {in[4], in[7]})});
  Value* scale = emit("aten::reciprocal", {deviation});
  if (!in[1]->mustBeNone()) scale = emit("aten::mul", {scale, in[1]});
  Value* result = emit("aten::mul", {emit("aten::sub", {in[0], spread(in[3])}), spread(scale)});
  return in[2]->mustBeNone() ? result : emit("aten::add", {result, spread(in[2])});
}

const RegisterPass unpack_batch_norm_pass({
    .name = "unpack_batch_norm",
    .phase = "lower",
    .summary = "batch_norm to elementary operators",
    .needs = {},
    .keeps = {"marks", "names"},
    .run_in = [](PassContext& c) { return rewrite::rewrite_nodes(c, {"aten::batch_norm"}, unpack_batch_norm); },
});

}  // namespace
}  // namespace cresset::jit
