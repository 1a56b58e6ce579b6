// Losses as compositions, and the shapes of nll_loss.
#include "ops/loss.h"

#include <cmath>
#include <numbers>

#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_loss.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_loss.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {

Tensor reduce_loss(const Tensor& loss, int64_t reduction) {
  switch (reduction) {
    case kReduceNone: return loss;
    case kReduceMean: return loss.mean();
    case kReduceSum: return loss.sum();
    default: CRESSET_THROW(ValueError, "reduction: 0 (none), 1 (mean) or 2 (sum) was required; ", reduction, " was given.");
  }
}

namespace {
// self - target, of which one may hold flags: they count as numbers of the other's type.
Tensor distance(const Tensor& self, const Tensor& target) {
  if ((self.scalar_type() == kBool) == (target.scalar_type() == kBool)) return self - target;
  return self.scalar_type() == kBool ? self.to(target.scalar_type()) - target : self - target.to(self.scalar_type());
}
}  // namespace

Tensor mse_loss_impl(const Tensor& self, const Tensor& target, int64_t reduction) {
  const ScalarType type = promoteTypes(self.scalar_type(), target.scalar_type());
  CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(type), "\"mse_cpu\" not implemented for '", type, "'");
  const Tensor d = distance(self, target);
  return reduce_loss(d * d, reduction);
}
Tensor mse_loss_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction) {
  const Tensor d = distance(self, target);
  CRESSET_CHECK_NOT_IMPLEMENTED(!d.is_complex(), "\"mse_backward_cpu\" not implemented for '", d.scalar_type(), "'");
  const double factor = reduction == kReduceMean ? 2.0 / static_cast<double>(d.numel()) : 2.0;
  return (d * factor * grad_output).to(self.scalar_type());
}

Tensor l1_loss_impl(const Tensor& self, const Tensor& target, int64_t reduction) { return reduce_loss((self - target).abs(), reduction); }

namespace {
Tensor checked_distance(const char* name, const Tensor& self, const Tensor& target) {
  CRESSET_CHECK_NOT_IMPLEMENTED(self.scalar_type() != kBool || target.scalar_type() != kBool, "\"", name, "\" not implemented for 'Bool'");
  const Tensor d = distance(self, target);
  CRESSET_CHECK_NOT_IMPLEMENTED(d.is_floating_point(), "\"", name, "\" not implemented for '", d.scalar_type(), "'");
  return d;
}
// A loss and its gradient have self's type, which must not round them.
void check_holds(const Tensor& self, ScalarType result) {
  CRESSET_CHECK(canCast(result, self.scalar_type()), "result type ", result, " can't be cast to the desired output type ",
                self.scalar_type());
}
double mean_factor(const Tensor& d, int64_t reduction) { return reduction == kReduceMean ? 1.0 / static_cast<double>(d.numel()) : 1.0; }
}  // namespace

Tensor smooth_l1_loss_impl(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  CRESSET_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  const Tensor z = checked_distance("smooth_l1_cpu", self, target).abs();
  if (beta == 0) return reduce_loss(z, reduction);
  return reduce_loss(cresset::where(z < beta, z * z * (0.5 / beta), z - 0.5 * beta), reduction);
}
Tensor smooth_l1_loss_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  const Tensor d = distance(self, target);
  CRESSET_CHECK_NOT_IMPLEMENTED(d.scalar_type() != kBool && !d.is_complex(), "\"smooth_l1_backward_cpu_out\" not implemented for '",
                                d.scalar_type(), "'");
  check_holds(self, promote_types(d.scalar_type(), grad_output.scalar_type()));
  if (!d.is_floating_point()) {  // in whole numbers, of which a mean of several is 0
    const auto width = static_cast<int64_t>(beta);
    const Tensor line = d.sign() * grad_output,
                 slope = width == 0 ? line : cresset::where(d.abs() < width, cresset::div(d * grad_output, width, "trunc"), line);
    return (reduction == kReduceMean && d.numel() > 1 ? slope * 0 : slope).to(self.scalar_type());
  }
  const Tensor slope = cresset::where(d.abs() < beta, d / beta, d.sign());
  return (slope.masked_fill(d != d, std::nan("")) * mean_factor(d, reduction) * grad_output).to(self.scalar_type());
}

