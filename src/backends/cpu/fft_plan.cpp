// Plans: stages of small radices; Bluestein's algorithm for large prime factors and Bailey's for one long line are built on top of them.
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

// A radix p without a formula takes n * p steps. From about here on two transforms of twice the length are cheaper.
constexpr int64_t kLargestFactor = 31;

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

// Powers of two are eights, with one or two fours or a two where these do not come out even.
std::vector<int> radices_of(int64_t n) {
  std::vector<int> out;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  for (; twos >= 3 && twos != 4; twos -= 3) out.push_back(8);
  for (; twos >= 2; twos -= 2) out.push_back(4);
  if (twos == 1) out.push_back(2);
  for (int p = 3; n > 1; p += 2)
    for (; n % p == 0; n /= p) out.push_back(p);
  return out;
}

// A line from this length on is a matrix, whose columns fill registers; shorter ones, and those that have no such form, are a number at a
// time.
constexpr int64_t kShortestSplit = 256;
// Bytes of a block that the second cache holds together with its scratch; longer lines are better alone.
constexpr int64_t kBlockBytes = int64_t{1} << 18;
// Longer lines never come in blocks.
constexpr int64_t kLongestBlock = int64_t{1} << 18;

// The divisor of n nearest to its root, from below.
int64_t middle_divisor(int64_t n) {
  auto d = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % d != 0) --d;
  return d;
}

struct Root {
  double re, im;
};
// exp(-2 pi i m / n)
Root root(int64_t m, int64_t n) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(m) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}
template <class T>
void append(std::vector<T>& pairs, const Root& r) {
  pairs.push_back(static_cast<T>(r.re));
  pairs.push_back(static_cast<T>(r.im));
}

// All exp(-2 pi i m / n) as products of two tables.
class Roots {
 public:
  explicit Roots(int64_t n) {
    for (int64_t m = 0; m < kFine; ++m) fine_.push_back(root(m, n));
    for (int64_t m = 0; m < n; m += kFine) coarse_.push_back(root(m, n));
  }
  Root at(int64_t m) const {
    const Root &a = coarse_[static_cast<std::size_t>(m / kFine)], &b = fine_[static_cast<std::size_t>(m % kFine)];
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }

 private:
  static constexpr int64_t kFine = 1024;
  std::vector<Root> coarse_, fine_;
};

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

template <class T>
FftWorkspace<T>& inside(FftWorkspace<T>& workspace) {
  if (!workspace.inner) workspace.inner = std::make_unique<FftWorkspace<T>>();
  return *workspace.inner;
}

}  // namespace

bool fft_wants_double(int64_t n) { return largest_prime_factor(n) > kLargestFactor; }

template <class T>
bool FftPlan<T>::takes_blocks() const {
  if (convolution_) return convolution_->takes_blocks();
  return !down_ || numbers(true) * static_cast<int64_t>(sizeof(T)) <= kBlockBytes;
}

template <class T>
FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  const int64_t rows = n >= kShortestSplit ? middle_divisor(n) : 1;
  if (rows >= loops_.lanes && 2 * (n / rows) <= kLongestBlock) plan_split(rows);  // twice: for a convolution
  if (down_ && n > kLongestBlock) return;
  if (largest_prime_factor(n) > kLargestFactor)
    plan_chirp();
  else
    plan_stages();
}

template <class T>
T* FftPlan<T>::transform(T* x, bool wide, bool forward, T scale, FftWorkspace<T>& workspace) const {
  if (down_ && !wide) {
    transform_in_parts(x, x, forward, scale, workspace);
    return x;
  }
  if (convolution_) return chirp_transform(x, wide, forward, scale, workspace);
  return loops_.transform(stages_, x, workspace.scratch.numbers(numbers(wide) + 2 * width(wide)), wide, forward, scale);
}

