// Derivatives of the gradients of grid sampling.
#pragma once

#include <cresset/core/tensor.h>

#include <array>
#include <tuple>

namespace cresset::autograd::formulas {

// Gradient of grid_sampler_2d or grid_sampler_3d for the grid alone.
Tensor grid_sampler_grid_grad(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                              bool align_corners);

// Gradients of grid_sampler_2d_backward or grid_sampler_3d_backward for grad_output, input and grid. The gradients of its two results
// may be undefined.
std::tuple<Tensor, Tensor, Tensor> grid_sampler_double_backward(const Tensor& input_cotangent, const Tensor& grid_cotangent,
                                                                const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                                                int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                                                std::array<bool, 3> mask);

}  // namespace cresset::autograd::formulas
