// Checks and compositions of normalisations.
#include <cmath>
#include <limits>

#include <cresset/core/dispatch_types.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_norm.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/norm.h"
#include "ops/ops_decl_norm.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

// Sizes of statistics: those of input with the normalised ones set to 1.
DimVector statistics_sizes(const Tensor& input, IntArrayRef normalized_shape) {
  const int64_t n = static_cast<int64_t>(normalized_shape.size());
  CRESSET_CHECK(
      n >= 1, "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = ",
      normalized_shape);
  bool fits = input.dim() >= n;
  for (int64_t i = 0; fits && i < n; ++i) fits = input.size(input.dim() - n + i) == normalized_shape[static_cast<std::size_t>(i)];
  CRESSET_CHECK(fits, "Given normalized_shape=", normalized_shape, ", expected input with shape [*, ",
                to_string(normalized_shape).substr(1), ", but got input of size", input.sizes());
  DimVector sizes(input.sizes());
  for (int64_t i = input.dim() - n; i < input.dim(); ++i) sizes[i] = 1;
  return sizes;
}

void check_affine(const char* name, const std::optional<Tensor>& t, IntArrayRef normalized_shape) {
  CRESSET_CHECK(!t || t->sizes() == normalized_shape, "Expected ", name, " to be of same shape as normalized_shape, but got ", name,
                " of shape ", t ? t->sizes() : IntArrayRef(), " and normalized_shape = ", normalized_shape);
}

// The type of mean and 1/deviation: the input's, or float where parameters of a half input are float. Other mixtures are errors.
template <class... Parameters>
ScalarType statistics_type(const Tensor& input, const Parameters&... parameters) {
  const ScalarType type = input.scalar_type();
  const bool half = type == kHalf || type == kBFloat16;
  ScalarType found = type;
  std::size_t others = 0, same = 0;
  const auto look = [&](const std::optional<Tensor>& t) {
    if (!t || !t->defined()) return;
    if (t->scalar_type() == type) {
      ++same;
      return;
    }
    ++others;
    CRESSET_CHECK(half, "mixed dtype (CPU): all inputs must share same datatype.");
    CRESSET_CHECK(t->scalar_type() == kFloat, "mixed dtype (CPU): expect parameter to have scalar type of Float");
    found = kFloat;
  };
  (look(parameters), ...);
  CRESSET_CHECK(others == 0 || same == 0, "mixed dtype (CPU): expect parameter to have scalar type of Float");
  return found;
}

void check_channels(const char* name, const std::optional<Tensor>& t, int64_t channels) {
  CRESSET_CHECK(!t || t->numel() == channels, name, " should contain ", channels, " elements not ", t ? t->numel() : 0);
}

}  // namespace

std::array<TensorSpec, 3> native_layer_norm_shape(const Tensor& input, IntArrayRef normalized_shape, const std::optional<Tensor>& weight,
                                                  const std::optional<Tensor>& bias, double) {
  const DimVector statistics = statistics_sizes(input, normalized_shape);
  check_affine("weight", weight, normalized_shape);
  check_affine("bias", bias, normalized_shape);
  const TensorSpec s = spec_like(input, statistics, statistics_type(input, weight, bias));
  return {spec_like(input, input.sizes()), s, s};
}

