// Plans: kissfft where the length has small prime factors only, else Bluestein's algorithm on top of it.
#include "backends/cpu/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <numbers>
#include <utility>

namespace cresset::cpu {
namespace {

// kissfft takes n * p steps for a prime factor p. From about here on three transforms of twice the length are cheaper.
constexpr int64_t kLargestFactor = 50;

int64_t largest_prime_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return std::max(largest, n);
}

// A length of at least n whose factors are 2, 3 and 5: at most a fifth longer.
int64_t quick_length(int64_t n) {
  int64_t best = 0;
  for (int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t length = odd;
    while (length < n) length *= 2;
    if (best == 0 || length < best) best = length;
  }
  return best;
}

// exp(-pi i m / n)
FftNumber root(int64_t m, int64_t n) {
  const double angle = -std::numbers::pi * static_cast<double>(m) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

constexpr std::size_t kKeptPlans = 32;
constexpr int64_t kKeptLength = int64_t{1} << 20;  // longer ones are made for each call: 16 MiB and more against the work of a line

// The most recently used plans, newest first.
template <class Plan>
class PlanCache {
 public:
  std::shared_ptr<const Plan> get(int64_t n) {
    if (auto plan = find(n)) return plan;
    auto plan = std::make_shared<const Plan>(n);
    if (n > kKeptLength) return plan;
    const std::lock_guard lock(mutex_);
    plans_.emplace_front(n, plan);
    if (plans_.size() > kKeptPlans) plans_.pop_back();
    return plan;
  }

 private:
  std::shared_ptr<const Plan> find(int64_t n) {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(plans_.begin(), plans_.end(), [&](const auto& entry) { return entry.first == n; });
    if (at == plans_.end()) return nullptr;
    plans_.splice(plans_.begin(), plans_, at);
    return at->second;
  }

  std::mutex mutex_;
  std::list<std::pair<int64_t, std::shared_ptr<const Plan>>> plans_;
};

}  // namespace

// Bluestein (1970): with w[k] = exp(-pi i k^2 / n) and jk = (j^2 + k^2 - (k - j)^2) / 2,
//   X[k] = w[k] * sum_j (x[j] w[j]) conj(w[k - j]),
// a convolution, which is done with transforms of a length m >= 2n - 1 that kissfft likes.
FftPlan::FftPlan(int64_t n) : n_(n) {
  if (n == 1) return;
  const int64_t factor = largest_prime_factor(n);
  if (factor <= kLargestFactor) {
    private_scratch_ = factor > 5;
    transform_.emplace(static_cast<std::size_t>(n), false);
    return;
  }
  const auto m = static_cast<std::size_t>(quick_length(2 * n - 1));
  transform_.emplace(m, false);
  chirp_.resize(static_cast<std::size_t>(n));
  std::vector<FftNumber> wrapped(m);
  int64_t square = 0;  // k^2 modulo 2n, the period of w: exact where k^2 itself would overflow or lose digits
  for (int64_t k = 0; k < n; ++k) {
    chirp_[k] = root(square, n);
    wrapped[k] = std::conj(chirp_[k]) / static_cast<double>(m);
    if (k > 0) wrapped[m - k] = wrapped[k];
    square = (square + 2 * k + 1) % (2 * n);
  }
  chirp_spectrum_.resize(m);
  transform_->transform(wrapped.data(), chirp_spectrum_.data());
}

void FftPlan::forward(const FftNumber* in, FftNumber* out, FftWorkspace& workspace) const {
  if (n_ == 1) {
    *out = *in;
  } else if (!chirp_.empty()) {
    chirp_transform(in, out, workspace);
  } else if (private_scratch_) {
    if (!workspace.own) workspace.own = *transform_;
    workspace.own->transform(in, out);
  } else {
    transform_->transform(in, out);
  }
}

void FftPlan::chirp_transform(const FftNumber* in, FftNumber* out, FftWorkspace& workspace) const {
  const std::size_t m = chirp_spectrum_.size(), n = chirp_.size();
  std::vector<FftNumber>&a = workspace.padded, &b = workspace.spectrum;
  a.resize(m);
  b.resize(m);
  for (std::size_t j = 0; j < n; ++j) a[j] = in[j] * chirp_[j];
  std::fill(a.begin() + static_cast<std::ptrdiff_t>(n), a.end(), FftNumber());
  transform_->transform(a.data(), b.data());
  for (std::size_t k = 0; k < m; ++k) b[k] *= chirp_spectrum_[k];
  // The inverse transform is the forward one read backwards.
  transform_->transform(b.data(), a.data());
  for (std::size_t k = 0; k < n; ++k) out[k] = chirp_[k] * a[k == 0 ? 0 : m - k];
}

RealFftPlan::RealFftPlan(int64_t n) : half(fft_plan(n / 2)), twiddles(static_cast<std::size_t>(n / 2)) {
  for (int64_t k = 0; k < n / 2; ++k) twiddles[static_cast<std::size_t>(k)] = root(2 * k, n);
}

std::shared_ptr<const FftPlan> fft_plan(int64_t n) {
  static PlanCache<FftPlan> cache;
  return cache.get(n);
}

std::shared_ptr<const RealFftPlan> real_fft_plan(int64_t n) {
  static PlanCache<RealFftPlan> cache;
  return cache.get(n);
}

}  // namespace cresset::cpu
