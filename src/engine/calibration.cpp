#include <cresset/engine/calibration.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace cresset::engine {

void check_calibration_method(const CalibrationMethod& m) {
  CRESSET_CHECK_VALUE(m.name == "max" || m.name == "percentile" || m.name == "entropy",
                      "calibration: the method max, percentile or entropy was required; got '", m.name, "'.");
  CRESSET_CHECK_VALUE(m.percentile > 0 && m.percentile <= 100, "calibration: a percentile above 0 and up to 100 was required; got ",
                      m.percentile, ".");
}

void RangeObserver::add(const Tensor& t) {
  const Tensor dense = t.to(kFloat).contiguous();
  const float* p = dense.data_ptr<float>();
  const int64_t n = dense.numel();
  float least = 0, most = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(p[i])) continue;
    least = std::min(least, p[i]);
    most = std::max(most, p[i]);
  }
  least_ = std::min(least_, least);
  most_ = std::max(most_, most);
  const float magnitude = std::max(most, -least);
  if (magnitude == 0) return;
  if (limit_ == 0) limit_ = magnitude;
  while (limit_ < magnitude) {  // two bins become one
    for (std::size_t i = 0; i < kBins / 2; ++i) bins_[i] = bins_[2 * i] + bins_[2 * i + 1];
    std::fill(bins_.begin() + kBins / 2, bins_.end(), 0);
    limit_ *= 2;
  }
  const float per_unit = static_cast<float>(kBins) / limit_;
  for (int64_t i = 0; i < n; ++i) {
    const float a = std::fabs(p[i]);
    if (a > 0 && a <= limit_) ++bins_[std::min(kBins - 1, static_cast<std::size_t>(a * per_unit))];
  }
}

Range RangeObserver::range(const CalibrationMethod& method) const {
  const double most = std::min<double>(threshold(method), std::max(most_, -least_));
  return {least_ < 0 ? -most : 0, most};
}

double RangeObserver::threshold(const CalibrationMethod& method) const {
  check_calibration_method(method);
  const int64_t all = std::accumulate(bins_.begin(), bins_.end(), int64_t{0});
  if (method.name == "max" || all == 0) return std::max(most_, -least_);
  if (method.name == "entropy") return entropy_threshold(bins_, limit_, least_ < 0 ? 128 : 256);
  const double wanted = static_cast<double>(all) * method.percentile / 100;
  double seen = 0;
  for (std::size_t i = 0; i < kBins; ++i)
    if ((seen += static_cast<double>(bins_[i])) >= wanted) return limit_ * static_cast<double>(i + 1) / kBins;
  return limit_;
}

namespace {

// The divergence of the first `kept` bins, with all that is beyond in the last one, from the same in `levels` equal steps.
double divergence(const std::vector<int64_t>& bins, std::size_t kept, std::size_t levels, int64_t beyond) {
  const double each = static_cast<double>(kept) / static_cast<double>(levels);
  double p_sum = static_cast<double>(beyond), q_sum = 0;
  std::vector<double> p(bins.begin(), bins.begin() + static_cast<std::ptrdiff_t>(kept)), q(kept);
  for (const double v : p) p_sum += v;
  for (std::size_t level = 0; level < levels; ++level) {
    const auto begin = static_cast<std::size_t>(std::lround(static_cast<double>(level) * each));
    const auto end = std::min(kept, static_cast<std::size_t>(std::lround(static_cast<double>(level + 1) * each)));
    double sum = 0;
    int used = 0;
    for (std::size_t i = begin; i < end; ++i) {
      sum += p[i];
      used += p[i] > 0;
    }
    for (std::size_t i = begin; i < end; ++i) q[i] = p[i] > 0 ? sum / used : 0;
    q_sum += sum;
  }
  p[kept - 1] += static_cast<double>(beyond);
  if (p_sum == 0 || q_sum == 0) return std::numeric_limits<double>::infinity();
  constexpr double kLeast = 1e-9;  // of q where p has something: what was cut off fell into an empty bin
  double out = 0;
  for (std::size_t i = 0; i < kept; ++i)
    if (p[i] > 0) out += p[i] / p_sum * std::log(p[i] / p_sum / std::max(q[i] / q_sum, kLeast));
  return out;
}

}  // namespace

double entropy_threshold(const std::vector<int64_t>& bins, double limit, int levels) {
  const auto first = static_cast<std::size_t>(levels);
  CRESSET_CHECK_VALUE(levels > 0 && bins.size() >= first, "calibration: at least as many bins as levels were required; got ", bins.size(),
                      " for ", levels, ".");
  constexpr std::size_t kStep = 8;
  int64_t beyond = std::accumulate(bins.begin() + static_cast<std::ptrdiff_t>(first), bins.end(), int64_t{0});
  double best = std::numeric_limits<double>::infinity();
  std::size_t at = bins.size();
  for (std::size_t kept = first; kept <= bins.size(); kept += kStep) {
    const double d = divergence(bins, kept, first, beyond);
    if (d < best) {
      best = d;
      at = kept;
    }
    for (std::size_t i = kept; i < std::min(bins.size(), kept + kStep); ++i) beyond -= bins[i];
  }
  return limit * static_cast<double>(at) / static_cast<double>(bins.size());
}

}  // namespace cresset::engine