template <class T>
void FftPlan<T>::plan_stages() {
  stages_.n = n_;
  stages_.radices = radices_of(n_);
  int64_t length = n_;
  for (const int p : stages_.radices) {
    const int64_t m = length / p;
    for (int64_t k = 0; k < m; ++k)
      for (int64_t j = 1; j < p; ++j) append(stages_.twiddles, root(j * k, length));
    if (std::find(std::begin(kFftRadices), std::end(kFftRadices), p) == std::end(kFftRadices))
      for (int64_t j = 0; j < p; ++j) append(stages_.roots, root(j, p));
    length = m;
  }
}

// Bluestein (1970): with w[k] = exp(-pi i k^2 / n) and jk = (j^2 + k^2 - (k - j)^2) / 2,
//   X[k] = w[k] * sum_j (x[j] w[j]) conj(w[k - j]),
// a convolution, which is done with transforms of a length m >= 2n - 1 of small factors.
template <class T>
void FftPlan<T>::plan_chirp() {
  const int64_t m = quick_length(2 * n_ - 1);
  convolution_ = fft_plan<T>(m);
  std::vector<T> wrapped(static_cast<std::size_t>(2 * m));
  int64_t square = 0;  // k^2 modulo 2n, the period of w: exact where k^2 itself would overflow or lose digits
  for (int64_t k = 0; k < n_; ++k) {
    const Root w = root(square, 2 * n_);
    append(chirp_, w);
    for (const int64_t at : {k, (m - k) % m}) {
      wrapped[static_cast<std::size_t>(2 * at)] = static_cast<T>(w.re / static_cast<double>(m));
      wrapped[static_cast<std::size_t>(2 * at + 1)] = static_cast<T>(-w.im / static_cast<double>(m));
    }
    square = (square + 2 * k + 1) % (2 * n_);
  }
  FftWorkspace<T> workspace;
  const T* const spectrum = convolution_->transform(wrapped.data(), false, true, 1, workspace);
  chirp_spectrum_.assign(spectrum, spectrum + 2 * m);
}

template <class T>
T* FftPlan<T>::chirp_transform(T* x, bool wide, bool forward, T scale, FftWorkspace<T>& workspace) const {
  FftWorkspace<T>& inner = inside(workspace);
  const int64_t m = convolution_->size(), lines = width(wide);
  T* const padded = workspace.middle.numbers(convolution_->numbers(wide));
  // An inverse transform is the forward one of the conjugate, conjugated.
  const auto copy = [&](const T* from, T* to) {
    for (int64_t i = 0; i < 2 * n_; ++i)
      for (int64_t l = 0; l < lines; ++l) to[i * lines + l] = forward || i % 2 == 0 ? from[i * lines + l] : -from[i * lines + l];
  };
  copy(x, padded);
  std::fill(padded + numbers(wide), padded + convolution_->numbers(wide), T(0));
  loops_.multiply(padded, chirp_.data(), n_, wide);
  T* const spectrum = convolution_->transform(padded, wide, true, 1, inner);
  loops_.multiply(spectrum, chirp_spectrum_.data(), m, wide);
  if (spectrum != padded) std::copy(spectrum, spectrum + convolution_->numbers(wide), padded);
  T* const result = convolution_->transform(padded, wide, false, scale, inner);
  loops_.multiply(result, chirp_.data(), n_, wide);
  copy(result, x);
  return x;
}

template <class T>
void FftPlan<T>::plan_split(int64_t rows) {
  const int64_t columns = n_ / rows, lanes = loops_.lanes;
  down_ = fft_plan<T>(rows);
  along_ = fft_plan<T>(columns);
  const Roots roots(n_);
  T* to = factors_.numbers((columns + lanes - 1) / lanes * down_->numbers(true));
  for (int64_t first = 0; first < columns; first += lanes)
    for (int64_t p = 0; p < rows; ++p, to += 2 * lanes)
      for (int64_t l = 0; l < lanes; ++l) {
        const Root r = roots.at((first + l) * p % n_);
        to[l] = static_cast<T>(r.re);
        to[lanes + l] = static_cast<T>(r.im);
      }
}

