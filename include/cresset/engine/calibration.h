// Post-training quantisation: the ranges of tensors, seen while a graph runs on data like those that it will be given.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::engine {

/// What a tensor's numbers lie in, outliers cut off; least is 0 where none was negative.
struct Range {
  double least = 0, most = 0;
  bool operator==(const Range&) const = default;
};

/// How outliers are cut off: not at all ("max"), so that `percentile` of a hundred numbers stay ("percentile"), or where the distribution
/// of the magnitudes loses least in 8 bits, by the Kullback-Leibler divergence ("entropy").
struct CalibrationMethod {
  std::string name = "entropy";
  double percentile = 99.99;  // of "percentile"
};
/// Raises ValueError for other names, and for percentiles outside of (0, 100].
CRESSET_API void check_calibration_method(const CalibrationMethod& method);

/// A histogram of magnitudes that grows with what it is given. Exact zeros and what is not finite are left out: 8 bits have zero.
class CRESSET_API RangeObserver {
 public:
  void add(const Tensor& t);
  /// Nothing seen: a range from 0 to 0.
  Range range(const CalibrationMethod& method) const;

 private:
  double threshold(const CalibrationMethod& method) const;

  static constexpr std::size_t kBins = 2048;
  std::vector<int64_t> bins_ = std::vector<int64_t>(kBins);
  float limit_ = 0;  // the upper end of the bins
  float least_ = 0, most_ = 0;
};

/// The magnitude at which a histogram of magnitudes (equal bins from 0 to `limit`) is cut off for `levels` levels with the least
/// divergence between what is kept and its form in that many levels.
CRESSET_API double entropy_threshold(const std::vector<int64_t>& bins, double limit, int levels);

}  // namespace cresset::engine
