// Rules of normalisations and losses, most of them written with operators on one example.
#include <cresset/core/forward_levels.h>
#include <cresset/core/grad_mode.h>
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_loss.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_norm.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "batching/batch_call.h"
#include "ops/norm.h"
#include "ops/ops_decl_norm.h"

namespace cresset::batching {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

/// Mean and 1 / standard deviation of x over dims, as functions of x where derivatives follow it: saved values carry no history, and second
/// derivatives pass through them. The saved ones say what was added to the variance.
std::pair<Tensor, Tensor> statistics_of(const Tensor& x, const Tensor& saved_mean, const Tensor& saved_rstd, IntArrayRef dims) {
  const bool recorded = GradMode::is_enabled() && physical(x).requires_grad();
  if (!recorded && cresset::detail::forward_levels.load(std::memory_order_relaxed) == 0) return {saved_mean, saved_rstd};
  const Tensor mean = cresset::mean(x, dims, true), centred = cresset::sub(x, mean);
  const Tensor variance = cresset::mean(cresset::mul(centred, centred), dims, true);
  const Tensor added = cresset::detach(cresset::sub(cresset::reciprocal(cresset::mul(saved_rstd, saved_rstd)), variance));
  return {mean, cresset::rsqrt(cresset::add(variance, added))};
}

// --- layer norm -------------------------------------------------------------------------------------------------------------

Three layer_norm_rule(const Tensor& input, IntArrayRef shape, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                      double eps) {
  const Batch b(input, weight, bias);
  for (const auto& [name, t] : {std::pair("weight", weight), std::pair("bias", bias)})
    CRESSET_CHECK(!t || t->sizes() == shape, "Expected ", name, " to be of same shape as normalized_shape, but got ", name, " of shape ",
                  t->sizes(), " and normalized_shape = ", shape);
  const bool outside = b.has(weight) || b.has(bias);
  const Tensor x = b.full(input);
  const auto [out, mean, rstd] = cresset::native_layer_norm(x, shape, outside ? std::nullopt : weight, outside ? std::nullopt : bias, eps);
  Tensor result = b.wrap(out);
  if (outside && weight) result = cresset::mul(result, *weight);
  if (outside && bias) result = cresset::add(result, *bias);
  return {result, b.wrap(mean), b.wrap(rstd)};
}

Three layer_norm_backward_rule(const Tensor& grad_out, const Tensor& input, IntArrayRef shape, const Tensor& mean, const Tensor& rstd,
                               const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, std::array<bool, 3> mask) {
  ops::native_layer_norm_backward_meta(grad_out, input, shape, mean, rstd, weight, bias, {false, false, false});  // its checks
  DimVector outer, inner;
  const int64_t first = input.dim() - static_cast<int64_t>(shape.size());
  for (int64_t d = 0; d < input.dim(); ++d) (d < first ? outer : inner).push_back(d);
  const auto [average, scale] = statistics_of(input, mean, rstd, inner);
  const Tensor normal = cresset::mul(cresset::sub(input, average), scale);
  Three out;
  if (mask[0]) {
    // d/dx of (x - mean) / std: what is left of the gradient when its mean and its share along `normal` are gone.
    const Tensor g = weight ? cresset::mul(grad_out, *weight) : grad_out;
    const Tensor along = cresset::mul(normal, cresset::mean(cresset::mul(g, normal), IntArrayRef(inner), true));
    std::get<0>(out) = cresset::mul(cresset::sub(cresset::sub(g, cresset::mean(g, IntArrayRef(inner), true)), along), scale);
  }
  const auto over_outer = [&](const Tensor& t) { return outer.empty() ? t : cresset::sum(t, IntArrayRef(outer)); };
  if (mask[1]) std::get<1>(out) = over_outer(cresset::mul(grad_out, normal));
  if (mask[2]) std::get<2>(out) = over_outer(grad_out);
  return out;
}

// --- batch norm: examples are more channels -----------------------------------------------------------------------------------

Tensor per_channel(const Tensor& t, int64_t rank) {
  DimVector sizes(static_cast<std::size_t>(rank) - 1, 1);
  sizes[0] = t.size(0);
  return cresset::view(t, sizes);
}

Three batch_norm_rule(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                      const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool training, double momentum,
                      double eps) {
  const Batch b(input, weight, bias, running_mean, running_var);
  ops::check_batch_norm(input, weight, bias, running_mean, running_var, training);
  CRESSET_CHECK(
      !training || !b.has(input) || ((!running_mean || b.has(running_mean)) && (!running_var || b.has(running_var))),
      "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were not "
      "batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be False.If you are using "
      "a prebuilt module and do not need eval mode, please see the functorch website for resources on how to patch your module to "
      "work with vmap");
  const int64_t rank = input.dim();
  const Tensor x = merge_dims(cresset::movedim(b.full(input), 0, 1), 1);
  const auto statistics = [&](const std::optional<Tensor>& t) -> std::optional<Tensor> {
    if (!t) return std::nullopt;
    return cresset::flatten(b.full(*t), 0, 1);
  };
  const std::optional<Tensor> mean = statistics(running_mean), var = statistics(running_var);
  const auto [y, save_mean, save_invstd] = cresset::native_batch_norm(x, std::nullopt, std::nullopt, mean, var, training, momentum, eps);
  // The statistics of all examples may lie in a copy.
  const auto write_back = [&](const std::optional<Tensor>& to, const std::optional<Tensor>& from) {
    if (!training || !to || !from) return;
    const Tensor front = b.front(*to);
    if (from->is_alias_of(front)) return;
    Tensor target = front.detach(), values = cresset::reshape(from->detach(), {b.size(), -1});
    if (!b.has(to)) values = cresset::select(values, 0, 0);  // the input is the same for all examples, and so are its statistics
    const impl::ExcludeDispatchKeyGuard of_a_transform(DispatchKey::FuncTorchDynamicLayerFrontMode);  // may be captured by its function
    cresset::copy_(target, values);
  };
  write_back(running_mean, mean);
  write_back(running_var, var);
  Tensor out = b.wrap(cresset::movedim(split_dim(y, 1, b.size()), 1, 0));
  if (weight) out = cresset::mul(out, per_channel(*weight, rank));
  if (bias) out = cresset::add(out, per_channel(*bias, rank));
  const auto each = [&](const Tensor& t) { return b.wrap(cresset::reshape(t, {b.size(), t.size(0) / b.size()})); };
  return {out, each(save_mean), each(save_invstd)};
}

Three batch_norm_backward_rule(const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight,
                               const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
                               const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train, double eps,
                               std::array<bool, 3> mask) {
  ops::check_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train);
  DimVector dims;
  for (int64_t d = 0; d < input.dim(); ++d)
    if (d != 1) dims.push_back(d);
  const int64_t rank = input.dim();
  Tensor mean = per_channel(train ? *save_mean : *running_mean, rank);
  Tensor rstd = per_channel(train ? *save_invstd : cresset::rsqrt(cresset::add(*running_var, Scalar(eps))), rank);
  if (train) std::tie(mean, rstd) = statistics_of(input, mean, rstd, dims);
  const Tensor normal = cresset::mul(cresset::sub(input, mean), rstd);
  Three out;
  if (mask[0]) {
    Tensor g = weight ? cresset::mul(grad_out, per_channel(*weight, rank)) : grad_out;
    if (train) {
      const Tensor along = cresset::mul(normal, cresset::mean(cresset::mul(g, normal), IntArrayRef(dims), true));
      g = cresset::sub(cresset::sub(g, cresset::mean(g, IntArrayRef(dims), true)), along);
    }
    std::get<0>(out) = cresset::mul(g, rstd);
  }
  if (mask[1]) std::get<1>(out) = cresset::sum(cresset::mul(grad_out, normal), IntArrayRef(dims));
  if (mask[2]) std::get<2>(out) = cresset::sum(grad_out, IntArrayRef(dims));
  return out;
}

