// Layers.
#include <cresset/nn/modules.h>

#include <cmath>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_conv.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_norm.h>
#include <cresset/ops/functions_random.h>

namespace cresset::nn {
namespace {
// kaiming_uniform_(a = sqrt(5)) and the bias that goes with it: both uniform on ±1/sqrt(fan_in) (He et al. 2015).
Tensor uniform(IntArrayRef sizes, int64_t fan_in) {
  const double bound = fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0;
  return cresset::empty(sizes, TensorOptions()).uniform_(-bound, bound);
}
std::optional<Tensor> given(const Tensor& t) { return t.defined() ? std::optional<Tensor>(t) : std::nullopt; }
}  // namespace

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, bool with_bias) {
  weight = register_parameter("weight", uniform({out_features, in_features}, in_features));
  bias = register_parameter("bias", with_bias ? uniform({out_features}, in_features) : Tensor());
}
Tensor LinearImpl::forward(const Tensor& x) const { return cresset::linear(x, weight, given(bias)); }

Conv2dImpl::Conv2dImpl(int64_t in_channels, int64_t out_channels, int64_t kernel_size, int64_t stride, int64_t padding, int64_t groups,
                       bool with_bias)
    : stride_(stride), padding_(padding), groups_(groups) {
  CRESSET_CHECK_VALUE(groups > 0 && in_channels % groups == 0 && out_channels % groups == 0,
                      "Conv2d: channels divisible by groups=", groups, " were required; ", in_channels, " and ", out_channels,
                      " were given.");
  const int64_t fan_in = in_channels / groups * kernel_size * kernel_size;
  weight = register_parameter("weight", uniform({out_channels, in_channels / groups, kernel_size, kernel_size}, fan_in));
  bias = register_parameter("bias", with_bias ? uniform({out_channels}, fan_in) : Tensor());
}
Tensor Conv2dImpl::forward(const Tensor& x) const {
  return cresset::conv2d(x, weight, given(bias), IntArrayRef{stride_, stride_}, IntArrayRef{padding_, padding_}, IntArrayRef{1, 1},
                         groups_);
}

BatchNorm2dImpl::BatchNorm2dImpl(int64_t channels, double eps, double momentum) : eps_(eps), momentum_(momentum) {
  weight = register_parameter("weight", cresset::ones({channels}, TensorOptions()));
  bias = register_parameter("bias", cresset::zeros({channels}, TensorOptions()));
  running_mean = register_buffer("running_mean", cresset::zeros({channels}, TensorOptions()));
  running_var = register_buffer("running_var", cresset::ones({channels}, TensorOptions()));
  num_batches_tracked = register_buffer("num_batches_tracked", cresset::zeros({}, TensorOptions(kLong)));
}
Tensor BatchNorm2dImpl::forward(const Tensor& x) {
  if (is_training()) num_batches_tracked.add_(1);
  return cresset::batch_norm(x, weight, bias, running_mean, running_var, is_training(), momentum_, eps_, false);
}

Tensor DropoutImpl::forward(const Tensor& x) const { return cresset::dropout(x, p_, is_training()); }

}  // namespace cresset::nn