Tensor huber_loss_impl(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  CRESSET_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  Tensor z = checked_distance("huber_cpu", self, target).abs_();
  check_holds(self, z.scalar_type());
  const Tensor c = z.clamp_max(delta);  // c (z - c/2) is half the square below delta and the line above it
  return reduce_loss(z.sub_(c, 0.5).mul_(c).to(self.scalar_type()), reduction);
}
Tensor huber_loss_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  CRESSET_CHECK(target.scalar_type() != kBool || self.scalar_type() == kBool, "Found dtype Bool but expected ", self.scalar_type());
  const Tensor d = checked_distance("huber_backward_cpu", self, target);
  check_holds(self, d.scalar_type());
  return (d.clamp(-delta, delta) * mean_factor(d, reduction) * grad_output).to(self.scalar_type());
}

// ---- classes

std::array<TensorSpec, 2> nll_loss_forward_shape(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                                                 int64_t reduction, int64_t) {
  CRESSET_CHECK(self.dim() >= 1, "input tensor should be 1D or more; ", self, " was given.");
  const bool one_each = target.dim() == (self.dim() == 1 ? 0 : self.dim() - 1);
  if (self.dim() > 2)
    CRESSET_CHECK(one_each, "only batches of spatial targets supported (", self.dim() - 1,
                  "D tensors) but got targets of dimension: ", target.dim());
  else
    CRESSET_CHECK(one_each || (self.dim() == 1 && target.dim() == 1 && target.numel() == 1),
                  "0D or 1D target tensor expected, multi-target not supported");
  const int64_t classes = self.dim() == 1 ? self.size(0) : self.size(1);
  DimVector positions(self.sizes());
  if (self.dim() == 1)
    positions.clear();
  else
    positions.erase(positions.begin() + 1);
  if (self.dim() > 1)
    CRESSET_CHECK_VALUE(target.size(0) == self.size(0), "Expected input batch_size (", self.size(0), ") to match target batch_size (",
                        target.size(0), ").");
  if (self.dim() > 1)
    CRESSET_CHECK(target.sizes() == IntArrayRef(positions), "size mismatch (got input: ", self.sizes(), ", target: ", target.sizes(), ")");
  CRESSET_CHECK(target.scalar_type() == kLong || target.scalar_type() == kByte, "expected target dtype to be Long or Byte, but got ",
                target.scalar_type());
  CRESSET_CHECK(target.scalar_type() == kLong || self.dim() <= 2, "expected scalar type Long but found ", target.scalar_type());
  CRESSET_CHECK(!weight || (weight->dim() == 1 && weight->numel() == classes), "weight tensor should be defined either for all ", classes,
                " classes or no classes but got weight tensor of shape: ", weight ? weight->sizes() : IntArrayRef());
  CRESSET_CHECK(!weight || weight->scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ",
                weight ? weight->scalar_type() : kFloat);
  return {spec_like(self, reduction == kReduceNone ? positions : DimVector{}), spec_like(self, {})};
}

Tensor nll_loss_nd_impl(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
                        int64_t ignore_index) {
  const int64_t dim = self.dim(), samples = target.dim() == 0 ? 0 : target.size(0);
  CRESSET_CHECK_VALUE(dim > 0, "Expected 1 or more dimensions (got 0)");
  if (dim == 1 && target.dim() == 1)
    CRESSET_CHECK_VALUE(samples == 1, "For 1D input, 1D target must have size 1, but got target size: ", samples);
  if (dim > 1)
    CRESSET_CHECK_VALUE(self.size(0) == samples, "Expected input batch_size (", self.size(0), ") to match target batch_size (", samples,
                        ").");
  if (dim == 3 || dim > 4) {
    DimVector positions(self.sizes());
    positions.erase(positions.begin() + 1);
    CRESSET_CHECK(target.sizes() == IntArrayRef(positions), "Expected target size ", IntArrayRef(positions), ", got ", target.sizes());
  }
  if (dim <= 2) return cresset::nll_loss(self, target, weight, reduction, ignore_index);
  if (dim == 4) return cresset::nll_loss2d(self, target, weight, reduction, ignore_index);
  // Other positions are laid out as an image of one row.
  const int64_t row = target.numel() == 0 ? 0 : target.numel() / samples;
  const Tensor loss = cresset::nll_loss2d(self.reshape({samples, self.size(1), 1, row}), target.reshape({samples, 1, row}), weight,
                                          reduction, ignore_index);
  return reduction == kReduceNone ? loss.view(target.sizes()) : loss;
}