// --- log_sigmoid: its kernel has no history of its own -----------------------------------------------------------------------

Tensor log_sigmoid_backward_rule(const Tensor& grad_output, const Tensor& self, const Tensor&) {
  return cresset::mul(grad_output, cresset::sigmoid(cresset::neg(self)));
}

// --- losses -------------------------------------------------------------------------------------------------------------------

constexpr int64_t kNone = 0, kMean = 1;

Tensor reduced(const Tensor& loss, int64_t reduction) {
  return reduction == kNone ? loss : reduction == kMean ? cresset::mean(loss) : cresset::sum(loss);
}

Tensor mse_loss_rule(const Tensor& self, const Tensor& target, int64_t reduction) {
  const Tensor difference = cresset::sub(self, target);
  return reduced(cresset::mul(difference, difference), reduction);
}
Tensor mse_loss_backward_rule(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction) {
  const Tensor difference = cresset::sub(self, target);
  const double scale = reduction == kMean ? 2.0 / static_cast<double>(std::max<int64_t>(difference.numel(), 1)) : 2.0;
  return cresset::mul(cresset::mul(difference, Scalar(scale)), grad_output);
}

// Losses of the distance: element by element first.
template <auto Loss>
Tensor distance_loss_rule(const Tensor& self, const Tensor& target, int64_t reduction, double parameter) {
  const std::vector<Tensor> pair = cresset::broadcast_tensors({self, target});
  const Batch b(self, target);
  return reduced(b.wrap(Loss(b.full(pair[0]), b.full(pair[1]), kNone, parameter)), reduction);
}
template <auto Backward>
Tensor distance_loss_backward_rule(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction,
                                   double parameter) {
  const std::vector<Tensor> pair = cresset::broadcast_tensors({self, target});
  const Batch b(grad_output, self, target);
  const Tensor x = b.full(pair[0]), y = b.full(pair[1]);
  const Tensor slope = b.wrap(Backward(cresset::ones_like(cresset::sub(x, y)), x, y, kNone, parameter));
  const double scale = reduction == kMean ? 1.0 / static_cast<double>(std::max<int64_t>(slope.numel(), 1)) : 1.0;
  return cresset::mul(cresset::mul(slope, Scalar(scale)), grad_output);
}

