// Plans: kissfft for short lengths of small prime factors; Bluestein's algorithm for large factors and Bailey's for long lengths
// are built on top of it.
#include "backends/cpu/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <numbers>
#include <utility>

#include <cresset/base/fork.h>
#include <cresset/base/parallel.h>

namespace cresset::cpu {
namespace {

// kissfft takes n * p steps for a prime factor p. From about here on two transforms of twice the length are cheaper.
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

// Lengths from which on kissfft, which reads with strides of all sizes, misses the caches.
constexpr int64_t kLong = int64_t{1} << 15;
constexpr int64_t kFewestRows = 32;

// The divisor of n nearest to its root, from below.
int64_t middle_divisor(int64_t n) {
  auto d = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % d != 0) --d;
  return d;
}

constexpr int64_t kFine = 1024;
constexpr int64_t kBlock = 8;  // lines that are read and written together

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

  ForkSafe<std::mutex> mutex_;
  std::list<std::pair<int64_t, std::shared_ptr<const Plan>>> plans_;
};

}  // namespace

FftPlan::FftPlan(int64_t n) : n_(n) {
  if (n == 1) return;
  const int64_t rows = n >= kLong ? middle_divisor(n) : 1, factor = largest_prime_factor(n);
  if (rows >= kFewestRows) {
    plan_split(rows);
  } else if (factor > kLargestFactor) {
    plan_chirp();
  } else {
    private_scratch_ = factor > 5;
    direct_.emplace(static_cast<std::size_t>(n), false);
  }
}

void FftPlan::forward(const FftNumber* in, FftNumber* out, FftWorkspace& workspace) const {
  if (n_ == 1) {
    *out = *in;
  } else if (down_) {
    split_transform(in, out, workspace);
  } else if (convolution_) {
    chirp_transform(in, out, workspace);
  } else if (private_scratch_) {
    if (!workspace.own) workspace.own = *direct_;
    workspace.own->transform(in, out);
  } else {
    direct_->transform(in, out);
  }
}

// Bluestein (1970): with w[k] = exp(-pi i k^2 / n) and jk = (j^2 + k^2 - (k - j)^2) / 2,
//   X[k] = w[k] * sum_j (x[j] w[j]) conj(w[k - j]),
// a convolution, which is done with transforms of a length m >= 2n - 1 that kissfft likes.
void FftPlan::plan_chirp() {
  const int64_t m = quick_length(2 * n_ - 1);
  convolution_ = fft_plan(m);
  chirp_.resize(static_cast<std::size_t>(n_));
  std::vector<FftNumber> wrapped(static_cast<std::size_t>(m));
  int64_t square = 0;  // k^2 modulo 2n, the period of w: exact where k^2 itself would overflow or lose digits
  for (int64_t k = 0; k < n_; ++k) {
    chirp_[k] = root(square, n_);
    wrapped[k] = std::conj(chirp_[k]) / static_cast<double>(m);
    if (k > 0) wrapped[m - k] = wrapped[k];
    square = (square + 2 * k + 1) % (2 * n_);
  }
  chirp_spectrum_.resize(static_cast<std::size_t>(m));
  FftWorkspace workspace;
  convolution_->forward(wrapped.data(), chirp_spectrum_.data(), workspace);
}

void FftPlan::chirp_transform(const FftNumber* in, FftNumber* out, FftWorkspace& workspace) const {
  const std::size_t m = chirp_spectrum_.size(), n = chirp_.size();
  std::vector<FftNumber>&a = workspace.first, &b = workspace.second;
  a.resize(m);
  b.resize(m);
  if (!workspace.inner) workspace.inner = std::make_unique<FftWorkspace>();
  for (std::size_t j = 0; j < n; ++j) a[j] = in[j] * chirp_[j];
  std::fill(a.begin() + static_cast<std::ptrdiff_t>(n), a.end(), FftNumber());
  convolution_->forward(a.data(), b.data(), *workspace.inner);
  for (std::size_t k = 0; k < m; ++k) b[k] *= chirp_spectrum_[k];
  // The inverse transform is the forward one read backwards.
  convolution_->forward(b.data(), a.data(), *workspace.inner);
  for (std::size_t k = 0; k < n; ++k) out[k] = chirp_[k] * a[k == 0 ? 0 : m - k];
}

void FftPlan::plan_split(int64_t rows) {
  down_ = fft_plan(rows);
  along_ = fft_plan(n_ / rows);
  for (int64_t m = 0; m < kFine; ++m) fine_.push_back(root(2 * m, n_));
  for (int64_t m = 0; m < n_; m += kFine) coarse_.push_back(root(2 * m, n_));
}

// Bailey (1990), "FFTs in external or hierarchical memory": with n = r c, j = c a + b and k = p + r q,
//   X[p + r q] = sum_b exp(-2 pi i b q / c) exp(-2 pi i b p / n) sum_a exp(-2 pi i a p / r) x[c a + b],
// transforms down the columns of a matrix of r rows, a factor for each element, and transforms along its rows, which are read
// and written in blocks of neighbours.
void FftPlan::split_transform(const FftNumber* in, FftNumber* out, FftWorkspace& workspace) const {
  const int64_t rows = down_->size(), columns = along_->size();
  workspace.first.resize(static_cast<std::size_t>(n_));
  FftNumber* middle = workspace.first.data();

  // Transforms `lines` lines of one plan: load(line, i) gives an element, store(line, i, value) takes one.
  const auto lines_of = [](const FftPlan& plan, int64_t lines, const auto& load, const auto& store) {
    const int64_t n = plan.size();
    parallel_for(0, (lines + kBlock - 1) / kBlock, 4, [&](int64_t begin, int64_t end) {
      FftWorkspace inner;
      std::vector<FftNumber> x(static_cast<std::size_t>(n * kBlock)), y(x.size());
      for (int64_t first = begin * kBlock; first < std::min(end * kBlock, lines); first += kBlock) {
        const int64_t count = std::min(kBlock, lines - first);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t l = 0; l < count; ++l) x[l * n + i] = load(first + l, i);
        for (int64_t l = 0; l < count; ++l) plan.forward(&x[l * n], &y[l * n], inner);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t l = 0; l < count; ++l) store(first + l, i, y[l * n + i]);
      }
    });
  };
  lines_of(
      *down_, columns, [&](int64_t b, int64_t a) { return in[columns * a + b]; },
      [&](int64_t b, int64_t p, FftNumber v) {
        const int64_t m = b * p;
        middle[columns * p + b] = v * (coarse_[m / kFine] * fine_[m % kFine]);
      });
  lines_of(
      *along_, rows, [&](int64_t p, int64_t b) { return middle[columns * p + b]; },
      [&](int64_t p, int64_t q, FftNumber v) { out[p + rows * q] = v; });
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
