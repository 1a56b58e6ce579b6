// nn::utils: gradients clipped, parameters as one vector.
#pragma once

#include <vector>

#include <cresset/core/tensor.h>
#include <cresset/nn/rnn.h>

namespace cresset::nn::utils {

/// Scales all gradients together so that their norm is at most max_norm; gives back the norm they had.
CRESSET_API double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                                   bool error_if_nonfinite = false);
CRESSET_API double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type = 2, bool error_if_nonfinite = false);
CRESSET_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
CRESSET_API void clip_grad_value_(const Tensor& parameter, double clip_value);
CRESSET_API Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
CRESSET_API void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

}  // namespace cresset::nn::utils
