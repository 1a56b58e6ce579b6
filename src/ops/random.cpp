// Checks and compositions of random operators.
#include <cmath>

#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_random.h>

#include "ops/ops_decl_random.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::ops {

// In-place operators know their result: Meta has nothing to fill.
Tensor& uniform_meta(Tensor& self, double, double, const std::optional<Generator>&) { return self; }
Tensor& normal_meta(Tensor& self, double, double, const std::optional<Generator>&) { return self; }
Tensor& log_normal_meta(Tensor& self, double, double, const std::optional<Generator>&) { return self; }
Tensor& exponential_meta(Tensor& self, double, const std::optional<Generator>&) { return self; }
Tensor& geometric_meta(Tensor& self, double, const std::optional<Generator>&) { return self; }
Tensor& cauchy_meta(Tensor& self, double, double, const std::optional<Generator>&) { return self; }
Tensor& random_meta(Tensor& self, const std::optional<Generator>&) { return self; }
Tensor& random_from_meta(Tensor& self, int64_t, std::optional<int64_t>, const std::optional<Generator>&) { return self; }
Tensor& random_to_meta(Tensor& self, int64_t, const std::optional<Generator>&) { return self; }
Tensor& bernoulli_float_meta(Tensor& self, double, const std::optional<Generator>&) { return self; }
Tensor& bernoulli_tensor_meta(Tensor& self, const Tensor&, const std::optional<Generator>&) { return self; }

Tensor meta_randperm(int64_t n, const std::optional<Generator>&, std::optional<ScalarType> dtype, std::optional<Layout>,
                     std::optional<Device> device, std::optional<bool>) {
  CRESSET_CHECK(n >= 0, "n must be non-negative, got", n);
  return cresset::empty({n}, TensorOptions(device.value_or(kMeta)).dtype(dtype.value_or(kLong)));
}

Tensor poisson_meta(const Tensor& self, const std::optional<Generator>&) { return cresset::empty(self.sizes(), self.options()); }
Tensor binomial_meta(const Tensor& count, const Tensor& prob, const std::optional<Generator>&) {
  return cresset::empty(infer_broadcast(count.sizes(), prob.sizes()), count.options());
}

Tensor& normal_functional_out(const Tensor& self, double mean, double std, const std::optional<Generator>& generator, Tensor& out) {
  const Tensor numbers = cresset::normal_functional(self, mean, std, generator);
  copy_to_out("normal", numbers, out, OutDtype::Castable);
  return out;
}