TensorSpec nll_loss_backward_shape(const Tensor& grad_output, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                                   int64_t reduction, int64_t ignore_index, const Tensor& total_weight) {
  const auto forward = nll_loss_forward_shape(self, target, weight, reduction, ignore_index);
  CRESSET_CHECK(total_weight.numel() == 1, "expected total_weight to be a single element tensor, got: ", total_weight.sizes(), " (",
                total_weight.numel(), " elements)");
  CRESSET_CHECK(total_weight.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ",
                total_weight.scalar_type());
  CRESSET_CHECK(reduction == kReduceNone ? grad_output.sizes() == IntArrayRef(forward[0].sizes) : grad_output.numel() == 1,
                "Expected a single element grad_output tensor or one of size ", forward[0].sizes, ", but got: ", grad_output.sizes());
  return spec_like(self, self.sizes());
}

namespace {
void check_reduction(int64_t reduction) {
  CRESSET_CHECK(reduction >= kReduceNone && reduction <= kReduceSum, "Invalid reduction type encountered in cross_entropy: ", reduction);
}
}  // namespace

Tensor cross_entropy_loss_impl(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
                               int64_t ignore_index, double label_smoothing) {
  CRESSET_CHECK(self.dim() >= 1, "cross_entropy_loss: input of at least one dimension was required; ", self, " was given.");
  CRESSET_CHECK(label_smoothing >= 0 && label_smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  const int64_t class_dim = self.dim() == 1 ? 0 : 1, classes = self.size(class_dim);
  DimVector shape(static_cast<std::size_t>(self.dim()), 1);
  shape[class_dim] = classes;
  const Tensor logp = self.log_softmax(class_dim);
  if (self.sizes() == target.sizes()) {
    CRESSET_CHECK(target.is_floating_point(), "Expected floating point type for target with class probabilities, got ",
                  target.scalar_type());
    CRESSET_CHECK(ignore_index < 0, "ignore_index is not supported for floating point target");
    Tensor p = target;
    if (label_smoothing > 0) p = p * (1 - label_smoothing) + label_smoothing / static_cast<double>(classes);
    Tensor loss = -(weight ? logp * p * weight->view(shape) : logp * p);
    if (reduction == kReduceMean) return loss.sum() / (static_cast<double>(self.numel()) / static_cast<double>(classes));
    loss = loss.sum({class_dim}, false);
    check_reduction(reduction);
    return reduce_loss(loss, reduction);
  }
  if (label_smoothing != 0) check_reduction(reduction);
  if (label_smoothing == 0) return cresset::nll_loss_nd(logp, target, weight, reduction, ignore_index);
  // (1 - smoothing) * nll + smoothing/classes * the sum over classes, ignoring the same positions.
  const Tensor nll = cresset::nll_loss_nd(logp, target, weight, reduction, ignore_index);
  Tensor smooth = -(weight ? logp * weight->view(shape) : logp).sum({class_dim}, false);
  const Tensor ignored = target == ignore_index;
  smooth = smooth.masked_fill(ignored, 0);
  if (reduction == kReduceMean) {
    const Tensor kept = ignored.bitwise_not();
    const Tensor norm = weight ? weight->gather(0, target.masked_fill(ignored, 0).flatten()).mul(kept.flatten()).sum() : kept.sum();
    smooth = smooth.sum() / norm;
  } else {
    smooth = reduce_loss(smooth, reduction);
  }
  return nll * (1 - label_smoothing) + smooth * (label_smoothing / static_cast<double>(classes));
}

namespace {
void check_images(const Tensor& self, const Tensor& target) {
  CRESSET_CHECK(target.dim() == 3, "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  CRESSET_CHECK(self.dim() == 4, "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
}
}  // namespace

std::tuple<Tensor, Tensor> nll_loss2d_forward_impl(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                                                   int64_t reduction, int64_t ignore_index) {
  check_images(self, target);
  return cresset::nll_loss_forward(self, target, weight, reduction, ignore_index);
}
Tensor nll_loss2d_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                                int64_t reduction, int64_t ignore_index, const Tensor& total_weight) {
  check_images(self, target);
  CRESSET_CHECK(reduction == kReduceNone || (grad_output.dim() <= 1 && grad_output.numel() == 1),
                "Expected a single element grad_output tensor, but got: ", grad_output.sizes());
  return cresset::nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight);
}

