#include "autograd/formulas_grid.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_grid.h>

namespace cresset::autograd::formulas {
namespace {

Tensor plus(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : cresset::add(a, b); }

}  // namespace

Tensor grid_sampler_grid_grad(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                              bool align_corners) {
  const auto backward = input.dim() == 4 ? cresset::grid_sampler_2d_backward : cresset::grid_sampler_3d_backward;
  return std::get<1>(backward(grad, input, grid, interpolation_mode, padding_mode, align_corners, {false, true}));
}

// The results are linear in grad_output g. Their products with the cotangents a and b are <g, sample(a, grid)>, which does not depend on
// the input, and <g, tangent(input, grid, b)>.
std::tuple<Tensor, Tensor, Tensor> grid_sampler_double_backward(const Tensor& input_cotangent, const Tensor& grid_cotangent,
                                                                const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                                                int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                                                std::array<bool, 3> mask) {
  Tensor to_grad, to_input, to_grid;
  if (input_cotangent.defined()) {
    if (mask[0]) to_grad = cresset::grid_sampler(input_cotangent, grid, interpolation_mode, padding_mode, align_corners);
    if (mask[2]) to_grid = grid_sampler_grid_grad(grad_output, input_cotangent, grid, interpolation_mode, padding_mode, align_corners);
  }
  if (grid_cotangent.defined()) {
    if (mask[0])
      to_grad = plus(to_grad, cresset::grid_sampler_tangent(input, grid, grid_cotangent, interpolation_mode, padding_mode, align_corners));
    if (mask[1] || mask[2]) {
      const auto [by_input, by_grid] =
          cresset::grid_sampler_tangent_backward(grad_output, input, grid, grid_cotangent, interpolation_mode, padding_mode, align_corners);
      if (mask[1]) to_input = by_input;
      if (mask[2]) to_grid = plus(to_grid, by_grid);
    }
  }
  return {to_grad, to_input, to_grid};
}

}  // namespace cresset::autograd::formulas
