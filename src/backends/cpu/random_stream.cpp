// Distributions of the CPU generator.
#include "backends/cpu/random_stream.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/random_words.h"

namespace cresset::cpu {

using namespace random_detail;

namespace {

// A buffer of at most kDoubleChunk doubles, on the stack for few.
class DoubleBuffer {
 public:
  explicit DoubleBuffer(int64_t n) {
    if (n > kSmall) heap_.reset(new double[static_cast<std::size_t>(std::min(n, kDoubleChunk))]);
  }
  double* data() { return heap_ ? heap_.get() : small_; }

 private:
  static constexpr int64_t kSmall = 64;
  double small_[kSmall];
  std::unique_ptr<double[]> heap_;
};

// out[i] = op(u[i])
template <class T, class Op>
struct MapLoop {
  static CRESSET_ALWAYS_INLINE void run(const double* u, T* out, int64_t n, Op op) {
    for (int64_t i = 0; i < n; ++i) out[i] = narrow<T>(op(u[i]));
  }
};
// out[i] = op(u) for successive uniform doubles u; drawn serially, computed in parallel.
template <class T, class Op>
void map_uniform(T* out, int64_t n, CPUGeneratorImpl& generator, Op op) {
  DoubleBuffer buffer(n);
  double* u = buffer.data();
  for (int64_t first = 0; first < n; first += kDoubleChunk) {
    const int64_t count = std::min(kDoubleChunk, n - first);
    unit_fill(u, count, generator);
    T* target = out + first;
    parallel_for(0, count, kTranscendentalGrain,
                 [&](int64_t b, int64_t e) { run<MapLoop<T, Op>>(static_cast<const double*>(u + b), target + b, e - b, op); });
  }
}

}  // namespace

// ---- uniform

template <class T>
void uniform_fill(T* out, int64_t n, double from, double to, CPUGeneratorImpl& generator) {
  using O = opmath_type<T>;
  check_uniform_bounds<T>(from, to);
  const O low = static_cast<O>(from), high = static_cast<O>(to), span = high - low;
  const Excluded<T> excluded(narrow<T>(high));
  map_words(n, kWordsPerUniform<T>, generator, [&](const uint32_t* words, int64_t first, int64_t count) {
    run<UniformLoop<T>>(words, out + first, count, low, span, excluded);
  });
}

// ---- normal

namespace {

// Fills n normals in blocks; what is left after whole blocks is drawn, dropped, and the last sixteen elements
// are drawn anew.
template <class T>
void normal_block_fill(T* out, int64_t n, T mean, T std, CPUGeneratorImpl& generator) {
  const int64_t whole = n / kNormalBlock * kNormalBlock;
  const int64_t chunk = std::is_same_v<T, double> ? kDoubleChunk : kWordStage;
  for (int64_t first = 0; first < whole; first += chunk) {
    const int64_t count = std::min(chunk, whole - first);
    unit_fill(out + first, count, generator);
    transform_blocks(out + first, count / kNormalBlock, mean, std);
  }
  if (whole == n) return;
  T* last = out + n - kNormalBlock;
  T dropped[kNormalBlock];
  unit_fill(dropped, n - whole, generator);
  unit_fill(last, kNormalBlock, generator);
  transform_blocks(last, 1, mean, std);
}

template <class T>
struct NarrowLoop {
  static CRESSET_ALWAYS_INLINE void run(const float* in, T* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = narrow<T>(in[i]);
  }
};

// Half types: blocks of float, rounded. Nothing is drawn for the incomplete block before the last sixteen are
// drawn.
template <class T>
void normal_block_fill_reduced(T* out, int64_t n, float mean, float std, CPUGeneratorImpl& generator) {
  float block[kWordStage];
  const int64_t whole = n / kNormalBlock * kNormalBlock;
  const auto draw = [&](T* target, int64_t count) {
    unit_fill(block, count, generator);
    transform_blocks(block, count / kNormalBlock, mean, std);
    run<NarrowLoop<T>>(static_cast<const float*>(block), target, count);
  };
  for (int64_t first = 0; first < whole; first += kWordStage) draw(out + first, std::min(kWordStage, whole - first));
  if (whole != n) draw(out + n - kNormalBlock, kNormalBlock);
}

// Writes finish(z) for the two normals of each pair of uniform doubles.
template <class T, class Finish>
struct PairLoop {
  static CRESSET_ALWAYS_INLINE void run(const double* u, T* out, int64_t pairs, Finish finish) {
    for (int64_t k = 0; k < pairs; ++k) {
      const double radius = std::sqrt(-2.0 * std::log1p(-u[2 * k + 1]));
      const double angle = 2.0 * std::numbers::pi * u[2 * k];
      out[2 * k] = narrow<T>(finish(radius * std::cos(angle)));
      out[2 * k + 1] = narrow<T>(finish(radius * std::sin(angle)));
    }
  }
};

struct Affine {
  double mean, std;
  CRESSET_ALWAYS_INLINE double operator()(double z) const { return std::fma(z, std, mean); }
};
struct ExpAffine {
  double mean, std;
  CRESSET_ALWAYS_INLINE double operator()(double z) const { return std::exp(std::fma(z, std, mean)); }
};
struct Identity {
  CRESSET_ALWAYS_INLINE double operator()(double z) const { return z; }
};

template <class T, class Finish>
void serial_normals(T* out, int64_t n, CPUGeneratorImpl& generator, Finish finish) {
  if (n <= 0) return;
  if (const std::optional<double> kept = generator.next_double_normal_sample()) {
    generator.set_next_double_normal_sample(std::nullopt);
    *out++ = narrow<T>(finish(*kept));
    --n;
  }
  DoubleBuffer buffer(n);
  double* u = buffer.data();
  const int64_t even = n / 2 * 2;
  for (int64_t first = 0; first < even; first += kDoubleChunk) {
    const int64_t count = std::min(kDoubleChunk, even - first);
    unit_fill(u, count, generator);
    T* target = out + first;
    parallel_for(0, count / 2, kTranscendentalGrain / 2, [&](int64_t b, int64_t e) {
      run<PairLoop<T, Finish>>(static_cast<const double*>(u + 2 * b), target + 2 * b, e - b, finish);
    });
  }
  if (even == n) return;
  double pair[2], normals[2];
  unit_fill(pair, 2, generator);
  run<PairLoop<double, Identity>>(static_cast<const double*>(pair), normals + 0, int64_t{1}, Identity{});
  out[even] = narrow<T>(finish(normals[0]));
  generator.set_next_double_normal_sample(normals[1]);
}

}  // namespace

template <class T>
void normal_serial_fill(T* out, int64_t n, double mean, double std, CPUGeneratorImpl& generator) {
  check_normal_std(std);
  serial_normals(out, n, generator, Affine{mean, std});
}

template <class T>
void normal_fill(T* out, int64_t n, double mean, double std, CPUGeneratorImpl& generator) {
  using O = opmath_type<T>;
  if (n < kNormalBlock) return normal_serial_fill(out, n, mean, std, generator);
  check_normal_std(std);
  if constexpr (is_reduced_floating_point_v<T>) {
    normal_block_fill_reduced(out, n, static_cast<O>(mean), static_cast<O>(std), generator);
  } else {
    normal_block_fill(out, n, static_cast<O>(mean), static_cast<O>(std), generator);
  }
}

template <class T>
void log_normal_fill(T* out, int64_t n, double mean, double std, CPUGeneratorImpl& generator) {
  CRESSET_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
  serial_normals(out, n, generator, ExpAffine{mean, std});
}

// ---- bernoulli

namespace {

template <class T>
CRESSET_ALWAYS_INLINE T flag_to(bool flag) {
  if constexpr (is_reduced_floating_point_v<T>)
    return T(flag ? 1.0f : 0.0f);
  else
    return static_cast<T>(flag);
}
template <class T>
struct BernoulliLoop {
  static CRESSET_ALWAYS_INLINE void run(const uint32_t* words, T* out, int64_t n, uint64_t threshold) {
    for (int64_t i = 0; i < n; ++i) out[i] = flag_to<T>((word64(words, i) & kMask53) < threshold);
  }
};
template <class T, class P>
struct BernoulliTensorLoop {
  static CRESSET_ALWAYS_INLINE void run(const uint32_t* words, const P* p, T* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = flag_to<T>(unit_uniform<P>(words, i) < p[i]);
  }
};

}  // namespace

template <class T>
void bernoulli_fill(T* out, int64_t n, double p, CPUGeneratorImpl& generator) {
  CRESSET_CHECK(p >= 0.0 && p <= 1.0, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  // k * 2^-53 < p exactly when k < ceil(p * 2^53)
  const uint64_t threshold = static_cast<uint64_t>(std::ceil(p * 0x1p53));
  map_words(n, 2, generator,
            [&](const uint32_t* words, int64_t first, int64_t count) { run<BernoulliLoop<T>>(words, out + first, count, threshold); });
}

template <class T, class P>
void bernoulli_tensor_fill(T* out, const P* p, int64_t n, CPUGeneratorImpl& generator) {
  for (int64_t i = 0; i < n; ++i)
    CRESSET_CHECK(p[i] >= P(0) && p[i] <= P(1), "bernoulli expects probabilities in [0, 1], but element ", i, " is ", p[i]);
  map_words(n, kWordsPerUniform<P>, generator, [&](const uint32_t* words, int64_t first, int64_t count) {
    run<BernoulliTensorLoop<T, P>>(words, p + first, out + first, count);
  });
}

// ---- functions of one uniform number

namespace {

struct ExponentialOf {
  double factor;
  CRESSET_ALWAYS_INLINE double operator()(double u) const { return factor * std::log1p(-u); }
};
struct GeometricOf {
  double log_failure;
  CRESSET_ALWAYS_INLINE double operator()(double u) const { return std::ceil(std::log(u) / log_failure); }
};
struct CauchyOf {
  double median, sigma;
  CRESSET_ALWAYS_INLINE double operator()(double u) const { return std::fma(std::tan(std::numbers::pi * (u - 0.5)), sigma, median); }
};

}  // namespace

template <class T>
void exponential_fill(T* out, int64_t n, double lambda, CPUGeneratorImpl& generator) {
  CRESSET_CHECK(lambda > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  map_uniform(out, n, generator, ExponentialOf{-1.0 / lambda});
}
template <class T>
void geometric_fill(T* out, int64_t n, double p, CPUGeneratorImpl& generator) {
  CRESSET_CHECK(p > 0.0 && p < 1.0, "geometric_ expects p to be in (0, 1), but got p=", p);
  map_uniform(out, n, generator, GeometricOf{std::log1p(-p)});
}
template <class T>
void cauchy_fill(T* out, int64_t n, double median, double sigma, CPUGeneratorImpl& generator) {
  CRESSET_CHECK(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  map_uniform(out, n, generator, CauchyOf{median, sigma});
}

// ---- integers

namespace {

constexpr uint64_t kWideSpan = uint64_t{1} << 28;  // spans from here on use 64-bit draws

// x % d for 32-bit x and 1 <= d < 2^32 (Lemire, Kaser, Kurz: Faster remainder by direct computation, 2019).
class Remainder32 {
 public:
  explicit Remainder32(uint64_t d) : d_(d), magic_(~uint64_t{0} / d + 1) {}
  CRESSET_ALWAYS_INLINE uint32_t operator()(uint32_t x) const {
    return static_cast<uint32_t>((static_cast<unsigned __int128>(magic_ * x) * d_) >> 64);
  }

 private:
  uint64_t d_, magic_;
};

template <class T, class I>
CRESSET_ALWAYS_INLINE T integer_to(I value) {
  if constexpr (is_reduced_floating_point_v<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

constexpr int floor_log2(uint64_t x) { return 63 - std::countl_zero(x | 1); }
constexpr uint64_t magnitude(int64_t x) { return x < 0 ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x); }

// value as T, and back; magnitudes that leave int64_t by rounding stay at its ends.
template <class T>
int64_t rounded(int64_t value) {
  const auto as = static_cast<opmath_type<T>>(integer_to<T>(value));
  return as >= 0x1p63f    ? std::numeric_limits<int64_t>::max()
         : as <= -0x1p63f ? std::numeric_limits<int64_t>::min()
                          : static_cast<int64_t>(as);
}
// Distance from a bound that T rounds outwards to the next value inside.
template <class T>
int64_t inward_step(int64_t near) {
  return int64_t{1} << std::max(0, floor_log2(magnitude(near)) - std::numeric_limits<T>::digits + 1);
}
template <class T>
int64_t inward_from(int64_t from) {
  if (from == std::numeric_limits<int64_t>::max()) return from;
  const int64_t next = rounded<T>(from + 1);
  return next < from ? next + inward_step<T>(from + 1) : from;
}
template <class T>
int64_t inward_to(int64_t to) {
  const int64_t previous = rounded<T>(to - 1);
  return previous >= to ? previous - inward_step<T>(to - 1) : to;
}

// Types as C++ spells them, for error texts.
template <class T>
constexpr const char* kCppName = "";
template <>
constexpr const char* kCppName<bool> = "bool";
template <>
constexpr const char* kCppName<uint8_t> = "unsigned char";
template <>
constexpr const char* kCppName<int8_t> = "signed char";
template <>
constexpr const char* kCppName<int16_t> = "short int";
template <>
constexpr const char* kCppName<int32_t> = "int";
template <>
constexpr const char* kCppName<int64_t> = "long int";
template <>
constexpr const char* kCppName<uint16_t> = "short unsigned int";
template <>
constexpr const char* kCppName<uint32_t> = "unsigned int";
template <>
constexpr const char* kCppName<uint64_t> = "long unsigned int";
template <>
constexpr const char* kCppName<Half> = "c10::Half";
template <>
constexpr const char* kCppName<BFloat16> = "c10::BFloat16";
template <>
constexpr const char* kCppName<float> = "float";
template <>
constexpr const char* kCppName<double> = "double";

template <class T>
void check_integer_bound(int64_t value, const char* name) {
  bool inside;
  if constexpr (std::is_same_v<T, bool>) {
    inside = value == 0 || value == 1;
  } else if constexpr (std::is_integral_v<T>) {
    inside = std::in_range<T>(value);
  } else {
    const double highest = static_cast<opmath_type<T>>(std::numeric_limits<T>::max());
    inside = static_cast<double>(value) >= -highest && static_cast<double>(value) <= highest;
  }
  CRESSET_CHECK(inside, name, " is out of bounds for ", kCppName<T>);
  if constexpr (!std::is_integral_v<T>) {
    constexpr int digits = std::numeric_limits<T>::digits;
    if (magnitude(value) > uint64_t{1} << digits)
      warn(str("random_: ", name, " is out of bounds [-(2^", digits, "), 2^", digits, "]. Due to precision limitations ", scalar_type_of<T>,
               " can support discrete uniform distribution only within this range."));
  }
}

}  // namespace

void check_wide_unsigned_range(ScalarType type, int64_t from, int64_t to) {
  const auto check = [&]<class T>(T) {
    check_integer_bound<T>(from, "from");
    check_integer_bound<T>(to - 1, "to - 1");
  };
  type == kUInt16 ? check(uint16_t{}) : type == kUInt32 ? check(uint32_t{}) : check(uint64_t{});
}

template <class T>
IntegerRange integer_range(int64_t from, std::optional<int64_t> to) {
  constexpr bool integral = std::is_integral_v<T>;
  if (to) {
    CRESSET_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", *to);
    int64_t low = from, high = *to;
    if constexpr (!integral) {
      low = inward_from<T>(from);
      high = inward_to<T>(*to);
      CRESSET_CHECK(low < high, "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=", low,
                    " >= to=", high);
    }
    check_integer_bound<T>(low, "from");
    check_integer_bound<T>(high - 1, "to - 1");
    return {low, static_cast<uint64_t>(high) - static_cast<uint64_t>(low)};
  }
  if constexpr (std::is_same_v<T, int64_t> || !(integral || std::is_same_v<T, Half>))
    if (from == std::numeric_limits<int64_t>::min()) return {0, 0};
  int64_t last;
  if constexpr (integral) {
    last = static_cast<int64_t>(std::numeric_limits<T>::max());
  } else {
    last = int64_t{1} << std::numeric_limits<T>::digits;
    from = inward_from<T>(from);
  }
  check_integer_bound<T>(from, "from");
  CRESSET_CHECK(from <= last, "random_ expects 'from' to be at most ", last, " for ", scalar_type_of<T>, ", but got from=", from);
  return {from, static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1};
}

template <class T>
void random_range_fill(T* out, int64_t n, IntegerRange range, CPUGeneratorImpl& generator) {
  const uint64_t base = static_cast<uint64_t>(range.base), span = range.span;
  if (span != 0 && span < kWideSpan) {
    const Remainder32 remainder(span);
    map_words(n, 1, generator, [&](const uint32_t* words, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[first + i] = integer_to<T>(static_cast<int64_t>(base + remainder(words[i])));
    });
    return;
  }
  map_words(n, 2, generator, [&](const uint32_t* words, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t word = word64(words, i);
      out[first + i] = integer_to<T>(static_cast<int64_t>(base + (span == 0 ? word : word % span)));
    }
  });
}

template <class T>
void random_fill(T* out, int64_t n, CPUGeneratorImpl& generator) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int64_t>) {
    constexpr uint64_t span = std::is_same_v<T, double> ? (uint64_t{1} << 53) + 1 : uint64_t{1} << 63;
    map_words(n, 2, generator, [&](const uint32_t* words, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[first + i] = static_cast<T>(static_cast<int64_t>(word64(words, i) % span));
    });
  } else {
    constexpr uint32_t span = (1u << std::numeric_limits<T>::digits) + (std::is_integral_v<T> ? 0u : 1u);
    map_words(n, 1, generator, [&](const uint32_t* words, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[first + i] = integer_to<T>(static_cast<int32_t>(words[i] % span));
    });
  }
}

// ---- permutations

namespace {

template <class T>
void check_permutation(int64_t n) {
  CRESSET_CHECK(n >= 0, "randperm: n must be non-negative; n=", n, " was given.");
  const double largest =
      std::is_integral_v<T> ? static_cast<double>(std::numeric_limits<T>::max()) : std::ldexp(1.0, std::numeric_limits<T>::digits);
  CRESSET_CHECK(static_cast<double>(n) - 1.0 <= largest, "randperm: n=", n, " is too large for the result dtype ", scalar_type_of<T>, ".");
}

}  // namespace

template <class T>
void randperm_inside_out_fill(T* out, int64_t n, CPUGeneratorImpl& generator) {
  check_permutation<T>(n);
  for_words(n, 2, generator, [&](const uint32_t* words, int64_t first, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = first + k, z = static_cast<int64_t>(word64(words, k) % static_cast<uint64_t>(i + 1));
      if (z != i) out[i] = out[z];
      out[z] = integer_to<T>(i);
    }
  });
}

template <class T>
void randperm_fill(T* out, int64_t n, CPUGeneratorImpl& generator) {
  if (n >= kLargeRandperm) return randperm_inside_out_fill(out, n, generator);
  check_permutation<T>(n);
  for (int64_t i = 0; i < n; ++i) out[i] = integer_to<T>(i);
  for_words(n - 1, 1, generator, [&](const uint32_t* words, int64_t first, int64_t count) {
    // Partners are known ahead, so their cache lines are asked for before the swaps.
    uint32_t partner[kWordStage];
    for (int64_t k = 0; k < count; ++k) {
      partner[k] = words[k] % static_cast<uint32_t>(n - first - k);
      __builtin_prefetch(out + first + k + partner[k], 1);
    }
    for (int64_t k = 0; k < count; ++k) std::swap(out[first + k], out[first + k + partner[k]]);
  });
}

// ---- multinomial

namespace {

template <class T>
void check_multinomial(const T* p, int64_t rows, int64_t categories, int64_t samples) {
  using O = opmath_type<T>;
  CRESSET_CHECK(samples > 0, "multinomial: cannot sample n_sample <= 0 samples; n_sample=", samples, " was given.");
  for (int64_t r = 0; r < rows; ++r, p += categories) {
    O sum = 0;
    for (int64_t c = 0; c < categories; ++c) {
      const O value = static_cast<O>(p[c]);
      CRESSET_CHECK(value >= 0 && std::isfinite(value), "multinomial: probability tensor contains either `inf`, `nan` or element < 0; row ",
                    r, ", column ", c, " is ", value, ".");
      sum += value;
    }
    CRESSET_CHECK(sum > 0, "multinomial: invalid multinomial distribution (sum of probabilities <= 0); row ", r, " sums to ", sum, ".");
  }
}

}  // namespace

template <class T>
void multinomial_with_replacement(int64_t* out, const T* p, int64_t rows, int64_t categories, int64_t samples, CPUGeneratorImpl& generator,
                                  bool by_columns) {
  using O = opmath_type<T>;
  if (samples == 1) return multinomial_without_replacement(out, p, rows, categories, samples, generator, by_columns);
  check_multinomial(p, rows, categories, samples);
  std::vector<O> cumulative(static_cast<std::size_t>(categories));
  DoubleBuffer buffer(samples);
  for (int64_t r = 0; r < rows; ++r, p += categories) {
    O sum = 0;
    for (int64_t c = 0; c < categories; ++c) cumulative[static_cast<std::size_t>(c)] = sum += static_cast<O>(p[c]);
    for (O& c : cumulative) c /= sum;
    cumulative.back() = 1;  // rounding must not leave a gap at the end
    for (int64_t first = 0; first < samples; first += kDoubleChunk) {
      const int64_t count = std::min(kDoubleChunk, samples - first);
      unit_fill(buffer.data(), count, generator);
      for (int64_t i = 0; i < count; ++i)
        *out++ = std::lower_bound(cumulative.begin(), cumulative.end(), buffer.data()[i]) - cumulative.begin();
    }
  }
}

template <class T>
void multinomial_without_replacement(int64_t* out, const T* p, int64_t rows, int64_t categories, int64_t samples,
                                     CPUGeneratorImpl& generator, bool by_columns) {
  using O = opmath_type<T>;
  CRESSET_CHECK(samples <= categories,
                "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement; n_sample=", samples, " and ",
                categories, " categories were given.");
  check_multinomial(p, rows, categories, samples);
  // The largest of p / q with exponential q: each order has the probability of drawing without replacement.
  const int64_t n = rows * categories;
  const std::unique_ptr<T[]> scores(new T[static_cast<std::size_t>(n)]);
  exponential_fill(scores.get(), n, 1.0, generator);
  const auto score_of = [&](int64_t r, int64_t c) -> T& {
    return scores[static_cast<std::size_t>(by_columns ? c * rows + r : r * categories + c)];
  };
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < categories; ++c)
      score_of(r, c) = narrow<T>(static_cast<O>(p[r * categories + c]) / static_cast<O>(score_of(r, c)));
  std::vector<std::pair<O, int64_t>> order(static_cast<std::size_t>(categories));
  const auto begin = order.begin(), end = order.end();
  const auto greater = [](const auto& a, const auto& b) { return (std::isnan(a.first) && !std::isnan(b.first)) || a.first > b.first; };
  for (int64_t r = 0; r < rows; ++r, out += samples) {
    for (int64_t c = 0; c < categories; ++c) order[static_cast<std::size_t>(c)] = {static_cast<O>(score_of(r, c)), c};
    if (samples == 1) {
      out[0] = std::min_element(begin, end, greater)->second;
      continue;
    }
    // The selection also fixes the order of equal scores (probability 0, or rounding of half types).
    if (samples * 64 <= categories) {
      std::partial_sort(begin, begin + samples, end, greater);
    } else {
      std::nth_element(begin, begin + (samples - 1), end, greater);
      std::sort(begin, begin + (samples - 1), greater);
    }
    std::transform(begin, begin + samples, out, [](const auto& score) { return score.second; });
  }
}