// ---- probabilities

namespace {
// The target in the sizes of self. Beside dimensions of size 1, which either may have more of, it is expanded.
Tensor fitted_target(const Tensor& self, const Tensor& target) {
  if (self.sizes() == target.sizes()) return target;
  const Tensor own = self.squeeze(), wide = cresset::broadcast_tensors({own, target.squeeze()})[1];
  CRESSET_CHECK_VALUE(wide.sizes() == own.sizes(), "Using a target size (", target.sizes(), ") that is different to the input size (",
                      self.sizes(), ") is deprecated. Please ensure they have the same size.");
  return wide.reshape(self.sizes());
}
void check_one_type(const char* op, const Tensor& self, const Tensor& target) {
  CRESSET_CHECK(target.scalar_type() == self.scalar_type(), "Found dtype ", target.scalar_type(), " but expected ", self.scalar_type());
  CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(self.scalar_type()), "\"", op, "\" not implemented for '", self.scalar_type(), "'");
}
void check_probabilities(const char* name, const Tensor& t) {
  CRESSET_CHECK(t.is_meta() || t.numel() == 0 || (t.min().ge(0).item<bool>() && t.max().le(1).item<bool>()), "all elements of ", name,
                " should be between 0 and 1");
}
// A weight may not make the loss larger.
Tensor weighted(const Tensor& loss, const Tensor& weight) {
  Tensor out = loss * weight;
  CRESSET_CHECK(out.sizes() == loss.sizes(), "output with shape ", loss.sizes(), " doesn't match the broadcast shape ", out.sizes());
  return out;
}
}  // namespace

Tensor binary_cross_entropy_impl(const Tensor& self, const Tensor& given_target, const std::optional<Tensor>& weight, int64_t reduction) {
  check_one_type("binary_cross_entropy", self, given_target);
  const Tensor target = fitted_target(self, given_target);
  check_probabilities("input", self);
  check_probabilities("target", target);
  const Tensor loss = (target - 1) * cresset::log1p(-self).clamp_min(-100) - target * self.log().clamp_min(-100);
  return reduce_loss((weight ? weighted(loss, *weight) : loss).to(self.scalar_type()), reduction);
}

Tensor binary_cross_entropy_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                          const std::optional<Tensor>& weight, int64_t reduction) {
  check_one_type("binary_cross_entropy_backward", self, target);
  CRESSET_CHECK(grad_output.scalar_type() == self.scalar_type(), "Found dtype ", grad_output.scalar_type(), " but expected ",
                self.scalar_type());
  constexpr double epsilon = 1e-12;  // keeps the quotient finite at 0 and 1
  Tensor g = grad_output * (self - fitted_target(self, target)) / ((1 - self) * self).clamp_min(epsilon);
  if (weight) g = g * *weight;
  return reduction == kReduceMean ? g / static_cast<double>(self.numel()) : g;
}

Tensor binary_cross_entropy_with_logits_impl(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                                             const std::optional<Tensor>& pos_weight, int64_t reduction) {
  const Tensor wide = cresset::broadcast_tensors({self, target})[0];
  CRESSET_CHECK(wide.sizes() == target.sizes(), "output with shape ", target.sizes(), " doesn't match the broadcast shape ", wide.sizes());
  const Tensor log_p = cresset::log_sigmoid(self), rest = 1 - target;
  CRESSET_CHECK(canCast(log_p.scalar_type(), rest.scalar_type()), "result type ", log_p.scalar_type(),
                " can't be cast to the desired output type ", rest.scalar_type());
  Tensor loss = pos_weight ? rest * self - (weighted(target, *pos_weight - 1) + 1) * log_p : rest * self - log_p;
  if (weight) loss = weighted(loss, *weight);
  return reduce_loss(loss.to(rest.scalar_type()), reduction);
}

