// Checks of grid sampling, and affine grids as matrix products.
#include <vector>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_grid.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_grid.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

void check_pair(const Tensor& input, const Tensor& grid) {
  check_same_device("grid_sampler", input, grid, "grid");
  CRESSET_CHECK(input.dim() > 0 && grid.dim() > 0 && input.size(0) == grid.size(0),
                "grid_sampler(): expected grid and input to have same batch size, but got input with sizes ", input.sizes(),
                " and grid with sizes ", grid.sizes());
  CRESSET_CHECK(grid.size(-1) == input.dim() - 2, "grid_sampler(): expected grid to have size ", input.dim() - 2,
                " in last dimension, but got grid with sizes ", grid.sizes());
  for (int64_t d = 2; d < input.dim(); ++d)
    CRESSET_CHECK(input.size(d) > 0, "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes ",
                  input.sizes(), " with dimension ", d, " being empty");
}

TensorSpec sampled(const Tensor& input, const Tensor& grid, int64_t n, int64_t interpolation_mode, int64_t padding_mode) {
  check_pair(input, grid);
  CRESSET_CHECK(
      interpolation_mode >= 0 && interpolation_mode <= 2 && padding_mode >= 0 && padding_mode <= 2,
      "grid_sampler(): interpolation 0 (bilinear), 1 (nearest) or 2 (bicubic) and padding 0 (zeros), 1 (border) or 2 (reflection) were "
      "required; given ",
      interpolation_mode, " and ", padding_mode, ".");
  CRESSET_CHECK((n == 2 || n == 3) && input.dim() == n + 2 && grid.dim() == n + 2, "grid_sampler(): expected ", n + 2,
                "D input and grid with same number of dimensions, but got input with sizes ", input.sizes(), " and grid with sizes ",
                grid.sizes());
  CRESSET_CHECK(n == 2 || interpolation_mode != 2, "grid_sampler(): bicubic interpolation only supports 4D input");
  CRESSET_CHECK(input.scalar_type() == grid.scalar_type(), "expected scalar type ", input.scalar_type(), " but found ", grid.scalar_type());
  DimVector sizes{input.size(0), input.size(1)};
  for (int64_t d = 1; d <= n; ++d) sizes.push_back(grid.size(d));
  return spec_like(input, sizes);
}

// Positions of a regular grid of `size` points a dimension from -1 to 1, with a last coordinate 1: (points, n + 1).
Tensor regular_grid(const TensorOptions& options, IntArrayRef size, bool align_corners) {
  const int64_t n = static_cast<int64_t>(size.size()) - 2;
  CRESSET_CHECK(n == 2 || n == 3, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  DimVector shape(size.slice(2));
  shape.push_back(1);
  std::vector<Tensor> columns;
  for (int64_t axis = n - 1; axis >= 0; --axis) {  // x is the last dimension
    const int64_t steps = shape[axis];
    Tensor line = steps <= 1 ? cresset::zeros({steps}, options) : cresset::linspace(-1, 1, steps, options);
    if (steps > 1 && !align_corners) line = line * (static_cast<double>(steps - 1) / static_cast<double>(steps));
    DimVector place(static_cast<std::size_t>(n + 1), 1);
    place[axis] = steps;
    columns.push_back(line.view(place).expand(shape));
  }
  columns.push_back(cresset::ones({1}, options).expand(shape));
  return cresset::cat(columns, -1).reshape({-1, n + 1});
}

}  // namespace

TensorSpec grid_sampler_2d_shape(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool) {
  return sampled(input, grid, 2, interpolation_mode, padding_mode);
}
TensorSpec grid_sampler_3d_shape(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool) {
  return sampled(input, grid, 3, interpolation_mode, padding_mode);
}
TensorSpec grid_sampler_tangent_shape(const Tensor& input, const Tensor& grid, const Tensor& grid_tangent, int64_t interpolation_mode,
                                      int64_t padding_mode, bool) {
  CRESSET_CHECK(grid_tangent.sizes() == grid.sizes(), "grid_sampler_tangent: a tangent of the grid's size was required; got ",
                grid_tangent.sizes(), " for ", grid.sizes(), ".");
  return sampled(input, grid, input.dim() - 2, interpolation_mode, padding_mode);
}

std::tuple<Tensor, Tensor> grid_sampler_backward_meta(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                                      int64_t interpolation_mode, int64_t padding_mode, bool,
                                                      std::array<bool, 2> output_mask) {
  const TensorSpec forward = sampled(input, grid, input.dim() - 2, interpolation_mode, padding_mode);
  check_same_device("grid_sampler_backward", input, grad_output, "grad_output");
  CRESSET_CHECK(grad_output.sizes() == IntArrayRef(forward.sizes), "grid_sampler_backward: a gradient of size ", forward.sizes,
                " was required; got ", grad_output.sizes(), ".");
  CRESSET_CHECK(grad_output.scalar_type() == input.scalar_type(), "expected scalar type ", input.scalar_type(), " but found ",
                grad_output.scalar_type());
  return {output_mask[0] ? cresset::empty(input.sizes(), input.options()) : Tensor(), cresset::empty(grid.sizes(), grid.options())};
}

std::tuple<Tensor, Tensor> grid_sampler_tangent_backward_meta(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                                              const Tensor& grid_tangent, int64_t interpolation_mode, int64_t padding_mode,
                                                              bool align_corners) {
  CRESSET_CHECK(grid_tangent.sizes() == grid.sizes() && grid_tangent.scalar_type() == grid.scalar_type(),
                "grid_sampler_tangent_backward: a tangent of the grid's size and dtype was required; got ", grid_tangent.sizes(), " for ",
                grid.sizes(), ".");
  return grid_sampler_backward_meta(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, {true, true});
}

Tensor grid_sampler_impl(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners) {
  check_pair(input, grid);
  CRESSET_CHECK((input.dim() == 4 || input.dim() == 5) && input.dim() == grid.dim(), "grid_sampler(): expected ",
                input.dim() == 4 ? "4D" : "4D or 5D", " input and grid with same number of dimensions, but got input with sizes ",
                input.sizes(), " and grid with sizes ", grid.sizes());
  return input.dim() == 4 ? cresset::grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)
                          : cresset::grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners);
}

Tensor affine_grid_generator_impl(const Tensor& theta, IntArrayRef size, bool align_corners) {
  const Tensor base = regular_grid(theta.options(), size, align_corners);
  const int64_t n = static_cast<int64_t>(size.size()) - 2;
  DimVector sizes{size[0]};
  for (int64_t d = 2; d < n + 2; ++d) sizes.push_back(size[static_cast<std::size_t>(d)]);
  sizes.push_back(n);
  CRESSET_CHECK(size[0] >= 0, "Trying to create tensor with negative dimension ", size[0], ": ", IntArrayRef(sizes));
  const Tensor points = base.unsqueeze(0).expand({size[0], base.size(0), n + 1});
  const Tensor rows = cresset::bmm(points, theta.transpose(1, 2));
  return rows.is_contiguous() ? cresset::_unsafe_view(rows, sizes) : rows.reshape(sizes);
}

Tensor affine_grid_generator_backward_impl(const Tensor& grad, IntArrayRef size, bool align_corners) {
  const Tensor base = regular_grid(grad.options(), size, align_corners);
  const int64_t n = static_cast<int64_t>(size.size()) - 2;
  const Tensor points = base.unsqueeze(0).expand({size[0], base.size(0), n + 1});
  return cresset::bmm(points.transpose(1, 2), grad.reshape({size[0], -1, n})).transpose(1, 2);
}

}  // namespace cresset::ops
