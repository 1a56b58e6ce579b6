// Shape rules of resizing, and the forms that take a size or factors.
#include <cmath>
#include <string>

#include <cresset/ops/functions_upsample.h>

#include "ops/ops_decl_upsample.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

std::string named_sizes(IntArrayRef spatial) {
  static constexpr const char* kNames[] = {"D", "H", "W"};
  std::string text;
  for (std::size_t i = 0; i < spatial.size(); ++i)
    text += (i ? ", " : "") + std::string(kNames[3 - spatial.size() + i]) + ": " + std::to_string(spatial[i]);
  return text;
}

// The sizes of a result; `n` spatial dimensions follow batch and channels.
DimVector resized(IntArrayRef input_size, IntArrayRef output_size, std::size_t n) {
  CRESSET_CHECK(output_size.size() == n, "It is expected output_size equals to ", n, ", but got size ", output_size.size());
  CRESSET_CHECK(input_size.size() == n + 2, "It is expected input_size equals to ", n + 2, ", but got size ", input_size.size());
  const IntArrayRef spatial = input_size.slice(2);
  for (std::size_t i = 0; i < n; ++i)
    CRESSET_CHECK(spatial[i] > 0 && output_size[i] > 0, "Input and output sizes should be greater than 0, but got input (",
                  named_sizes(spatial), n == 1 ? ") and output (" : ") output (", named_sizes(output_size), ")");
  DimVector sizes(input_size);
  for (std::size_t i = 0; i < n; ++i) sizes[i + 2] = output_size[i];
  return sizes;
}

TensorSpec spec_of(const Tensor& like, IntArrayRef sizes) {
  return spec_like(like, sizes, std::nullopt, like.dim() >= 4 ? like.suggest_memory_format() : MemoryFormat::Contiguous);
}

// A result's size and the factors it was made from, of the operators that take either.
struct Target {
  DimVector size;
  std::optional<ArrayRef<double>> factors;

  Target(const Tensor& input, int64_t n, OptionalIntArrayRef output_size, std::optional<ArrayRef<double>> scale_factors)
      : factors(scale_factors) {
    CRESSET_CHECK(output_size.has_value() != scale_factors.has_value(), "Must specify exactly one of output_size and scale_factors");
    CRESSET_CHECK(input.dim() == n + 2, "It is expected input_size equals to ", n + 2, ", but got size ", input.dim());
    if (output_size) {
      CRESSET_CHECK(static_cast<int64_t>(output_size->size()) == n, "It is expected output_size equals to ", n, ", but got size ",
                    output_size->size());
      size = DimVector(*output_size);
      return;
    }
    CRESSET_CHECK(static_cast<int64_t>(factors->size()) == n, "upsample: ", n, " scale factors were required; ", factors->size(),
                  " were given.");
    for (int64_t d = 0; d < n; ++d)
      size.push_back(static_cast<int64_t>(std::floor(static_cast<double>(input.size(d + 2)) * (*factors)[static_cast<std::size_t>(d)])));
  }
  std::optional<double> scale(std::size_t d) const { return factors ? std::optional<double>((*factors)[d]) : std::nullopt; }
};

}  // namespace

TensorSpec resample_shape(const Tensor& self, IntArrayRef output_size, std::string_view, bool, ArrayRef<double> scales) {
  const DimVector sizes = resized(self.sizes(), output_size, scales.size());
  bool filled = true;
  for (int64_t d = 1; d < self.dim(); ++d) filled = filled && self.size(d) > 0;
  CRESSET_CHECK(filled, "Non-empty ", self.dim(), "D data tensor expected but got a tensor with sizes ", self.sizes());
  return spec_of(self, sizes);
}

