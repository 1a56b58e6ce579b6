// Derivatives of recurrent layers, written with differentiable operators.
#pragma once

#include <array>
#include <tuple>

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

/// Gradients of cresset::lstm_layer for gates, h, c and w_hh, from those of its results (undefined: zero) and the results.
std::tuple<Tensor, Tensor, Tensor, Tensor> lstm_layer_backward(const Tensor& d_outputs, const Tensor& d_cells, const Tensor& d_active,
                                                               const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& outputs,
                                                               const Tensor& cells, const Tensor& active, std::array<bool, 4> mask);

}  // namespace cresset::autograd::formulas
