// Histograms: checks, shape rules and compositions.
#include "ops/histogram.h"

#include <cmath>
#include <limits>
#include <vector>

#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_histogram.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_histogram.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

void check_points(const Tensor& points, std::size_t sequences, const std::optional<Tensor>& weight) {
  CRESSET_CHECK(points.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  const int64_t coordinates = points.size(-1);
  CRESSET_CHECK(static_cast<int64_t>(sequences) == coordinates, "torch.histogramdd: expected ", coordinates,
                " sequences of bin edges for a ", coordinates, "-dimensional histogram but got ", sequences);
  if (!weight || !weight->defined()) return;
  CRESSET_CHECK(
      weight->scalar_type() == points.scalar_type(),
      "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input(",
      dtype_name(points.scalar_type()), "), and weight(", dtype_name(weight->scalar_type()), ")");
  CRESSET_CHECK(weight->sizes() == points.sizes().slice(0, static_cast<std::size_t>(points.dim() - 1)),
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
                "dimension, but got input with shape ",
                points.sizes(), " and weight with shape ", weight->sizes());
  check_same_device("histogramdd", points, *weight, "weight");
}

void check_bins(int64_t bins, std::size_t dim) {
  CRESSET_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins, " for dimension ", dim);
  CRESSET_CHECK(bins < std::numeric_limits<int64_t>::max(), "torch.histogram(): one more edge than bins was required; got ", bins,
                " bins.");
}

void check_type(const Tensor& points) {
  CRESSET_CHECK_NOT_IMPLEMENTED(points.scalar_type() == kFloat || points.scalar_type() == kDouble, "\"histogramdd\" not implemented for '",
                                points.scalar_type(), "'");
}

Tensor as_points(const Tensor& values) { return values.reshape({values.numel(), 1}); }
std::optional<Tensor> flattened(const std::optional<Tensor>& weight) {
  return weight && weight->defined() ? std::optional<Tensor>(weight->reshape({weight->numel()})) : std::nullopt;
}

}  // namespace

void check_histogram_edges(const Tensor& points, TensorList edges, const std::optional<Tensor>& weight) {
  check_points(points, edges.size(), weight);
  for (std::size_t d = 0; d < edges.size(); ++d) {
    check_same_device("histogramdd", points, edges[d], "bins");
    CRESSET_CHECK(edges[d].scalar_type() == points.scalar_type(),
                  "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype ",
                  dtype_name(points.scalar_type()), " and bins for dimension ", d, " with dtype ", dtype_name(edges[d].scalar_type()));
    CRESSET_CHECK(edges[d].dim() == 1, "torch.histogramdd: bins tensor should have one dimension, but got ", edges[d].dim(),
                  " dimensions in the bins tensor for dimension ", d);
    CRESSET_CHECK(edges[d].numel() > 0,
                  "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for dimension ", d);
    check_bins(edges[d].numel() - 1, d);
  }
  check_type(points);
}

void check_histogram_counts(const Tensor& points, IntArrayRef bins, std::optional<ArrayRef<double>> range,
                            const std::optional<Tensor>& weight) {
  CRESSET_CHECK(points.dim() < 2 || static_cast<int64_t>(bins.size()) == points.size(-1),
                "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  check_points(points, bins.size(), weight);
  for (std::size_t d = 0; d < bins.size(); ++d) check_bins(bins[d], d);
  check_type(points);
  if (!range) return;
  CRESSET_CHECK(range->size() == 2 * bins.size(), "torch.histogramdd: for a ", bins.size(), "-dimensional histogram range should have ",
                2 * bins.size(), " elements, but got ", range->size());
  for (std::size_t d = 0; d < bins.size(); ++d) {
    const double low = (*range)[2 * d], high = (*range)[2 * d + 1];
    CRESSET_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogramdd: dimension ", d, "'s range [", low, ", ", high,
                  "] is not finite");
    CRESSET_CHECK(low <= high, "torch.histogramdd: min should not exceed max, but got min ", low, " max ", high, " for dimension ", d);
  }
}

TensorSpec histc_shape(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  CRESSET_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "\"histogram_cpu\" not implemented for '", self.scalar_type(), "'");
  check_bins(bins, 0);
  CRESSET_CHECK(!(max.toDouble() < min.toDouble()), "torch.histc: max must be larger than min");
  return spec_like(self, {bins});
}

std::array<TensorSpec, 2> histogram_shape(const Tensor& self, const Tensor& bins, const std::optional<Tensor>& weight, bool) {
  check_histogram_edges(as_points(self), bins, flattened(weight));
  return {spec_like(self, {bins.numel() - 1}), spec_like(self, {bins.numel()})};
}

std::array<TensorSpec, 2> histogram_count_shape(const Tensor& self, int64_t bins, std::optional<ArrayRef<double>> range,
                                                const std::optional<Tensor>& weight, bool) {
  check_histogram_counts(as_points(self), bins, range, flattened(weight));
  return {spec_like(self, {bins}), spec_like(self, {bins + 1})};
}

TensorSpec histogramdd_counts_shape(const Tensor& self, IntArrayRef bins, std::optional<ArrayRef<double>> range,
                                    const std::optional<Tensor>& weight, bool) {
  check_histogram_counts(self, bins, range, weight);
  return spec_like(self, bins);
}

TensorSpec histogramdd_edges_shape(const Tensor& self, TensorList bins, const std::optional<Tensor>& weight, bool) {
  check_histogram_edges(self, bins, weight);
  DimVector sizes;
  for (const Tensor& edges : bins) sizes.push_back(edges.numel() - 1);
  return spec_like(self, sizes);
}

std::vector<Tensor> histogramdd_bin_edges_meta(const Tensor& self, IntArrayRef bins, std::optional<ArrayRef<double>> range,
                                               const std::optional<Tensor>& weight, bool) {
  check_histogram_counts(self, bins, range, weight);
  std::vector<Tensor> edges;
  for (int64_t n : bins) edges.push_back(cresset::empty({n + 1}, self.options()));
  return edges;
}

std::tuple<Tensor, std::vector<Tensor>> histogramdd_impl(const Tensor& self, IntArrayRef bins, std::optional<ArrayRef<double>> range,
                                                         const std::optional<Tensor>& weight, bool density) {
  std::vector<Tensor> edges = cresset::_histogramdd_bin_edges(self, bins, range, weight, density);
  return {cresset::_histogramdd_from_bin_cts(self, bins, range, weight, density), std::move(edges)};
}

std::tuple<Tensor, std::vector<Tensor>> histogramdd_int(const Tensor& self, int64_t bins, std::optional<ArrayRef<double>> range,
                                                        const std::optional<Tensor>& weight, bool density) {
  CRESSET_CHECK(self.dim() >= 1, "torch.histogramdd: input tensor should have at least 2 dimensions");
  return histogramdd_impl(self, DimVector(static_cast<std::size_t>(self.size(-1)), bins), range, weight, density);
}

std::tuple<Tensor, std::vector<Tensor>> histogramdd_tensors(const Tensor& self, TensorList bins, std::optional<ArrayRef<double>>,
                                                            const std::optional<Tensor>& weight, bool density) {
  return {cresset::_histogramdd_from_bin_tensors(self, bins, weight, density), std::vector<Tensor>(bins.begin(), bins.end())};
}

}  // namespace cresset::ops