Tensor& bernoulli_into(const Tensor& self, const std::optional<Generator>& generator, Tensor& out) {
  CRESSET_CHECK(
      !GradMode::is_enabled() || !(self.requires_grad() || out.requires_grad()),
      "bernoulli(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
  check_no_internal_overlap(out);
  prepare_out(spec_like(out, self.sizes()), out);
  return out.bernoulli_(self, generator);
}

namespace {
TensorSpec same_type(const Tensor& self, std::initializer_list<const Tensor*> others) {
  DimVector sizes(self.sizes());
  for (const Tensor* t : others) {
    CRESSET_CHECK(t->scalar_type() == self.scalar_type(), "Found dtype ", t->scalar_type(), " but expected ", self.scalar_type());
    sizes = infer_broadcast(sizes, t->sizes());
  }
  return spec_like(self, sizes);
}
}  // namespace

TensorSpec multinomial_shape(const Tensor& self, int64_t num_samples, bool replacement, const std::optional<Generator>&) {
  CRESSET_CHECK(self.is_floating_point(), "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  CRESSET_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  CRESSET_CHECK(num_samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t categories = self.size(-1);
  CRESSET_CHECK(replacement || num_samples <= categories, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  CRESSET_CHECK(categories < int64_t{1} << 24, "number of categories cannot exceed 2^24");
  return spec_like(self, self.dim() == 2 ? DimVector{self.size(0), num_samples} : DimVector{num_samples}, kLong);
}

TensorSpec standard_gamma_grad_shape(const Tensor& self, const Tensor& output) { return same_type(self, {&output}); }
TensorSpec dirichlet_grad_shape(const Tensor& x, const Tensor& alpha, const Tensor& total) { return same_type(x, {&alpha, &total}); }

namespace {
void check_std(const Tensor& std) {
  CRESSET_CHECK(!std.is_complex(), "normal expects standard deviation to be non-complex");
  CRESSET_CHECK(std.is_meta() || std.numel() == 0 || std.min().ge(0).item<bool>(), "normal expects all elements of std >= 0.0");
}
}  // namespace

Tensor normal_of(const Tensor& mean, double std, const std::optional<Generator>& generator) {
  return unwritten(cresset::empty(mean.sizes(), mean.options()).normal_(0, std, generator).add_(mean));
}
Tensor normal_of_std(double mean, const Tensor& std, const std::optional<Generator>& generator) {
  check_std(std);
  return unwritten(cresset::empty(std.sizes(), std.options()).normal_(0, 1, generator).mul_(std).add_(mean));
}
Tensor normal_of_both(const Tensor& mean, const Tensor& std, const std::optional<Generator>& generator) {
  check_std(std);
  return unwritten(
      cresset::empty(infer_broadcast(mean.sizes(), std.sizes()), mean.options()).normal_(0, 1, generator).mul_(std).add_(mean));
}

namespace {
void check_probability(double p) { CRESSET_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p); }
Tensor noise_like(const Tensor& input, double p) { return cresset::empty_like(input).bernoulli_(1 - p).div_(1 - p); }
}  // namespace

Tensor dropout_impl(const Tensor& input, double p, bool train) {
  check_probability(p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return input * cresset::zeros({}, input.options());
  return input * noise_like(input, p);
}

Tensor& dropout_inplace_impl(Tensor& self, double p, bool train) {
  check_probability(p);
  if (p == 0 || !train || self.numel() == 0) return self;
  if (p == 1) return self.mul_(cresset::zeros({}, self.options()));
  return self.mul_(noise_like(self, p));
}

// One number for each channel of each image.
static DimVector channel_sizes(const Tensor& input) {
  CRESSET_CHECK(input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
  DimVector sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return sizes;
}

Tensor feature_dropout_impl(const Tensor& input, double p, bool train) {
  check_probability(p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return input * cresset::zeros({}, input.options());
  const DimVector sizes = channel_sizes(input);
  return input * cresset::bernoulli(cresset::new_empty(input, sizes), 1 - p).div_(1 - p);  // not in place: vmap gives each example its own
}

// With one number for each element, or for each channel.
static Tensor alpha_dropped(const Tensor& input, double p, bool train, bool of_channels) {
  check_probability(p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return input * cresset::zeros({}, input.options());
  constexpr double alpha = 1.7580993408473766;  // minus the limit of SELU at minus infinity
  const double a = 1.0 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  // In the order of the input's memory; not in place where both orders are one, since vmap gives each example its own.
  const Tensor like = of_channels ? cresset::new_empty(input, channel_sizes(input)) : cresset::empty_like(input),
               noise = like.is_contiguous() ? cresset::bernoulli(like, 1 - p) : Tensor(like).bernoulli_(1 - p);
  const Tensor b = noise.add(-1).mul(alpha * a).add(alpha * a * p);
  return input * noise.mul(a) + b;
}
Tensor alpha_dropout_impl(const Tensor& input, double p, bool train) { return alpha_dropped(input, p, train, false); }
Tensor feature_alpha_dropout_impl(const Tensor& input, double p, bool train) { return alpha_dropped(input, p, train, true); }

std::tuple<Tensor, Tensor> native_dropout_impl(const Tensor& input, double p, std::optional<bool> train) {
  if (input.numel() == 0) return {input.clone(), cresset::empty_like(input)};
  if (train && !*train) return {input.clone(), cresset::ones_like(input, input.options().dtype(kBool))};
  const double keep = 1 - p;
  Tensor mask = cresset::empty_like(input, input.options().dtype(toRealValueType(input.scalar_type())));
  if (keep == 0)
    mask.zero_();
  else
    mask.bernoulli_(keep).div_(keep);
  return {input * mask, mask.to(kBool)};
}

// ---- leaky_relu with random slopes

namespace {
double mean_slope(const Scalar& lower, const Scalar& upper) { return (lower.toDouble() + upper.toDouble()) / 2; }

// One number for each element that is not positive, in order; 1 for the others. They are products' factors as doubles, and kept in `noise`.
Tensor draw_slopes(const Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper, const std::optional<Generator>& generator) {
  const NoGradGuard no_grad;
  const TensorOptions doubles = self.options().dtype(kDouble);
  if (self.is_meta()) return cresset::empty_like(self, doubles);
  const Tensor below = cresset::le(self, 0);
  const Tensor drawn = cresset::empty({below.sum().item().toLong()}, doubles).uniform_(lower.toDouble(), upper.toDouble(), generator);
  const Tensor slopes = cresset::ones_like(self, doubles).masked_scatter(below, drawn);
  noise.copy_(slopes);
  return slopes;
}

void check_bounds(const Scalar& lower, const Scalar& upper) {
  CRESSET_CHECK(lower.toDouble() <= upper.toDouble(), "Lower bound should be less than or equal to the upper bound");
}
void check_slopes(const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper, bool training) {
  CRESSET_CHECK(self.sizes() == noise.sizes(), "noise tensor shape must match self tensor shape. Got self.shape = ", self.sizes(),
                " noise.shape = ", noise.sizes());
  if (!training) return;
  check_bounds(lower, upper);
  CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(self.scalar_type()), "\"rrelu_with_noise_out_cpu\" not implemented for '",
                                self.scalar_type(), "'");
  CRESSET_CHECK(noise.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", noise.scalar_type());
}
}  // namespace

Tensor rrelu_with_noise_impl(const Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                             const std::optional<Generator>& generator) {
  check_slopes(self, noise, lower, upper, training);
  if (!training) return cresset::leaky_relu(self, mean_slope(lower, upper));
  const Tensor slopes = draw_slopes(self, noise, lower, upper, generator);
  return (self * slopes).to(self.scalar_type()).contiguous();
}

Tensor& rrelu_with_noise_inplace_impl(Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                                      const std::optional<Generator>& generator) {
  check_slopes(self, noise, lower, upper, training);
  if (!training) return cresset::leaky_relu_(self, mean_slope(lower, upper));
  return self.mul_(draw_slopes(self, noise, lower, upper, generator));
}

Tensor rrelu_with_noise_backward_impl(const Tensor& grad_output, const Tensor& self, const Tensor& noise, const Scalar& lower,
                                      const Scalar& upper, bool training, bool self_is_result) {
  if (training) return grad_output * noise.detach();  // what was drawn has no derivative
  return cresset::leaky_relu_backward(grad_output, self, mean_slope(lower, upper), self_is_result);
}

Tensor rrelu_impl(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training, const std::optional<Generator>& generator) {
  check_bounds(lower, upper);
  Tensor noise = cresset::empty_like(self);
  return rrelu_with_noise_impl(self, noise, lower, upper, training, generator);
}

Tensor& rrelu_inplace_impl(Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
                           const std::optional<Generator>& generator) {
  check_bounds(lower, upper);
  Tensor noise = cresset::empty_like(self);
  return rrelu_with_noise_inplace_impl(self, noise, lower, upper, training, generator);
}

std::tuple<Tensor, Tensor> rrelu_with_noise_functional_impl(const Tensor& self, const Tensor& noise, const Scalar& lower,
                                                            const Scalar& upper, bool training, const std::optional<Generator>& generator) {
  Tensor drawn = noise.clone();
  const Tensor result = cresset::rrelu_with_noise(self, drawn, lower, upper, training, generator);
  return {result, drawn};
}

// Where nothing is dropped self is not touched: it may be a leaf of autograd.
static Tensor& changed_to(Tensor& self, const Tensor& values) { return values.is_same(self) ? self : self.copy_(values); }
Tensor& feature_dropout_inplace(Tensor& self, double p, bool train) { return changed_to(self, feature_dropout_impl(self, p, train)); }
Tensor& alpha_dropout_inplace(Tensor& self, double p, bool train) { return changed_to(self, alpha_dropout_impl(self, p, train)); }
Tensor& feature_alpha_dropout_inplace(Tensor& self, double p, bool train) {
  return changed_to(self, feature_alpha_dropout_impl(self, p, train));
}

Tensor randint_like_tensor(const Tensor& self, const Tensor& high, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                           std::optional<Device> device, std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  CRESSET_CHECK(high.dim() == 0 && high.is_cpu(), "high must be a scalar tensor and on CPU");
  return cresset::randint_like(self, high.item<int64_t>(), dtype, layout, device, pin_memory, memory_format);
}

}  // namespace cresset::ops
