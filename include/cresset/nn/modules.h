// The layers that the C++ examples use. Weights start as PyTorch's do, from the default CPU generator.
#pragma once

#include <cresset/nn/module.h>

namespace cresset::nn {

/// y = x @ weight.T + bias; weight (out, in).
struct CRESSET_API LinearImpl : Module {
  LinearImpl(int64_t in_features, int64_t out_features, bool with_bias = true);
  Tensor forward(const Tensor& x) const;
  Tensor weight, bias;
};
CRESSET_MODULE(Linear);

/// 2-D convolution, weight (out, in/groups, k, k).
struct CRESSET_API Conv2dImpl : Module {
  Conv2dImpl(int64_t in_channels, int64_t out_channels, int64_t kernel_size, int64_t stride = 1, int64_t padding = 0, int64_t groups = 1,
             bool with_bias = true);
  Tensor forward(const Tensor& x) const;
  Tensor weight, bias;

 private:
  int64_t stride_, padding_, groups_;
};
CRESSET_MODULE(Conv2d);

/// Batch normalisation by channel of (N, C, H, W), with running statistics.
struct CRESSET_API BatchNorm2dImpl : Module {
  explicit BatchNorm2dImpl(int64_t channels, double eps = 1e-5, double momentum = 0.1);
  Tensor forward(const Tensor& x);
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  double eps_, momentum_;
};
CRESSET_MODULE(BatchNorm2d);

/// Zeroes elements with probability p while training.
struct CRESSET_API DropoutImpl : Module {
  explicit DropoutImpl(double p = 0.5) : p_(p) {}
  Tensor forward(const Tensor& x) const;

 private:
  double p_;
};
CRESSET_MODULE(Dropout);

}  // namespace cresset::nn