namespace {
void check_grad_sizes(const char* op, const Tensor& grad, const Tensor& input) {
  CRESSET_CHECK(grad.sizes() == input.sizes(), op, ": expected grad_out to have shape ", input.sizes(), ", but got ", grad.sizes());
}
void check_statistics(const char* op, const char* name, const std::optional<Tensor>& t, int64_t count) {
  CRESSET_CHECK(t && t->defined() && t->numel() == count, op, ": ", name, " of ", count, " elements was required; ",
                t && t->defined() ? str(t->numel()) : "none", " was given.");
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward_meta(const Tensor& grad_out, const Tensor& input,
                                                                   IntArrayRef normalized_shape, const Tensor& mean, const Tensor& rstd,
                                                                   const std::optional<Tensor>& weight, const std::optional<Tensor>&,
                                                                   std::array<bool, 3> mask) {
  constexpr const char* kName = "native_layer_norm_backward";
  int64_t rows = 1;
  for (int64_t s : statistics_sizes(input, normalized_shape)) rows *= s;
  check_grad_sizes(kName, grad_out, input);
  check_statistics(kName, "mean", mean, rows);
  check_statistics(kName, "rstd", rstd, rows);
  check_affine("weight", weight, normalized_shape);
  const auto affine = [&](bool wanted) { return wanted ? cresset::empty(normalized_shape, input.options()) : Tensor(); };
  return {mask[0] ? cresset::empty_like(input) : Tensor(), affine(mask[1]), affine(mask[2])};
}

ScalarType check_batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                            const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool training) {
  CRESSET_CHECK_VALUE(running_mean.has_value() == running_var.has_value(),
                      "running_mean and running_var must either both be None or neither be None");
  const int64_t channels = input.dim() >= 2 ? input.size(1) : 0;
  check_channels("running_mean", running_mean, channels);
  check_channels("running_var", running_var, channels);
  check_channels("weight", weight, channels);
  check_channels("bias", bias, channels);
  CRESSET_CHECK(!training || input.numel() > 0 || input.dim() < 2,
                "input tensor must have at least one element, but got input_sizes = ", input.sizes());
  CRESSET_CHECK(training || (running_mean && running_var), "running_mean and running_var must be defined in evaluation mode");
  CRESSET_CHECK_INDEX(input.dim() >= 2 || input.numel() == 0, "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  CRESSET_CHECK_NOT_IMPLEMENTED(isFloatingType(input.scalar_type()), "\"batch_norm\" not implemented for '", input.scalar_type(), "'");
  return statistics_type(input, weight, bias, running_mean, running_var);
}

namespace {
Tensor empty_suggested(const Tensor& t) { return cresset::empty(t.sizes(), t.options().memory_format(t.suggest_memory_format())); }
}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_meta(const Tensor& input, const std::optional<Tensor>& weight,
                                                          const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                                                          const std::optional<Tensor>& running_var, bool training, double, double) {
  const TensorOptions statistics = input.options().dtype(check_batch_norm(input, weight, bias, running_mean, running_var, training));
  const auto same_device = [&](const std::optional<Tensor>& t, const char* name) {
    if (t && t->defined()) check_same_device("batch_norm", input, *t, name);
  };
  same_device(weight, "weight");
  same_device(bias, "bias");
  same_device(running_mean, "running_mean");
  same_device(running_var, "running_var");
  const int64_t n = training ? input.size(1) : 0;
  return {empty_suggested(input), cresset::empty({n}, statistics), cresset::empty({n}, statistics)};
}

void check_batch_norm_backward(const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight,
                               const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
                               const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train) {
  constexpr const char* kName = "native_batch_norm_backward";
  CRESSET_CHECK(input.dim() >= 2, kName, ": an input of at least 2 dimensions was required; ", input.dim(), " were given.");
  const int64_t channels = input.size(1);
  check_grad_sizes(kName, grad_out, input);
  check_channels("weight", weight, channels);
  check_statistics(kName, train ? "save_mean" : "running_mean", train ? save_mean : running_mean, channels);
  check_statistics(kName, train ? "save_invstd" : "running_var", train ? save_invstd : running_var, channels);
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward_meta(
    const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& running_mean,
    const std::optional<Tensor>& running_var, const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train,
    double, std::array<bool, 3> mask) {
  check_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train);
  const auto affine = [&](bool wanted) { return wanted ? cresset::empty({input.size(1)}, input.options()) : Tensor(); };
  return {mask[0] ? empty_suggested(input) : Tensor(), affine(mask[1]), affine(mask[2])};
}

Tensor batch_norm_impl(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                       const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool training, double momentum,
                       double eps, bool) {
  CRESSET_CHECK(training || (running_mean && running_mean->defined()), "running_mean must be defined in evaluation mode");
  CRESSET_CHECK(training || (running_var && running_var->defined()), "running_var must be defined in evaluation mode");
  CRESSET_CHECK_VALUE(running_mean.has_value() == running_var.has_value(),
                      "running_mean and running_var must either both be None or neither be None");
  if (input.dim() < 2) check_batch_norm(input, weight, bias, running_mean, running_var, training);  // only empty ones pass
  if (input.numel() == 0) {  // of any rank, and without a change of the statistics
    Tensor out = input.clone();
    if (weight && weight->numel() > 0) out = out * weight->select(0, 0);
    if (bias && bias->numel() > 0) out = out + bias->select(0, 0);
    return out;
  }
  return std::get<0>(cresset::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

namespace {
// The outputs of the variants that reserve memory for a backend's gradient; the CPU needs none.
std::tuple<Tensor, Tensor, Tensor, Tensor> with_reserve(const std::tuple<Tensor, Tensor, Tensor>& r, const Tensor& input) {
  return {std::get<0>(r), std::get<1>(r), std::get<2>(r), cresset::empty({0}, input.options().dtype(kByte))};
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_with_update(const Tensor& input, const std::optional<Tensor>& weight,
                                                                  const std::optional<Tensor>& bias, Tensor& running_mean,
                                                                  Tensor& running_var, double momentum, double eps) {
  return with_reserve(cresset::native_batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps), input);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_no_update(const Tensor& input, const std::optional<Tensor>& weight,
                                                                const std::optional<Tensor>& bias,
                                                                const std::optional<Tensor>& running_mean,
                                                                const std::optional<Tensor>& running_var, double momentum, double eps) {
  return with_reserve(cresset::native_batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps), input);
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_legit(const Tensor& input, const std::optional<Tensor>& weight,
                                                           const std::optional<Tensor>& bias, Tensor& running_mean, Tensor& running_var,
                                                           bool training, double momentum, double eps) {
  return cresset::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> native_batch_norm_legit_functional(const Tensor& input,
                                                                                      const std::optional<Tensor>& weight,
                                                                                      const std::optional<Tensor>& bias,
                                                                                      const Tensor& running_mean, const Tensor& running_var,
                                                                                      bool training, double momentum, double eps) {
  if (!training) {
    auto [result, mean, invstd] = cresset::native_batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps);
    return {result, mean, invstd, running_mean.clone(), running_var.clone()};
  }
  auto [result, mean, invstd] = cresset::native_batch_norm(input, weight, bias, std::nullopt, std::nullopt, true, momentum, eps);
  DimVector dims;  // all but the channels
  for (int64_t d = 0; d < input.dim(); ++d)
    if (d != 1) dims.push_back(d);
  const auto moved = [&](const Tensor& running, const Tensor& now) {
    return running * (1 - momentum) + (now * momentum).to(running.scalar_type());
  };
  const Tensor x = input.detach();
  return {result, mean, invstd, moved(running_mean.detach(), cresset::mean(x, dims)),
          moved(running_var.detach(), cresset::var(x, dims, Scalar(1)))};
}

Tensor instance_norm_impl(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                          const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool use_input_stats,
                          double momentum, double eps, bool cudnn_enabled) {
  CRESSET_CHECK(use_input_stats || (running_mean && running_var),
                "Expected running_mean and running_var to be defined when use_input_stats is false");
  CRESSET_CHECK(input.dim() >= 2, "instance_norm: input of at least 2 dimensions was required; ", input, " was given.");
  // Images become channels of one batch.
  const int64_t b = input.size(0), c = input.size(1);
  DimVector sizes(input.sizes());
  sizes[0] = 1;
  sizes[1] = b * c;
  const auto repeated = [&](const std::optional<Tensor>& t) { return t ? std::optional<Tensor>(t->repeat({b})) : std::nullopt; };
  const std::optional<Tensor> mean = repeated(running_mean), var = repeated(running_var);
  const Tensor out =
      cresset::batch_norm(input.reshape(sizes), repeated(weight), repeated(bias), mean, var, use_input_stats, momentum, eps, cudnn_enabled);
  const auto write_back = [&](const std::optional<Tensor>& to, const std::optional<Tensor>& from) {
    if (!to || !use_input_stats) return;
    const impl::ExcludeDispatchKeyGuard of_a_transform(DispatchKey::FuncTorchDynamicLayerFrontMode);  // may be captured by its function
    to->detach().copy_(from->view({b, c}).mean({0}, false));
  };
  write_back(running_mean, mean);
  write_back(running_var, var);
  return out.reshape(input.sizes());
}

Tensor rms_norm_impl(const Tensor& input, IntArrayRef normalized_shape, const std::optional<Tensor>& weight, std::optional<double> eps) {
  const int64_t n = static_cast<int64_t>(normalized_shape.size());
  CRESSET_CHECK_VALUE(input.dim() >= n, "Input tensor must have at least ", n, " dimensions, but got ", input.dim());
  statistics_sizes(input, normalized_shape);
  check_affine("weight", weight, normalized_shape);
  DimVector dims;
  for (int64_t i = 0; i < static_cast<int64_t>(normalized_shape.size()); ++i) dims.push_back(-1 - i);
  const ScalarType type = toOpMathType(input.scalar_type());
  const Tensor x = input.to(type);
  const double epsilon = eps ? *eps
                             : CRESSET_DISPATCH(toRealValueType(input.scalar_type()), "rms_norm", CRESSET_FLOATING_AND_HALF_TYPES,
                                                [&] { return static_cast<double>(std::numeric_limits<scalar_t>::epsilon()); });
  const Tensor y = (x * cresset::rsqrt(cresset::mean(x * x, dims, true) + epsilon)).to(input.scalar_type());
  return (weight ? (y * *weight).to(input.scalar_type()) : y).contiguous(input.suggest_memory_format());
}

ScalarType check_group_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, int64_t n,
                            int64_t c, int64_t hxw, int64_t group) {
  CRESSET_CHECK(group > 0 && c % group == 0, "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
                input.sizes(), " and num_groups=", group);
  for (const auto& [name, t] : {std::pair("weight", &weight), std::pair("bias", &bias)})
    CRESSET_CHECK(!*t || ((*t)->dim() == 1 && (*t)->numel() == c), "Expected ", name,
                  " to be a vector of size equal to the number of channels in input, but got ", name, " of shape ", (*t)->sizes(),
                  " and input of shape ", input.sizes());
  CRESSET_CHECK(input.dim() >= 2 && n >= 0 && c >= 0 && hxw >= 0 && input.numel() == n * c * hxw,
                "native_group_norm: an input of at least two dimensions and N * C * HxW elements was required; got ", input.sizes(),
                " with N = ", n, ", C = ", c, " and HxW = ", hxw, ".");
  return statistics_type(input, weight, bias);
}

void check_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                               const std::optional<Tensor>& weight, int64_t n, int64_t c, int64_t hxw, int64_t group) {
  CRESSET_CHECK(group > 0 && n >= 0 && c >= 0 && hxw >= 0 && c % group == 0 && input.numel() == n * c * hxw &&
                    grad_out.sizes() == input.sizes() && mean.numel() == n * group && rstd.numel() == n * group,
                "native_group_norm_backward: N * C * HxW elements and N * group statistics were required; got ", input.sizes(), ", ",
                grad_out.sizes(), ", ", mean.sizes(), " and ", rstd.sizes(), ".");
  check_channels("weight", weight, c);
}

// Out of operators, for tangents and for devices without a kernel.
std::tuple<Tensor, Tensor, Tensor> native_group_norm_impl(const Tensor& input, const std::optional<Tensor>& weight,
                                                          const std::optional<Tensor>& bias, int64_t n, int64_t c, int64_t hxw,
                                                          int64_t group, double eps) {
  const ScalarType type = input.scalar_type(), statistics = check_group_norm(input, weight, bias, n, c, hxw, group);
  const int64_t row = c / group * hxw;
  const Tensor wide = input.to(toOpMathType(type));  // the result is rounded once, behind weight and bias
  auto [y, mean, rstd] = cresset::native_layer_norm(wide.reshape({n * group, row}), {row}, std::nullopt, std::nullopt, eps);
  DimVector affine(static_cast<std::size_t>(input.dim()), 1);
  affine[1] = c;
  Tensor out = cresset::_unsafe_view(y, input.sizes()).contiguous(input.suggest_memory_format());
  if (weight) out = out * weight->view(affine);
  if (bias) out = out + bias->view(affine);
  // The statistics of native_layer_norm have no derivative; whether a tangent is there, only autograd knows.
  if (GradMode::is_enabled() && input.numel() > 0) {
    auto [var, average] = cresset::var_mean(input.reshape({n, group, row}), IntArrayRef({2}), Scalar(0));
    rstd = cresset::rsqrt(var + eps);
    mean = average;
  }
  return {out.to(type), mean.reshape({n, group}).to(statistics), rstd.reshape({n, group}).to(statistics)};
}

// With xhat = (input - mean) * rstd and h = grad_out * weight: grad_input = rstd * (h - E[h] - xhat * E[h * xhat]), E over a group.
std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward_impl(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                                                                   const Tensor& rstd, const std::optional<Tensor>& weight, int64_t n,
                                                                   int64_t c, int64_t hxw, int64_t group, std::array<bool, 3> output_mask) {
  check_group_norm_backward(grad_out, input, mean, rstd, weight, n, c, hxw, group);
  const DimVector split{n, group, c / group, hxw}, statistics{n, group, 1, 1};
  const ScalarType wide = toOpMathType(input.scalar_type()), type = weight ? weight->scalar_type() : input.scalar_type();
  const Tensor g = grad_out.to(wide).reshape(split), m = mean.to(wide).reshape(statistics), s = rstd.to(wide).reshape(statistics);
  const Tensor xhat = (input.to(wide).reshape(split) - m) * s;
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    const Tensor h = weight ? g * weight->reshape({1, group, c / group, 1}) : g;
    const Tensor moved = h - cresset::mean(h, {2, 3}, true) - xhat * cresset::mean(h * xhat, {2, 3}, true);
    grad_input = (moved * s).reshape(input.sizes()).to(input.scalar_type());
  }
  if (output_mask[1]) grad_weight = cresset::sum(g * xhat, {0, 3}, false).reshape({c}).to(type);
  if (output_mask[2]) grad_bias = cresset::sum(g, {0, 3}, false).reshape({c}).to(type);
  return {grad_input, grad_weight, grad_bias};
}

Tensor group_norm_impl(const Tensor& input, int64_t num_groups, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                       double eps, bool) {
  CRESSET_CHECK(input.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", input.dim());
  const int64_t n = input.size(0), c = input.size(1);
  return std::get<0>(cresset::native_group_norm(input, weight, bias, n, c, n * c == 0 ? 0 : input.numel() / (n * c), num_groups, eps));
}

Tensor norm_except_dim_impl(const Tensor& v, int64_t pow, int64_t dim) {
  CRESSET_CHECK(isDifferentiableType(v.scalar_type()), "norm(): input dtype should be either floating point or complex. Got ",
                v.scalar_type(), " instead.");
  const double p = static_cast<double>(pow);
  if (dim == -1) return cresset::norm(v, p);
  CRESSET_CHECK_INDEX(v.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  dim = maybe_wrap_dim(dim, v.dim());
  DimVector over;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != dim) over.push_back(d);
  return over.empty() ? cresset::abs(v) : cresset::norm(v, p, over, true);
}

std::tuple<Tensor, Tensor> weight_norm_interface(const Tensor& v, const Tensor& g, int64_t dim) {
  // Lengths of half types are kept in single precision, and what follows from them is rounded once.
  const bool half = isReducedFloatingType(v.scalar_type());
  const Tensor lengths = cresset::norm_except_dim(half ? v.to(kFloat) : v, 2, dim);
  return {half ? (v * (g.to(kFloat) / lengths)).to(v.scalar_type()) : v * (g / lengths), lengths};
}

// --- batch normalisation in parts
namespace {

DimVector all_but_channels(const Tensor& input) {
  DimVector dims;
  for (int64_t d = 0; d < input.dim(); ++d)
    if (d != 1) dims.push_back(d);
  return dims;
}
Tensor by_channel(const Tensor& values, const Tensor& input) {
  DimVector sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[1] = -1;
  return values.view(sizes);
}
// Both are computed before either is written: an error leaves them as they were.
void move_running(const std::optional<Tensor>& running_mean, const Tensor& mean, const std::optional<Tensor>& running_var,
                  const Tensor& var, double momentum) {
  const NoGradGuard none;
  const auto moved = [&](const char* name, const std::optional<Tensor>& running, const Tensor& now) {
    if (!running || !running->defined()) return Tensor();
    check_channels(name, running, now.numel());
    return (*running * (1 - momentum) + now.to(running->scalar_type()) * momentum).to(running->scalar_type());
  };
  const Tensor new_mean = moved("running_mean", running_mean, mean), new_var = moved("running_var", running_var, var);
  if (new_mean.defined()) Tensor(*running_mean).copy_(new_mean.view(running_mean->sizes()));
  if (new_var.defined()) Tensor(*running_var).copy_(new_var.view(running_var->sizes()));
}

}  // namespace

std::tuple<Tensor, Tensor> batch_norm_stats_impl(const Tensor& input, double eps) {
  const Tensor wide = isReducedFloatingType(input.scalar_type()) ? input.to(kFloat) : input;
  const auto [var, mean] = cresset::var_mean(wide, all_but_channels(input), 0);
  return {mean, (var + eps).rsqrt()};
}

Tensor batch_norm_elemt_impl(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                             const Tensor& mean, const Tensor& invstd, double /*eps*/) {
  Tensor result = (input - by_channel(mean, input)) * by_channel(invstd, input);
  if (weight && weight->defined()) result = result * by_channel(*weight, input);
  if (bias && bias->defined()) result = result + by_channel(*bias, input);
  return result.to(input.scalar_type());
}

std::tuple<Tensor, Tensor> batch_norm_gather_stats_with_counts_impl(const Tensor& /*input*/, const Tensor& mean, const Tensor& invstd,
                                                                    const std::optional<Tensor>& running_mean,
                                                                    const std::optional<Tensor>& running_var, double momentum, double eps,
                                                                    const Tensor& counts) {
  const Tensor rows = counts.to(mean.scalar_type()).view({-1, 1}), total = rows.sum();
  const Tensor joint = (mean * rows).sum(0) / total, off = mean - joint;
  const Tensor var = ((invstd.reciprocal().square() - eps + off * off) * rows).sum(0) / total;
  move_running(running_mean, joint, running_var, var * (total / (total - 1)), momentum);
  return {joint, (var + eps).rsqrt()};
}

std::tuple<Tensor, Tensor> batch_norm_update_stats_impl(const Tensor& input, const std::optional<Tensor>& running_mean,
                                                        const std::optional<Tensor>& running_var, double momentum) {
  CRESSET_CHECK(input.numel() > 0, "input tensor must have at least one element, but got input_sizes = ", input.sizes());
  const auto [var, mean] = cresset::var_mean(input, all_but_channels(input), 0);
  const double n = static_cast<double>(input.numel()) / static_cast<double>(input.size(1));
  move_running(running_mean, mean, running_var, var * (n / (n - 1)), momentum);
  return {mean, var};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_backward_reduce_impl(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                                                                           const Tensor& invstd, const std::optional<Tensor>& /*weight*/,
                                                                           bool input_g, bool weight_g, bool bias_g) {
  const DimVector dims = all_but_channels(input);
  const Tensor sum_dy = grad_out.sum(dims), sum_dy_xmu = (grad_out * (input - by_channel(mean, input))).sum(dims);
  return {input_g ? sum_dy : Tensor(), input_g ? sum_dy_xmu : Tensor(), weight_g ? sum_dy_xmu * invstd : Tensor(),
          bias_g ? sum_dy.clone() : Tensor()};
}

Tensor batch_norm_backward_elemt_impl(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                                      const std::optional<Tensor>& weight, const Tensor& sum_dy, const Tensor& sum_dy_xmu,
                                      const Tensor& count) {
  const Tensor total = count.sum().to(sum_dy.scalar_type());
  const Tensor centred = (input - by_channel(mean, input)) * by_channel(sum_dy_xmu / total * invstd * invstd, input);
  const Tensor factor = weight && weight->defined() ? invstd * *weight : invstd;
  return ((grad_out - by_channel(sum_dy / total, input) - centred) * by_channel(factor, input)).to(input.scalar_type());
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> batch_norm_with_update_functional(
    const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  auto [result, mean, invstd, new_mean, new_var] =
      native_batch_norm_legit_functional(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {result, mean, invstd, cresset::empty({0}, input.options().dtype(kByte)), new_mean, new_var};
}

}  // namespace cresset::ops