Tensor kl_div_impl(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  for (const ScalarType type : {self.scalar_type(), target.scalar_type()})
    CRESSET_CHECK(!isComplexType(type), "kl_div: Complex inputs not supported.");
  for (const ScalarType type : {self.scalar_type(), target.scalar_type()})
    CRESSET_CHECK(isFloatingType(type), "kl_div: Integral inputs not supported.");
  const Tensor loss = log_target ? target.exp() * (target - self) : cresset::xlogy(target, target) - target * self;
  return reduce_loss(loss, reduction);
}

Tensor poisson_nll_loss_impl(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps, int64_t reduction) {
  Tensor loss = log_input ? input.exp() - target * input : input - target * (input + eps).log();
  if (full) {
    // Stirling's approximation of log(target!) where it is above 1.
    const Tensor stirling = target * target.log() - target + (target * (2 * std::numbers::pi)).log() * 0.5;
    loss = loss + stirling.masked_fill(target <= 1, 0);
  }
  return reduce_loss(loss, reduction);
}

namespace {
// The negative of unsigned targets too.
Tensor opposite(const Tensor& target, const Tensor& self) {
  if (!isIntegralType(target.scalar_type(), false)) return -target;
  const ScalarType both = promote_types(self.scalar_type(), target.scalar_type());
  return -target.to(isIntegralType(both, true) ? get_default_dtype() : both);
}
}  // namespace

Tensor soft_margin_loss_impl(const Tensor& self, const Tensor& target, int64_t reduction) {
  const bool flags = target.scalar_type() == kBool && self.scalar_type() != kBool;
  const Tensor loss = (opposite(flags ? target.to(self.scalar_type()) : target, self) * self).exp().log1p();
  CRESSET_CHECK(canCast(loss.scalar_type(), self.scalar_type()), "result type ", loss.scalar_type(),
                " can't be cast to the desired output type ", self.scalar_type());
  return reduce_loss(loss.to(self.scalar_type()), reduction);
}

Tensor soft_margin_loss_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction) {
  const Tensor factor = opposite(target, self), slope = factor * cresset::sigmoid(factor * self);
  const Tensor grad = (slope.is_complex() ? slope.conj() : slope) * grad_output;
  const Tensor scaled = reduction == kReduceMean ? grad / self.numel() : grad;
  return canCast(scaled.scalar_type(), self.scalar_type()) ? scaled.to(self.scalar_type()) : scaled;
}

// ---- margins and similarities

namespace {
// Scores (N, C), (C) or () as (N, C).
Tensor scores(const Tensor& self) {
  CRESSET_CHECK(self.dim() <= 2 && (self.dim() == 0 || self.size(-1) != 0),
                "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", self.sizes());
  return self.dim() == 2 ? self : self.reshape({1, self.numel()});
}

// Classes must be readable numbers in range; shapes alone (meta) have none.
void check_classes(const Tensor& classes, int64_t least, int64_t count, const char* words) {
  CRESSET_CHECK(classes.scalar_type() == kLong, "expected scalar type Long but found ", classes.scalar_type());
  if (classes.numel() == 0 || classes.is_meta() || !classes.has_storage()) return;
  CRESSET_CHECK(!((classes < least).logical_or(classes >= count)).any().item<bool>(), words);
}

// What multi_margin_loss adds up: gaps (N, C) between each class and the target, also the target's own, and the target's classes (N, 1).
struct MarginGaps {
  Tensor gaps, target;
  double factor;  // of the sum of gaps
};

MarginGaps margin_gaps(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                       const std::optional<Tensor>& weight) {
  CRESSET_CHECK(p.toDouble() == 1 || p.toDouble() == 2, "only p == 1 and p == 2 supported");
  const Tensor x = scores(self);
  CRESSET_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "\"multi_margin_loss_cpu_kernel\" not implemented for '", self.scalar_type(),
                                "'");
  CRESSET_CHECK(target.dim() <= 1 && target.numel() == x.size(0),
                "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
                "Expected target size [",
                x.size(0), "], but got ", target.sizes(), ". Input has shape ", self.sizes(), ".");
  CRESSET_CHECK(!weight || (weight->dim() <= 1 && weight->numel() == x.size(1)), "inconsistent weight size, expected ", x.size(1),
                " but got ", weight ? weight->sizes() : IntArrayRef());
  check_classes(target, 0, x.size(1), "target out of range");
  const Tensor y = target.reshape({x.size(0), 1});
  return {x - x.gather(1, y) + margin, y, 1.0 / static_cast<double>(x.size(1))};
}