// ---- instantiations

#define CRESSET_FLOATING(_) _(float) _(double) _(Half) _(BFloat16)
#define CRESSET_REAL(_) CRESSET_FLOATING(_) _(uint8_t) _(int8_t) _(int16_t) _(int32_t) _(int64_t)
#define CRESSET_INSTANTIATE(T)                                                                                        \
  template void uniform_fill(T*, int64_t, double, double, CPUGeneratorImpl&);                                         \
  template void normal_fill(T*, int64_t, double, double, CPUGeneratorImpl&);                                          \
  template void normal_serial_fill(T*, int64_t, double, double, CPUGeneratorImpl&);                                   \
  template void log_normal_fill(T*, int64_t, double, double, CPUGeneratorImpl&);                                      \
  template void exponential_fill(T*, int64_t, double, CPUGeneratorImpl&);                                             \
  template void cauchy_fill(T*, int64_t, double, double, CPUGeneratorImpl&);                                          \
  template void multinomial_with_replacement(int64_t*, const T*, int64_t, int64_t, int64_t, CPUGeneratorImpl&, bool); \
  template void multinomial_without_replacement(int64_t*, const T*, int64_t, int64_t, int64_t, CPUGeneratorImpl&, bool);
CRESSET_FLOATING(CRESSET_INSTANTIATE)
#undef CRESSET_INSTANTIATE
#define CRESSET_INSTANTIATE(T)                                          \
  template void geometric_fill(T*, int64_t, double, CPUGeneratorImpl&); \
  template void randperm_fill(T*, int64_t, CPUGeneratorImpl&);          \
  template void randperm_inside_out_fill(T*, int64_t, CPUGeneratorImpl&);
CRESSET_REAL(CRESSET_INSTANTIATE)
#undef CRESSET_INSTANTIATE
#define CRESSET_INSTANTIATE(T)                                                        \
  template void bernoulli_fill(T*, int64_t, double, CPUGeneratorImpl&);               \
  template void bernoulli_tensor_fill(T*, const float*, int64_t, CPUGeneratorImpl&);  \
  template void bernoulli_tensor_fill(T*, const double*, int64_t, CPUGeneratorImpl&); \
  template IntegerRange integer_range<T>(int64_t, std::optional<int64_t>);            \
  template void random_range_fill(T*, int64_t, IntegerRange, CPUGeneratorImpl&);      \
  template void random_fill(T*, int64_t, CPUGeneratorImpl&);
CRESSET_REAL(CRESSET_INSTANTIATE)
CRESSET_INSTANTIATE(bool)

}  // namespace cresset::cpu
