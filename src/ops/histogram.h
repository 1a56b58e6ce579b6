// Checks that shape rules and kernels of histograms share.
#pragma once

#include <cresset/core/tensor.h>

#include <optional>

namespace cresset::ops {

/// points is (..., D): one edge tensor or number of bins for each of the D coordinates, a weight for each point.
void check_histogram_edges(const Tensor& points, TensorList edges, const std::optional<Tensor>& weight);
CRESSET_API void check_histogram_counts(const Tensor& points, IntArrayRef bins, std::optional<ArrayRef<double>> range,
                                        const std::optional<Tensor>& weight);

}  // namespace cresset::ops