Tensor weighted(const Tensor& values, const std::optional<Tensor>& weight, const Tensor& target) {
  return weight ? values * weight->reshape({-1}).index_select(0, target.reshape({-1})).unsqueeze(1) : values;
}

// The gradient of one sample's loss, as (N, 1), from that of the reduced loss.
Tensor sample_grad(const Tensor& grad_output, int64_t samples, int64_t reduction) {
  const Tensor grad = grad_output.reshape({-1, 1});
  return reduction == kReduceMean ? grad / static_cast<double>(samples) : grad;
}
}  // namespace

Tensor multi_margin_loss_impl(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                              const std::optional<Tensor>& weight, int64_t reduction) {
  const MarginGaps m = margin_gaps(self, target, p, margin, weight);
  const Tensor gaps = cresset::threshold(m.gaps, 0, 0);
  const Tensor terms = weighted(p.toDouble() == 1 ? gaps : gaps * gaps, weight, m.target).scatter(1, m.target, 0);
  return reduce_loss((terms.sum({1}, false) * m.factor).reshape(target.sizes()), reduction);
}

Tensor multi_margin_loss_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Scalar& p,
                                       const Scalar& margin, const std::optional<Tensor>& weight, int64_t reduction) {
  const MarginGaps m = margin_gaps(self, target, p, margin, weight);
  const Tensor slopes = p.toDouble() == 1 ? (m.gaps > 0).to(self.scalar_type()) : cresset::threshold(m.gaps, 0, 0) * 2;
  const Tensor others =
      weighted(slopes, weight, m.target).scatter(1, m.target, 0) * sample_grad(grad_output, m.gaps.size(0), reduction) * m.factor;
  return others.scatter_add(1, m.target, -others.sum({1}, true)).reshape(self.sizes());
}

namespace {
// The pairs of multilabel_margin_loss: gaps (N, listed, C), 0 where a pair does not count.
struct LabelPairs {
  Tensor gaps, listed, is_target;  // listed (N, listed): the classes, 0 behind their end
  Tensor counts;                   // (N, listed, C) 1 where a pair counts
};

LabelPairs label_pairs(const Tensor& self, const Tensor& target) {
  const Tensor x = scores(self);
  CRESSET_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "\"multilabel_margin_loss_forward_out_frame\" not implemented for '",
                                self.scalar_type(), "'");
  CRESSET_CHECK(self.dim() == 2 ? target.sizes() == self.sizes() : target.dim() <= 1 && target.numel() == x.size(1),
                "inconsistent target size: ", target.sizes(), " for input of size: ", self.sizes());
  check_classes(target, -1, x.size(1), "argument #2 'target' is out of range");
  const Tensor labels = target.reshape(x.sizes()), valid = (labels >= 0).to(self.scalar_type()).cumprod(1);  // up to the first negative one
  const Tensor listed = labels.clamp_min(0);
  const Tensor is_target = (cresset::zeros_like(x).scatter_add(1, listed, valid) > 0).to(self.scalar_type());
  return {1 - x.gather(1, listed).unsqueeze(2) + x.unsqueeze(1), listed, is_target, valid.unsqueeze(2) * (1 - is_target).unsqueeze(1)};
}
}  // namespace

std::tuple<Tensor, Tensor> multilabel_margin_loss_forward_impl(const Tensor& self, const Tensor& target, int64_t reduction) {
  const LabelPairs pairs = label_pairs(self, target);
  const Tensor loss = (cresset::threshold(pairs.gaps, 0, 0) * pairs.counts).sum({1, 2}, false) / static_cast<double>(pairs.listed.size(1));
  return {reduce_loss(self.dim() == 2 ? loss : loss.reshape({}), reduction), pairs.is_target.reshape(target.sizes())};
}