TensorSpec resample_backward_shape(const Tensor& grad_output, IntArrayRef output_size, IntArrayRef input_size, std::string_view, bool,
                                   ArrayRef<double> scales) {
  const DimVector sizes = resized(input_size, output_size, scales.size());
  CRESSET_CHECK(grad_output.dim() == static_cast<int64_t>(sizes.size()), "Expected grad_output to be a tensor of dimension ", sizes.size(),
                " but got: dimension ", grad_output.dim());
  for (std::size_t d = 0; d < sizes.size(); ++d)
    CRESSET_CHECK(grad_output.size(static_cast<int64_t>(d)) == sizes[d],
                  "Expected grad_output to have the same shape as output; output.size(", d, ") = ", sizes[d], " but got grad_output.size(",
                  d, ") = ", grad_output.size(static_cast<int64_t>(d)));
  return spec_of(grad_output, input_size);
}

// ---- a size or factors

Tensor upsample_nearest1d_vec(const Tensor& input, OptionalIntArrayRef output_size, std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 1, output_size, scale_factors);
  return cresset::upsample_nearest1d(input, t.size, t.scale(0));
}
Tensor upsample_nearest2d_vec(const Tensor& input, OptionalIntArrayRef output_size, std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 2, output_size, scale_factors);
  return cresset::upsample_nearest2d(input, t.size, t.scale(0), t.scale(1));
}
Tensor upsample_nearest3d_vec(const Tensor& input, OptionalIntArrayRef output_size, std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 3, output_size, scale_factors);
  return cresset::upsample_nearest3d(input, t.size, t.scale(0), t.scale(1), t.scale(2));
}
Tensor _upsample_nearest_exact1d_vec(const Tensor& input, OptionalIntArrayRef output_size, std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 1, output_size, scale_factors);
  return cresset::_upsample_nearest_exact1d(input, t.size, t.scale(0));
}
Tensor _upsample_nearest_exact2d_vec(const Tensor& input, OptionalIntArrayRef output_size, std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 2, output_size, scale_factors);
  return cresset::_upsample_nearest_exact2d(input, t.size, t.scale(0), t.scale(1));
}
Tensor _upsample_nearest_exact3d_vec(const Tensor& input, OptionalIntArrayRef output_size, std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 3, output_size, scale_factors);
  return cresset::_upsample_nearest_exact3d(input, t.size, t.scale(0), t.scale(1), t.scale(2));
}
Tensor upsample_linear1d_vec(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners,
                             std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 1, output_size, scale_factors);
  return cresset::upsample_linear1d(input, t.size, align_corners, t.scale(0));
}
Tensor upsample_bilinear2d_vec(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners,
                               std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 2, output_size, scale_factors);
  return cresset::upsample_bilinear2d(input, t.size, align_corners, t.scale(0), t.scale(1));
}
Tensor upsample_trilinear3d_vec(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners,
                                std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 3, output_size, scale_factors);
  return cresset::upsample_trilinear3d(input, t.size, align_corners, t.scale(0), t.scale(1), t.scale(2));
}
Tensor upsample_bicubic2d_vec(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners,
                              std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 2, output_size, scale_factors);
  return cresset::upsample_bicubic2d(input, t.size, align_corners, t.scale(0), t.scale(1));
}
Tensor _upsample_bilinear2d_aa_vec(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners,
                                   std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 2, output_size, scale_factors);
  return cresset::_upsample_bilinear2d_aa(input, t.size, align_corners, t.scale(0), t.scale(1));
}
Tensor _upsample_bicubic2d_aa_vec(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners,
                                  std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 2, output_size, scale_factors);
  return cresset::_upsample_bicubic2d_aa(input, t.size, align_corners, t.scale(0), t.scale(1));
}
Tensor _upsample_lanczos2d_aa_vec(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners,
                                  std::optional<ArrayRef<double>> scale_factors) {
  const Target t(input, 2, output_size, scale_factors);
  return cresset::_upsample_lanczos2d_aa(input, t.size, align_corners, t.scale(0), t.scale(1));
}

}  // namespace cresset::ops