Tensor bce_rule(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction) {
  CRESSET_CHECK(self.sizes() == target.sizes(), "Using a target size (torch.Size(", target.sizes(),
                ")) that is different to the input size (torch.Size(", self.sizes(),
                ")) is deprecated. Please ensure they have the same size.");
  const Batch b(self, target, weight);
  const Tensor loss = b.wrap(cresset::binary_cross_entropy(b.full(self), b.full(target), std::nullopt, kNone));
  return reduced(weight ? cresset::mul(loss, *weight) : loss, reduction);
}

/// The weight of each target, 0 where it is ignored, and the targets with those replaced by 0. Sizes (N, 1, …), or (1) for one target.
struct Targets {
  Tensor place, weight;
  int64_t dim;
  Targets(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weights, int64_t ignore_index)
      : dim(self.dim() == 1 ? 0 : 1) {
    const ScalarType type = target.scalar_type();
    CRESSET_CHECK(type == kLong || type == kByte || type == kInt || type == kBool, "expected target dtype to be Long or Byte, but got ",
                  type);
    const Tensor kept = cresset::ne(target, Scalar(ignore_index));
    const Tensor classes = cresset::mul(target, kept.to(target.scalar_type())).to(kLong);
    Tensor w = kept.to(self.scalar_type());
    if (weights) {
      const Tensor flat = cresset::index_select(*weights, 0, cresset::reshape(classes, {-1}));
      w = cresset::mul(w, cresset::reshape(flat, classes.sizes()));
    }
    place = cresset::unsqueeze(classes, dim);
    weight = cresset::unsqueeze(w, dim);
  }
};

std::tuple<Tensor, Tensor> nll_loss_rule(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
                                         int64_t ignore_index) {
  const Targets t(self, target, weight, ignore_index);
  const Tensor loss = cresset::neg(cresset::squeeze(cresset::mul(cresset::gather(self, t.dim, t.place), t.weight), t.dim));
  if (reduction == kNone) return {loss, cresset::sum(cresset::zeros_like(t.weight))};
  const Tensor total = cresset::sum(t.weight);
  const Tensor sum = cresset::sum(loss);
  return {reduction == kMean ? cresset::div(sum, total) : sum, total};
}

Tensor nll_loss_backward_rule(const Tensor& grad_output, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                              int64_t reduction, int64_t ignore_index, const Tensor& total_weight) {
  const Targets t(self, target, weight, ignore_index);
  const Tensor grad = reduction == kNone   ? cresset::unsqueeze(grad_output, t.dim)
                      : reduction == kMean ? cresset::div(grad_output, total_weight)
                                           : grad_output;
  const Tensor source = cresset::neg(cresset::mul(t.weight, grad));
  return cresset::scatter(cresset::zeros_like(self), t.dim, t.place, source);
}

}  // namespace

CRESSET_LIBRARY_IMPL(aten, FuncTorchBatched, m) {
  m.impl("native_layer_norm", CRESSET_FN(layer_norm_rule));
  m.impl("native_layer_norm_backward", CRESSET_FN(layer_norm_backward_rule));
  m.impl("native_batch_norm", CRESSET_FN(batch_norm_rule));
  m.impl("native_batch_norm_backward", CRESSET_FN(batch_norm_backward_rule));
  m.impl("log_sigmoid_backward", CRESSET_FN(log_sigmoid_backward_rule));
  m.impl("mse_loss", CRESSET_FN(mse_loss_rule));
  m.impl("mse_loss_backward", CRESSET_FN(mse_loss_backward_rule));
  m.impl("smooth_l1_loss", CRESSET_FN(distance_loss_rule<&cresset::smooth_l1_loss>));
  m.impl("smooth_l1_loss_backward", CRESSET_FN(distance_loss_backward_rule<&cresset::smooth_l1_loss_backward>));
  m.impl("huber_loss", CRESSET_FN(distance_loss_rule<&cresset::huber_loss>));
  m.impl("huber_loss_backward", CRESSET_FN(distance_loss_backward_rule<&cresset::huber_loss_backward>));
  m.impl("binary_cross_entropy", CRESSET_FN(bce_rule));
  m.impl("nll_loss_forward", CRESSET_FN(nll_loss_rule));
  m.impl("nll_loss_backward", CRESSET_FN(nll_loss_backward_rule));
}

}  // namespace cresset::batching