Tensor multilabel_margin_loss_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction,
                                            const Tensor& is_target) {
  CRESSET_CHECK(is_target.sizes() == target.sizes(), "multilabel_margin_loss_backward: is_target of target's shape ", target.sizes(),
                " was required; got ", is_target.sizes(), ".");
  check_same_device("multilabel_margin_loss_backward", self, is_target, "is_target");
  const LabelPairs pairs = label_pairs(self, target);
  const double classes = static_cast<double>(pairs.listed.size(1));
  const Tensor slopes = (pairs.gaps > 0).to(self.scalar_type()) * pairs.counts;
  const Tensor grads = slopes.sum({1}, false).scatter_add(1, pairs.listed, -slopes.sum({2}, false));
  return (grads * sample_grad(grad_output, pairs.listed.size(0), reduction) / classes).reshape(self.sizes());
}

Tensor margin_ranking_loss_impl(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin, int64_t reduction) {
  return reduce_loss((-target * (input1 - input2) + margin).clamp_min(0), reduction);
}

Tensor hinge_embedding_loss_impl(const Tensor& self, const Tensor& target, double margin, int64_t reduction) {
  const Tensor zeros = cresset::zeros_like(self);
  const Tensor far = cresset::where(target != 1, (margin - self).clamp_min(0), zeros), near = cresset::where(target != -1, self, zeros);
  return reduce_loss(far + near, reduction);
}

Tensor cosine_similarity_impl(const Tensor& first, const Tensor& second, int64_t dim, double eps) {
  CRESSET_CHECK(eps >= 0, "eps must be non-negative, got: ", eps);
  const std::vector<Tensor> same_shape = cresset::broadcast_tensors({first, second});
  const ScalarType common = promoteTypes(first.scalar_type(), second.scalar_type());
  CRESSET_CHECK(isFloatingType(common), "expected common dtype to be floating point, yet common dtype is ", common);
  const auto floating = [&](const Tensor& x) { return x.is_floating_point() ? x : x.to(common); };
  const Tensor x1 = floating(same_shape[0]), x2 = floating(same_shape[1]);
  // The derivative is that of the norm, also below eps.
  const auto length = [&](const Tensor& x) {
    const Tensor norm = cresset::linalg_vector_norm(x, 2, {dim}, true).clone();
    NoGradGuard no_grad;
    Tensor(norm).clamp_min_(eps);
    return norm;
  };
  return (x1 / length(x1) * (x2 / length(x2))).sum({dim}, false);
}

Tensor cosine_embedding_loss_impl(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin, int64_t reduction) {
  CRESSET_CHECK(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported; got ", target.dim(), "D");
  CRESSET_CHECK(input1.dim() == target.dim() + 1 && input1.dim() == input2.dim(), target.dim(), "D target tensor expects ",
                target.dim() + 1, "D input tensors, but found inputs with sizes ", input1.sizes(), " and ", input2.sizes(), ".");
  constexpr double epsilon = 1e-12;
  const int64_t dim = target.dim();
  const Tensor product = (input1 * input2).sum({dim}, false), square1 = (input1 * input1).sum({dim}, false) + epsilon,
               square2 = (input2 * input2).sum({dim}, false) + epsilon;
  const Tensor cosine = product / (square1 * square2).sqrt(), zeros = cresset::zeros_like(cosine);
  const Tensor same = cresset::where(target == 1, 1 - cosine, zeros),
               other = cresset::where(target == -1, (cosine - margin).clamp_min(0), zeros);
  return reduce_loss(same + other, reduction);
}

Tensor triplet_margin_loss_impl(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double p, double eps,
                                bool swap, int64_t reduction) {
  CRESSET_CHECK(anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
                "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor ",
                anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(), "D inputs");
  const Tensor near = cresset::pairwise_distance(anchor, positive, p, eps);
  Tensor far = cresset::pairwise_distance(anchor, negative, p, eps);
  if (swap) far = cresset::minimum(far, cresset::pairwise_distance(positive, negative, p, eps));
  return reduce_loss((margin + near - far).clamp_min(0), reduction);
}

}  // namespace cresset::ops
