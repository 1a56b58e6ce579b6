// nn::init: starting values of weights, written in place without being recorded.
#pragma once

#include <cresset/core/tensor.h>
#include <cresset/nn/arg.h>

namespace cresset::nn::init {

using NonlinearityType = std::variant<enumtype::kLinear, enumtype::kConv1D, enumtype::kConv2D, enumtype::kConv3D,
                                      enumtype::kConvTranspose1D, enumtype::kConvTranspose2D, enumtype::kConvTranspose3D,
                                      enumtype::kSigmoid, enumtype::kTanh, enumtype::kReLU, enumtype::kLeakyReLU>;
using FanModeType = std::variant<enumtype::kFanIn, enumtype::kFanOut>;

CRESSET_API double calculate_gain(const NonlinearityType& nonlinearity, double param = 0.01);
CRESSET_API Tensor constant_(Tensor tensor, const Scalar& value);
CRESSET_API Tensor zeros_(Tensor tensor);
CRESSET_API Tensor ones_(Tensor tensor);
CRESSET_API Tensor eye_(Tensor matrix);
CRESSET_API Tensor dirac_(Tensor tensor);
CRESSET_API Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
CRESSET_API Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
CRESSET_API Tensor orthogonal_(Tensor tensor, double gain = 1);
CRESSET_API Tensor sparse_(Tensor tensor, double sparsity, double std = 0.01);
CRESSET_API Tensor kaiming_normal_(Tensor tensor, double a = 0, const FanModeType& mode = kFanIn,
                                   const NonlinearityType& nonlinearity = kLeakyReLU);
CRESSET_API Tensor kaiming_uniform_(Tensor tensor, double a = 0, const FanModeType& mode = kFanIn,
                                    const NonlinearityType& nonlinearity = kLeakyReLU);
CRESSET_API Tensor xavier_normal_(Tensor tensor, double gain = 1);
CRESSET_API Tensor xavier_uniform_(Tensor tensor, double gain = 1);
/// The numbers of inputs and outputs of one element.
CRESSET_API std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor);

}  // namespace cresset::nn::init