// Bailey (1990), "FFTs in external or hierarchical memory": with n = r c, j = c a + b and k = p + r q,
//   X[p + r q] = sum_b exp(-2 pi i b q / c) exp(-2 pi i b p / n) sum_a exp(-2 pi i a p / r) x[c a + b],
// transforms down the columns of a matrix of r rows, a factor for each element, and transforms along its rows.
template <class T>
void FftPlan<T>::transform_in_parts(const T* from, T* to, bool forward, T scale, FftWorkspace<T>& workspace) const {
  const int64_t lanes = loops_.lanes, blocks = (along_->size() + lanes - 1) / lanes;
  T* const middle = workspace.middle.numbers(blocks * down_->numbers(true));
  FftWorkspace<T>& inner = inside(workspace);
  split_columns(from, middle, forward, inner);
  split_rows(middle, to, forward, scale, inner);
}

// Blocks that a thread takes at once: enough for what it costs to hand them out.
namespace {
template <class T>
int64_t blocks_at_once(const FftPlan<T>& plan) {
  constexpr int64_t kNumbers = int64_t{1} << 15;
  return std::max<int64_t>(1, kNumbers / plan.numbers(true));
}
}  // namespace

template <class T>
void FftPlan<T>::split_columns(const T* x, T* middle, bool forward, FftWorkspace<T>& callers) const {
  const int64_t columns = along_->size(), lanes = loops_.lanes, numbers = down_->numbers(true), blocks = (columns + lanes - 1) / lanes;
  parallel_for(0, blocks, blocks_at_once(*down_), [&](int64_t begin, int64_t end) {
    FftWorkspace<T> own;
    FftWorkspace<T>& workspace = end - begin == blocks ? callers : own;
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * lanes, count = std::min(lanes, columns - first);
      T* const block = middle + b * numbers;
      loops_.read({x + 2 * first, 1, columns, count}, down_->size(), block);
      const T* const done = down_->transform(block, true, forward, 1, workspace);
      loops_.multiply_each(done, factors_.get() + b * numbers, down_->size(), !forward, block);
    }
  });
}

template <class T>
void FftPlan<T>::split_rows(const T* middle, T* out, bool forward, T scale, FftWorkspace<T>& callers) const {
  const int64_t rows = down_->size(), columns = along_->size(), lanes = loops_.lanes, blocks = (rows + lanes - 1) / lanes;
  parallel_for(0, blocks, blocks_at_once(*along_), [&](int64_t begin, int64_t end) {
    FftWorkspace<T> own;
    FftWorkspace<T>& workspace = end - begin == blocks ? callers : own;  // one thread's: its memory is there already
    T* const block = workspace.block.numbers(along_->numbers(true));
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * lanes, count = std::min(lanes, rows - first);
      loops_.turn(middle, rows, columns, first, count, block);
      T* const done = along_->transform(block, true, forward, scale, workspace);
      loops_.write(done, columns, {out + 2 * first, 1, rows, count});
    }
  });
}

template <class T>
RealFftFactors<T>::RealFftFactors(int64_t n) {
  for (int64_t k = 0; k < n / 2; ++k) append(pairs, root(k, n));
}

template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n) {
  static PlanCache<FftPlan<T>> cache;
  return cache.get(n);
}

template <class T>
std::shared_ptr<const RealFftFactors<T>> real_fft_factors(int64_t n) {
  static PlanCache<RealFftFactors<T>> cache;
  return cache.get(n);
}

template class FftPlan<float>;
template class FftPlan<double>;
template std::shared_ptr<const FftPlan<float>> fft_plan(int64_t n);
template std::shared_ptr<const FftPlan<double>> fft_plan(int64_t n);
template std::shared_ptr<const RealFftFactors<float>> real_fft_factors(int64_t n);
template std::shared_ptr<const RealFftFactors<double>> real_fft_factors(int64_t n);

}  // namespace cresset::cpu
