// Parallel fills of counter-based streams.
#include <algorithm>

#include "backends/cpu/random_stream.h"
#include "backends/cpu/random_words.h"

namespace cresset::cpu {

using namespace random_detail;

namespace {

constexpr int64_t kPhiloxGroup = 256;  // words that one step of a parallel fill makes
constexpr int64_t kPhiloxGrain = 64;

// PhiloxStream::block for 64 successive counters; lanes side by side, so that the rounds vectorise.
struct PhiloxLoop {
  static constexpr int kLanes = kPhiloxGroup / 4;
  static CRESSET_ALWAYS_INLINE void run(uint64_t first, uint64_t subsequence, uint64_t seed, uint32_t* words) {
    alignas(64) uint32_t c[4][kLanes];
    for (int k = 0; k < kLanes; ++k) {
      const uint64_t index = first + static_cast<uint64_t>(k);
      c[0][k] = static_cast<uint32_t>(index);
      c[1][k] = static_cast<uint32_t>(index >> 32);
      c[2][k] = static_cast<uint32_t>(subsequence);
      c[3][k] = static_cast<uint32_t>(subsequence >> 32);
    }
    uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < PhiloxStream::kRounds; ++round, key0 += PhiloxStream::kWeyl0, key1 += PhiloxStream::kWeyl1)
      for (int k = 0; k < kLanes; ++k) {
        const uint64_t a = uint64_t{PhiloxStream::kMultiplier0} * c[0][k], b = uint64_t{PhiloxStream::kMultiplier1} * c[2][k];
        c[0][k] = static_cast<uint32_t>(b >> 32) ^ c[1][k] ^ key0;
        c[1][k] = static_cast<uint32_t>(b);
        c[2][k] = static_cast<uint32_t>(a >> 32) ^ c[3][k] ^ key1;
        c[3][k] = static_cast<uint32_t>(a);
      }
    for (int k = 0; k < kLanes; ++k)
      for (int j = 0; j < 4; ++j) words[4 * k + j] = c[j][k];
  }
};

// Reserves the counters of n elements in steps of per_step elements and calls body(words, first element,
// count) for groups of kPhiloxGroup words, in parallel.
template <class F>
void for_philox_words(int64_t n, int64_t per_step, int words_per_element, PhiloxStream& stream, const F& body) {
  const int64_t steps = (n + per_step - 1) / per_step, per_group = kPhiloxGroup / words_per_element;
  const uint64_t start = stream.take(static_cast<uint64_t>(steps * per_step * words_per_element / 4));
  const uint64_t seed = stream.seed(), subsequence = stream.subsequence();
  parallel_for(0, (n + per_group - 1) / per_group, kPhiloxGrain, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kPhiloxGroup];
    for (int64_t g = begin; g < end; ++g) {
      run<PhiloxLoop>(start + static_cast<uint64_t>(g) * PhiloxLoop::kLanes, subsequence, seed, words + 0);
      body(static_cast<const uint32_t*>(words), g * per_group, std::min(per_group, n - g * per_group));
    }
  });
}

}  // namespace

template <class T>
void philox_uniform_fill(T* out, int64_t n, double from, double to, PhiloxStream& stream) {
  using O = opmath_type<T>;
  check_uniform_bounds<T>(from, to);
  const O low = static_cast<O>(from), high = static_cast<O>(to), span = high - low;
  const Excluded<T> excluded(narrow<T>(high));
  for_philox_words(n, 4 / kWordsPerUniform<T>, kWordsPerUniform<T>, stream, [&](const uint32_t* words, int64_t first, int64_t count) {
    run<UniformLoop<T>>(words, out + first, count, low, span, excluded);
  });
}

template <class T>
void philox_normal_fill(T* out, int64_t n, double mean, double std, PhiloxStream& stream) {
  using O = opmath_type<T>;
  check_normal_std(std);
  constexpr int64_t per_group = kPhiloxGroup / kWordsPerUniform<T>;
  for_philox_words(n, kNormalBlock, kWordsPerUniform<T>, stream, [&](const uint32_t* words, int64_t first, int64_t count) {
    alignas(64) O block[per_group];
    run<UnitLoop<O>>(words, block + 0, per_group);
    transform_blocks(block, (count + kNormalBlock - 1) / kNormalBlock, static_cast<O>(mean), static_cast<O>(std));
    for (int64_t i = 0; i < count; ++i) out[first + i] = narrow<T>(block[i]);
  });
}

#define CRESSET_INSTANTIATE(T)                                                   \
  template void philox_uniform_fill(T*, int64_t, double, double, PhiloxStream&); \
  template void philox_normal_fill(T*, int64_t, double, double, PhiloxStream&);
CRESSET_INSTANTIATE(float)
CRESSET_INSTANTIATE(double)
CRESSET_INSTANTIATE(Half)
CRESSET_INSTANTIATE(BFloat16)

}  // namespace cresset::cpu
